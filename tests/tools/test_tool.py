"""Tool definitions of every kind: what is read of them, and what is refused."""

from __future__ import annotations

from enum import Enum
from types import SimpleNamespace
from typing import Annotated, Any, Literal

import mcp.types
import pytest
from pydantic import BaseModel, Field

from router.errors import SourceError
from router.skills.manifest import SkillManifest
from router.tools.tool import Tool, manifest_of, read_tool

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "description": "Name of the city"},
        "unit": {"enum": ["celsius", "fahrenheit"]},
    },
}


def get_weather(
    city: Annotated[str, Field(description="Name of the city")],
    unit: Literal["celsius", "fahrenheit"] = "celsius",
) -> str:
    """Tell the weather."""
    return f"{city} {unit}"


class Weather(BaseModel):
    """What LangChain makes of a function's parameters."""

    city: str = Field(description="Name of the city")
    unit: Literal["celsius", "fahrenheit"] = "celsius"


FORMS: dict[str, object] = {
    "OpenAI chat": {
        "type": "function",
        "function": {
            "name": "get_weather",
            "description": "Tell the weather.",
            "parameters": SCHEMA,
        },
    },
    "OpenAI Responses": {
        "type": "function",
        "name": "get_weather",
        "description": "Tell the weather.",
        "parameters": SCHEMA,
    },
    "Anthropic": {
        "name": "get_weather",
        "description": "Tell the weather.",
        "input_schema": SCHEMA,
    },
    "MCP": {
        "name": "get_weather",
        "description": "Tell the weather.",
        "inputSchema": SCHEMA,
    },
    "MCP object": mcp.types.Tool(
        name="get_weather", description="Tell the weather.", input_schema=SCHEMA
    ),
    "LangChain object": SimpleNamespace(
        name="get_weather",
        description="Tell the weather.",
        input_schema=str,
        tool_call_schema=Weather,
    ),
    "FastMCP object": SimpleNamespace(
        name="get_weather", description="Tell the weather.", parameters=SCHEMA
    ),
    "function": get_weather,
    "Tool": Tool("get_weather", "Tell the weather.", SCHEMA),
}


def read(given: object) -> SkillManifest:
    return manifest_of(read_tool(given, source="mine", position=3), origin="mine")


@pytest.mark.parametrize("given", FORMS.values(), ids=list(FORMS))
def test_every_form_gives_name_description_parameters_and_itself(given: object) -> None:
    skill = read(given)
    assert (skill.name, skill.description) == ("get_weather", "Tell the weather.")
    assert skill.body == "- city: Name of the city\n- unit (celsius, fahrenheit)"
    assert skill.payload is given
    assert skill.diagnostics == ()


def test_a_tool_may_carry_another_object() -> None:
    assert read(Tool("x", payload=get_weather)).payload is get_weather


@pytest.mark.parametrize("name", ["a", "getWeather", "mcp__srv__do-it", "files.read", "X_1", "42"])
def test_any_name_that_a_provider_accepts_is_taken_as_it_is(name: str) -> None:
    skill = read({"name": name, "input_schema": SCHEMA})
    assert (skill.name, skill.diagnostics) == (name, ())


def test_without_a_description_the_name_speaks() -> None:
    assert read({"name": "send_email", "inputSchema": {"type": "object"}}).description == (
        "send email"
    )


class Urgency(Enum):
    """How soon it must be done."""

    TODAY = "today"
    LATER = "later"


def test_what_a_type_says_of_itself_is_said_of_each_parameter_of_that_type() -> None:
    def assign(urgency: Urgency, then: Urgency | None = None) -> None:
        """Gives a task to somebody."""

    skill = manifest_of(read_tool(assign, source="crm", position=1), origin="crm")
    said = "How soon it must be done. (today, later)"
    assert skill.body.splitlines() == [f"- urgency: {said}", f"- then: {said}"]


def test_nested_and_shared_parameters_are_searched_once() -> None:
    place = {
        "type": "object",
        "properties": {"street": {"description": "of the shop"}, "inside": {"$ref": "#/$defs/p"}},
    }
    schema = {
        "type": "object",
        "$defs": {"p": place},
        "properties": {"from": {"$ref": "#/$defs/p"}, "to": {"$ref": "#/$defs/p"}},
    }
    lines = read(Tool("route", "Finds a way.", schema)).body.splitlines()
    assert lines == ["- from", "- street: of the shop", "- inside", "- to"]


def nested(depth: int) -> dict[str, Any]:
    schema: dict[str, Any] = {}
    for _ in range(depth):
        schema = {"items": schema}
    return schema


BAD: list[tuple[object, str]] = [
    (
        {"name": "x", "parameters": nested(5_000)},
        "source 'mine', 'x': the schema of its arguments is nested more than 200 deep",
    ),
    (
        {"name": "x", "parameters": {"properties": {1: {}, "one": {}}}},
        "source 'mine', 'x': the schema of its arguments has a key that is no text",
    ),
    ({"description": "x"}, "source 'mine', 'tool 3': the definition has no name"),
    (
        {"type": "web_search"},
        "source 'mine', 'tool 3': the definition of type 'web_search' has no name",
    ),
    ({"name": "  "}, "source 'mine', 'tool 3': the definition has no name"),
    (
        {"name": "x", "parameters": [1]},
        "source 'mine', 'x': the schema of its arguments is no object but a list",
    ),
    (
        {"name": "x", "parameters": {"type": "array"}},
        "source 'mine', 'x': the schema of its arguments has the type 'array'; it must be "
        '"object"',
    ),
    (
        {"name": "x", "description": "y" * (1 << 20)},
        "source 'mine', 'x': the description has 1,048,576 characters; at most 65,536",
    ),
    (
        {"name": "x", "description": 7},
        "source 'mine', 'x': the description is no text but a int",
    ),
    (
        {
            "name": "x",
            "parameters": {
                "properties": {"a": {"$ref": "#/$defs/one"}},
                "$defs": {"one": {"$ref": "#/$defs/two"}, "two": {"$ref": "#/$defs/one"}},
            },
        },
        "source 'mine', 'x': the $ref '#/$defs/one' of its schema leads in a circle",
    ),
    (7, "source 'mine', 'tool 3': int is no form of a tool definition that is known"),
    (
        [{"name": "x"}],
        "source 'mine', 'tool 3': list is no form of a tool definition that is known; "
        "give the tools of a list one by one, as in add(*tools)",
    ),
    (
        lambda: None,
        "source 'mine', 'tool 3': the function has no name; use Tool(name, …, payload=it)",
    ),
]


@pytest.mark.parametrize(("given", "message"), BAD, ids=range(len(BAD)))
def test_what_cannot_be_used_is_named_with_its_source(given: object, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        read(given)
    assert str(caught.value) == message
