"""JSON schemas that every consumer takes: OpenAI with ``strict``, Anthropic, Gemini, and Ajv.

Each of them refuses something that JSON Schema 2020-12 allows. OpenAI's strict mode knows no
``default``, no ``minLength`` and no open object; Gemini knows no ``additionalProperties`` and no
null among the values of an ``enum``; Ajv in its strict mode knows no ``format`` of its own. So the
schemas keep to what all of them read, and say the rest in words. What is checked does not change:
the pydantic models check what arrives, and they refuse unknown arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from functools import cache
from typing import Any, Final, cast, get_type_hints

from pydantic import BaseModel, TypeAdapter
from pydantic.json_schema import DEFAULT_REF_TEMPLATE, GenerateJsonSchema

from router.result import RoutingResult
from router.service.shapes import Arguments, RouteArguments

INPUT_KEYWORDS: Final = frozenset(
    (
        "type",
        "description",
        "properties",
        "required",
        "items",
        "enum",
        "anyOf",
        "minimum",
        "maximum",
        "maxItems",
    )
)
"""What the schema of a tool's arguments may use; anything else is left out."""
_OUTPUT_DROPPED: Final = frozenset(("default", "format", "title"))


class Untitled(GenerateJsonSchema):
    """JSON schemas without a title for every field: models read them, and titles repeat names."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 - pydantic's signature
        return False


def shapes_of(use_case: Callable[..., Any]) -> tuple[type[Arguments], Any]:
    """The arguments that a use case takes and the answer that it gives, read off its signature, so
    that what offers it to callers need not say them again."""
    hints = get_type_hints(use_case)
    answer = hints.pop("return")
    [arguments] = (
        hint for hint in hints.values() if isinstance(hint, type) and issubclass(hint, Arguments)
    )
    return arguments, answer


def as_told(asked: Arguments, found: Any) -> Any:
    """An answer as its schema describes it: that of a router has its trace only when asked for."""
    if not isinstance(found, RoutingResult):
        return found
    return found.to_dict(trace=isinstance(asked, RouteArguments) and asked.trace)


@cache
def input_schema(arguments: type[BaseModel]) -> dict[str, Any]:
    """The schema of a tool's arguments. It is shared: copy it to change it."""
    schema = arguments.model_json_schema(schema_generator=Untitled)
    portable = _portable(schema, schema.get("$defs", {}))
    portable.pop("description", None)  # the docstring of the class, which is for us
    return {**portable, "properties": portable.get("properties", {})}


@cache
def adapter_of(answer: Hashable) -> TypeAdapter[Any]:
    """The pydantic adapter that turns an answer of this type into JSON."""
    made: TypeAdapter[Any] = TypeAdapter(cast("type[Any]", answer))
    return made


@cache
def output_schema(answer: Hashable, refs: str = DEFAULT_REF_TEMPLATE) -> dict[str, Any]:
    """The schema of an answer of this type. It is shared: copy it to change it. ``refs`` says where
    the types are that it refers to."""
    schema = adapter_of(answer).json_schema(
        schema_generator=Untitled, mode="serialization", ref_template=refs
    )
    if answer is RoutingResult:  # as its ``to_dict`` gives it
        schema["properties"]["question"] = {
            "type": "string",
            "description": "What to ask the user when the decision is clarify; else empty.",
        }
        schema["required"] = [*(n for n in schema["required"] if n != "trace"), "question"]
    cleaned: dict[str, Any] = _without(schema, _OUTPUT_DROPPED)
    return cleaned


def _portable(schema: Mapping[str, Any], shared: Mapping[str, Any]) -> dict[str, Any]:
    """A schema in the common language, with every reference put in its place."""
    if "$ref" in schema:
        schema = {**shared[schema["$ref"].rsplit("/", 1)[-1]], **schema}
    kept = {key: value for key, value in schema.items() if key in INPUT_KEYWORDS}
    if "const" in schema:
        kept["enum"] = [schema["const"]]
    if "enum" in kept:
        kept["enum"] = [value for value in kept["enum"] if value is not None]
    if "properties" in kept:
        kept["properties"] = {
            name: _with_default(_portable(inner, shared), inner)
            for name, inner in kept["properties"].items()
        }
    elif kept.get("type") == "object":
        kept["properties"] = {}
    if "items" in kept:
        kept["items"] = _portable(kept["items"], shared)
    if "anyOf" in kept:
        kept["anyOf"] = [_portable(inner, shared) for inner in kept["anyOf"]]
    return kept


def _with_default(portable: dict[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """Say the default in words, where there is one that says something."""
    default = schema.get("default")
    if default is None or default == []:
        return portable
    shown = str(default).lower() if isinstance(default, bool) else default
    said = f"{portable.get('description', '')} Left out: {shown}.".strip()
    return {**portable, "description": said}


def _without(value: Any, keys: frozenset[str]) -> Any:
    """A schema without some keywords. Names of properties are no keywords."""
    if isinstance(value, list):
        return [_without(item, keys) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: {name: _without(inner, keys) for name, inner in item.items()}
        if key in ("properties", "$defs")
        else _without(item, keys)
        for key, item in value.items()
        if key not in keys
    }
