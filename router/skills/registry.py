"""The registry: the current catalog, and how it is exchanged for the next one.

Readers take ``registry.catalog`` once and work on that snapshot; they never wait. A reload builds
the next snapshot aside and swaps it in by one assignment, so nobody sees half of it; when it fails
(a root has gone), the current snapshot stays.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from router.skills.catalog import Catalog, load_catalog
from router.skills.discovery import existing_root
from router.skills.manifest import SkillManifest


@dataclass(frozen=True, slots=True)
class CatalogDiff:
    """What a reload changed. The three tuples are disjoint and in the order of the names.

    Attributes:
        before: the snapshot that was replaced.
        after: the snapshot that replaced it.
        added: names that only ``after`` has.
        changed: names in both, with different content.
        removed: names that only ``before`` has.
    """

    before: Catalog
    after: Catalog
    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]

    @classmethod
    def between(cls, before: Catalog, after: Catalog) -> CatalogDiff:
        """Compare two snapshots by names and digests."""
        old, new = before.skills, after.skills
        return cls(
            before,
            after,
            added=tuple(name for name in new if name not in old),
            changed=tuple(
                name for name in new if name in old and new[name].digest != old[name].digest
            ),
            removed=tuple(name for name in old if name not in new),
        )


class SkillRegistry:
    """Holds the current catalog of some roots. Safe to use from several threads."""

    def __init__(self, roots: Iterable[Path]) -> None:
        """Load the roots, strongest first.

        Raises:
            ConfigurationError: a root is not a folder.
        """
        self._roots = tuple(existing_root(root) for root in roots)
        self._reloading = threading.Lock()
        self._catalog = load_catalog(self._roots)

    @property
    def roots(self) -> tuple[Path, ...]:
        """The roots as absolute paths, strongest first."""
        return self._roots

    @property
    def catalog(self) -> Catalog:
        """The current snapshot."""
        return self._catalog

    def reload(self) -> CatalogDiff:
        """Read the roots again and make the outcome current.

        Concurrent reloads run one after the other, so that an older view of the disk never
        replaces a newer one.

        Raises:
            ConfigurationError: a root is not a folder; the current snapshot stays.
        """
        with self._reloading:
            before = self._catalog
            after = load_catalog(self._roots, previous=before)
            self._catalog = after
        return CatalogDiff.between(before, after)

    def list_available_skills(self) -> tuple[str, ...]:
        """Names of the skills that may be offered for routing, in order."""
        return tuple(manifest.name for manifest in self._catalog.routable)

    def get_skill_manifest(self, name: str) -> SkillManifest:
        """The manifest of an installed skill, offered for routing or not.

        Raises:
            UnknownSkill: there is none of that name; the error carries close names.
        """
        return self._catalog.get(name)
