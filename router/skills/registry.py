"""The registry: the current catalog, and how it is exchanged for the next one.

Readers take ``registry.catalog`` once and work on that snapshot; they never wait. A reload builds
the next snapshot aside and swaps it in by one assignment, so nobody sees half of it. Roots and
hidden names are part of the snapshot, so they change with it or not at all.

A reload has two halves for those who must do something between them, such as building an index:
``prepare`` reads the disk, ``commit`` makes the outcome current. ``commit`` is a compare-and-set:
it refuses a snapshot that was prepared before another one became current.

A root must be there at first, because a wrong path would otherwise be an empty catalog without a
word. Later it may go (its skills go with it) and come back: a reload looks for it again each time.
The default roots nobody has named; those may come whenever they like.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Self

from router.skills.catalog import Catalog, load_catalog
from router.skills.changes import CatalogChange
from router.skills.discovery import configured_roots, default_roots, existing_root
from router.skills.manifest import SkillManifest

if TYPE_CHECKING:
    from router.settings import Settings


class SkillRegistry:
    """Holds the current catalog of some roots. Safe to use from several threads.

    Attributes:
        enrichment: the absolute path of the file of enrichments that speaks for every root.
    """

    def __init__(
        self,
        roots: Iterable[Path],
        *,
        enrichment: Path | None = None,
        missing_ok: bool = False,
        optional: Iterable[Path] = (),
    ) -> None:
        """Load the roots, strongest first.

        Args:
            roots: folders of skills, or folders of one skill.
            enrichment: a file of enrichments for the skills of every root; it may be missing, and
                appear later.
            missing_ok: roots may be missing from the start, and appear later.
            optional: those of the roots for which that is so normal that it is not noted.

        Raises:
            ConfigurationError: a root is not a folder.
        """
        self._optional = frozenset(map(_absolute, optional))
        places = [
            _absolute(root)
            if missing_ok or _absolute(root) in self._optional
            else existing_root(root)
            for root in roots
        ]
        self._exchanging = threading.Lock()
        self._reloading = threading.Lock()
        self.enrichment = None if enrichment is None else _absolute(enrichment)
        self._catalog = load_catalog(
            places,
            enrichment=self.enrichment,
            missing_ok=missing_ok,
            optional=self._optional,
        )

    @classmethod
    def configured(cls, settings: Settings) -> Self:
        """Over the configured roots, those of the default ones included that are still missing.

        Raises:
            ConfigurationError: a root that the settings name is not a folder.
        """
        optional = default_roots() if settings.skills is None else ()
        return cls(
            configured_roots(settings, later_ones=True),
            enrichment=settings.enrichment,
            optional=optional,
        )

    @property
    def roots(self) -> tuple[Path, ...]:
        """The roots as absolute paths, strongest first."""
        return self._catalog.roots

    @property
    def catalog(self) -> Catalog:
        """The current snapshot."""
        return self._catalog

    def prepare(
        self,
        *,
        roots: Iterable[Path] | None = None,
        hidden: frozenset[str] | None = None,
        quick: bool = False,
    ) -> CatalogChange:
        """Read the disk into the next snapshot, without making it current.

        Args:
            roots: absolute folders to search from now on; None leaves them as they are.
            hidden: names to leave out from now on; None leaves them as they are.
            quick: do not read files that look untouched; see ``load_catalog``.
        """
        before = self._catalog
        after = load_catalog(
            before.roots if roots is None else roots,
            enrichment=self.enrichment,
            previous=before,
            hidden=before.hidden if hidden is None else hidden,
            missing_ok=True,
            optional=self._optional,
            quick=quick,
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
        """Read the roots again and make the outcome current. Concurrent reloads run in turn."""
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


def _absolute(root: Path) -> Path:
    expanded = os.path.expanduser(root)  # noqa: PTH111 - Path.expanduser raises without a home
    return Path(expanded).absolute()
