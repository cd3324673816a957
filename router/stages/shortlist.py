"""What stage 3 offers to the LLM: every skill while they are few, else a shortlist."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from router.llm.protocol import OfferedSkill
from router.request import Request
from router.retrieval.index import SkillIndex

LATEST_TURNS: Final = 2
MAX_RANKED_CHARACTERS: Final = 2_000


async def shortlist(
    asked: Request, index: SkillIndex, *, pinned: Sequence[str], limit: int
) -> list[OfferedSkill]:
    """The skills that may be chosen for a request, at most ``limit`` of them.

    With more skills than that, retrieval picks the likeliest ones, for the request together with
    the latest turns of the user: "do the same for the other one" says nothing alone. The pinned
    skills are always among them, even where they alone are more than ``limit``.

    Raises:
        EncoderError: the request cannot be encoded.
    """
    allowed = None if asked.available is None else frozenset(asked.available)
    skills = {
        skill.name: skill
        for skill in index.catalog.routable
        if allowed is None or skill.name in allowed
    }
    names = list(skills)
    if len(names) > limit:
        kept = [name for name in pinned if name in skills]
        said = [turn.text for turn in asked.history if turn.role == "user"][-LATEST_TURNS:]
        text = "\n".join((*said, asked.text))[-MAX_RANKED_CHARACTERS:]
        ranking = await index.rank(text, among=asked.available, limit=limit)
        ranked = (match.name for match in ranking.matches)
        names = list(dict.fromkeys((*kept, *ranked)))[: max(limit, len(kept))]
    return [OfferedSkill(name, skills[name].description) for name in names]
