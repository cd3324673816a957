"""The registry: holds the current catalog, and replaces it by the next one.

Readers take ``registry.catalog`` once and work on that snapshot; they never wait. A reload builds
the next snapshot and makes it current by one assignment, so nobody sees half of it. Sources and
hidden names are part of the snapshot, so they change with it or not at all.

A reload can be done in two steps, to do something between them, such as building an index:
``prepare`` reads the sources, ``commit`` makes the result current. ``commit`` is a compare-and-set:
it refuses a snapshot that was prepared before another one became current.

A configured folder must exist at first, because a wrong path would otherwise give an empty catalog
without an error. Later it may disappear (with its skills) and come back: each reload looks for it.
The default folders are not configured, so each may appear at any time.
"""

from __future__ import annotations

import threading
from collections.abc import Container, Iterable, Mapping
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from router.skills.catalog import Catalog, merge_sources, read_own_enrichments
from router.skills.changes import CatalogChange
from router.skills.discovery import MAX_SKILLS
from router.skills.enrichment import Enrichment
from router.skills.folders import FolderSource, absolute
from router.skills.manifest import SkillManifest
from router.skills.sources import SkillSource

if TYPE_CHECKING:
    from router.settings.settings import Settings


class SkillRegistry:
    """Holds the current catalog of some sources. Safe to use from several threads.

    Attributes:
        enrichment: the absolute path of the file of enrichments that speaks for every source.
        peer_enrichments: enrichments of other processes, by the digest of the skill's text; those
            of this machine's files come first. ``prepare`` uses them from then on.
    """

    def __init__(
        self,
        sources: Iterable[SkillSource | Path],
        *,
        enrichment: Path | None = None,
        max_skills: int = MAX_SKILLS,
    ) -> None:
        """Read the sources, strongest first.

        Args:
            sources: sources of skills, and folders of skills or of one skill.
            enrichment: a file of enrichments for the skills of every source; it may be missing, and
                appear later.
            max_skills: skills taken from adjacent folders, at most.

        Raises:
            ConfigurationError: a folder is not there.
            RouterError: what another source raises when it cannot be used.
        """
        self._exchanging = threading.Lock()
        self._reloading = threading.Lock()
        found: list[SkillSource] = []
        for are_folders, some in groupby(sources, key=lambda source: isinstance(source, Path)):
            group: Any = some  # groupby has told the kinds apart
            if are_folders:
                group = [FolderSource(group, max_skills=max_skills)]
            found += group
        self.enrichment = None if enrichment is None else absolute(enrichment)
        self.peer_enrichments: Mapping[str, Enrichment] = {}
        self._catalog = merge_sources(
            [(source, source.read()) for source in found],
            enrichments=read_own_enrichments(self.enrichment),
        )

    @classmethod
    def configured(cls, settings: Settings) -> Self:
        """Over the configured roots, those of the default ones included that are still missing.

        Raises:
            ConfigurationError: a root that the settings name is not a folder.
        """
        return cls([FolderSource.configured(settings)], enrichment=settings.enrichment)

    @property
    def roots(self) -> tuple[Path, ...]:
        """The folders that skills are read from, as absolute paths, strongest first."""
        return self._catalog.roots

    @property
    def sources(self) -> tuple[SkillSource, ...]:
        """The sources, strongest first."""
        return tuple(source for source, _ in self._catalog.snapshots)

    @property
    def catalog(self) -> Catalog:
        return self._catalog

    def prepare(
        self,
        *,
        sources: Iterable[SkillSource] | None = None,
        hidden: frozenset[str] | None = None,
        only: Container[SkillSource] | None = None,
        quick: bool = False,
    ) -> CatalogChange:
        """Read the sources into the next snapshot, without making it current.

        Args:
            sources: to read from now on, strongest first; None leaves them as they are.
            hidden: names to leave out from now on; None leaves them as they are.
            only: the sources to read again; the others are taken as they were last. None: all.
            quick: do not read files that look untouched.

        Raises:
            RouterError: a new source cannot be used.
        """
        before = self._catalog
        known = {id(source): snapshot for source, snapshot in before.snapshots}
        snapshots = []
        for source in self.sources if sources is None else sources:
            snapshot = known.get(id(source))
            if snapshot is None or only is None or source in only:
                snapshot = source.read(snapshot, quick=quick)
            snapshots.append((source, snapshot))
        own = {path: file for path, file in before.enrichments.items() if path == self.enrichment}
        if only is None:
            own = read_own_enrichments(self.enrichment, before)
        hidden = before.hidden if hidden is None else hidden
        if (
            tuple(snapshots) == before.snapshots
            and hidden == before.hidden
            and own.items() <= before.enrichments.items()
            and self.peer_enrichments == before.peer_enrichments
        ):
            return CatalogChange.between(before, before)  # nothing to merge anew
        after = merge_sources(
            snapshots,
            hidden=hidden,
            enrichments=own,
            peer_enrichments=self.peer_enrichments,
            previous=before,
        )
        return CatalogChange.between(before, after)

    def commit(self, change: CatalogChange) -> bool:
        """Make a prepared snapshot current.

        Returns:
            False, and nothing is done, when the current snapshot is not the one that the change
            starts from: an older view of the disk must not replace a newer one. Prepare again.
        """
        with self._exchanging:
            if self._catalog is not change.before:
                return False
            self._catalog = change.after
            return True

    def reload(self) -> CatalogChange:
        """Read the sources again and make the outcome current. Concurrent reloads run in turn."""
        with self._reloading:
            while True:
                change = self.prepare()
                if self.commit(change):
                    return change

    def list_available_skills(self) -> tuple[str, ...]:
        """Names of the skills that may be offered for routing, in order."""
        return tuple(manifest.name for manifest in self._catalog.routable)

    def get_skill_manifest(self, name: str) -> SkillManifest:
        """The manifest of an installed skill, offered for routing or not.

        Raises:
            UnknownSkill: there is none of that name; the error carries close names.
        """
        return self._catalog.get(name)
