"""A tool definition of any kind, read as what routing needs: a name, texts, parameters.

Providers and libraries write tools down differently; each form below is recognised by its own
keys, and the object itself is kept as it came, so that a program gets back what it gave:

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
"""Values of one schema. Aliases of YAML and objects that hold themselves look endless."""
MAX_SCHEMA_NESTING: Final = 200
"""Objects and lists in one another. Python writes not even a thousand as JSON."""
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
        input_schema: the JSON Schema of its arguments; None when it takes none or nobody says.
        title: a name for people; searched too.
        keywords: words and phrases that point to it.
        payload: what to hand back for it; the tool itself when None is given.
    """

    name: str
    description: str = ""
    input_schema: Mapping[str, Any] | None = None
    title: str = ""
    keywords: tuple[str, ...] = ()
    payload: object = field(default=None, compare=False)


def read_tool(given: object, *, source: str, position: int) -> Tool:
    """The tool that a definition describes, with the definition itself as its payload.

    Args:
        given: a definition of one of the forms above.
        source: for errors: where it comes from.
        position: for errors about a tool without a name: its 1-based place.

    Raises:
        SourceError: it is none of these forms, or a part of it cannot be used.
    """
    place = f"tool {position}"
    if isinstance(given, Tool):
        tool = given
    elif isinstance(given, Mapping):
        tool = _of_mapping(given, source, place)
    elif hasattr(given, "name") and any(hasattr(given, name) for name in _SCHEMA_ATTRIBUTES):
        tool = _of_object(given)
    elif callable(given):
        tool = _of_function(given, source, place)
    else:
        reason = f"{type(given).__name__} is no form of a tool definition that is known"
        if isinstance(given, list | tuple):
            reason += "; give the tools of a list one by one, as in add(*tools)"
        raise SourceError(source, place, reason)
    payload = given if not isinstance(given, Tool) or given.payload is None else given.payload
    checked = replace(tool, keywords=tuple(tool.keywords), payload=payload)
    _check(checked, source, place)
    # An answer that brings the definition back must be able to hold it.
    if isinstance(given, Mapping) and (fault := _fault_of(given, text_keys=False)):
        raise SourceError(source, tool.name, f"the definition {fault}")
    return checked


def manifest_of(tool: Tool, *, origin: str) -> SkillManifest:
    """The tool as the catalog holds it; its parameters are its body.

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


def _of_mapping(given: Mapping[str, Any], source: str, place: str) -> Tool:
    inner = given.get("function")
    if given.get("type") == "function" and isinstance(inner, Mapping):
        given = inner
    if "name" not in given:
        kind = f" of type {given['type']!r}" if isinstance(given.get("type"), str) else ""
        raise SourceError(source, place, f"the definition{kind} has no name")
    schemas = (given.get(key) for key in ("parameters", "input_schema", "inputSchema"))
    schema = next((schema for schema in schemas if schema is not None), None)
    description = given.get("description")
    title = given.get("title")
    return Tool(
        given["name"],
        "" if description is None else description,
        schema,
        title=title if isinstance(title, str) else "",
    )


def _of_object(given: Any) -> Tool:
    """A tool object of a library, which gives its schema as a dict or as a model of pydantic."""
    schemas = (getattr(given, name, None) for name in _SCHEMA_ATTRIBUTES)
    schema = next((schema for schema in schemas if schema), None)
    if isinstance(schema, type) and hasattr(schema, "model_json_schema"):
        schema = schema.model_json_schema()
    description, title = getattr(given, "description", None), getattr(given, "title", None)
    return Tool(given.name, description or "", schema, title=title or "")


def _of_function(given: Callable[..., Any], source: str, place: str) -> Tool:
    """A function by its name, docstring and parameters."""
    from pydantic import PydanticUserError, TypeAdapter

    name = getattr(given, "__name__", "")
    if not name or name == "<lambda>":
        raise SourceError(source, place, "the function has no name; use Tool(name, …, payload=it)")
    schema: dict[str, Any] | None
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(cast("Any", given))
        schema = adapter.json_schema()
    except (PydanticUserError, NameError, TypeError, ValueError):
        # A type that has no JSON Schema, or a hint that cannot be resolved: the names still tell.
        names = inspect.signature(given).parameters
        schema = {"type": "object", "properties": {parameter: {} for parameter in names}}
    return Tool(name, inspect.getdoc(given) or "", schema)


def _check(tool: Tool, source: str, place: str) -> None:
    """Refuse what a definition from outside holds in place of what ``Tool`` promises."""
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
    """What keeps a schema from being written out as JSON; empty when nothing does. ``text_keys``
    says whether each key must be a text."""
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
                yield _line(str(name), self._said_of(value))
                yield from self._walk(value, depth + 1)
        for key in ("items", "additionalProperties"):
            yield from self._walk(schema.get(key), depth + 1)
        for key in (*_FORMS, "prefixItems"):
            for option in listed(schema.get(key)):
                yield from self._walk(option, depth + 1)

    def _said_of(self, schema: object) -> Mapping[str, Any]:
        """What a parameter says of itself and, where it does not, what it refers to says: directly,
        or as one of several forms, as that of an optional one."""
        said: dict[str, Any] = {}
        if isinstance(schema, Mapping):
            forms = [form for key in _FORMS for form in listed(schema.get(key))]
            for form in (*reversed(forms), schema):
                if isinstance(form, Mapping):
                    found = pointed_at(self._root, str(form.get("$ref", "")))
                    said |= {**(found if isinstance(found, Mapping) else {}), **form}
        return said

    def _resolved(self, schema: object) -> object:
        """What a chain of ``$ref`` leads to; nothing when it was visited before."""
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


def _line(name: str, said: Mapping[str, Any]) -> str:
    description = said.get("description")
    text = f": {description[:2_000]}" if isinstance(description, str) else ""
    values = [str(value) for value in listed(said.get("enum"))[:20] if isinstance(value, str | int)]
    if values:
        text += f" ({', '.join(values)[:500]})"
    return f"- {name}{text}"


def keys_of(reference: str) -> list[str]:
    """The keys of a reference within a document, such as ``#/definitions/Pet``."""
    parts = reference.removeprefix("#/").split("/")
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]


def pointed_at(document: object, reference: str) -> object:
    """What a reference within a document leads to; None for one that leads out of it, or to
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
    """A value where it is a list; else nothing."""
    return value if isinstance(value, list) else []
