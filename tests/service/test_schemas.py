"""Tool schemas that every consumer takes, checked with the consumers' own converters."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from anthropic.lib._parse._transform import transform_schema
from google.genai import _mcp_utils
from openai.lib._pydantic import _ensure_strict_json_schema

from router.mcp.tools import Tools
from router.memory.memory import Memory
from router.request import MAX_SCOPE_CHARACTERS
from router.result import Decision, RoutingResult, Stage
from router.router import SemanticRouter
from router.service.schemas import INPUT_KEYWORDS, input_schema, output_schema
from router.service.service import Service
from router.service.shapes import FeedbackArguments, FindArguments, RouteArguments
from router.settings.settings import Settings

KNOWN_TO_AJV = INPUT_KEYWORDS | {
    "$defs",
    "$ref",
    "additionalProperties",
    "const",
    "exclusiveMinimum",
    "minItems",
}
"""Keywords of JSON Schema 2020-12 that Ajv's strict mode takes; the test runs without node."""


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """Every tool as it is listed, those of memory included. Nothing is opened."""
    settings = Settings(state_dir=tmp_path_factory.mktemp("state"), llm={"enabled": False})
    listed = Tools(Service(SemanticRouter(settings)), Memory(settings))
    return listed.advertised()


def parts(schema: Any) -> Iterator[dict[str, Any]]:
    """A schema and every schema inside it."""
    yield schema
    for key in ("properties", "$defs"):
        for inner in schema.get(key, {}).values():
            yield from parts(inner)
    for inner in schema.get("anyOf", ()):
        yield from parts(inner)
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            yield from parts(schema[key])


def test_every_schema_is_one_of_the_dialect_that_it_says(tools: list[Any]) -> None:
    assert len(tools) == 15
    for tool in tools:
        jsonschema.Draft202012Validator.check_schema(tool.input_schema)
        jsonschema.Draft202012Validator.check_schema(tool.output_schema)


def test_arguments_use_only_what_all_consumers_know(tools: list[Any]) -> None:
    for tool in tools:
        for schema in parts(tool.input_schema):
            assert set(schema) <= INPUT_KEYWORDS
            assert None not in schema.get("enum", ())
            assert not {"type", "anyOf"}.isdisjoint(schema)


def test_answers_use_only_keywords_that_ajv_knows(tools: list[Any]) -> None:
    used = {key for tool in tools for schema in parts(tool.output_schema) for key in schema}
    assert used <= KNOWN_TO_AJV


def test_openai_s_strict_mode_takes_every_tool(tools: list[Any]) -> None:
    for tool in tools:
        schema = copy.deepcopy(tool.input_schema)
        strict = _ensure_strict_json_schema(schema, path=(), root=schema)
        assert strict["required"] == list(strict["properties"])
        for part in parts(strict):
            assert part.get("additionalProperties", False) is False


def test_gemini_takes_every_tool(tools: list[Any]) -> None:
    for tool in tools:
        [declared] = _mcp_utils.mcp_to_gemini_tool(tool).function_declarations or []
        assert declared.name == tool.name


def test_anthropic_takes_every_tool(tools: list[Any]) -> None:
    for tool in tools:
        taken = transform_schema(copy.deepcopy(tool.input_schema))
        assert set(taken["properties"]) == set(tool.input_schema["properties"])
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool.name)


def test_every_description_says_when_to_call(tools: list[Any]) -> None:
    for tool in tools:
        assert re.search(r"Call it (first|when|for)", tool.description), tool.name


def test_a_default_is_said_in_words() -> None:
    limit = input_schema(FindArguments)["properties"]["limit"]
    assert limit == {
        "type": "integer",
        "minimum": 1,
        "maximum": 50,
        "description": "Skills to return at most. Left out: 10.",
    }


def test_null_is_the_same_as_leaving_out() -> None:
    asked = RouteArguments.model_validate(
        {"request": "x", "history": None, "trace": None, "scope": None, "use_semantic_cache": None}
    )
    assert asked == RouteArguments(request="x")
    with pytest.raises(ValueError, match="request"):
        RouteArguments.model_validate({"request": None})


def test_what_the_schema_does_not_say_is_still_checked() -> None:
    with pytest.raises(ValueError, match="unknown"):
        FindArguments.model_validate({"query": "x", "unknown": 1})
    with pytest.raises(ValueError, match="scope"):
        FeedbackArguments(id="1", right=True, scope="x" * (MAX_SCOPE_CHARACTERS + 1))


@pytest.mark.parametrize("trace", [True, False])
def test_an_answer_keeps_to_the_schema_of_answers(trace: bool) -> None:
    result = RoutingResult(
        decision=Decision.ABSTAIN,
        selected_skills=(),
        reasoning="nothing fits",
        confidence=0.9,
        stage=Stage.VECTOR,
        catalog_version="v",
        id="1",
    )
    given = result.to_dict(trace=trace)
    assert ("trace" in given) is trace
    jsonschema.validate(given, output_schema(RoutingResult))
