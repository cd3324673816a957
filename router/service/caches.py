"""The cached answers of this machine, for people who look through them."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from router.stages.answers import LocalAnswers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from router.router import SemanticRouter
    from router.stages.validation import KeptAnswer


@dataclass(frozen=True, slots=True)
class KeptEntry:
    """One cached answer.

    Attributes:
        text: the request, normalised.
        context: a digest of what else the answer depends on: settings, scope, history, …
        caches: which caches hold it.
        kept: the answer, and what it rests on.
        age: in seconds.
    """

    text: str
    context: str
    caches: tuple[str, ...]
    kept: KeptAnswer
    age: float


@dataclass(frozen=True, slots=True)
class Caches:
    """All cached answers.

    Attributes:
        entries: most recently used first.
        stats: by cache, its counts since the start.
    """

    entries: tuple[KeptEntry, ...]
    stats: Mapping[str, Mapping[str, Any]]


async def list_caches(router: SemanticRouter, limit: int) -> Caches | None:
    """The answers of this machine; None where they are kept elsewhere, such as in Redis."""
    await router.open()
    if not isinstance(router.cache, LocalAnswers):
        return None
    exact, fuzzy = router.exact, router.fuzzy
    found: dict[tuple[str, str], KeptEntry] = {}
    for cache, entries in (("exact", exact.latest(limit)), ("fuzzy", fuzzy.latest(limit))):
        for text, context, kept, age in entries:
            known = found.get((text, context))
            caches = (cache,) if known is None else (*known.caches, cache)
            found[text, context] = KeptEntry(text, context, caches, kept, age)
    return Caches(
        tuple(found.values())[:limit],
        {"exact": asdict(exact.stats), "fuzzy": asdict(fuzzy.stats)},
    )


async def forget_entry(router: SemanticRouter, text: str, context: str) -> None:
    """Drop one kept answer, for every process that shares the cache."""
    await router.open()
    await router.cache.forget(text, context)
