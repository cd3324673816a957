"""The tools: how each is advertised, and what it does.

Arguments are checked by the pydantic models that the advertised schemas come from. A fault that the
caller can do something about (bad arguments, an unknown skill, an encoder that is down) is a result
with ``isError``, which the model reads, and not an error of the protocol, which it does not.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import logging
from dataclasses import asdict
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING

import mcp_types as types
from mcp.shared.exceptions import MCPError
from pydantic import TypeAdapter, ValidationError

from router.errors import RouterError, UnknownSkill
from router.mcp.skill_files import NotServed, list_files, uri_of
from router.mcp.tool_models import (
    MAX_FAILURES,
    CacheStatus,
    Failure,
    FindArguments,
    FoundSkill,
    FoundSkills,
    LoadArguments,
    LoadedSkill,
    Model,
    RouteArguments,
    RouterStatus,
    SkillCounts,
    StatusArguments,
    Tool,
    Why,
    answer,
    input_schema,
)
from router.request import Turn
from router.result import RoutingResult
from router.skills.discovery import SKILL_FILE
from router.skills.manifest import MAX_KEPT_NAME

if TYPE_CHECKING:
    from pathlib import Path

    from router.memory.memory import Memory
    from router.router import SemanticRouter
    from router.skills.catalog import Catalog

_log = logging.getLogger(__name__)


class Tools:
    """The tools over one open router and, if there is one, a memory."""

    def __init__(self, router: SemanticRouter, memory: Memory | None = None) -> None:
        self._router = router
        tools: tuple[Tool, ...] = (
            Tool(
                "route",
                "Route a request",
                "Decides which skills to load for a request, or that none fits or that the user "
                "must be asked. Gives a confidence and the reasons.",
                RouteArguments,
                TypeAdapter(RoutingResult),
                self._route,
                open_world=True,  # it may ask an LLM
            ),
            Tool(
                "find_skills",
                "Find skills",
                "Ranks the installed skills for a query and says why. On request it also suggests "
                "skills that are not installed. Decides nothing.",
                FindArguments,
                TypeAdapter(FoundSkills),
                self._find,
            ),
            Tool(
                "load_skill",
                "Load a skill",
                "Gives a skill's instructions and the paths of its other files.",
                LoadArguments,
                TypeAdapter(LoadedSkill),
                self._load,
            ),
            Tool(
                "router_status",
                "Router status",
                "Shows which skills are loaded or faulty, and the state of caches, encoder and "
                "LLMs.",
                StatusArguments,
                TypeAdapter(RouterStatus),
                self._status,
            ),
        )
        if memory is not None:
            from router.mcp.memory_tools import MemoryTools

            tools += MemoryTools(memory).tools
        self._tools = {tool.name: tool for tool in tools}

    async def list_tools(
        self, _context: object, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        """The tools as they are now; ``load_skill`` names the skills, so it comes and goes."""
        names = skill_names(self._router.catalog)
        tools = []
        for tool in self._tools.values():
            schema = input_schema(tool.arguments)
            if tool.name == "load_skill":
                if not names:
                    continue
                name = {**schema["properties"]["name"], "enum": list(names)}
                schema = {**schema, "properties": {"name": name}}
            tools.append(tool.advertised(schema))
        return types.ListToolsResult(tools=tools)

    async def call_tool(
        self, _context: object, params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        """Run a tool.

        Raises:
            MCPError: there is no tool of that name.
        """
        tool = self._tools.get(params.name)
        if tool is None or (tool.name == "load_skill" and not self._router.catalog.routable):
            raise MCPError(types.INVALID_PARAMS, f"unknown tool: {params.name[:100]!r}")
        try:
            arguments = tool.arguments.model_validate(params.arguments or {})
        except ValidationError as error:
            return _fault(_render(error))
        try:
            return await tool.run(arguments)
        except RouterError as error:
            return _fault(str(error))
        except Exception:  # noqa: BLE001 - a bug: its text may hold anything and must not go out
            _log.exception("the tool %s failed", tool.name)
            return _fault("an internal error; the server's log has the details")

    async def _route(self, asked: RouteArguments) -> types.CallToolResult:
        history = [
            turn if isinstance(turn, str) else Turn(turn.role, turn.text) for turn in asked.history
        ]
        result = await self._router.route(
            asked.request,
            available_skills=asked.available_skills,
            history=history,
            scope=asked.scope,
        )
        full = result.to_dict()
        # A model pays for every token and needs no trace; programs read the structured content.
        brief = {key: value for key, value in full.items() if key != "trace"}
        return answer(full, json.dumps(brief, ensure_ascii=False))

    async def _find(self, asked: FindArguments) -> types.CallToolResult:
        catalog = (await self._router.open()).catalog  # the one that is searched, see discover
        found = FoundSkills(
            catalog_version=catalog.version,
            skills=[
                FoundSkill(
                    name=skill.name,
                    description=skill.description,
                    installed=skill.installed,
                    url=skill.url,
                    score=skill.match.score,
                    reason=skill.reason,
                    why=Why(
                        terms=list(skill.match.terms),
                        lexical=skill.match.lexical,
                        latent=skill.match.latent,
                        cosine=skill.match.cosine,
                    ),
                )
                for skill in await self._router.discover(
                    asked.query, limit=asked.limit, installed_only=asked.installed_only
                )
            ],
        )
        return answer(found.model_dump(mode="json"))

    async def _load(self, asked: LoadArguments) -> types.CallToolResult:
        # The snapshot's text and not the file's: the file may be half-written at the moment.
        catalog = self._router.catalog
        skill = catalog.skills.get(asked.name)
        if skill is None or skill.disable_model_invocation:
            close = difflib.get_close_matches(asked.name[:MAX_KEPT_NAME], skill_names(catalog))
            raise UnknownSkill(asked.name[:MAX_KEPT_NAME], tuple(close))
        folder, note = skill.path.parent, None
        try:
            if not skill.has_file:
                raise NotServed("the skill is held in memory")
            paths = list(await asyncio.to_thread(list_files, folder))
        except NotServed as error:
            paths, note = [], f"the files are not listed: {error}"
        loaded = LoadedSkill(
            name=skill.name,
            description=skill.description,
            instructions=skill.body,
            folder=_shown(folder),
            uri=uri_of(skill.name),
            resources=[path for path in paths if path != SKILL_FILE],
            note=note,
        )
        return answer(loaded.model_dump(mode="json"), _as_text(loaded))

    async def _status(self, _asked: StatusArguments) -> types.CallToolResult:
        router = self._router
        installed = await router.open()
        catalog = installed.catalog
        status = RouterStatus(
            version=package_version(),
            catalog_version=catalog.version,
            skills=SkillCounts(
                routable=len(catalog.routable),
                hidden=len(catalog.skills) - len(catalog.routable),
                shadowed=len(catalog.shadowed),
                not_loaded=len(catalog.left_out),
            ),
            watching=router.manager.report().watch.mode.value,
            failures=[
                Failure(
                    path=_shown(failure.path),
                    line=failure.line,
                    reason=failure.message,
                )
                for failure in catalog.left_out[:MAX_FAILURES]
            ],
            caches={
                "fuzzy": CacheStatus(**asdict(router.fuzzy.stats)),
                "exact": CacheStatus(**asdict(router.exact.stats)),
            },
            encoder=_encoder_name(installed.encoder),
            models=[Model(provider=model.provider, model=model.model) for model in router.models],
        )
        return answer(status.model_dump(mode="json"))


def skill_names(catalog: Catalog) -> tuple[str, ...]:
    """The skills that ``load_skill`` offers."""
    return tuple(skill.name for skill in catalog.routable)


@cache
def package_version() -> str:
    """Of cascade-router; empty in a source tree that is not installed."""
    try:
        return version("cascade-router")
    except PackageNotFoundError:
        return ""


def _encoder_name(identity: str) -> str:
    """Its kind and its model. What stands between may be an address, with a key in it."""
    kind, *_, model = identity.split("/")
    return f"{kind} {model}"


def _fault(message: str) -> types.CallToolResult:
    return types.CallToolResult(content=[types.TextContent(text=message)], is_error=True)


def _render(error: ValidationError) -> str:
    """One line a fault, without the values given."""
    return "; ".join(
        f"{'.'.join(str(part) for part in fault['loc'])}: {fault['msg']}"
        for fault in error.errors(include_input=False, include_url=False, include_context=False)[:5]
    )


def _shown(path: Path) -> str:
    """The path with escapes for bytes that are no UTF-8, which JSON cannot carry."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def _as_text(skill: LoadedSkill) -> str:
    lines = [f"# Skill {skill.name}", "", skill.instructions]
    if skill.resources:
        lines += ["", f"Its other files, relative to {skill.folder} (as resources: {skill.uri}/…):"]
        lines += [f"- {path}" for path in skill.resources]
    if skill.note:
        lines += ["", skill.note]
    return "\n".join(lines)
