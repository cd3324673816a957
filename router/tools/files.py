"""Reading tools from files: a JSON list of definitions, or an OpenAPI description.

Files come from strangers: they are bounded, parsed as data, and a definition that cannot be used is
left out and reported while the others are taken.
"""

from __future__ import annotations

import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from router.bounded.files import Unreadable, read_bounded
from router.bounded.yaml import load_yaml
from router.errors import ConfigurationError, SourceError
from router.skills.diagnostics import MAX_DIAGNOSTICS, Diagnostic, Severity
from router.skills.manifest import SkillManifest
from router.skills.sources import SourceSnapshot
from router.tools.tool import Tool, keys_of, listed, manifest_of, pointed_at, read_tool

MAX_FILE_BYTES: Final = 32 << 20
MAX_YAML_BYTES: Final = 4 << 20
"""YAML is parsed at a fiftieth of the speed of JSON."""
MAX_YAML_DEPTH: Final = 100
MAX_TOOLS: Final = 10_000
"""Tools taken from one file or server."""

MAX_REFERRED_VALUES: Final = 10_000
"""Values of an OpenAPI description that are looked at for what one operation refers to."""

_SHARED: Final = ("components", "definitions", "parameters")
_METHODS: Final = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of an HTTP interface, as it comes back for the tool that stands for it.

    Attributes:
        name: the tool's name.
        method: of HTTP, in upper case.
        path: with its parameters in braces, such as ``/pets/{id}``.
        definition: the operation's own part of the description, untouched.
    """

    name: str
    method: str
    path: str
    definition: Mapping[str, Any] = field(repr=False)


def snapshot_of(tools: Iterable[object], *, origin: str, path: Path) -> SourceSnapshot:
    """What a source gives for these definitions. Those that cannot be used are left out, and so is
    a second one of a name; each is reported with ``path`` as its place. A ``Diagnostic`` among
    them is no tool: it says what the source could not read. The first ``MAX_DIAGNOSTICS`` errors
    and warnings of that kind are reported, and the number of the others."""
    skills: dict[str, SkillManifest] = {}
    failures: list[Diagnostic] = []
    notices: list[Diagnostic] = []
    position = unnamed = 0
    for part in tools:
        if isinstance(part, Diagnostic):
            found = failures if part.severity is Severity.ERROR else notices
            if len(found) < MAX_DIAGNOSTICS:
                found.append(part)
            else:
                unnamed += 1
            continue
        position += 1
        if position > MAX_TOOLS:
            message = f"there are more than {MAX_TOOLS:,} tools; the others are left out"
            notices.append(Diagnostic(path, 0, Severity.WARNING, "too-many-tools", message))
            break
        try:
            skill = manifest_of(read_tool(part, source=origin, position=position), origin=origin)
            if skill.name in skills:
                raise SourceError(origin, skill.name, "there is one of that name already")
        except SourceError as error:
            message = f"{error.entry}: {error.reason}"
            failures.append(Diagnostic(path, 0, Severity.ERROR, "not-loaded", message))
        else:
            skills[skill.name] = skill
    if unnamed:
        message = f"{unnamed:,} more parts cannot be read"
        notices.append(Diagnostic(path, 0, Severity.WARNING, "more-oddities", message))
    return SourceSnapshot(tuple(skills.values()), tuple(failures), tuple(notices))


class _FileSource:
    """What the sources over one file share: read when the router opens, and at every ``reload``."""

    roots: tuple[Path, ...] = ()

    def __init__(self, path: Path | str, *, name: str = "") -> None:
        """A source that is not read yet; ``name``, for reports and errors, is the file's if none is
        given."""
        self._path = Path(path)
        self.name = name or self._path.name

    def read(
        self, previous: SourceSnapshot | None = None, *, quick: bool = False
    ) -> SourceSnapshot:
        """The tools. A file that cannot be used any more goes on giving what it did.

        Raises:
            ConfigurationError: there is no ``previous``, and the file cannot be used.
        """
        if previous is not None and quick:
            return previous
        try:
            return snapshot_of(self._tools(), origin=self.name, path=self._path)
        except ConfigurationError as error:
            if previous is None:
                raise
            fault = Diagnostic(self._path, 0, Severity.ERROR, "not-loaded", str(error))
            return SourceSnapshot(previous.skills, (fault,), previous.notices)

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:  # noqa: ARG002
        """The file is looked at when it is read, so there is nothing to tell."""
        return lambda: None

    def _tools(self) -> Iterable[Any]:
        raise NotImplementedError


class ToolsFile(_FileSource):
    """The source of the tools in a JSON file: a list of definitions, or an object with the list
    under ``tools``."""

    def _tools(self) -> list[Any]:
        document = read_document(self._path)
        tools = document.get("tools") if isinstance(document, dict) else document
        if not isinstance(tools, list):
            raise ConfigurationError(
                f'{self._path}: neither a list of tools nor an object with "tools"'
            )
        return tools


class OpenApi(_FileSource):
    """The source of the operations of an HTTP interface, from its OpenAPI description (3.x, or
    Swagger 2.0). The payload of such a tool is its ``Operation``."""

    def __init__(self, description: Path | str | Mapping[str, Any], *, name: str = "") -> None:
        """A source that is not read yet, over a JSON or YAML file or what such a file holds;
        ``name`` as for a ``ToolsFile``."""
        super().__init__("openapi" if isinstance(description, Mapping) else description, name=name)
        self._description = description

    def _tools(self) -> Iterable[Any]:
        part = self._description
        document = part if isinstance(part, Mapping) else read_document(self._path)
        if not isinstance(document, Mapping) or not isinstance(document.get("paths"), Mapping):
            raise ConfigurationError(f'{self._path}: no OpenAPI description: it has no "paths"')
        return _tools_of(document, self._path)


def _tools_of(document: Mapping[str, Any], file: Path) -> Iterator[Tool | Diagnostic]:
    """The tools, and a diagnostic for each part that cannot be read. A key such as ``x-owner`` is
    an extension and no path."""
    for path, part in document["paths"].items():
        if str(path).startswith("x-"):
            continue
        item = _followed(part, document)
        if not isinstance(item, Mapping):
            message = f"{path}: {_why_not(part)}"
            yield Diagnostic(file, 0, Severity.ERROR, "not-loaded", message)
            continue
        for method in _METHODS:
            operation = item.get(method)
            if isinstance(operation, Mapping):
                yield from _tool_of(str(path), method, item, operation, document, file)


def _tool_of(
    path: str,
    method: str,
    item: Mapping[str, Any],
    operation: Mapping[str, Any],
    document: Mapping[str, Any],
    file: Path,
) -> Iterator[Tool | Diagnostic]:
    """The tool that an operation is, after a warning for each part that it is without."""
    place = f"{method.upper()} {path}"

    def left_out(name: str, part: object) -> Diagnostic:
        message = f"{place}: {name} is left out: {_why_not(part)}"
        return Diagnostic(file, 0, Severity.WARNING, "left-out", message)

    properties: dict[str, Any] = {}
    for part in (*listed(item.get("parameters")), *listed(operation.get("parameters"))):
        parameter = _followed(part, document)
        if not isinstance(parameter, Mapping) or not isinstance(parameter.get("name"), str):
            yield left_out("a parameter", part)
            continue
        if parameter.get("in") == "body":  # Swagger 2.0
            properties["body"] = parameter.get("schema")
            continue
        own = parameter.get("schema")
        schema = dict(own) if isinstance(own, Mapping) else {}
        if "description" in parameter:
            schema["description"] = parameter["description"]
        properties[parameter["name"]] = schema
    part = operation.get("requestBody")
    body = _followed(part, document)
    if isinstance(body, Mapping) and isinstance(body.get("content"), Mapping):
        kinds = [kind for kind in body["content"].values() if isinstance(kind, Mapping)]
        if kinds:
            properties["body"] = kinds[0].get("schema")
    elif part is not None:
        yield left_out("its body", part)
    name = operation.get("operationId")
    if not isinstance(name, str) or not name.strip():
        name = _name_of(method, path)
    texts = [operation.get(key) for key in ("summary", "description")]
    tags = [tag for tag in listed(operation.get("tags")) if isinstance(tag, str)]
    yield Tool(
        name,
        "\n".join(text for text in texts if isinstance(text, str)) or place,
        {"type": "object", "properties": properties, **_referred_to(properties, document)},
        keywords=tuple(tags),
        payload=Operation(name, method.upper(), path, operation),
    )


def _name_of(method: str, path: str) -> str:
    """The name of an operation without one: GET of ``/pets/{id}`` is ``get_pets_by_id``."""
    plain = re.sub(r"[\W_]+", "_", path.replace("{", "/by/"))
    return f"{method}_{plain.strip('_')}"


def _why_not(part: object) -> str:
    """Why a part of the description cannot be used."""
    if isinstance(part, Mapping) and isinstance(reference := part.get("$ref"), str):
        lost = "leads in a circle, out of the description, or to nothing"
        return f"the $ref {reference[:200]!r} {lost}"
    return "it is not what OpenAPI has there"


def _referred_to(properties: Mapping[str, Any], document: Mapping[str, Any]) -> dict[str, Any]:
    """The shared definitions that some properties need, directly or by others, in their places: the
    nearest ones first, until ``MAX_REFERRED_VALUES`` have been looked at."""
    needed: dict[str, Any] = {}
    waiting: deque[object] = deque([properties])
    seen: set[str] = set()
    left = MAX_REFERRED_VALUES
    while waiting and left > 0:
        left -= 1
        value = waiting.popleft()
        if isinstance(value, list):
            waiting.extend(value)
        if not isinstance(value, Mapping):
            continue
        waiting.extend(value.values())
        reference = value.get("$ref")
        if isinstance(reference, str) and reference not in seen:
            seen.add(reference)
            keys, definition = keys_of(reference), pointed_at(document, reference)
            if definition is not None and keys[0] in _SHARED:
                _put(needed, keys, definition)
                waiting.append(definition)
    return needed


def _put(into: Any, keys: list[str], value: object) -> None:
    """A definition that lies in a list is there already, with the list."""
    for key in keys[:-1]:
        into = into.setdefault(key, {}) if isinstance(into, dict) else into
    if isinstance(into, dict):
        into[keys[-1]] = value


def _followed(part: object, document: Mapping[str, Any]) -> object:
    """A part of the description, wherever it is written down in it; None when its references lead
    in a circle or out of it."""
    seen: set[str] = set()
    while isinstance(part, Mapping) and isinstance(reference := part.get("$ref"), str):
        if reference in seen:
            return None
        seen.add(reference)
        part = pointed_at(document, reference)
    return part


def read_document(path: Path) -> Any:
    """What a JSON or YAML file holds.

    Raises:
        ConfigurationError: it cannot be read, is too large, or is neither.
    """
    try:
        data = read_bounded(path, most=MAX_FILE_BYTES)
    except Unreadable as error:
        raise ConfigurationError(f"{path}: {error}") from error
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        if path.suffix.lower() not in (".yaml", ".yml"):
            raise ConfigurationError(f"{path}: not JSON: {error}") from error
    if len(data) > MAX_YAML_BYTES:
        raise ConfigurationError(f"{path}: YAML of more than {MAX_YAML_BYTES:,} bytes; use JSON")
    try:
        return load_yaml(data, max_depth=MAX_YAML_DEPTH)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path}: neither JSON nor YAML: {error}") from error
