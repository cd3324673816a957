"""Many MCP servers behind one: their tools are searched, routed to, and called through it.

What servers write about their tools, and what their tools answer, is untrusted data: it is bounded,
passed on as it is, and never followed.
"""

from __future__ import annotations

import json
from functools import partial
from typing import Any, Final

from mcp.types import CallToolResult
from pydantic import BaseModel, Field

from router.concurrency.tasks import in_thread
from router.errors import SourceError, UnknownSkill
from router.request import MAX_REQUEST_CHARACTERS
from router.result import Decision
from router.router import SemanticRouter
from router.service.service import Service
from router.service.shapes import Arguments, RouteArguments
from router.skills.catalog import Catalog
from router.skills.manifest import MAX_KEPT_NAME
from router.tools.arguments import check_arguments
from router.tools.pins import names_of
from router.tools.servers import McpServers, RemoteTool

MAX_FOUND: Final = 50
CALL_SECONDS: Final = 60.0
"""How long a call of a tool may take."""
GRACE_SECONDS: Final = 1.0
"""How long the first search waits for further servers once one is up."""
MAX_RESULT_BYTES: Final = 1 << 20
"""The longest answer of a tool, as JSON."""
MAX_DESCRIPTION_CHARACTERS: Final = 2_000
"""How much of a description is shown; the rest is cut off."""
MAX_SCHEMA_CHARACTERS: Final = 20_000
"""The longest schema that is shown. A longer one is left out: the tool can be called, and then says
what does not fit."""


class SearchToolsArguments(Arguments):
    query: str = Field(
        min_length=1, max_length=MAX_REQUEST_CHARACTERS, description="What the tool should do."
    )
    limit: int = Field(5, ge=1, le=MAX_FOUND, description="Tools to return at most.")


class CallToolArguments(Arguments):
    name: str = Field(description="Name of the tool, as it was given.")
    arguments: dict[str, Any] = Field({}, description="What the tool's input_schema asks for.")


class FoundTool(BaseModel):
    name: str
    description: str = Field(description="What its author says of it; cut where it is long.")
    input_schema: dict[str, Any] | None = Field(description="Null when it is too long to be shown.")
    also_at: list[str] = Field(description="Names of the same tool at other servers.")
    down: bool = Field(description="Whether its server cannot be reached at the moment.")


class FoundTools(BaseModel):
    tools: list[FoundTool] = Field(description="Best first.")
    missing: dict[str, str] = Field(
        description="Servers whose tools are not known, and why. One that has not answered yet may "
        "have what you need: search again."
    )


class RoutedTools(BaseModel):
    id: str
    decision: Decision = Field(
        description="route: call these tools; clarify: ask the user; abstain: no tool fits."
    )
    tools: list[FoundTool] = Field(description="To call, or the nearest ones to choose from.")
    question: str = Field(description="What to ask the user when the decision is clarify.")
    confidence: float
    reasoning: str


class ToolGateway:
    """The use cases over a router whose tools are those of MCP servers."""

    def __init__(self, router: SemanticRouter, servers: McpServers) -> None:
        """Opens nothing; the caller opens and closes the router and the servers.

        Args:
            router: over ``servers``, perhaps with some of their tools left out. What is not in its
                catalog can neither be found nor called.
            servers: where the tools are called.
        """
        self._router = router
        self._service = Service(router)
        self._servers = servers

    async def search(self, arguments: SearchToolsArguments) -> FoundTools:
        """The best tools for a need; empty only when there are no tools at all."""
        found = await self._router.rank(arguments.query, limit=arguments.limit)
        return FoundTools(tools=self._shown(found.names), missing=self._servers.missing)

    async def route(self, arguments: RouteArguments) -> RoutedTools:
        """Which tools a request needs, if any."""
        result = await self._service.route(arguments)
        fields = result.to_dict(trace=False)
        names = result.selected_skills or result.suggested_skills
        return RoutedTools(**fields, tools=self._shown(names))

    async def call(self, arguments: CallToolArguments) -> CallToolResult:
        """Call exactly the tool of that name; its answer as the server gave it.

        Raises:
            SourceError: there is no such tool, its server is down or late, or the answer is too
                large.
            InvalidRequest: the arguments do not fit its schema.
        """
        tool = self._find((await self._router.open()).catalog, arguments.name)
        schema = tool.definition.input_schema
        await in_thread(
            partial(check_arguments, tool.name, schema, arguments.arguments), leaves=True
        )
        answer = await self._servers.call(
            tool.name, arguments.arguments, timeout_seconds=CALL_SECONDS
        )
        size = len(answer.model_dump_json(by_alias=True, exclude_none=True).encode())
        if size > MAX_RESULT_BYTES:
            most = f"at most {MAX_RESULT_BYTES:,} are passed on"
            reason = f"the answer has {size:,} bytes; {most}; ask it for less"
            raise SourceError(self._servers.name, tool.name, reason)
        return answer

    def _find(self, catalog: Catalog, name: str) -> RemoteTool:
        """The tool of that name, which may be a twin of one that is offered."""
        tool = self._servers.find(name)
        alike = () if tool is None else map(catalog.skills.get, (name, *tool.twins))
        if tool is None or not any(one is not None and name in names_of(one) for one in alike):
            close = UnknownSkill.among(name, catalog.skills).suggestions
            hint = f"; did you mean {', '.join(close)}?" if close else "; search_tools finds some"
            reason = f"there is no such tool{hint}"
            raise SourceError(self._servers.name, name[:MAX_KEPT_NAME], reason)
        return tool

    def _shown(self, names: tuple[str, ...]) -> list[FoundTool]:
        catalog = self._router.catalog
        return [
            _as_found(skill.payload, down=name in catalog.stale)
            for name in names
            if (skill := catalog.skills.get(name)) is not None
            and isinstance(skill.payload, RemoteTool)
        ]


def _as_found(tool: RemoteTool, *, down: bool) -> FoundTool:
    description = tool.definition.description or tool.definition.title or ""
    schema = tool.definition.input_schema
    fits = len(json.dumps(schema, default=str)) <= MAX_SCHEMA_CHARACTERS
    return FoundTool(
        name=tool.name,
        description=description[:MAX_DESCRIPTION_CHARACTERS],
        input_schema=schema if fits else None,
        also_at=list(tool.twins),
        down=down,
    )
