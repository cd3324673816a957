"""Filters the requests that an LLM wrote for a skill.

A request is left out if it is empty or too long; if the skill has it already; if it belongs to
another skill that has it; if it is an order (``orders.py``) or hides characters; or if it is
clearly nearer to the description of another skill than to that of its own. An answer of which
nothing is kept, or less than is suspicious, cannot be used at all: it is about something else, or
it is an attack. What is empty, too long, or the skill's already is not suspicious: models often
repeat an author's examples.

A request that several skills have belongs to the one whose description is nearest to it; where the
descriptions do not differ, to the one that had it first. The others keep it: else a skill could
take the requests of another one by a description that is made for it. But a skill most of whose
requests belong to others was probably written a wrong answer for: it is in doubt.

Why "clearly": requests in everyday words share few words with any skill, and they help most. If
every request had to be nearest to its own skill, three in five of the good ones would be left out
(of eight that an LLM wrote for each of 574 skills). With the margin used here 2% are left out, and
still two thirds of the requests that were written for another skill, drawn at random.

Nearness is the cosine of the bundled encoder's vectors, whichever encoder routes, because the
margin was measured with it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.enrichment.orders import is_order
from router.enrichment.question import Written
from router.lint.characters import hides_characters
from router.lint.injection import gives_orders
from router.retrieval.bundled_encoder import BundledEncoder, bundled_encoder
from router.skills.frontmatter import distinct
from router.skills.manifest import SkillManifest
from router.text import normalise

CLEARLY_NEARER: Final = 0.3
"""A request is clearly nearer to another skill when the cosine to it is larger by this much."""
MAX_KEPT_CHARACTERS: Final = 600
"""The longest request that is kept. One of three long sentences has some 400 characters."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The useful part of what was written for one skill.

    Attributes:
        requests, near_misses: the texts that were kept.
        left_out: the requests that were not, each with the reason.
        suspicious: how many of these are suspicious.
        doubtful: other skills most of whose written requests belong to this one or to others.
    """

    requests: tuple[str, ...]
    near_misses: tuple[str, ...]
    left_out: tuple[str, ...]
    suspicious: int
    doubtful: tuple[str, ...] = ()

    @property
    def is_usable(self) -> bool:
        """Whether the answer was good enough to be used, and to replace an earlier one."""
        return len(self.requests) >= max(1, self.suspicious)


class Filter:
    """Filters the texts that were written for the skills of one catalog. Not thread-safe."""

    def __init__(self, skills: Iterable[SkillManifest]) -> None:
        skills = list(skills)
        self._place = {skill.name: place for place, skill in enumerate(skills)}
        self._names = [skill.name for skill in skills]
        self._casefolded_names = frozenset(map(str.casefold, self._names))
        self._heads = [f"{skill.name.replace('-', ' ')}. {skill.description}" for skill in skills]
        # Which skills have a request. Those whose author wrote it had it first.
        self._holders: defaultdict[str, list[str]] = defaultdict(list)
        self._written: dict[str, list[str]] = {}
        for skill in skills:
            for text in set(map(normalise, skill.examples)):
                self._holders[text].append(skill.name)
        for skill in skills:
            self._hold(skill.name, () if skill.enrichment is None else skill.enrichment.requests)

    def _hold(self, name: str, requests: Iterable[str]) -> None:
        """Remember these requests as those that were written for a skill, in place of the earlier
        ones."""
        for text in self._written.get(name, ()):
            self._holders[text].remove(name)
        self._written[name] = [*dict.fromkeys(map(normalise, requests))]
        for text in self._written[name]:
            self._holders[text].append(name)

    def keep(self, skill: SkillManifest, written: Written) -> Kept:
        """The useful part of what was written for a skill. The requests of a usable answer are
        remembered, in place of those that the skill had."""
        left_out: list[str] = []
        suspicious = 0
        own = frozenset(map(normalise, skill.examples))
        requests: list[str] = []
        for text in distinct(written.requests):
            useless = _useless(text, own)
            suspicion = None if useless else self._suspicion(skill, text)
            if fault := useless or suspicion:
                left_out.append(f"{fault}: {text[:80]}")
                suspicious += suspicion is not None
            else:
                requests.append(text)
                own |= {normalise(text)}
        near_misses = [
            text
            for text in distinct(written.near_misses)
            if len(text) <= MAX_KEPT_CHARACTERS
            and self.deceit(text) is None
            and normalise(text) not in own
        ]
        kept = Kept(tuple(requests), tuple(near_misses), tuple(left_out), suspicious)
        if not kept.is_usable:
            return kept
        self._hold(skill.name, requests)
        rivals = self.rivals(skill.name, requests)
        return replace(kept, doubtful=tuple(filter(self._is_doubtful, rivals)))

    def rivals(self, name: str, requests: Iterable[str]) -> list[str]:
        """The other skills that have one of these requests, in order."""
        held = (self._holders.get(normalise(text), ()) for text in requests)
        return sorted({holder for holders in held for holder in holders} - {name})

    def _is_doubtful(self, name: str) -> bool:
        """Whether more of what was written for a skill belongs to others than to itself."""
        written = self._written[name]
        lost = sum(self.other_owner(name, text) is not None for text in written)
        return lost > len(written) - lost

    def other_owner(self, name: str, text: str) -> str | None:
        """Another skill that a request belongs to, of those that have it already."""
        holders = [*self._holders.get(normalise(text), ()), name]
        if holders.count(name) == len(holders):
            return None
        cosines = self._cosines(text)
        owner = max(holders, key=lambda holder: round(float(cosines[self._place[holder]]), 2))
        return None if owner == name else owner

    def deceit(self, text: str) -> str | None:
        """How a text tries to deceive whoever reads it; None when it does not."""
        names = self._casefolded_names
        if gives_orders(text, names) or is_order(text, names):
            return "an order, not a request"
        return "hidden characters" if hides_characters(text) else None

    def _suspicion(self, skill: SkillManifest, text: str) -> str | None:
        """Why a request may not be meant for the skill; None when nothing speaks against it."""
        if owner := self.other_owner(skill.name, text):
            return f"a request for {owner}"
        if deceit := self.deceit(text):
            return deceit
        nearest = self._clearly_nearer(skill.name, text)
        return None if nearest is None else f"clearly nearer to {nearest}"

    @cached_property
    def _encoder(self) -> BundledEncoder:
        """Loaded when first used: whoever only looks for deceit does without it."""
        return bundled_encoder()

    @cached_property
    def _vectors(self) -> NDArray[np.float32]:
        """The vectors of ``_heads``."""
        return self._encoder.encode(self._heads)

    def _cosines(self, text: str) -> NDArray[np.float32]:
        """How near a request is to the description of each skill."""
        cosines: NDArray[np.float32] = self._vectors @ self._encoder.encode([text])[0]
        return cosines

    def _clearly_nearer(self, name: str, text: str) -> str | None:
        cosines = self._cosines(text)
        place = int(np.argmax(cosines))
        if cosines[place] - cosines[self._place[name]] <= CLEARLY_NEARER:
            return None
        return self._names[place]


def _useless(text: str, own: frozenset[str]) -> str | None:
    """Why a request would add nothing to those that the skill has (``own``, normalised), or is too
    long to be kept; None otherwise."""
    if len(text) > MAX_KEPT_CHARACTERS:
        return f"over {MAX_KEPT_CHARACTERS} characters"
    if not any(character.isalnum() for character in text):
        return "no words"
    return "there already" if normalise(text) in own else None
