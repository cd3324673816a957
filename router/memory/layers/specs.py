"""What the eleven built-in layers are, for ``status`` and the confidence of an answer. They need no
examples: the classifier has learned when to read them.

Qualities: what was seen to happen (episodic) is trusted more than what was concluded from it
(semantic), and that more than what was planned.
"""

from __future__ import annotations

from typing import Final

from router.memory.model import LayerSpec

SESSION: Final = LayerSpec(
    "session", "What was said and done in the conversation that is going on.", quality=0.85
)
PROJECT: Final = LayerSpec(
    "project", "Conventions, structure and decisions of the project at hand.", quality=0.85
)
USER: Final = LayerSpec("user", "Who the user is: preferences, habits, background.", quality=0.8)
SEMANTIC: Final = LayerSpec(
    "semantic", "Facts and concepts that hold regardless of when they were learned.", quality=0.8
)
GRAPH: Final = LayerSpec(
    "graph",
    "Entities and the relations between them: what depends on, uses, owns or causes what.",
    quality=0.8,
)
GOVERNANCE: Final = LayerSpec(
    "governance", "Rules, approvals and an account of who did what, and when.", quality=0.9
)
EPISODIC: Final = LayerSpec(
    "episodic", "Events: what happened, when it happened, and what was said then.", quality=0.85
)
PROCEDURAL: Final = LayerSpec(
    "procedural",
    "How things are done: steps, workflows, commands, and how often they worked.",
    quality=0.8,
)
PROSPECTIVE: Final = LayerSpec(
    "prospective", "What is still to be done: tasks, reminders, deadlines.", quality=0.8
)
PLANNING: Final = LayerSpec(
    "planning", "Plans, strategies and how big goals were broken down.", quality=0.75
)
META: Final = LayerSpec(
    "meta", "What is known and what is not: how much the memory holds about a subject.", quality=0.7
)
