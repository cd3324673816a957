"""Filters the requests that an LLM wrote for a skill.

A request is left out if it is empty or too long; if the skill or another one has it already; if it
is an order (``orders.py``) or hides characters; or if it is clearly nearer to the description of
another skill than to that of its own. An answer of which nothing is kept, or less than is
suspicious, cannot be used at all: it is about something else, or it is an attack. What is empty,
too long, or the skill's already is not suspicious: models often repeat an author's examples.

Why "clearly": requests in everyday words share few words with any skill, and they help most. If
every request had to be nearest to its own skill, three in five of the good ones would be left out
(of eight that an LLM wrote for each of 574 skills). With the margin used here 2% are left out, and
still two thirds of the requests that were written for another skill, drawn at random.

Nearness is the cosine of the bundled encoder's vectors, whichever encoder routes, because the
margin was measured with it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.enrichment.orders import is_order
from router.enrichment.question import Written
from router.lint.characters import hides_characters
from router.lint.injection import gives_orders
from router.retrieval.bundled_encoder import BundledEncoder, bundled_encoder
from router.retrieval.documents import examples_of
from router.skills.frontmatter import distinct
from router.skills.manifest import SkillManifest
from router.text import normalise

CLEARLY_NEARER: Final = 0.3
"""A request is clearly nearer to another skill when the cosine to it is larger by this much."""
MAX_KEPT_CHARACTERS: Final = 600
"""The longest request that is kept. One of three long sentences has some 400 characters."""


@dataclass(frozen=True, slots=True)
class Kept:
    """The texts that were kept for one skill, and those that were left out, each with the reason;
    and how many of these are suspicious."""

    requests: tuple[str, ...]
    near_misses: tuple[str, ...]
    left_out: tuple[str, ...]
    suspicious: int

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
        self._owner = {  # what an author wrote counts before what was written for another skill
            normalise(text): skill.name
            for texts_of in (examples_of, attrgetter("examples"))
            for skill in reversed(skills)
            for text in texts_of(skill)
        }

    def keep(self, skill: SkillManifest, written: Written) -> Kept:
        """The useful part of what was written for a skill. The requests of a usable answer are
        remembered, so that no other skill gets the same request."""
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
        if kept.is_usable:
            self._owner.update((normalise(text), skill.name) for text in requests)
        return kept

    def other_owner(self, skill: SkillManifest, text: str) -> str | None:
        """Another skill that has the same request already, by its author or an LLM."""
        owner = self._owner.get(normalise(text), skill.name)
        return None if owner == skill.name else owner

    def deceit(self, text: str) -> str | None:
        """How a text tries to deceive whoever reads it; None when it does not."""
        names = self._casefolded_names
        if gives_orders(text, names) or is_order(text, names):
            return "an order, not a request"
        return "hidden characters" if hides_characters(text) else None

    def _suspicion(self, skill: SkillManifest, text: str) -> str | None:
        """Why a request may not be meant for the skill; None when nothing speaks against it."""
        if owner := self.other_owner(skill, text):
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

    def _clearly_nearer(self, name: str, text: str) -> str | None:
        cosines = self._vectors @ self._encoder.encode([text])[0]
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
