"""The skills that stage 3 offers to the LLM: all of them while they fit into a budget of tokens,
else the likeliest ones.

The LLM can choose only what it is offered. Over 574 real skills, a strong LLM chose the right one
for 45% of oblique requests when it was offered the 40 best of retrieval, and for 97% when it saw
all. So descriptions are shortened before skills are left out. Each is cut after the words that
distinguish the skill from the others. A long beginning that it shares with others is itself cut, so
that the part in which they differ is still shown: the tools of one vendor often begin alike.

While all skills fit, they are one block of text, sorted by name and the same for every request over
one catalog, so that providers can cache the prompt. Otherwise the first block holds the pinned
skills, and a second block the likeliest of the others, best first.
"""

from __future__ import annotations

import math
import re
import threading
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Final
from weakref import WeakKeyDictionary

from router.concurrency.tasks import in_thread
from router.llm.protocol import OfferedSkill
from router.request import Request
from router.retrieval.index import SkillIndex
from router.skills.catalog import Catalog
from router.stages.followup import in_context
from router.text import STOPWORDS, stems_of, words_of_each

MAX_OFFERED: Final = 500
"""At most this many skills are offered, whatever the budget: providers limit the number of enum
values of a schema."""
MAX_NAME_CHARACTERS: Final = 14_000
"""The limit on the characters of all names together, for the same reason."""
BYTES_PER_TOKEN: Final = 4
"""An estimate for English. It also works for other scripts, whose characters take more tokens and
more bytes."""
FRAME_TOKENS: Final = 12
"""How many tokens the JSON around one name and description takes."""
LEAST_CHARACTERS: Final = 120
"""No description is cut to fewer characters, and no shared beginning."""
MOST_CHARACTERS: Final = 1_000
READ_CHARACTERS: Final = 4 * MOST_CHARACTERS
"""The part of a description in which a shared beginning is looked for."""
SHARES: Final = (1.0, 0.95, 0.9, 0.8, 0.7, 0.6)
"""The shares of the descriptions' weight that are kept: the first with which all skills fit."""
SHORTLIST_SHARE: Final = 0.9
"""The share that is kept where not all skills fit."""
_WORD: Final = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Offer:
    """What an LLM may choose from.

    Attributes:
        skills: the stable block, by name.
        likeliest: the second block, likeliest first; empty while all skills are in the first.
        by_words_alone: whether the likeliest were found by words alone, because the request could
            not be encoded. The right one is then left out more often.
    """

    skills: tuple[OfferedSkill, ...]
    likeliest: tuple[OfferedSkill, ...] = ()
    by_words_alone: bool = False


async def offer_of(
    request: Request, index: SkillIndex, *, pinned: Sequence[str], token_budget: int
) -> Offer:
    """The skills that may be chosen for a request.

    Where not all fit, retrieval ranks them for the request and, if it is a follow-up, its context.
    The pinned skills are always offered.

    Args:
        request: the request; only skills in ``available`` are offered.
        pinned: names to offer in any case.
        token_budget: the estimated tokens that names and descriptions may take together.

    Raises:
        EncoderError: a static encoder fails.
    """
    described = _descriptions.get(index)
    if described is None:
        described = await in_thread(partial(_description_table, index), leaves=True)
    texts, short = described.texts, described.short
    allowed = texts if request.available is None else texts.keys() & request.available
    names = [name for name in texts if name in allowed]
    if len(names) <= MAX_OFFERED and sum(map(len, names)) <= MAX_NAME_CHARACTERS:
        least = sum(_size(name, texts[name][:LEAST_CHARACTERS]) for name in names)
        if least <= token_budget:
            for share in SHARES:
                if sum(_size(name, short(name, share)) for name in names) <= token_budget:
                    return Offer(tuple(OfferedSkill(name, short(name, share)) for name in names))
    context = in_context(request, index.skill_names).context if request.history else ""
    ranking = await index.rank(
        request.text, context=context, among=request.available, limit=MAX_OFFERED
    )
    kept = sorted(name for name in dict.fromkeys(pinned) if name in allowed)
    offered = {name: short(name, SHORTLIST_SHARE) for name in kept}
    tokens_left = token_budget - sum(_size(*skill) for skill in offered.items())
    characters_left = MAX_NAME_CHARACTERS - sum(map(len, kept))
    for match in ranking.matches:
        if match.name in offered:
            continue
        text = short(match.name, SHORTLIST_SHARE)
        tokens_left -= _size(match.name, text)
        characters_left -= len(match.name)
        if len(offered) >= MAX_OFFERED or ((tokens_left < 0 or characters_left < 0) and offered):
            break
        offered[match.name] = text
    skills = [OfferedSkill(*skill) for skill in offered.items()]
    likeliest = tuple(skills[len(kept) :])
    return Offer(tuple(skills[: len(kept)]), likeliest, by_words_alone=bool(ranking.fault))


class _Descriptions:
    """The descriptions of one catalog's skills, whole and shortened. Shortened ones are remembered,
    because to make them takes tens of milliseconds for hundreds of skills. To make this object
    takes half a second for ten thousand skills.

    Attributes:
        texts: the whole descriptions, by name.
    """

    def __init__(self, catalog: Catalog) -> None:
        """Only shared beginnings are cut yet."""
        whole = {
            skill.name: " ".join(skill.description.split())[:READ_CHARACTERS]
            for skill in catalog.routable
        }
        self._parts = _parted(whole)
        self.texts = {
            name: text if len(text) <= MOST_CHARACTERS else "".join(self._parts[name])
            for name, text in whole.items()
        }
        self._short: dict[tuple[str, float], str] = {}
        words = ({word for _, word in _stems(rest)} for _, rest in self._parts.values())
        most = math.log(len(self.texts) + 1)
        counts = Counter(chain.from_iterable(words))
        # The inverse document frequency of each word.
        self._weight = {word: most - math.log(count) for word, count in counts.items()}

    def short(self, name: str, share: float) -> str:
        """The beginning of a description that holds this share of its weight, behind what is left
        of a shared beginning. The weight of a text is the sum of the weights of its different
        words."""
        if share >= 1:
            return self.texts[name]
        if (found := self._short.get((name, share))) is None:
            shared, rest = self._parts[name]
            least = LEAST_CHARACTERS - len(shared)
            found = shared + _cut(rest, _stems(rest), self._weight, share, least)
            self._short[name, share] = found
        return found


_descriptions: Final[WeakKeyDictionary[SkillIndex, _Descriptions]] = WeakKeyDictionary()
"""The descriptions of each index that has been used for an offer, while the index exists."""
_describing: Final = threading.Lock()


def _description_table(index: SkillIndex) -> _Descriptions:
    """The descriptions of an index, made once. Call it in a thread, because it may take long."""
    with _describing:
        found = _descriptions.get(index)
        if found is None:
            found = _descriptions[index] = _Descriptions(index.catalog)
        return found


def _size(name: str, text: str) -> int:
    """The estimated tokens of one skill in the prompt."""
    return FRAME_TOKENS + len(f"{name}{text}".encode("utf-8", "replace")) // BYTES_PER_TOKEN


def _parted(texts: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """By name, what is shown in place of a text's shared beginning, and the rest of the text;
    together at most ``MOST_CHARACTERS``.

    Texts that begin alike are followed word by word, as far as they are alike, and then in the
    groups into which they fall there. Words that a whole group has do not tell its texts apart: of
    a longer row of them ``LEAST_CHARACTERS`` are shown, which tell the group from all others. Only
    shared words are read, each once for each text.
    """
    shown = dict.fromkeys(texts, "")
    done = dict.fromkeys(texts, 0)
    pending = [(list(texts), 0)]
    while pending:
        group, start = pending.pop()
        end = start
        while len(following := _by_next_word(texts, group, end)) == 1 and "" not in following:
            end += len(next(iter(following))) + 1
        following.pop("", None)  # nothing follows in these, so nothing else could be shown of them
        for alike in following.values():
            if end - start > LEAST_CHARACTERS:
                for name in alike:
                    row = texts[name][done[name] : start + LEAST_CHARACTERS]
                    shown[name] += f"{row.rpartition(' ')[0].rstrip(' ,;:.')}… "
                    done[name] = end
            if len(alike) > 1:
                pending.append((alike, end))
    parts = {}
    for name, text in texts.items():
        shared = shown[name][:MOST_CHARACTERS]
        parts[name] = shared, text[done[name] :][: MOST_CHARACTERS - len(shared)]
    return parts


def _by_next_word(
    texts: Mapping[str, str], names: Sequence[str], start: int
) -> dict[str, list[str]]:
    """The names by the word that begins at a position of their texts; by "" where the text ends."""
    found = defaultdict(list)
    for name in names:
        text = texts[name]
        end = text.find(" ", start)
        found[text[start : end if end >= 0 else len(text)]].append(name)
    return found


def _cut(
    text: str,
    stems: Sequence[tuple[int, str]],
    weight: dict[str, float],
    share: float,
    least: int,
) -> str:
    """The beginning of a text, see ``_Descriptions.short``, of at least ``least`` characters.
    ``stems`` are those of ``_stems``."""
    first = {word: end for end, word in reversed(stems)}
    wanted = share * sum(weight[word] for word in first)
    reached = 0.0
    for word, end in sorted(first.items(), key=lambda item: item[1]):
        reached += weight[word]
        if reached >= wanted and end >= least:
            return text if end >= len(text) - 1 else f"{text[:end].rstrip(' ,;:.')}…"
    return text


def _stems(text: str) -> list[tuple[int, str]]:
    """The stems of a text's content words, each with the position where its word ends."""
    found = list(_WORD.finditer(text))
    spoken = words_of_each([one.group() for one in found])
    content_words = [
        (one.end(), word)
        for one, (words, _) in zip(found, spoken, strict=True)
        for word in words
        if word not in STOPWORDS
    ]
    stems = stems_of(word for _, word in content_words)
    return [(end, stem) for (end, _), stem in zip(content_words, stems, strict=True)]
