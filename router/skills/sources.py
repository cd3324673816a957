"""The interface of a source of skills; the catalog merges the sources.

A source gives its skills as one immutable snapshot, strongest first, and reports when there may be
a new one. Folders on disk are a source (``folders.py``), and so is a list in memory
(``memory_source.py``). The catalog merges the snapshots of several sources; if two have a skill of
the same name, the earlier source wins. ``router.skills.source_conformance`` tests an
implementation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Protocol

from router.skills.diagnostics import Diagnostic
from router.skills.enrichment import EnrichmentFile
from router.skills.manifest import SkillManifest


@dataclass(frozen=True, slots=True, eq=False)
class SourceSnapshot:
    """The skills of a source at one moment. Immutable.

    Attributes:
        skills: strongest first. A name may occur more than once; the first one wins.
        failures: what could not be loaded, as diagnostics of severity ``ERROR``.
        notices: what was left out or not searched, and why.
        stale: skills that are given in their last good version, by ``path``, and why.
        enrichments: the files of enrichments that were read, by their paths.
    """

    skills: tuple[SkillManifest, ...] = ()
    failures: tuple[Diagnostic, ...] = ()
    notices: tuple[Diagnostic, ...] = ()
    stale: Mapping[Path, Diagnostic] = field(default_factory=lambda: MappingProxyType({}))
    enrichments: Mapping[Path, EnrichmentFile] = field(default_factory=lambda: MappingProxyType({}))


class SkillSource(Protocol):
    """Gives skills, and says when they change. Compared by identity."""

    @property
    def name(self) -> str:
        """The name in reports, such as ``"memory"``; not empty."""
        ...

    @property
    def roots(self) -> tuple[Path, ...]:
        """Folders that its skills are read from, as absolute paths, strongest first. The manager
        watches them for the source. Empty for a source that has no files."""
        ...

    def read(
        self, previous: SourceSnapshot | None = None, *, quick: bool = False
    ) -> SourceSnapshot:
        """The skills as they are now. Called on any thread, one call at a time; it may block.

        A skill that cannot be read is a failure in the snapshot and disturbs no other.

        Args:
            previous: the snapshot before. Skills that did not change may be taken from it, and so
                may the last good version of a skill that cannot be read now.
            quick: trust signs such as file times that a skill has not changed, and do not read it.

        Raises:
            RouterError: the source cannot be used at all; only without ``previous``.
        """
        ...

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call ``changed``, on any thread, after each change that ``read`` would show.

        A source whose changes are noticed by watching ``roots`` need not call it.

        Returns:
            A function that ends the subscription; calling it again does nothing.
        """
        ...


class Subscribers:
    """The subscribers to the changes of a source. Safe to use from several threads."""

    def __init__(self) -> None:
        self._calls: dict[object, Callable[[], None]] = {}

    def add(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Add a subscriber; returns the function that ends the subscription."""
        key = object()
        self._calls[key] = changed

        def end() -> None:
            self._calls.pop(key, None)

        return end

    def tell(self) -> None:
        """Call each subscriber, on this thread."""
        for changed in tuple(self._calls.values()):
            changed()
