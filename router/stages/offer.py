"""What stage 3 offers to the LLM: every skill while they fit into a budget of tokens, else the
likeliest ones.

Recall of what is offered bounds the stage: behind a shortlist of 40 of 574 real skills a strong LLM
chose the right one for 45% of the requests in words of their own, and for 97% when it saw them all.
So descriptions are made shorter before skills are left out, and no text is cut at a fixed length:
each is cut where what follows hardly tells the skill apart from the others.

While all skills fit, they are the same text in the order of their names for every request over one
catalog, so that providers can cache it. Otherwise the pinned skills are that text, and the
likeliest follow in a second block, best first.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from router.llm.protocol import OfferedSkill
from router.request import Request
from router.retrieval.index import SkillIndex
from router.stages.followup import read
from router.text import STOPWORDS, stem, tokens

MAX_OFFERED: Final = 500
"""An LLM is offered at most this many skills, whatever the budget: providers bound the number of
choices of a schema."""
MAX_NAME_CHARACTERS: Final = 14_000
"""How many characters all names may have together, for the same reason."""
BYTES_PER_TOKEN: Final = 4
"""An estimate for English. Other scripts take more bytes a token, so that they are not
underestimated much."""
FRAME_TOKENS: Final = 12
"""How many tokens the JSON around one name and description takes."""
LEAST_CHARACTERS: Final = 120
"""No description is cut to fewer characters."""
MOST_CHARACTERS: Final = 1_000
SHARES: Final = (1.0, 0.95, 0.9, 0.8, 0.7, 0.6)
"""Descriptions are shortened until all fit: these shares of their weight (see ``_shortened``) are
tried in this order."""
SHORTLIST_SHARE: Final = 0.9
_WORD: Final = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Offer:
    """What an LLM may choose from.

    Attributes:
        skills: the stable block, by name.
        likeliest: the second block, likeliest first; empty while all skills are in the first.
    """

    skills: tuple[OfferedSkill, ...]
    likeliest: tuple[OfferedSkill, ...] = ()


async def offer_of(
    asked: Request, index: SkillIndex, *, pinned: Sequence[str], token_budget: int
) -> Offer:
    """The skills that may be chosen for a request.

    With more of them than fit, retrieval says which are the likeliest, for the request as
    ``followup`` reads it. The pinned skills are always among them.

    Args:
        asked: the request; only skills in ``available`` are offered.
        index: over the installed skills.
        pinned: names to offer in any case.
        token_budget: what names and descriptions may take together, estimated.

    Raises:
        EncoderError: the request cannot be encoded.
    """
    allowed = None if asked.available is None else frozenset(asked.available)
    described = {
        skill.name: " ".join(skill.description.split())[:MOST_CHARACTERS]
        for skill in index.catalog.routable
        if allowed is None or skill.name in allowed
    }
    if _fits_in_names(described):
        least = sum(_size(name, text[:LEAST_CHARACTERS]) for name, text in described.items())
        if least <= token_budget:
            for share in SHARES:
                short = _shortened(described, share)
                if sum(_size(name, text) for name, text in short.items()) <= token_budget:
                    return Offer(tuple(OfferedSkill(*item) for item in sorted(short.items())))
    ranking = await index.rank(read(asked).text, among=asked.available, limit=MAX_OFFERED)
    kept = sorted(name for name in dict.fromkeys(pinned) if name in described)
    ranked = [match.name for match in ranking.matches if match.name not in kept]
    short = _shortened({name: described[name] for name in (*kept, *ranked)}, SHORTLIST_SHARE)
    left = token_budget - sum(_size(name, short[name]) for name in kept)
    names = MAX_NAME_CHARACTERS - sum(map(len, kept))
    likeliest: list[str] = []
    for name in ranked[: max(MAX_OFFERED - len(kept), 0)]:
        left -= _size(name, short[name])
        names -= len(name)
        if (left < 0 or names < 0) and (likeliest or kept):
            break
        likeliest.append(name)
    return Offer(
        tuple(OfferedSkill(name, short[name]) for name in kept),
        tuple(OfferedSkill(name, short[name]) for name in likeliest),
    )


def _fits_in_names(described: dict[str, str]) -> bool:
    return len(described) <= MAX_OFFERED and sum(map(len, described)) <= MAX_NAME_CHARACTERS


def _size(name: str, text: str) -> int:
    """Estimated tokens of one skill in the document."""
    return FRAME_TOKENS + len(f"{name}{text}".encode("utf-8", "replace")) // BYTES_PER_TOKEN


def _shortened(described: dict[str, str], share: float) -> dict[str, str]:
    """Each description, cut behind the word with which it has reached this share of its weight.
    That is the sum of the weights of its different words; a word weighs the more, the fewer
    descriptions have it (the logarithm of their share)."""
    if share >= 1:
        return described
    stems = {name: _stems(text) for name, text in described.items()}
    in_how_many = Counter(word for found in stems.values() for word in {w for _, w in found})
    most = math.log(len(described) + 1)
    weight = {word: most - math.log(count) for word, count in in_how_many.items()}
    return {name: _cut(text, stems[name], weight, share) for name, text in described.items()}


def _cut(
    text: str, stems: Sequence[tuple[int, str]], weight: dict[str, float], share: float
) -> str:
    """The beginning of a text that holds this share of its weight."""
    first = {word: end for end, word in reversed(stems)}
    wanted = share * sum(weight[word] for word in first)
    told = 0.0
    for word, end in sorted(first.items(), key=lambda item: item[1]):
        told += weight[word]
        if told >= wanted and end >= LEAST_CHARACTERS:
            return text if end >= len(text) - 1 else f"{text[:end].rstrip(' ,;:.')}…"
    return text


def _stems(text: str) -> list[tuple[int, str]]:
    """The stems of a text that say something, each with where its word ends."""
    return [
        (found.end(), stem(word))
        for found in _WORD.finditer(text)
        for word in tokens(found.group())
        if word not in STOPWORDS
    ]
