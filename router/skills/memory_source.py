"""The source of skills that a program holds in memory: no file, changed by calls.

    source = MemorySource([SkillManifest.in_memory("greet", "Says hello to a person.")])
    async with SemanticRouter(sources=[source]) as router:
        source.add(SkillManifest.in_memory("part", "Says goodbye to a person."))
        await router.reload()  # wait until it is routable; it becomes so by itself too

A call changes everything it was given, or nothing when one of it cannot be used.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path

from router.errors import SourceError, UnknownSkill
from router.skills.manifest import SkillManifest
from router.skills.sources import SourceSnapshot, Subscribers


class MemorySource:
    """Skills in memory, strongest first, each name once. Safe to use from several threads.

    Raises:
        SourceError: something is not a skill, or a name is taken or given twice.
        UnknownSkill: there is none of the name that is to be removed or replaced.
    """

    roots: tuple[Path, ...] = ()

    def __init__(self, skills: Iterable[SkillManifest] = (), *, name: str = "memory") -> None:
        """A source with these skills.

        Args:
            skills: such as ``SkillManifest.in_memory`` makes them, in the order of precedence.
            name: for reports.
        """
        self.name = name
        self._changing = threading.Lock()
        self._skills: dict[str, SkillManifest] = {}
        self._snapshot: SourceSnapshot | None = None
        self._subscribers = Subscribers()
        self.add(*skills)

    def __len__(self) -> int:
        return len(self._skills)

    def __contains__(self, name: object) -> bool:
        return name in self._skills

    def add(self, *skills: SkillManifest) -> None:
        """Add skills after those that are there."""
        with self._changing:
            new: dict[str, SkillManifest] = {}
            for skill in skills:
                self._check(skill)
                if skill.name in self._skills or skill.name in new:
                    raise SourceError(self.name, skill.name, "there is one of that name already")
                new[skill.name] = skill
            self._skills |= new
            self._snapshot = None
        self._subscribers.tell()

    def remove(self, *names: str) -> None:
        """Remove the skills of these names."""
        with self._changing:
            for name in names:
                self._find(name)
            for name in dict.fromkeys(names):
                del self._skills[name]
            self._snapshot = None
        self._subscribers.tell()

    def replace(self, *skills: SkillManifest) -> None:
        """Put skills in the places of those that have their names."""
        with self._changing:
            for skill in skills:
                self._check(skill)
                self._find(skill.name)
            self._skills |= {skill.name: skill for skill in skills}
            self._snapshot = None
        self._subscribers.tell()

    def read(
        self,
        previous: SourceSnapshot | None = None,  # noqa: ARG002 - nothing here can fail to be read
        *,
        quick: bool = False,  # noqa: ARG002 - it is quick
    ) -> SourceSnapshot:
        """The skills as they are now; the same snapshot until they change."""
        with self._changing:
            if self._snapshot is None:
                self._snapshot = SourceSnapshot(tuple(self._skills.values()))
            return self._snapshot

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call ``changed`` after each change, on the thread that makes it."""
        return self._subscribers.add(changed)

    def _check(self, skill: object) -> None:
        if not isinstance(skill, SkillManifest):
            reason = f"expected a SkillManifest, not {type(skill).__name__}"
            raise SourceError(self.name, "", reason)

    def _find(self, name: str) -> None:
        if name not in self._skills:
            raise UnknownSkill.among(name, self._skills)
