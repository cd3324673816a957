"""Skills as MCP resources, after the Skills extension (``io.modelcontextprotocol/skills``).

Every routable skill's files are ordinary resources under ``skill://``. The extension's methods add
what a host needs to check them: ``skills/list`` and ``skills/get`` give each skill's frontmatter
and a SHA-256 digest of each file, ``resources/directory/read`` lists a folder. The extension wants
frontmatter that every YAML reader reads alike, and hosts drop a whole listing for one entry that
breaks its rules, so a skill that does not keep to the Agent Skills format is left out of those two
methods; its files and the tools offer it all the same.

Entries are read from the disk anew each time: nothing announces a change of a file other than
``SKILL.md``, and a digest that is out of date makes the skill useless to a host.
"""

from __future__ import annotations

import base64
import bisect
import hashlib
import math
import mimetypes
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import mcp_types as types
import yaml
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import Server
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from router.concurrency.tasks import in_thread
from router.errors import ManifestError
from router.mcp.hello import CACHE_SCOPE, SKILLS_EXTENSION
from router.router import SemanticRouter
from router.skills.catalog import Catalog
from router.skills.diagnostics import Report, Severity
from router.skills.discovery import SKILL_FILE
from router.skills.files import (
    MAX_BYTES,
    Entry,
    NotServed,
    list_files,
    list_folder,
    parse_uri,
    read_file,
    uri_of,
)
from router.skills.frontmatter import Node, split_manifest
from router.skills.manifest import NAME_LIMIT, NAME_PATTERN, SkillManifest

FRESH_MS: Final = 5_000
"""How long a client may keep a listing; changes are announced to those that listen."""
RESOURCES_A_PAGE: Final = 500
ENTRIES_A_PAGE: Final = 50

_TEXT_LIMITS: Final = {
    "description": 1024,
    "license": math.inf,
    "compatibility": 500,
    "allowed-tools": math.inf,
}
_FOLDER_TYPE: Final = "inode/directory"
_MARKDOWN: Final = "text/markdown"

_T = TypeVar("_T")


class ByURI(types.RequestParams):
    """Parameters of ``skills/get``."""

    uri: str


class FolderByURI(types.PaginatedRequestParams):
    """Parameters of ``resources/directory/read``."""

    uri: str


class SkillResources:
    """Serves the files and entries of whatever skills the router has at the moment; waits until it
    is open."""

    def __init__(self, router: SemanticRouter) -> None:
        self._router = router

    async def _catalog(self) -> Catalog:
        return (await self._router.open()).catalog

    def register(self, server: Server[Any]) -> None:
        """Add the extension's methods and settings to a server."""
        server.extensions[SKILLS_EXTENSION] = {"directoryRead": True}
        server.add_request_handler("skills/list", types.PaginatedRequestParams, self.list_skills)
        server.add_request_handler("skills/get", ByURI, self.get_skill)
        server.add_request_handler("resources/directory/read", FolderByURI, self.read_folder)

    async def list_resources(
        self, _context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        """One resource a skill with files, its ``SKILL.md``; the others are found through it."""
        with_files = [skill for skill in (await self._catalog()).routable if skill.has_file]
        skills, cursor = _page(with_files, lambda skill: skill.name, params, RESOURCES_A_PAGE)
        return types.ListResourcesResult(
            resources=[
                types.Resource(
                    uri=uri_of(skill.name, SKILL_FILE),
                    name=skill.name,
                    description=skill.description,
                    mime_type=_MARKDOWN,
                )
                for skill in skills
            ],
            next_cursor=cursor,
        )

    async def list_templates(
        self, _context: ServerRequestContext[Any], _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        template = types.ResourceTemplate(
            uri_template="skill://{skill}/{+path}",
            name="skill-file",
            description="A file of a skill, by its path inside the skill's folder.",
        )
        return types.ListResourceTemplatesResult(resource_templates=[template])

    async def read_resource(
        self, _context: ServerRequestContext[Any], params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        """A file as text where its bytes are UTF-8, so that its digest can be checked."""
        skill, parts = await self._resolve(params.uri)
        data = await _served(read_file, skill.path.parent, parts)
        kind = _media_type(parts[-1])
        try:
            content: types.TextResourceContents | types.BlobResourceContents = (
                types.TextResourceContents(uri=params.uri, mime_type=kind, text=data.decode())
            )
        except UnicodeDecodeError:
            blob = base64.b64encode(data).decode("ascii")
            content = types.BlobResourceContents(uri=params.uri, mime_type=kind, blob=blob)
        return types.ReadResourceResult(contents=[content])

    async def read_folder(
        self, context: ServerRequestContext[Any], params: FolderByURI
    ) -> dict[str, Any]:
        """The direct children of a skill's folder or of one below it."""
        _require_extension(context)
        skill, parts = await self._resolve(params.uri)
        children = await _served(list_folder, skill.path.parent, parts)
        page, cursor = _page(children, lambda child: child.name, params, RESOURCES_A_PAGE)
        return _answer({"resources": [_child(skill.name, parts, child) for child in page]}, cursor)

    async def list_skills(
        self, context: ServerRequestContext[Any], params: types.PaginatedRequestParams
    ) -> dict[str, Any]:
        """The entries of the skills that keep to the format; the others are not published."""
        _require_extension(context)
        page, cursor = _page(
            (await self._catalog()).routable, lambda skill: skill.name, params, ENTRIES_A_PAGE
        )
        found = await in_thread(lambda: [_entry_or_none(skill) for skill in page], leaves=True)
        return _answer({"skills": [entry for entry in found if entry is not None]}, cursor)

    async def get_skill(self, context: ServerRequestContext[Any], params: ByURI) -> dict[str, Any]:
        """The entry of one skill, by the URI of its ``SKILL.md``."""
        _require_extension(context)
        skill, parts = await self._resolve(params.uri)
        if parts != (SKILL_FILE,):
            raise _unknown(f"no skill is served at {params.uri!r}")
        return _answer({"skill": await _served(skill_entry, skill)})

    async def _resolve(self, uri: str) -> tuple[SkillManifest, tuple[str, ...]]:
        """The skill that a URI lies in, and the path inside it."""
        try:
            name, parts = parse_uri(uri)
        except NotServed as error:
            raise _unknown(str(error)) from error
        skill = (await self._catalog()).skills.get(name)
        if skill is None or skill.disable_model_invocation or not skill.has_file:
            raise _unknown(f"no skill is served at {uri_of(name)!r}")
        return skill, parts


def skill_entry(skill: SkillManifest) -> dict[str, Any]:
    """The extension's ``Skill`` object for the files as they are now.

    Raises:
        NotServed: the skill cannot be published; the message says why.
    """
    if not skill.has_file:
        raise NotServed("it is held in memory and has no files")
    folder = skill.path.parent
    resources: list[dict[str, Any]] = []
    manifest: bytes | None = None
    total = 0
    for path in list_files(folder):
        data = read_file(folder, path.split("/"))
        total += len(data)
        if total > MAX_BYTES:
            raise NotServed(f"its files are larger than {MAX_BYTES:,} bytes together")
        if path == SKILL_FILE:
            manifest = data
        digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
        resources.append({"uri": uri_of(skill.name, path), "digest": digest, "size": len(data)})
    if manifest is None:
        raise NotServed(f"its {SKILL_FILE} is a link")
    frontmatter = _frontmatter(manifest, skill)
    return {
        "uri": uri_of(skill.name, SKILL_FILE),
        "frontmatter": frontmatter,
        "resources": resources,
    }


def _entry_or_none(skill: SkillManifest) -> dict[str, Any] | None:
    try:
        return skill_entry(skill)
    except NotServed:
        return None


def _frontmatter(data: bytes, skill: SkillManifest) -> dict[str, Any]:
    """The frontmatter as JSON, as any YAML reader would read it.

    Raises:
        NotServed: it breaks the format, or readers may differ about it.
    """
    report = Report(skill.path)
    try:
        top, _, _ = split_manifest(data, report)
    except ManifestError as error:
        raise NotServed(error.reason) from error
    for diagnostic in report.diagnostics:
        if diagnostic.severity is not Severity.INFO:
            raise NotServed(diagnostic.message)
    found = {key: _as_json(node) for key, node in top.items()}
    if found.get("name") != skill.name:
        raise NotServed("its name is not the one that it is served by")
    if len(skill.name) > NAME_LIMIT or not re.fullmatch(NAME_PATTERN, skill.name):
        raise NotServed("its name breaks the rule for names")
    for key, limit in _TEXT_LIMITS.items():
        value = found.get(key)
        if (key in found or key == "description") and not (
            isinstance(value, str) and value.strip() and len(value) <= limit
        ):
            raise NotServed(f"its {key} breaks the format")
    metadata = found.get("metadata", {})
    if not isinstance(metadata, dict) or not all(isinstance(v, str) for v in metadata.values()):
        raise NotServed("its metadata is not a list of keys with texts")
    return found


def _as_json(node: Node) -> Any:
    """A YAML value as JSON: numbers and truth values as such, dates as the text that they are."""
    if isinstance(node.value, dict):
        return {key: _as_json(child) for key, child in node.value.items()}
    if isinstance(node.value, list):
        return [_as_json(child) for child in node.value]
    if node.value is None or not node.typed:
        return node.value
    try:
        value = yaml.safe_load(node.value)
    except (yaml.YAMLError, ValueError):  # such as the date 2026-02-31
        return node.value
    if isinstance(value, float) and not math.isfinite(value):
        return node.value
    return value if isinstance(value, bool | int | float) else node.value


def _child(skill: str, parts: Sequence[str], child: Entry) -> dict[str, Any]:
    return {
        "uri": uri_of(skill, "/".join((*parts, child.name))),
        "name": child.name,
        "mimeType": _FOLDER_TYPE if child.is_folder else _media_type(child.name),
    }


def _media_type(name: str) -> str:
    if name.endswith(".md"):  # systems differ on whether they know it
        return _MARKDOWN
    return mimetypes.guess_type(name, strict=False)[0] or "application/octet-stream"


async def _served(read: Callable[..., _T], *arguments: object) -> _T:
    """What a function that reads files gives; its refusal as the protocol's error."""
    try:
        return await in_thread(partial(read, *arguments), leaves=True)
    except NotServed as error:
        raise _unknown(str(error)) from error


def _unknown(message: str) -> MCPError:
    return MCPError(types.INVALID_PARAMS, message)


def _require_extension(context: ServerRequestContext[Any]) -> None:
    """The extension is specified for the newer protocol only, where it can be negotiated."""
    if context.protocol_version not in MODERN_PROTOCOL_VERSIONS:
        raise MCPError(types.METHOD_NOT_FOUND, "Method not found", context.method)


def _page(
    items: Sequence[_T],
    key: Callable[[_T], str],
    params: types.PaginatedRequestParams | None,
    size: int,
) -> tuple[Sequence[_T], str | None]:
    """One page of items that are in the order of their keys, and the cursor of the next.

    The cursor is the last key given, so that a change of the list between two pages neither skips
    nor repeats an item that was there all the time.
    """
    cursor = None if params is None else params.cursor
    start = 0 if cursor is None else bisect.bisect_right(items, cursor, key=key)
    page = items[start : start + size]
    return page, key(page[-1]) if start + size < len(items) else None


def _answer(result: Mapping[str, Any], cursor: str | None = None) -> dict[str, Any]:
    more = {} if cursor is None else {"nextCursor": cursor}
    return {**result, **more, "ttlMs": FRESH_MS, "cacheScope": CACHE_SCOPE}
