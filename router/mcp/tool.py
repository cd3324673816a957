"""What a tool is: what clients are told of it, and how its answer travels."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any

import mcp_types as types

from router.result import RoutingResult
from router.service.schemas import adapter_of, output_schema
from router.service.shapes import Arguments, RouteArguments, routed


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool: what is advertised of it, and what it does with checked arguments.

    Attributes:
        output: the type of the structured answer.
        run: gives the answer.
        text: what a model reads of the answer; None: the structured answer as JSON.
    """

    name: str
    title: str
    description: str
    arguments: type[Arguments]
    output: Hashable
    run: Callable[[Any], Awaitable[Any]]
    text: Callable[[Any], str] | None = None
    read_only: bool = True
    open_world: bool = False

    def advertised(self, schema: dict[str, Any]) -> types.Tool:
        """The tool as clients see it. One that writes may replace what there was."""
        return types.Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=schema,
            output_schema=output_schema(self.output),
            annotations=types.ToolAnnotations(
                read_only_hint=self.read_only,
                destructive_hint=not self.read_only,
                idempotent_hint=self.read_only,
                open_world_hint=self.open_world,
            ),
        )

    def answer(self, asked: Arguments, found: Any) -> types.CallToolResult:
        """An answer as it travels: structured, and as the text that a model reads."""
        structured = (
            routed(found, trace=isinstance(asked, RouteArguments) and asked.trace)
            if isinstance(found, RoutingResult)
            else adapter_of(self.output).dump_python(found, mode="json")
        )
        text = self.text(found) if self.text else json.dumps(structured, ensure_ascii=False)
        return types.CallToolResult(
            content=[types.TextContent(text=text)], structured_content=structured
        )
