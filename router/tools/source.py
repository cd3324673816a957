"""The source of tools that a program holds in memory.

    tools = ToolSource([weather_tool, send_email])
    async with SemanticRouter(sources=[tools]) as router:
        ranked = await router.rank("will it rain tomorrow?")
        [skill.payload for skill in ranked.skills]

What comes back, best first, are the very objects that were given.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from router.errors import SourceError
from router.skills.manifest import SkillManifest
from router.skills.memory_source import MemorySource
from router.tools.sharing import Share, as_json
from router.tools.tool import manifest_of, read_tool


class ToolSource(MemorySource):
    """Tools in memory, strongest first, each name once. Safe to use from several threads. A call
    raises what one of ``MemorySource`` does, also for a tool that cannot be used; nothing has
    changed then."""

    def __init__(
        self, tools: Iterable[object] = (), *, name: str = "tools", shared: bool = False
    ) -> None:
        """A source with these tools, in any of the forms that ``router.tools.tool`` names.

        Args:
            tools: what this process begins with.
            name: for reports; processes of a cluster know a shared source by it.
            shared: changes from here on reach the sources of this name in every process of the
                cluster (``SharedTools``), so each tool must be given as JSON.
        """
        if isinstance(tools, Mapping) or not isinstance(tools, Iterable):
            kind = type(tools).__name__
            raise SourceError(name, "", f"expected a list of tools, not one {kind}")
        self.shared = shared
        self.share: Share | None = None
        super().__init__(name=name)
        self.add(*tools)

    def add(self, *tools: object) -> None:
        """Add tools after those that are there."""
        skills = self._read(tools)
        super().add(*skills)
        self._tell(skills)

    def remove(self, *names: str) -> None:
        """Remove the tools of these names."""
        super().remove(*names)
        if self.share is not None:
            for name in dict.fromkeys(names):
                self.share(name, None)

    def replace(self, *tools: object) -> None:
        """Put tools in the places of those that have their names."""
        skills = self._read(tools)
        super().replace(*skills)
        self._tell(skills)

    def take(self, name: str, definition: object) -> None:
        """See ``SharedTools``."""
        if definition is None:
            if name in self:
                super().remove(name)
            return
        [skill] = self._read([definition])
        if skill.name != name:
            raise SourceError(self.name, name, f"the definition is of another tool, {skill.name!r}")
        put = super().replace if name in self else super().add
        put(skill)

    def _read(self, tools: Iterable[object]) -> list[SkillManifest]:
        skills = [
            manifest_of(read_tool(tool, source=self.name, position=position), origin=self.name)
            for position, tool in enumerate(tools, start=1)
        ]
        if self.shared:
            for skill in skills:
                as_json(skill.payload, source=self.name, name=skill.name)
        return skills

    def _tell(self, skills: Iterable[SkillManifest]) -> None:
        if self.share is not None:
            for skill in skills:
                self.share(skill.name, skill.payload)
