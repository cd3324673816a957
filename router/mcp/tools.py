"""The tools: how each is advertised and how its answer is shown. What it does, the service does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import mcp_types as types

from router.mcp.tool import Tool, ToolSet
from router.result import RoutingResult
from router.service.schemas import input_schema
from router.service.service import Service, offered_names
from router.service.shapes import (
    EnrichArguments,
    Enriched,
    FeedbackArguments,
    FindArguments,
    FoundSkills,
    LoadArguments,
    LoadedSkill,
    NoArguments,
    Noted,
    RouteArguments,
    RouterStatus,
)

if TYPE_CHECKING:
    from router.memory.memory import Memory
    from router.skills.catalog import Catalog

MAX_LISTED_SKILLS: Final = 50
"""``load_skill`` names the skills in its schema up to this number. Beyond it the names would cost
more tokens in every list of tools than they are worth: ``route`` and ``find_skills`` give them."""


class Tools(ToolSet):
    """The tools over a service and, if there is one, a memory."""

    def __init__(self, service: Service, memory: Memory | None = None) -> None:
        self._service = service
        tools = _router_tools(service)
        if memory is not None:
            from router.mcp.memory_tools import memory_tools
            from router.service.memory import MemoryService

            tools += memory_tools(MemoryService(memory, service.router.events))
        super().__init__(tools)

    def advertised(self) -> list[types.Tool]:
        """The tools as clients see them now. ``load_skill`` names the skills, so its schema changes
        with them; it is not there without any. While the skills are being read nothing is known of
        them, and clients are told when that has ended."""
        catalog = self._service.catalog
        tools = []
        for tool in self._tools.values():
            schema = input_schema(tool.arguments)
            if tool.name == "load_skill" and catalog is not None:
                if not catalog.routable:
                    continue
                if names := named_skills(catalog):
                    name = {**schema["properties"]["name"], "enum": list(names)}
                    schema = {**schema, "properties": {"name": name}}
            tools.append(tool.advertised(schema))
        return tools


def named_skills(catalog: Catalog) -> tuple[str, ...]:
    """The skills that the schema of ``load_skill`` names; none when there are too many."""
    names = offered_names(catalog)
    return names if len(names) <= MAX_LISTED_SKILLS else ()


def _router_tools(service: Service) -> tuple[Tool, ...]:
    return (
        Tool(
            "route",
            "Route a request",
            "Decides which skills to load for a request, or that none fits or that the user must "
            "be asked. Call it first, whenever the user asks for something new and before you "
            "start on it; pass the request as the user wrote it. Gives a confidence and the "
            "reasons.",
            RouteArguments,
            RoutingResult,
            service.route,
            open_world=True,  # it may ask an LLM
        ),
        Tool(
            "find_skills",
            "Find skills",
            "Ranks the installed skills for a query and says why. Call it when you look for a "
            "skill yourself, when `route` gave none that helps, or when the user asks what skills "
            "there are. On request it also suggests skills that are not installed. Decides "
            "nothing.",
            FindArguments,
            FoundSkills,
            service.find,
        ),
        Tool(
            "load_skill",
            "Load a skill",
            "Gives a skill's instructions and the paths of its other files. Call it for each "
            "skill that `route` selected, before you do the work, and follow what it says.",
            LoadArguments,
            LoadedSkill,
            service.load,
            _skill_as_text,
        ),
        Tool(
            "give_feedback",
            "Give feedback",
            "Tells the router whether an answer of `route` was right, or which skills would have "
            "been. Call it when the work has shown it, or when the user says so; the router "
            "learns from it.",
            FeedbackArguments,
            Noted,
            service.feedback,
            read_only=False,
        ),
        Tool(
            "enrich_skills",
            "Enrich the skills",
            "Has the configured LLM write requests that each skill should serve, once, so that the "
            "router finds the skills by them without an LLM. Call it when skills are new or have "
            "changed. It costs a call for each of them: first give `dry_run`, and go on when the "
            "user agrees.",
            EnrichArguments,
            Enriched,
            service.enrich,
            read_only=False,
            open_world=True,
        ),
        Tool(
            "router_status",
            "Router status",
            "Shows which skills are loaded or faulty, and the state of caches, encoder and LLMs. "
            "Call it when a skill that should be there is not found, or routing looks wrong.",
            NoArguments,
            RouterStatus,
            service.status,
        ),
    )


def _skill_as_text(skill: LoadedSkill) -> str:
    lines = [f"# Skill {skill.name}", "", skill.instructions]
    if skill.resources:
        lines += ["", f"Its other files, relative to {skill.folder} (as resources: {skill.uri}/…):"]
        lines += [f"- {path}" for path in skill.resources]
    if skill.note:
        lines += ["", skill.note]
    return "\n".join(lines)
