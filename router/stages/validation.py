"""Whether a cached answer still holds: looked at when it is read, one answer at a time.

Skills change while answers are kept, in this process, in others that share the cache, and while no
router runs. So an answer is kept together with what it rests on, and one that was decided over
another catalog is checked before it is given again:

* What the router decided by itself is decided again. That takes one ranking and gives
  what a router would say that had never been asked.
* What a person said holds while the chosen skills are what they were, and every named skill is
  still offered.
* For what an LLM said, no skill that was added or changed since may rank above them, either.
* That nothing fits, whoever said it, holds until a skill is added or changed.

What the catalog was when the LLM was asked is known by the marks of its skills
(``SkillManifest.mark``).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Self

from router.request import Request
from router.result import RoutingResult
from router.skills.manifest import MARK_BYTES

if TYPE_CHECKING:
    from router.retrieval.index import SkillIndex
    from router.skills.catalog import Catalog


class DecidedBy(StrEnum):
    """Who decided."""

    ROUTER = "router"
    """Retrieval or examples; the router can do it again at no cost."""
    LLM = "llm"
    PERSON = "person"
    """Feedback on an earlier answer."""


@dataclass(frozen=True, slots=True)
class Basis:
    """What a kept answer rests on.

    Attributes:
        decided_by: who decided.
        catalog: version of the catalog that it was decided over.
        evidence_digest: of what had been learnt, as far as the decision used it; else empty.
        digests: of the chosen skills, by name.
    """

    decided_by: DecidedBy
    catalog: str
    evidence_digest: str = ""
    digests: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(
        cls,
        decided_by: DecidedBy,
        selected: Sequence[str],
        catalog: Catalog,
        evidence_digest: str = "",
    ) -> Self:
        """The basis of an answer that has just been decided."""
        digests = tuple((name, catalog.skills[name].routing_digest) for name in selected)
        return cls(decided_by, catalog.version, evidence_digest, digests)

    def to_json(self) -> str:
        """One line; ``from_json`` reads it back."""
        return json.dumps([self.decided_by, self.catalog, self.evidence_digest, self.digests])

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        """Raises ValueError when the text is not of ``to_json``."""
        try:
            decided_by, catalog, evidence, digests = json.loads(text)
            pairs = tuple((str(name), str(digest)) for name, digest in digests)
            return cls(DecidedBy(decided_by), str(catalog), str(evidence), pairs)
        except (TypeError, RecursionError) as error:
            raise ValueError(f"not what an answer rests on: {error}") from error


@dataclass(slots=True)
class KeptAnswer:
    """An answer as a cache keeps it.

    Attributes:
        result: the answer.
        basis: what it rests on; None says that nothing is known, and it is never given.
        holds_in: the catalog and the evidence over which it was last found to hold: while they are
            the same, so is the decision.
    """

    result: RoutingResult
    basis: Basis | None
    holds_in: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if self.basis is not None and self.holds_in is None:
            self.holds_in = self.basis.catalog, self.basis.evidence_digest


async def refusal(
    kept: KeptAnswer,
    text: str,
    index: SkillIndex,
    *,
    available: Sequence[str] | None,
    marks_then: bytes | None,
) -> str | None:
    """Why an answer that was decided in another state does not hold over the skills of ``index``;
    None when it does.

    Args:
        text: the request that it was given to.
        available: the names that may be chosen; None means every one.
        marks_then: of the catalog that it was decided over; None when they are not known.

    Raises:
        EncoderError: the request cannot be encoded.
    """
    basis, result = kept.basis, kept.result
    if basis is None:
        return "it is not known what it rests on"
    if basis.decided_by is DecidedBy.ROUTER:
        return "the skills or the examples have changed since"
    allowed = None if available is None else frozenset(available)
    offered = {
        skill.name: skill
        for skill in index.catalog.routable
        if allowed is None or skill.name in allowed
    }
    for name in (*result.selected_skills, *result.suggested_skills, *dict(basis.digests)):
        if name not in offered:
            return f"{name} is not installed"
    for name, digest in basis.digests:
        if offered[name].routing_digest != digest:
            return f"{name} has changed since"
    chosen = result.selected_skills
    if basis.catalog == index.catalog.version or (chosen and basis.decided_by is DecidedBy.PERSON):
        return None
    if marks_then is None:
        return "it is not known which skills have changed since"
    rivals = [name for name in newer_skills(index.catalog, marks_then) if name in offered]
    if not rivals:
        return None
    if not chosen:
        return f"{rivals[0]} is newer than the answer that nothing fits"
    scores = await index.scores(text, [*chosen, *rivals])
    best = int(scores[len(chosen) :].argmax())
    if scores[len(chosen) + best] > scores[: len(chosen)].max():
        return f"{rivals[best]} is newer and ranks above {chosen[0]}"
    return None


def marks(catalog: Catalog) -> bytes:
    """The marks of the skills that are offered, in the order of their names."""
    return b"".join([skill.mark for skill in catalog.routable])


def newer_skills(catalog: Catalog, marks_then: bytes) -> list[str]:
    """The skills offered now that were not there, or were others, in the catalog of the marks."""
    then = {
        marks_then[start : start + MARK_BYTES] for start in range(0, len(marks_then), MARK_BYTES)
    }
    return [skill.name for skill in catalog.routable if skill.mark not in then]


def context_of(base: str, asked: Request) -> str:
    """``base``, and everything else but the text that changes the answer to a request. Two requests
    share cached answers only when it is equal."""
    if asked.available is None and not asked.history and asked.scope is None:
        return base
    turns = [[turn.role, turn.text] for turn in asked.history]
    available = asked.available if asked.group is None else {"group": asked.group}
    return f"{base}:{digest_of([turns, asked.scope, available])}"


def digest_of(value: object) -> str:
    """32 hex digits that are equal for equal JSON values."""
    text = json.dumps(value, ensure_ascii=True, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
