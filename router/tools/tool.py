"""Reads tool definitions of any kind into what routing needs: a name, texts and parameters.

Providers and libraries define tools in different forms; each form below is recognised by its own
keys. The original object is kept as the payload, so that a program gets back what it passed in:

- OpenAI, chat: ``{"type": "function", "function": {"name", "description", "parameters"}}``
- OpenAI, Responses: ``{"type": "function", "name", "description", "parameters"}``
- Anthropic: ``{"name", "description", "input_schema"}``
- MCP: ``{"name", "title", "description", "inputSchema"}``, or the SDK's ``Tool`` objects
- the tool objects of LangChain and FastMCP
- a Python function with type hints
- a ``Tool``

Definitions may come from strangers: everything is bounded, and nothing of them is executed.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from router.errors import SourceError
from router.skills.manifest import SkillManifest

MAX_DESCRIPTION_CHARACTERS: Final = 65_536
MAX_SCHEMA_CHARACTERS: Final = 1 << 20
MAX_PARAMETERS: Final = 1_000
"""Parameters of one tool that are searched, those of nested objects included."""
MAX_SCHEMA_DEPTH: Final = 32
MAX_SCHEMA_NODES: Final = 100_000
"""Values of one schema. YAML aliases and objects that contain themselves would never end."""
MAX_SCHEMA_NESTING: Final = 200
"""Levels of nested objects and lists. Python fails to write a thousand of them as JSON."""
_SCHEMA_ATTRIBUTES: Final = ("tool_call_schema", "inputSchema", "input_schema", "parameters")
"""Where tool objects keep their schema: those of LangChain, whose ``input_schema`` may be a class,
of the generations of the MCP SDK, and of FastMCP."""
_FORMS: Final = ("anyOf", "oneOf", "allOf")
"""Keywords that hold several schemas for one value."""


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool.

    Attributes:
        name: any text on one line that a provider accepts, at most 200 characters.
        description: what it does; may be empty.
        input_schema: the JSON Schema of its arguments; None if it takes none or they are not known.
        title: a name for people; searched too.
        keywords: words and phrases that point to it.
        payload: the object that callers get back for this tool; None means the tool itself.
    """

    name: str
    description: str = ""
    input_schema: Mapping[str, Any] | None = None
    title: str = ""
    keywords: tuple[str, ...] = ()
    payload: object = field(default=None, compare=False)


def read_tool(definition: object, *, source: str, position: int) -> Tool:
    """The tool that a definition describes, with the definition itself as its payload.

    Args:
        definition: of one of the forms above.
        source: for errors: where it comes from.
        position: for errors about a tool without a name: its 1-based place.

    Raises:
        SourceError: it is none of these forms, or a part of it cannot be used.
    """
    place = f"tool {position}"
    if isinstance(definition, Tool):
        tool = definition
    elif isinstance(definition, Mapping):
        tool = _of_mapping(definition, source, place)
    elif hasattr(definition, "name") and any(
        hasattr(definition, name) for name in _SCHEMA_ATTRIBUTES
    ):
        tool = _of_object(definition)
    elif callable(definition):
        tool = _of_function(definition, source, place)
    else:
        reason = f"{type(definition).__name__} is no form of a tool definition that is known"
        if isinstance(definition, list | tuple):
            reason += "; give the tools of a list one by one, as in add(*tools)"
        raise SourceError(source, place, reason)
    payload = (
        definition
        if not isinstance(definition, Tool) or definition.payload is None
        else definition.payload
    )
    checked = replace(tool, keywords=tuple(tool.keywords), payload=payload)
    _check(checked, source, place)
    # Answers contain the definition, so it must be possible to write it as JSON.
    if isinstance(definition, Mapping) and (fault := _fault_of(definition, text_keys=False)):
        raise SourceError(source, tool.name, f"the definition {fault}")
    return checked


def manifest_of(tool: Tool, *, origin: str) -> SkillManifest:
    """The tool as an entry of the catalog; its parameters are the body.

    Raises:
        SourceError: the name is too long, or a ``$ref`` of the schema leads in a circle.
    """
    parameters = "\n".join(_parameters(tool, origin))
    description = f"{tool.title}. {tool.description}" if tool.title else tool.description
    return SkillManifest.in_memory(
        tool.name,
        description.strip() or " ".join(tool.name.replace("_", " ").replace("-", " ").split()),
        body=parameters,
        routing_keywords=tool.keywords,
        payload=tool.payload,
        origin=origin,
        version=json.dumps(tool.input_schema, sort_keys=True, default=str),
    )


def _of_mapping(definition: Mapping[str, Any], source: str, place: str) -> Tool:
    inner = definition.get("function")
    if definition.get("type") == "function" and isinstance(inner, Mapping):
        definition = inner
    if "name" not in definition:
        kind = f" of type {definition['type']!r}" if isinstance(definition.get("type"), str) else ""
        raise SourceError(source, place, f"the definition{kind} has no name")
    schemas = (definition.get(key) for key in ("parameters", "input_schema", "inputSchema"))
    schema = next((schema for schema in schemas if schema is not None), None)
    description = definition.get("description")
    title = definition.get("title")
    return Tool(
        definition["name"],
        "" if description is None else description,
        schema,
        title=title if isinstance(title, str) else "",
    )


def _of_object(definition: Any) -> Tool:
    """A tool object of a library, which gives its schema as a dict or as a model of pydantic."""
    schemas = (getattr(definition, name, None) for name in _SCHEMA_ATTRIBUTES)
    schema = next((schema for schema in schemas if schema), None)
    if isinstance(schema, type) and hasattr(schema, "model_json_schema"):
        schema = schema.model_json_schema()
    description, title = (
        getattr(definition, "description", None),
        getattr(definition, "title", None),
    )
    return Tool(definition.name, description or "", schema, title=title or "")


def _of_function(definition: Callable[..., Any], source: str, place: str) -> Tool:
    """A function by its name, docstring and parameters."""
    from pydantic import PydanticUserError, TypeAdapter

    name = getattr(definition, "__name__", "")
    if not name or name == "<lambda>":
        raise SourceError(source, place, "the function has no name; use Tool(name, …, payload=it)")
    schema: dict[str, Any] | None
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", definition))
        schema = adapter.json_schema()
    except (PydanticUserError, NameError, TypeError, ValueError):
        # A type without a JSON Schema, or a type hint that cannot be resolved: use the names only.
        names = inspect.signature(definition).parameters
        schema = {"type": "object", "properties": {parameter: {} for parameter in names}}
    return Tool(name, inspect.getdoc(definition) or "", schema)


def _check(tool: Tool, source: str, place: str) -> None:
    """Raise SourceError if a value is not of the type or size that ``Tool`` requires."""
    name: object = tool.name
    description: object = tool.description
    schema: object = tool.input_schema
    if not isinstance(name, str) or not name.strip():
        raise SourceError(source, place, "the definition has no name")
    if not isinstance(description, str):
        kind = type(description).__name__
        raise SourceError(source, name, f"the description is no text but a {kind}")
    if len(description) > MAX_DESCRIPTION_CHARACTERS:
        limit = f"{MAX_DESCRIPTION_CHARACTERS:,}"
        reason = f"the description has {len(description):,} characters; at most {limit}"
        raise SourceError(source, name, reason)
    if schema is None:
        return
    if not isinstance(schema, Mapping):
        kind = type(schema).__name__
        raise SourceError(source, name, f"the schema of its arguments is no object but a {kind}")
    if schema.get("type", "object") != "object":
        kind = repr(schema["type"])
        reason = f'the schema of its arguments has the type {kind}; it must be "object"'
        raise SourceError(source, name, reason)
    fault = _fault_of(schema)
    if fault:
        raise SourceError(source, name, f"the schema of its arguments {fault}")


def _fault_of(schema: object, *, text_keys: bool = True) -> str:
    """Why a schema cannot be written as JSON; empty if it can. ``text_keys`` says whether each key
    must be a text."""
    left = MAX_SCHEMA_NODES
    waiting = [(schema, 0)]
    while waiting:
        value, depth = waiting.pop()
        if isinstance(value, Mapping):
            if text_keys and not all(isinstance(key, str) for key in value):
                return "has a key that is no text"
            inner: Iterable[object] = value.values()
        elif isinstance(value, list | tuple):
            inner = value
        else:
            continue
        left -= 1 + len(value)
        if left < 0:
            return f"holds more than {MAX_SCHEMA_NODES:,} values"
        if depth == MAX_SCHEMA_NESTING:
            return f"is nested more than {MAX_SCHEMA_NESTING} deep"
        waiting.extend((one, depth + 1) for one in inner)
    return ""


def _parameters(tool: Tool, origin: str) -> list[str]:
    """A line for each parameter: its name, its description, the values that it allows."""
    if tool.input_schema is None:
        return []
    lines: list[str] = []
    left = MAX_SCHEMA_CHARACTERS
    for line in _Walk(tool, origin).lines():
        left -= len(line)
        if len(lines) == MAX_PARAMETERS or left < 0:
            break
        lines.append(line)
    return lines


class _Walk:
    """Visits the parameters of a schema, each definition that is referred to once."""

    def __init__(self, tool: Tool, origin: str) -> None:
        self._tool = tool
        self._origin = origin
        self._root: Mapping[str, Any] = tool.input_schema or {}
        self._visited: set[str] = set()

    def lines(self) -> Iterator[str]:
        yield from self._walk(self._root, 0)

    def _walk(self, schema: object, depth: int) -> Iterator[str]:
        schema = self._resolved(schema)
        if not isinstance(schema, Mapping) or depth > MAX_SCHEMA_DEPTH:
            return
        properties = schema.get("properties")
        if isinstance(properties, Mapping):
            for name, value in properties.items():
                yield _line(str(name), self._texts_of(value))
                yield from self._walk(value, depth + 1)
        for key in ("items", "additionalProperties"):
            yield from self._walk(schema.get(key), depth + 1)
        for key in (*_FORMS, "prefixItems"):
            for option in listed(schema.get(key)):
                yield from self._walk(option, depth + 1)

    def _texts_of(self, schema: object) -> Mapping[str, Any]:
        """The keywords of a parameter, with those of the schemas that it refers to. A parameter may
        have several schemas, for example if it is optional; its own keywords win."""
        texts: dict[str, Any] = {}
        if isinstance(schema, Mapping):
            forms = [form for key in _FORMS for form in listed(schema.get(key))]
            for form in (*reversed(forms), schema):
                if isinstance(form, Mapping):
                    found = pointed_at(self._root, str(form.get("$ref", "")))
                    texts |= {**(found if isinstance(found, Mapping) else {}), **form}
        return texts

    def _resolved(self, schema: object) -> object:
        """The schema at the end of a chain of ``$ref``; None if it was visited before."""
        chain: set[str] = set()
        while isinstance(schema, Mapping) and isinstance(reference := schema.get("$ref"), str):
            if reference in chain:
                reason = f"the $ref {reference!r} of its schema leads in a circle"
                raise SourceError(self._origin, self._tool.name, reason)
            if reference in self._visited:
                return None
            chain.add(reference)
            schema = pointed_at(self._root, reference)
        self._visited |= chain
        return schema


def _line(name: str, texts: Mapping[str, Any]) -> str:
    description = texts.get("description")
    text = f": {description[:2_000]}" if isinstance(description, str) else ""
    values = [
        str(value) for value in listed(texts.get("enum"))[:20] if isinstance(value, str | int)
    ]
    if values:
        text += f" ({', '.join(values)[:500]})"
    return f"- {name}{text}"


def keys_of(reference: str) -> list[str]:
    """The keys of a reference within a document, such as ``#/definitions/Pet``."""
    parts = reference.removeprefix("#/").split("/")
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]


def pointed_at(document: object, reference: str) -> object:
    """The value that a reference within a document points to; None if it points outside or to
    nothing."""
    found = document if reference.startswith("#/") else None
    for key in keys_of(reference):
        if isinstance(found, Mapping):
            found = found.get(key)
        elif isinstance(found, list) and key.isdecimal() and int(key[:9]) < len(found):
            found = found[int(key[:9])]
        else:
            return None
    return found


def listed(value: object) -> list[Any]:
    """The value if it is a list, else an empty list."""
    return value if isinstance(value, list) else []
