"""What stage 3 offers to the LLM: every skill while they fit into a budget of tokens, else the
likeliest ones.

The LLM can only choose what it is offered. Of 574 real skills a strong LLM chose the right one for
45% of oblique requests when retrieval offered it 40, and for 97% when it saw all. So descriptions
are made shorter before skills are left out, each behind the words that tell the skill from the
others.

While all skills fit, they are the same text in the order of their names for every request over one
catalog, so that providers can cache it. Otherwise the pinned skills are that text, and the
likeliest follow in a second block, best first.
"""

from __future__ import annotations

import asyncio
import math
import re
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final
from weakref import WeakKeyDictionary

from router.llm.protocol import OfferedSkill
from router.request import Request
from router.retrieval.index import SkillIndex
from router.skills.catalog import Catalog
from router.stages.followup import reading_of
from router.text import STOPWORDS, stems_of, words_of_each

MAX_OFFERED: Final = 500
"""An LLM is offered at most this many skills, whatever the budget: providers bound the number of
choices of a schema."""
MAX_NAME_CHARACTERS: Final = 14_000
"""How many characters all names may have together, for the same reason."""
BYTES_PER_TOKEN: Final = 4
"""An estimate for English. A character of another script takes more tokens, and more bytes too."""
FRAME_TOKENS: Final = 12
"""How many tokens the JSON around one name and description takes."""
LEAST_CHARACTERS: Final = 120
"""No description is cut to fewer characters."""
MOST_CHARACTERS: Final = 1_000
SHARES: Final = (1.0, 0.95, 0.9, 0.8, 0.7, 0.6)
"""Descriptions are cut until all fit: these shares of their weight are tried in this order."""
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
    request: Request, index: SkillIndex, *, pinned: Sequence[str], token_budget: int
) -> Offer:
    """The skills that may be chosen for a request.

    With more of them than fit, retrieval says which are the likeliest, for the request as
    ``followup`` reads it. The pinned skills are always among them.

    Args:
        request: the request; only skills in ``available`` are offered.
        pinned: names to offer in any case.
        token_budget: what names and descriptions may take together, estimated.

    Raises:
        EncoderError: the request cannot be encoded.
    """
    described = _descriptions.get(index)
    if described is None:
        described = await asyncio.to_thread(_description_table, index)
    texts, short = described.texts, described.short
    allowed = texts if request.available is None else texts.keys() & request.available
    names = [name for name in texts if name in allowed]
    if len(names) <= MAX_OFFERED and sum(map(len, names)) <= MAX_NAME_CHARACTERS:
        least = sum(_size(name, texts[name][:LEAST_CHARACTERS]) for name in names)
        if least <= token_budget:
            for share in SHARES:
                if sum(_size(name, short(name, share)) for name in names) <= token_budget:
                    return Offer(tuple(OfferedSkill(name, short(name, share)) for name in names))
    context = reading_of(request, index.skill_names).context if request.history else ""
    ranking = await index.rank(
        request.text, context=context, among=request.available, limit=MAX_OFFERED
    )
    kept = sorted(name for name in dict.fromkeys(pinned) if name in allowed)
    offered = {name: short(name, SHORTLIST_SHARE) for name in kept}
    left = token_budget - sum(_size(*skill) for skill in offered.items())
    letters = MAX_NAME_CHARACTERS - sum(map(len, kept))
    for match in ranking.matches:
        if match.name in offered:
            continue
        text = short(match.name, SHORTLIST_SHARE)
        left -= _size(match.name, text)
        letters -= len(match.name)
        if len(offered) >= MAX_OFFERED or ((left < 0 or letters < 0) and offered):
            break
        offered[match.name] = text
    skills = [OfferedSkill(*skill) for skill in offered.items()]
    return Offer(tuple(skills[: len(kept)]), tuple(skills[len(kept) :]))


class _Descriptions:
    """What the skills of one catalog say of themselves, as it is offered. What was cut is kept:
    over hundreds of skills it takes tens of milliseconds. To make it takes half a second over ten
    thousand of them.

    Attributes:
        texts: the whole descriptions, by name.
    """

    def __init__(self, catalog: Catalog) -> None:
        """Nothing is cut yet."""
        self.texts = {
            skill.name: " ".join(skill.description.split())[:MOST_CHARACTERS]
            for skill in catalog.routable
        }
        self._short: dict[tuple[str, float], str] = {}
        words = ({word for _, word in _stems(text)} for text in self.texts.values())
        most = math.log(len(self.texts) + 1)
        counts = Counter(chain.from_iterable(words))
        # What each word tells: the more, the fewer descriptions have it.
        self._weight = {word: most - math.log(count) for word, count in counts.items()}

    def short(self, name: str, share: float) -> str:
        """A description, cut behind the word with which it has reached this share of its weight,
        which is the sum of the weights of its different words."""
        text = self.texts[name]
        if share >= 1:
            return text
        if (found := self._short.get((name, share))) is None:
            found = self._short[name, share] = _cut(text, _stems(text), self._weight, share)
        return found


_descriptions: Final[WeakKeyDictionary[SkillIndex, _Descriptions]] = WeakKeyDictionary()
"""Of each index that has been asked for an offer, while it is there."""
_describing: Final = threading.Lock()


def _description_table(index: SkillIndex) -> _Descriptions:
    """Make what an index has not yet, once for all who ask; in a thread, for the time it takes."""
    with _describing:
        found = _descriptions.get(index)
        if found is None:
            found = _descriptions[index] = _Descriptions(index.catalog)
        return found


def _size(name: str, text: str) -> int:
    """Estimated tokens of one skill in the document."""
    return FRAME_TOKENS + len(f"{name}{text}".encode("utf-8", "replace")) // BYTES_PER_TOKEN


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
    found = list(_WORD.finditer(text))
    spoken = words_of_each([one.group() for one in found])
    told = [
        (one.end(), word)
        for one, (words, _) in zip(found, spoken, strict=True)
        for word in words
        if word not in STOPWORDS
    ]
    stems = stems_of(word for _, word in told)
    return [(end, stem) for (end, _), stem in zip(told, stems, strict=True)]
