"""An MCP tool: how it is advertised, how it is called, and the form of its answer.

Arguments are checked by the pydantic models from which the advertised schemas are made. A fault
that the caller can correct or report (bad arguments, an unknown skill, an encoder that is down) is
a result with ``isError``, which the model reads, and not an error of the protocol, which the model
never sees.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import ValidationError

from router.errors import RouterError
from router.plain_json import faults_in
from router.result import RoutingResult
from router.service.schemas import adapter_of, as_described, input_schema, output_schema, shapes_of
from router.service.shapes import Arguments

MAX_FAULT_CHARACTERS: Final = 2_000
"""The longest text of a fault. It may quote an argument, which can have any length."""
MAX_FAULTS: Final = 5
"""Faults of the arguments that are named, at most."""
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Tool:
    """A tool: its description for clients, and the function that it calls.

    Attributes:
        run: the use case; its signature gives the types of the arguments and of the answer. A
            ``CallToolResult`` is sent as it is.
        text: makes the text that a model reads from the answer; None: the structured answer as
            JSON.
    """

    name: str
    title: str
    description: str
    run: Callable[[Any], Awaitable[Any]]
    text: Callable[[Any], str] | None = None
    read_only: bool = True
    open_world: bool = False

    @cached_property
    def shapes(self) -> tuple[type[Arguments], Any]:
        return shapes_of(self.run)

    def advertised(self, schema: dict[str, Any]) -> types.Tool:
        """The tool as clients see it. A tool that writes is marked as destructive."""
        answer = self.shapes[1]
        return types.Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            input_schema=schema,
            output_schema=None if answer is types.CallToolResult else _output_schema(answer),
            annotations=types.ToolAnnotations(
                read_only_hint=self.read_only,
                destructive_hint=not self.read_only,
                idempotent_hint=self.read_only,
                open_world_hint=self.open_world,
            ),
        )

    def answer(self, arguments: Arguments, found: Any) -> types.CallToolResult:
        """The answer in the form in which it is sent: structured, and as a text that a model
        reads."""
        if isinstance(found, types.CallToolResult):
            return found
        structured = as_described(arguments, found)
        if structured is found:
            structured = adapter_of(self.shapes[1]).dump_python(found, mode="json")
        text = self.text(found) if self.text else json.dumps(structured, ensure_ascii=False)
        return types.CallToolResult(
            content=[types.TextContent(text=text)], structured_content=structured
        )


def _output_schema(answer: Any) -> dict[str, Any]:
    """The schema of an answer, as short as possible, because some clients show it to the model with
    every request. The parts of the trace are left out: they would take half of it, and are for
    programs, which find them in the description of the HTTP API."""
    schema = output_schema(answer)
    if answer is not RoutingResult:
        return schema
    trace = {"type": "array", "items": {"type": "object"}, "description": "Where asked for."}
    kept = {name: schema["$defs"][name] for name in ("Decision", "LayerChoice", "Stage")}
    return {**schema, "$defs": kept, "properties": {**schema["properties"], "trace": trace}}


class ToolSet:
    """Some tools as one server offers them."""

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools = {tool.name: tool for tool in tools}

    async def list_tools(
        self, _context: object, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self.advertised())

    def advertised(self) -> list[types.Tool]:
        """The tools as clients see them now."""
        return [tool.advertised(input_schema(tool.shapes[0])) for tool in self._tools.values()]

    async def call_tool(
        self, _context: object, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Run a tool.

        Raises:
            MCPError: there is no tool of that name.
        """
        tool = self._tools.get(params.name)
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"unknown tool: {params.name[:100]!r}")
        try:
            arguments = tool.shapes[0].model_validate(params.arguments or {})
        except ValidationError as error:
            faults = faults_in(error, most=MAX_FAULTS)
            return _fault("; ".join(f"{place}: {why}" for place, why in faults))
        try:
            return tool.answer(arguments, await tool.run(arguments))
        except RouterError as error:
            return _fault(str(error))
        except Exception:  # noqa: BLE001 - a bug: its text may hold anything and must not go out
            _log.exception("the tool %s failed", tool.name)
            return _fault("an internal error; the server's log has the details")


def _fault(message: str) -> types.CallToolResult:
    text = types.TextContent(text=message[:MAX_FAULT_CHARACTERS])
    return types.CallToolResult(content=[text], is_error=True)
