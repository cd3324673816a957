"""What a caller asks of a ranking beside the request: how many skills, and which in any case."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Final

from router.errors import InvalidRequest
from router.request import names_in
from router.retrieval.index import Match
from router.skills.catalog import Catalog

MAX_LIMIT: Final = 1_000


def check_limit(limit: int) -> None:
    """Raises InvalidRequest when a number of skills to give is out of range."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= MAX_LIMIT:
        raise InvalidRequest(f"limit: {limit!r}; expected 1 to {MAX_LIMIT:,}")


def always_included(
    given: Iterable[str], catalog: Catalog, available: Collection[str] | None
) -> list[str]:
    """The names to give in any case, each once, without those that are not there or not available.

    Raises:
        InvalidRequest: it is one string, or something in it is no string.
    """
    allowed = None if available is None else frozenset(available)
    return [
        name
        for name in dict.fromkeys(names_in("always_include", given))
        if (allowed is None or name in allowed) and catalog.offers(name)
    ]


def with_room(
    matches: Sequence[Match], included: Sequence[str], limit: int
) -> tuple[tuple[Match, ...], list[str]]:
    """The best ``limit`` matches, and the included names that are not among them. The last of the
    matches make room for those names; a match that is itself included stays."""
    best = tuple(matches[:limit])
    missing = [name for name in included if all(match.name != name for match in best)]
    if not missing:
        return best, []
    room = max(limit - len(missing), 0)
    kept = (match for place, match in enumerate(best) if place < room or match.name in included)
    return tuple(kept), missing
