"""Whether a cached answer is still valid. This is checked when the answer is read.

Skills change while answers are cached: in this process, in other processes that share the cache,
and while no router runs. So each answer is stored with its *basis* (who decided it, over which
catalog), and an answer that was decided over another catalog is validated before it is used:

* An answer that the router decided by itself is never valid then. To decide again costs one
  ranking, and gives the same answer as a router with an empty cache.
* A person's answer is valid while the selected skills are unchanged and every named skill is still
  offered.
* An LLM's answer is valid under the same condition, and only if no skill that was added or changed
  since then ranks above the selected ones.
* The answer that no skill fits is valid until a skill is added or changed, whoever decided it.

Which skills were added or changed is known by *marks*: each skill has a digest of eight bytes
(``SkillManifest.mark``), and the cache stores the marks of each catalog beside the answers.
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
    """Who decided an answer."""

    ROUTER = "router"
    """Retrieval or the local model; to decide again costs next to nothing."""
    LLM = "llm"
    PERSON = "person"
    """Feedback on an earlier answer."""


@dataclass(frozen=True, slots=True)
class Basis:
    """What a cached answer was decided by and over.

    Attributes:
        decided_by: who decided.
        catalog: version of the catalog that it was decided over.
        evidence_digest: digest of the labels behind the decision; empty where it used none.
        digests: name and digest of each selected skill.
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
    """An answer as a cache stores it.

    Attributes:
        result: the answer.
        basis: what it was decided by and over; without one the answer is never valid.
        valid_for: the catalog version and the evidence digest for which the answer was last found
            valid. While both are the same, no new check is needed.
    """

    result: RoutingResult
    basis: Basis | None
    valid_for: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        if self.basis is not None and self.valid_for is None:
            self.valid_for = self.basis.catalog, self.basis.evidence_digest


async def reason_invalid(
    kept: KeptAnswer,
    text: str,
    index: SkillIndex,
    *,
    available: Sequence[str] | None,
    earlier_marks: bytes | None,
) -> str | None:
    """Why a cached answer, decided over another catalog or other evidence, is invalid over the
    skills of ``index``; None when it is valid.

    Args:
        text: the request that was answered.
        available: the names that may be selected; None means every skill.
        earlier_marks: the marks of the catalog that the answer was decided over; None when they
            are unknown.

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
    if earlier_marks is None:
        return "it is not known which skills have changed since"
    rivals = [name for name in newer_skills(index.catalog, earlier_marks) if name in offered]
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
    """The marks of the routable skills, joined in the order of their names."""
    return b"".join([skill.mark for skill in catalog.routable])


def newer_skills(catalog: Catalog, earlier_marks: bytes) -> list[str]:
    """The routable skills that are new or changed since the catalog with these marks."""
    then = {
        earlier_marks[start : start + MARK_BYTES]
        for start in range(0, len(earlier_marks), MARK_BYTES)
    }
    return [skill.name for skill in catalog.routable if skill.mark not in then]


def cache_context_of(base_context: str, request: Request) -> str:
    """The cache context of a request: that of the snapshot, and a digest of the request's history,
    scope and available skills. Two requests share cached answers only when it is equal."""
    if request.available is None and not request.history and request.scope is None:
        return base_context
    turns = [[turn.role, turn.text] for turn in request.history]
    available = request.available if request.group is None else {"group": request.group}
    return f"{base_context}:{digest_of([turns, request.scope, available])}"


def digest_of(value: object) -> str:
    """A digest of a JSON value, 32 hex digits."""
    text = json.dumps(value, ensure_ascii=True, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
