"""The eleven built-in layers, all over one store. Their specs need no examples: the classifier was
trained to know when to read them.

The quality of a layer says how far its items are trusted: what was seen to happen (episodic) more
than what was concluded from it (semantic), and that more than what was planned.
"""

from __future__ import annotations

from typing import Final

from router.memory.layers.meta import MetaLayer
from router.memory.layers.prospective import ProspectiveLayer
from router.memory.layers.stored import (
    GovernanceLayer,
    GraphLayer,
    ProceduralLayer,
    StoredLayer,
    TimedLayer,
)
from router.memory.model import BlockingLayer, LayerSpec
from router.memory.stores.memory_store import MemoryStore
from router.result import MEMORY_LAYERS

PROJECT: Final = LayerSpec(
    "project", "Conventions, structure and decisions of the project at hand.", quality=0.85
)
WRITABLE: Final = tuple(name for name in MEMORY_LAYERS if name != "meta")
"""Layers that items can be saved to; ``meta`` only counts what the others hold."""


def built_in_layers(store: MemoryStore) -> tuple[BlockingLayer, ...]:
    """The built-in layers. They have no state of their own, so they need not be closed."""
    session = LayerSpec(
        "session", "What was said and done in the conversation that is going on.", quality=0.85
    )
    user = LayerSpec("user", "Who the user is: preferences, habits, background.")
    semantic = LayerSpec(
        "semantic", "Facts and concepts that hold regardless of when they were learned."
    )
    graph = LayerSpec(
        "graph",
        "Entities and the relations between them: what depends on, uses, owns or causes what.",
    )
    governance = LayerSpec(
        "governance", "Rules, approvals and an account of who did what, and when.", quality=0.9
    )
    episodic = LayerSpec(
        "episodic", "Events: what happened, when it happened, and what was said then.", quality=0.85
    )
    procedural = LayerSpec(
        "procedural", "How things are done: steps, workflows, commands, and how often they worked."
    )
    prospective = LayerSpec("prospective", "What is still to be done: tasks, reminders, deadlines.")
    planning = LayerSpec(
        "planning", "Plans, strategies and how big goals were broken down.", quality=0.75
    )
    meta = LayerSpec(
        "meta",
        "What is known and what is not: how much the memory holds about a subject.",
        quality=0.7,
    )
    return (
        TimedLayer(store, session, recency=0.5),
        StoredLayer(store, PROJECT),
        StoredLayer(store, user),
        StoredLayer(store, semantic),
        GraphLayer(store, graph),
        GovernanceLayer(store, governance),
        TimedLayer(store, episodic, recency=0.01),
        ProceduralLayer(store, procedural),
        ProspectiveLayer(store, prospective),
        StoredLayer(store, planning),
        MetaLayer(store, meta),
    )
