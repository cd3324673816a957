"""The tools of memory: how they are advertised, and what a model reads of their answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.mcp.tool import Tool
from router.service.memory import (
    AssembleArguments,
    Context,
    Deleted,
    ListArguments,
    MemoryNow,
    NamedArguments,
    RecallAnswer,
    RecallArguments,
    SaveArguments,
    Saved,
    SearchArguments,
    Searched,
    Stock,
    Stored,
)
from router.service.shapes import NoArguments

if TYPE_CHECKING:
    from router.service.memory import MemoryService


def memory_tools(service: MemoryService) -> tuple[Tool, ...]:
    """The tools over one memory."""
    return (
        Tool(
            "recall",
            "Recall memories",
            "Answers a query from the memory layers that fit it, with a confidence, or says that "
            "nothing relevant is stored. Call it when earlier conversations, decisions, tasks or "
            "the user's preferences may bear on what is asked now.",
            RecallArguments,
            RecallAnswer,
            service.recall,
            _recalled_text,
        ),
        Tool(
            "assemble_context",
            "Assemble a context",
            "Gathers what memories and documents say about a query into a text of so many tokens, "
            "each piece with its source and date. Call it when a longer task begins that needs "
            "background.",
            AssembleArguments,
            Context,
            service.assemble,
            lambda context: context.text or "; ".join(context.notes),
        ),
        Tool(
            "save_memory",
            "Save a memory",
            "Remembers a text: as a memory file of the project, or in a memory layer. Call it "
            "when the user asks you to remember something, or has decided something that will "
            "matter later.",
            SaveArguments,
            Saved,
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
            SearchArguments,
            Searched,
            service.search,
            open_world=True,
        ),
        Tool(
            "list_memories",
            "List memories",
            "Lists what the memory layers hold, newest first, a page at a time. Call it when "
            "you want to look through memories; `recall` answers questions.",
            ListArguments,
            Stock,
            service.list,
        ),
        Tool(
            "get_memory",
            "Get a memory",
            "Gives one memory in full: a file by its name, or an item of a layer by its id. Call "
            "it when a list or a search has shown only a part of it.",
            NamedArguments,
            Stored,
            service.get,
            lambda stored: stored.content,
        ),
        Tool(
            "delete_memory",
            "Delete a memory",
            "Forgets one memory: a file, or an item of a layer that was saved in exactly this "
            "scope. Call it when the user asks for it.",
            NamedArguments,
            Deleted,
            service.delete,
            read_only=False,
            open_world=True,
        ),
        Tool(
            "memory_status",
            "Memory status",
            "Shows how the memory layers, the memory files and the memory service are. Call it "
            "when `recall` or `save_memory` reports a fault or finds nothing that should be there.",
            NoArguments,
            MemoryNow,
            service.status,
        ),
    )


def _recalled_text(found: RecallAnswer) -> str:
    memories = [
        f"[{one.layer}, {one.created.date()}, relevance {one.relevance:.2f}]\n{one.content}"
        for one in found.items
    ]
    return "\n\n".join(memories) or found.reasoning[-1]
