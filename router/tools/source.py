"""The source of tools that a program holds in memory.

tools = ToolSource([weather_tool, send_email])
async with SemanticRouter(sources=[tools]) as router:
    ranked = await router.rank("will it rain tomorrow?")
    [skill.payload for skill in ranked.skills]  # the very objects, best first
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from router.skills.manifest import SkillManifest
from router.skills.memory_source import MemorySource
from router.skills.sources import SourceSnapshot
from router.tools.tool import manifest_of, read_tool


class ToolSource:
    """Tools in memory, strongest first, each name once. Safe to use from several threads."""

    roots: tuple[Path, ...] = ()

    def __init__(self, tools: Iterable[object] = (), *, name: str = "tools") -> None:
        """A source with these tools, in any of the forms that ``router.tools.tool`` names.

        Raises:
            SourceError: one of them cannot be used, or two have one name.
        """
        self.name = name
        self._memory = MemorySource(name=name)
        self.add(*tools)

    def __len__(self) -> int:
        return len(self._memory)

    def __contains__(self, name: object) -> bool:
        return name in self._memory

    def add(self, *tools: object) -> None:
        """Add tools after those that are there.

        Raises:
            SourceError: one of them cannot be used, or its name is taken; none is added then.
        """
        self._memory.add(*self._read(tools))

    def remove(self, *names: str) -> None:
        """Remove the tools of these names.

        Raises:
            UnknownSkill: there is none of one of the names; none is removed then.
        """
        self._memory.remove(*names)

    def replace(self, *tools: object) -> None:
        """Put tools in the places of those that have their names.

        Raises:
            SourceError: one of them cannot be used; none is replaced then.
            UnknownSkill: there is none of one of the names.
        """
        self._memory.replace(*self._read(tools))

    def read(
        self, previous: SourceSnapshot | None = None, *, quick: bool = False
    ) -> SourceSnapshot:
        """The tools as they are now."""
        return self._memory.read(previous, quick=quick)

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call ``changed`` after each change, on the thread that makes it."""
        return self._memory.subscribe(changed)

    def _read(self, tools: Iterable[object]) -> list[SkillManifest]:
        return [
            manifest_of(read_tool(given, source=self.name, position=position), origin=self.name)
            for position, given in enumerate(tools, start=1)
        ]
