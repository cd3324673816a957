"""What the tests of the providers ask, and the answers of models."""

from __future__ import annotations

import json
from typing import Any, Final

from router.llm.prompt import build_prompt
from router.llm.protocol import ChatModel, Completion, OfferedSkill
from router.request import Request

ANSWER: Final = json.dumps(
    {
        "skills": ["git"],
        "memory_layers": [],
        "mission_brief": "Commit.",
        "reasoning": "Commits.",
        "confidence": 0.9,
    }
)
SKILL: Final = OfferedSkill("git", "Version control.")
PROMPT: Final = build_prompt(Request.parse("commit it"), [SKILL])


def answer(**fields: Any) -> str:
    """A whole answer, with some fields of the test's own."""
    return json.dumps(
        {
            "skills": ["git"],
            "memory_layers": ["project"],
            "mission_brief": "Commit the change.",
            "reasoning": "It is about commits.",
            "confidence": 0.9,
            **fields,
        }
    )


async def complete(model: ChatModel) -> Completion:
    return await model.complete(PROMPT, timeout_seconds=30)
