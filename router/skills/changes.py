"""The difference between two snapshots of the catalog, which observers are notified of.

A change is computed from its two snapshots only, so several changes in a row can be merged into
one: from the first one's ``before`` to the last one's ``after``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from router.skills.catalog import Catalog
from router.skills.diagnostics import Diagnostic
from router.skills.difference import differing


@dataclass(frozen=True, slots=True, eq=False)
class CatalogChange:
    """The difference between two snapshots. All names are in order, ``added``, ``changed``,
    ``removed`` and ``moved`` are disjoint.

    Attributes:
        before: the snapshot that is replaced.
        after: the snapshot that replaces it.
        added: names that only ``after`` has.
        changed: names in both, with different content or another enrichment.
        removed: names that only ``before`` has.
        moved: names in both, with the same content at another place or with another payload.
        shadowed: names of skills that are shadowed by a stronger one, and were not before.
        failed: files that cannot be loaded, and could before: the file, the line and why.
        mended: files that could not be loaded before and are loaded now.
    """

    before: Catalog = field(repr=False)
    after: Catalog = field(repr=False)
    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    moved: tuple[str, ...]
    shadowed: tuple[str, ...]
    failed: tuple[Diagnostic, ...]
    mended: tuple[Path, ...]

    @classmethod
    def between(cls, before: Catalog, after: Catalog, *, touched: Iterable[str] = ()) -> Self:
        """Compare two snapshots by names, routing digests and places.

        ``touched`` are names that an observer may have begun to act on since ``before``. They are
        part of the change even if nothing differs any more: as changed if ``after`` has them, else
        as removed.
        """
        old, new = before.skills, after.skills
        touched = frozenset(touched)
        others: set[str] = set()
        gone = {name for name in touched if name not in new}
        if new is not old:
            left, come = differing(tuple(old.values()), tuple(new.values()))
            others |= {skill.name for skill in come if old.get(skill.name) is not skill}
            gone |= {skill.name for skill in left if skill.name not in new}
        added, changed, moved = [], [], []
        for name in {*others, *(name for name in touched if name in new)}:
            if name not in old:
                added.append(name)
            elif new[name].routing_digest != old[name].routing_digest or name in touched:
                changed.append(name)
            elif new[name].path != old[name].path or new[name].payload is not old[name].payload:
                moved.append(name)
        lost_before = {skill.manifest.path for skill in before.shadowed}
        lost = {s.manifest.name for s in after.shadowed if s.manifest.path not in lost_before}
        failed_before = frozenset(before.failures)
        return cls(
            before,
            after,
            added=tuple(sorted(added)),
            changed=tuple(sorted(changed)),
            removed=tuple(sorted(gone)),
            moved=tuple(sorted(moved)),
            shadowed=tuple(sorted(lost)),
            failed=tuple(fault for fault in after.failures if fault not in failed_before),
            mended=_mended(before, after),
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that is added, changed, removed or moved."""
        return (*self.added, *self.changed, *self.removed, *self.moved)

    @property
    def is_empty(self) -> bool:
        """Whether the two snapshots are the same in everything, their reports included."""
        old, new = self.before, self.after
        parts = ("skills", "shadowed", "failures", "notices", "stale", "roots", "hidden")
        return not self.names and (
            old is new or all(getattr(old, part) == getattr(new, part) for part in parts)
        )

    def __str__(self) -> str:
        parts = []
        for what in ("added", "changed", "removed", "moved", "shadowed", "failed", "mended"):
            found = getattr(self, what)
            if found:
                shown = ", ".join(str(item) for item in found[:5])
                parts.append(f"{len(found):,} {what} ({shown}{', ...' if len(found) > 5 else ''})")
        return "; ".join(parts) or "no skill changed"


def _mended(before: Catalog, after: Catalog) -> tuple[Path, ...]:
    still = {fault.path for fault in after.failures}
    gone = {fault.path for fault in before.failures} - still
    if not gone:
        return ()
    loaded = {manifest.path for manifest in after.skills.values()}
    loaded |= {lost.manifest.path for lost in after.shadowed}
    return tuple(sorted(gone & loaded))
