"""The tools: how each is advertised and how its answer is shown. What it does, the service does."""

from __future__ import annotations

from typing import Final

import mcp_types as types

from router.mcp.tool import Tool, ToolSet
from router.memory.contexts.context import rendered
from router.memory.memory import Memory
from router.service.memory import MemoryService, RecallAnswer
from router.service.schemas import input_schema
from router.service.service import Service, offered_names
from router.service.shapes import LoadedSkill
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
            tools += _memory_tools(MemoryService(memory, service.router.events))
        super().__init__(tools)

    def advertised(self) -> list[types.Tool]:
        """The tools as clients see them now. ``load_skill`` names the skills, so its schema changes
        with them; it is not there without any. While the skills are being read nothing is known of
        them, and clients are told when that has ended."""
        catalog = self._service.catalog
        tools = []
        for tool in self._tools.values():
            schema = input_schema(tool.shapes[0])
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
            service.find,
        ),
        Tool(
            "load_skill",
            "Load a skill",
            "Gives a skill's instructions and the paths of its other files. Call it for each "
            "skill that `route` selected, before you do the work, and follow what it says.",
            service.load,
            _skill_as_text,
        ),
        Tool(
            "give_feedback",
            "Give feedback",
            "Tells the router whether an answer of `route` was right, or which skills would have "
            "been. Call it when the work has shown it, or when the user says so; the router "
            "learns from it.",
            service.feedback,
            read_only=False,
        ),
        Tool(
            "enrich_skills",
            "Enrich the skills",
            "Has the configured LLM write requests that each skill should serve, once, so that the "
            "router finds the skills by them without an LLM. Call it when skills are new or have "
            "changed. It costs a call for each of them: first give `dry_run`, and go on when the "
            "user agrees, with `max_cost` if the prices are known.",
            service.enrich,
            read_only=False,
            open_world=True,
        ),
        Tool(
            "router_status",
            "Router status",
            "Shows which skills are loaded or faulty, and the state of caches, encoder and LLMs. "
            "Call it when a skill that should be there is not found, or routing looks wrong.",
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


def _memory_tools(service: MemoryService) -> tuple[Tool, ...]:
    return (
        Tool(
            "recall",
            "Recall memories",
            "Answers a query from the memory layers that fit it, with a confidence, or says that "
            "nothing relevant was found. Call it when earlier conversations, decisions, tasks or "
            "the user's preferences may bear on what is asked now.",
            service.recall,
            _recalled_text,
        ),
        Tool(
            "assemble_context",
            "Assemble a context",
            "Gathers what memories and documents say about a query into a text of so many tokens, "
            "each piece with its source and date. Call it when a longer task begins that needs "
            "background.",
            service.assemble,
            lambda context: context.text or "; ".join(context.notes),
        ),
        Tool(
            "save_memory",
            "Save a memory",
            "Remembers a text: as a memory file of the project, or in a memory layer. Call it "
            "when the user asks you to remember something, or has decided something that will "
            "matter later. With a `layer`, write two to four `questions` that it answers.",
            service.save,
            read_only=False,
            open_world=True,  # the memory service may be another machine's
        ),
        Tool(
            "search_memories",
            "Search memories",
            "Searches memory layers, memory files and the memory service by words and meaning. "
            "Call it when you look for memories to read or change; `recall` answers "
            "questions.",
            service.search,
            open_world=True,
        ),
        Tool(
            "list_memories",
            "List memories",
            "Lists what the memory layers hold, newest first, a page at a time. Call it when "
            "you want to look through memories; `recall` answers questions.",
            service.list,
        ),
        Tool(
            "user_profile",
            "What is known of the user",
            "Gives what the layer `user` knows of one user and that is not marked as replaced, "
            "newest first, a page at a time. "
            "Call it when a conversation begins, so that answers suit who asks.",
            service.profile,
        ),
        Tool(
            "get_memory",
            "Get a memory",
            "Gives one memory in full: a file by its name, or an item of a layer by its id. Call "
            "it when a list or a search has shown only a part of it.",
            service.get,
            lambda stored: stored.content,
        ),
        Tool(
            "delete_memory",
            "Delete a memory",
            "Forgets one memory: a file, or an item of a layer that was saved in exactly this "
            "scope. Call it when the user asks for it.",
            service.delete,
            read_only=False,
            open_world=True,
        ),
        Tool(
            "memory_status",
            "Memory status",
            "Shows how the memory layers, the memory files and the memory service are. Call it "
            "when `recall` or `save_memory` reports a fault or finds nothing that should be there.",
            service.status,
        ),
    )


def _recalled_text(found: RecallAnswer) -> str:
    memories = [
        rendered(one.layer, one.created, one.content, f", relevance {one.relevance:.2f}")
        for one in found.items
    ]
    return "\n\n".join(memories) or found.reasoning[-1]
