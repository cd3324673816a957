"""JSON schemas that every consumer accepts: OpenAI with ``strict``, Anthropic, Gemini, and Ajv.

Each of them refuses something that JSON Schema 2020-12 allows. OpenAI's strict mode knows no
``default``, no ``minLength`` and no open object; Gemini knows no ``additionalProperties`` and no
null among the values of an ``enum``; Ajv in its strict mode knows no ``format`` of its own. So the
schemas use only what all of them accept, and say the rest in the descriptions. This does not weaken
any check: arguments are checked by the pydantic models, which also refuse unknown ones.
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
    """The types of the arguments and of the answer of a use case, read from its signature, so that
    the code that offers it over HTTP or MCP need not repeat them."""
    hints = get_type_hints(use_case)
    answer = hints.pop("return")
    [arguments] = (
        hint for hint in hints.values() if isinstance(hint, type) and issubclass(hint, Arguments)
    )
    return arguments, answer


def as_described(arguments: Arguments, found: Any) -> Any:
    """The answer in the form that its schema describes. The answer of a router has its trace only
    if the arguments ask for it."""
    if not isinstance(found, RoutingResult):
        return found
    return found.to_dict(trace=isinstance(arguments, RouteArguments) and arguments.trace)


@cache
def input_schema(arguments: type[BaseModel]) -> dict[str, Any]:
    """The schema of a tool's arguments. It is shared: copy it to change it."""
    schema = arguments.model_json_schema(schema_generator=Untitled)
    portable = _portable(schema, schema.get("$defs", {}))
    portable.pop("description", None)  # the docstring of the class is for developers
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
    """A schema with the common keywords only, and with every reference replaced by what it
    names."""
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
    """Add the default to the description, unless it is null or empty."""
    default = schema.get("default")
    if default is None or default == []:
        return portable
    shown = str(default).lower() if isinstance(default, bool) else default
    description = f"{portable.get('description', '')} Left out: {shown}.".strip()
    return {**portable, "description": description}


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
