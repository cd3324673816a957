"""What the tests of the providers ask, and the answer that they expect."""

from __future__ import annotations

import json
from typing import Final

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


async def complete(model: ChatModel) -> Completion:
    return await model.complete(PROMPT, timeout_seconds=30)
