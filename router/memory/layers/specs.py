"""What the eleven built-in layers are: data that the classifier and the answer's confidence read.

Qualities: what was seen to happen (episodic) is trusted more than what was concluded from it
(semantic), and that more than what was planned.
"""

from __future__ import annotations

from typing import Final

from router.memory.model import LayerSpec

SESSION: Final = LayerSpec(
    "session",
    "What was said and done in the conversation that is going on.",
    (
        "What did I just say?",
        "Continue where we stopped",
        "Which file were we editing a minute ago?",
        "Repeat the last error message",
        "What have we decided so far in this chat?",
    ),
    0.85,
)
PROJECT: Final = LayerSpec(
    "project",
    "Conventions, structure and decisions of the project at hand.",
    (
        "How is this repository laid out?",
        "Which coding style do we follow here?",
        "Why did we choose Postgres for this service?",
        "What is the architecture of the billing module?",
        "Continue working on the importer",
    ),
    0.85,
)
USER: Final = LayerSpec(
    "user",
    "Who the user is: preferences, habits, background.",
    (
        "Which editor do I prefer?",
        "Do I like short answers?",
        "What is my time zone?",
        "How do I usually name my branches?",
        "What did I tell you about my family?",
    ),
    0.8,
)
SEMANTIC: Final = LayerSpec(
    "semantic",
    "Facts and concepts that hold regardless of when they were learned.",
    (
        "What is JWT?",
        "What does idempotent mean?",
        "Which port does Redis listen on?",
        "What is the limit of the upload endpoint?",
        "Explain eventual consistency",
    ),
    0.8,
)
GRAPH: Final = LayerSpec(
    "graph",
    "Entities and the relations between them: what depends on, uses, owns or causes what.",
    (
        "What depends on the auth service?",
        "Which modules use the cache?",
        "How is Anna connected to the payments team?",
        "What breaks if we remove this table?",
        "Who owns the gateway?",
    ),
    0.8,
)
GOVERNANCE: Final = LayerSpec(
    "governance",
    "Rules, approvals and an account of who did what, and when.",
    (
        "Who approved the deletion of the backups?",
        "Are we allowed to log e-mail addresses?",
        "What does the retention policy say?",
        "When was production access given to Ben?",
        "Which rule forbids force pushes?",
    ),
    0.9,
)
EPISODIC: Final = LayerSpec(
    "episodic",
    "Events: what happened, when it happened, and what was said then.",
    (
        "What did we do last week?",
        "When did the database go down?",
        "What happened in the meeting on Monday?",
        "When did Carla move to Lisbon?",
        "What did we change yesterday?",
    ),
    0.85,
)
PROCEDURAL: Final = LayerSpec(
    "procedural",
    "How things are done: steps, workflows, commands, and how often they worked.",
    (
        "How do I deploy to staging?",
        "What are the steps to rotate the keys?",
        "Which workflow fixes a stuck migration?",
        "How did we restore the backup?",
        "Show the release procedure",
    ),
    0.8,
)
PROSPECTIVE: Final = LayerSpec(
    "prospective",
    "What is still to be done: tasks, reminders, deadlines.",
    (
        "What is on my list for today?",
        "Which tasks are overdue?",
        "Remind me what I promised Tom",
        "What is due this week?",
        "Is anything still pending for the launch?",
    ),
    0.8,
)
PLANNING: Final = LayerSpec(
    "planning",
    "Plans, strategies and how big goals were broken down.",
    (
        "How should we split the rewrite into milestones?",
        "What is our plan for the migration?",
        "Which strategy did we settle on for caching?",
        "Validate the roadmap of the next quarter",
        "Decompose the goal of going multi-tenant",
    ),
    0.75,
)
META: Final = LayerSpec(
    "meta",
    "What is known and what is not: how much the memory holds about a subject.",
    (
        "What do we know about Kubernetes?",
        "How much do you remember about the client?",
        "Where are the gaps in our notes?",
        "Which subjects are covered best?",
        "Do you have anything about the old API?",
    ),
    0.7,
)
