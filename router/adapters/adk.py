"""Skills and tools for Google's Agent Development Kit.

    toolset = SkillToolset(registry=RoutedSkillRegistry(router))
    agent = LlmAgent(…, tools=[RoutedToolset(functions, limit=8)])

The model searches the skills itself; of the tools it is shown those that the router chooses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from google.adk.agents.readonly_context import ReadonlyContext
from google.adk.skills.models import Frontmatter, Skill
from google.adk.skills.skill_registry import SkillRegistry
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool

from router.adapters.selection import ToolSelector
from router.concurrency.tasks import in_thread
from router.skills.manifest import SkillManifest
from router.sync import SyncSemanticRouter
from router.tools.tool import Tool


class RoutedSkillRegistry(SkillRegistry):
    """The router's skills, as the kit's skill toolset searches and loads them."""

    def __init__(self, router: SyncSemanticRouter, *, limit: int = 10) -> None:
        """A registry over a router, which stays the caller's to close; ``limit`` is how many skills
        a search gives."""
        self._router = router
        self._limit = limit

    async def search_skills(self, *, query: str) -> list[Frontmatter]:
        """The best skills for a query, best first. Those whose names the kit refuses are left
        out."""
        ranked = await in_thread(partial(self._router.rank, query, limit=self._limit), leaves=True)
        catalog = await in_thread(lambda: self._router.catalog, leaves=True)
        return [
            frontmatter
            for name in ranked.names
            if (frontmatter := _frontmatter(catalog.get(name))) is not None
        ]

    async def get_skill(self, *, name: str) -> Skill:
        """A skill with its instructions.

        Raises:
            UnknownSkill: there is none of that name.
            ValueError: the kit refuses its name.
        """
        catalog = await in_thread(lambda: self._router.catalog, leaves=True)
        manifest = catalog.get(name)
        frontmatter = _frontmatter(manifest)
        if frontmatter is None:
            raise ValueError(f"skill {name!r}: the Agent Development Kit takes no such name")
        return Skill(frontmatter=frontmatter, instructions=manifest.body)


class RoutedToolset(BaseToolset):
    """Tools of which the model is shown those that the conversation needs.

    Takes the options of ``ToolSelector``.
    """

    def __init__(self, tools: Iterable[BaseTool | Callable[..., Any]], **options: Any) -> None:
        """Functions and the kit's own tools, in catalog order."""
        super().__init__()
        made = [tool if isinstance(tool, BaseTool) else FunctionTool(tool) for tool in tools]
        self._offered: dict[str, object] = {tool.name: tool for tool in made}
        self._made = {tool.name: tool for tool in made}
        self.selector = ToolSelector(read=_read, **options)

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        """The tools to show now; all of them where the kit gives no conversation."""
        if readonly_context is None:
            return list(self._made.values())
        turns, called = _user_turns(readonly_context), _called(readonly_context)
        names = await self.selector.aselect(turns, self._offered, called=called)
        return [self._made[name] for name in names]

    async def close(self) -> None:
        await in_thread(self.selector.close)


def _user_turns(context: ReadonlyContext) -> list[str]:
    """What the user said, oldest first, the message that began this run included."""
    said = [_text(event.content) for event in context.session.events if event.author == "user"]
    latest = _text(context.user_content)
    if latest and (not said or said[-1] != latest):
        said.append(latest)
    return [text for text in said if text.strip()]


def _called(context: ReadonlyContext) -> list[str]:
    events = context.session.events
    return [call.name for event in events for call in event.get_function_calls() if call.name]


def _text(content: Any) -> str:
    parts = getattr(content, "parts", None) or ()
    return "\n".join(part.text for part in parts if part.text)


def _frontmatter(manifest: SkillManifest) -> Frontmatter | None:
    try:
        return Frontmatter(name=manifest.name, description=manifest.description)
    except ValueError:
        return None


def _read(tool: Any) -> Tool:
    declared = tool._get_declaration()
    schema = None if declared is None else declared.parameters_json_schema
    if schema is None and declared is not None and declared.parameters is not None:
        schema = {"type": "object", **_lower_types(declared.parameters.model_dump(mode="json"))}
    return Tool(tool.name, tool.description or "", schema)


def _lower_types(schema: dict[str, Any]) -> dict[str, Any]:
    """The kit's schema as JSON Schema, as far as names and descriptions of parameters go."""
    properties = schema.get("properties") or {}
    return {
        "properties": {
            name: {"description": value.get("description") or ""}
            for name, value in properties.items()
        }
    }
