"""Discovery: which skills there are for a need, the installed ones and those that could be.

Ranks and decides nothing. Skills that are not installed have an index of their own, so they can
neither be routed to nor change how the installed ones rank. A score means something within one
index only, because how rare a word is differs between them. So the two rankings are never compared
by score: they are interleaved by rank, the installed skill first of each pair.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Final

from router.concurrency.tasks import in_thread
from router.request import check_limit, names_in
from router.retrieval.encoders import Encoder
from router.retrieval.guarded_encoder import GuardedEncoder
from router.retrieval.index import SkillIndex
from router.retrieval.matches import Match
from router.retrieval.vectors import VectorStore, embeddings_folder
from router.skills.catalog import Catalog
from router.skills.diagnostics import Diagnostic
from router.skills.folders import absolute
from router.skills.listings import SkillListing, read_listing
from router.skills.manifest import SkillManifest

_log: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Discovered:
    """One skill that was found.

    Attributes:
        name: of the skill.
        description: what it does and when to use it, as its author says.
        installed: whether it can be routed to. What is not installed is a suggestion only.
        source: its ``SKILL.md``, or the index that lists it.
        url: where to get it, as an index says; unverified.
        shadows: the ``SKILL.md`` files of the same name that are not offered because this one is
            stronger, strongest first.
        match: what its place rests on; scores compare among equal ``installed`` only.
        reason: the same in words.
    """

    name: str
    description: str
    installed: bool
    source: Path
    url: str | None
    shadows: tuple[Path, ...]
    match: Match
    reason: str


async def discover(
    query: str,
    *,
    catalog: Catalog,
    index: SkillIndex,
    limit: int,
    context: str = "",
    available: Sequence[str] | None = None,
    always_include: Iterable[str] = (),
    listings: ListingIndex | None = None,
) -> tuple[Discovered, ...]:
    """The best skills for a query, best first, with why; the arguments are those of
    ``SemanticRouter.discover``, and ``context`` is what was said before. Skills that are not
    installed are looked for in ``listings``; one that is installed under the same name, or was
    unloaded, is not suggested.

    Raises:
        InvalidRequest: the limit is out of range, or ``always_include`` is no list of names.
        EncoderError: the query, or a skill of a listing, cannot be encoded.
        StoreError: the index of the listings cannot be opened.
        RuntimeError: ``listings`` is closed.
    """
    check_limit(limit)
    included = always_included(always_include, catalog, available)
    ranking = await index.rank(query, context=context, among=available, limit=limit)
    matches, missing = with_room(ranking.matches, included, limit)
    for name in missing:  # each alone: a copy of another skill is not ranked beside it
        matches += (await index.rank(query, context=context, among=[name], limit=1)).matches
    shadows: dict[str, list[Path]] = {}
    for lost in catalog.shadowed:
        shadows.setdefault(lost.manifest.name, []).append(lost.manifest.path)
    installed = [
        _found(
            match,
            catalog.skills[match.name],
            installed=True,
            shadows=tuple(shadows.get(match.name, ())),
        )
        for match in matches
    ]
    if listings is None:
        return tuple(installed)
    taken = catalog.skills.keys() | catalog.hidden
    suggested = await listings.suggest(query, context=context, limit=limit, taken=taken)
    pairs = zip_longest(installed, suggested)
    found = [skill for pair in pairs for skill in pair if skill is not None]
    for place in range(len(found) - 1, -1, -1):  # from the last one, until they are few enough
        if len(found) > limit and found[place].name not in included:
            del found[place]
    return tuple(found)


class ListingIndex:
    """Retrieval over the skills of some listings. Belongs to the event loop that first uses it.

    Nothing is read before it is first asked. From then on each question looks at the listings
    again, in a thread, and encodes what changed; the vectors are kept on disk.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        encoder: Encoder,
        of_requests: GuardedEncoder | None = None,
        state_dir: Path,
    ) -> None:
        """An index that is not open yet.

        Args:
            paths: folders of skills and JSON indexes; the first that lists a name wins.
            of_requests: encodes the questions.
            state_dir: where the vectors are kept, in its folder ``embeddings``.
        """
        self._places = tuple(dict.fromkeys(map(absolute, paths)))
        self._encoder = encoder
        self._of_requests = of_requests
        self._folder = embeddings_folder(state_dir)
        self._turn = asyncio.Lock()
        self._listings: tuple[SkillListing, ...] = ()
        self._listed: dict[str, tuple[SkillManifest, str | None]] = {}
        self._store: VectorStore | None = None
        self._index: SkillIndex | None = None
        self._closed = False

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What could not be read, or was left out, when the listings were last looked at."""
        return tuple(fault for listing in self._listings for fault in _faults(listing))

    async def suggest(
        self, query: str, *, context: str = "", limit: int, taken: Collection[str] = ()
    ) -> tuple[Discovered, ...]:
        """The best listed skills for a query, best first, without those of the taken names.

        A listing that cannot be read is logged and left out.

        Raises:
            EncoderError: the query or a listed skill cannot be encoded.
            StoreError: the index cannot be opened.
            RuntimeError: it is closed.
        """
        if not self._places:
            return ()
        async with self._turn:  # until the ranking is done, because the store may be closed after
            if self._closed:
                raise RuntimeError("this index of listings is closed")
            index = await in_thread(self._refreshed)
            free = None
            if not self._listed.keys().isdisjoint(taken):
                free = [name for name in self._listed if name not in taken]
            ranking = await index.rank(query, context=context, among=free, limit=limit)
            return tuple(
                _found(match, manifest, installed=False, url=url)
                for match in ranking.matches
                for manifest, url in (self._listed[match.name],)
            )

    async def aclose(self) -> None:
        """Close the store, after the question under way. Closing twice is fine."""
        async with self._turn:
            self._closed = True
            if self._store is not None:
                self._store.close()
                self._store = self._index = None

    def _refreshed(self) -> SkillIndex:
        """The index of what the listings list now."""
        before = {listing.path: listing for listing in self._listings}
        self._listings = tuple(
            read_listing(place, previous=before.get(place)) for place in self._places
        )
        for listing in self._listings:
            _log_news(listing, before.get(listing.path))
        self._listed = {
            name: (manifest, listing.urls.get(name))
            for listing in reversed(self._listings)  # the first one has the last word
            for name, manifest in listing.catalog.skills.items()
        }
        catalog = Catalog({name: manifest for name, (manifest, _) in self._listed.items()})
        if self._index is None:
            self._store = VectorStore(self._folder, identity=self._encoder.identity)
            self._index = SkillIndex(  # of nothing yet
                self._encoder, self._store, of_requests=self._of_requests
            )
        if self._index.catalog.version != catalog.version:
            self._index = self._index.updated(catalog)
        return self._index


def _found(
    match: Match,
    manifest: SkillManifest,
    *,
    installed: bool,
    url: str | None = None,
    shadows: tuple[Path, ...] = (),
) -> Discovered:
    return Discovered(
        name=match.name,
        description=manifest.description,
        installed=installed,
        source=manifest.path,
        url=url,
        shadows=shadows,
        match=match,
        reason=f"matches on {match.shown()}",
    )


def _faults(listing: SkillListing) -> tuple[Diagnostic, ...]:
    return (*listing.catalog.failures, *listing.catalog.notices)


def _log_news(listing: SkillListing, before: SkillListing | None) -> None:
    """One line for a listing's faults, when they are not those that were logged last."""
    faults = _faults(listing)
    if faults and (before is None or faults != _faults(before)):
        more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
        path = ascii(str(faults[0].path))
        _log.warning("listing fault in %s: %s%s", path, faults[0].message, more)


def always_included(
    given: Iterable[str], catalog: Catalog, available: Collection[str] | None
) -> list[str]:
    """The names to give in any case, each once, without those that are not there or not available.

    Raises:
        InvalidRequest: it is one string, or something in it is no string.
    """
    names = dict.fromkeys(names_in("always_include", given))
    allowed = names.keys() if available is None else names.keys() & available
    return [name for name in names if name in allowed and catalog.offers(name)]


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
