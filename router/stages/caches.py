"""Stages 1 and 2: an earlier answer, given again where it still holds.

The two caches lie behind one port (``AnswerCache``). An answer that was decided over other skills
is checked before it is given again (``router/stages/validation.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from router.errors import EncoderError
from router.events import CacheLookup, CacheOutcome, Events
from router.request import Request
from router.result import EvidenceValue, Outcome, RoutingResult, Stage, StageTrace
from router.stages.answers import AnswerCache, Found
from router.stages.fuzzy import FuzzyMatch
from router.stages.validation import Basis, DecidedBy, KeptAnswer, marks, refusal

if TYPE_CHECKING:
    from router.retrieval.index import SkillIndex
    from router.skills.catalog import Catalog

_LEFT_OUT: Final = StageTrace(Stage.FUZZY, Outcome.SKIPPED, "the caller left the fuzzy cache out")
_NO_FUZZY_CACHE: Final = StageTrace(Stage.FUZZY, Outcome.SKIPPED, "there is no fuzzy cache")
_IDENTICAL: Final = StageTrace(
    Stage.FUZZY, Outcome.SKIPPED, "the exact cache holds this very request"
)
_EXACT_HIT: Final = StageTrace(Stage.EXACT, Outcome.ANSWERED, "an identical request")
_NOT_NEEDED: Final = (
    StageTrace(Stage.LLM, Outcome.SKIPPED, "a cache answered"),
    StageTrace(Stage.VECTOR, Outcome.SKIPPED, "a cache answered"),
)


class Question(NamedTuple):
    """A request, with all else that decides its answer.

    Attributes:
        asked: the request.
        context: under which its answers are filed.
        skill_index: over the skills as they are now.
        evidence_digest: of what has been learnt, where that decides; else empty.
        similar: whether the fuzzy cache takes part: it may answer, and may keep the answer.
    """

    asked: Request
    context: str
    skill_index: SkillIndex
    evidence_digest: str
    similar: bool


class CacheStages:
    """Asks a cache, checks what it holds, and keeps new answers in it."""

    def __init__(self, cache: AnswerCache, events: Events, ids: Iterator[str]) -> None:
        """``events`` are told how each look into the cache ended; an answer that is given again
        takes the next of ``ids``."""
        self._cache = cache
        self._events = events
        self._ids = ids

    async def answer(
        self, question: Question, *, tell: bool = True
    ) -> tuple[RoutingResult | None, tuple[StageTrace, ...]]:
        """The cached answer, or None when there is none that still holds, and the trace entries of
        both stages. ``tell`` is False for a look that gives nobody an answer: no event is raised.
        """
        catalog, similar = question.skill_index.catalog, question.similar
        found = await self._cache.find(question.asked.text, question.context, similar=similar)
        kept, refused, state = found.kept, None, (catalog.version, question.evidence_digest)
        if kept is not None and kept.holds_in != state:
            refused = await self._refusal(kept, found.text, question)
            if refused is None:
                kept.holds_in = state
        trace = _trace(found, wanted_similar=similar, refused=refused)
        if tell and self._events.listening:
            self._tell(trace, None if refused is None else found.stage)
        if kept is None or refused is not None:
            return None, trace
        again = kept.result.copy_with(
            stage=found.stage,
            from_cache=True,
            catalog_version=catalog.version,
            trace=trace + _NOT_NEEDED,
            id=next(self._ids),
        )
        return again, trace

    async def keep(
        self,
        text: str,
        context: str,
        result: RoutingResult,
        basis: Basis,
        catalog: Catalog,
        *,
        similar: bool,
    ) -> None:
        """Keep an answer with what it rests on, so that it can be checked over later catalogs.
        Without ``similar`` it is kept for identical requests only."""
        kept = KeptAnswer(result.copy_with(trace=()), basis)  # a hit has a trace of its own
        await self._cache.keep(text, context, kept, similar=similar)
        if basis.decided_by is not DecidedBy.ROUTER:
            await self._cache.keep_marks(basis.catalog, marks(catalog))

    async def _refusal(self, kept: KeptAnswer, text: str, question: Question) -> str | None:
        """Why an answer of another state is not given again; None when it is."""
        then = None if kept.basis is None else await self._cache.marks_of(kept.basis.catalog)
        available = question.asked.available
        try:
            return await refusal(
                kept, text, question.skill_index, available=available, marks_then=then
            )
        except EncoderError as error:
            return f"whether it still holds cannot be found out: {error}"

    def _tell(self, trace: tuple[StageTrace, ...], refused: Stage | None) -> None:
        """Raise the events of the stages that ran; ``refused`` is the one whose answer was not
        given again."""
        fuzzy, exact = trace
        for entry in (exact, fuzzy):
            outcome, refused_by = CacheOutcome.MISS, ""
            if entry.outcome is Outcome.ANSWERED:
                outcome = CacheOutcome.HIT
            elif entry.stage is refused:
                outcome, refused_by = CacheOutcome.REFUSED, "validation"
            elif "blocked" in entry.evidence:
                outcome, refused_by = CacheOutcome.REFUSED, "gate"
            if entry.outcome is not Outcome.SKIPPED:
                self._events.emit(CacheLookup(entry.stage, outcome, entry.reason, refused_by))


def _trace(
    found: Found, *, wanted_similar: bool, refused: str | None
) -> tuple[StageTrace, StageTrace]:
    """The entries of both stages; ``refused`` is why an answer that is there is not given."""
    if found.kept is not None and found.stage is Stage.EXACT:
        exact = _EXACT_HIT.copy_with(microseconds=found.exact_microseconds)
        return _IDENTICAL, exact if refused is None else _refused(exact, refused)
    reason = "no identical request is stored"
    if found.alone:
        reason = f"{reason} by this process; {found.alone}"
    exact = StageTrace(Stage.EXACT, Outcome.DECLINED, reason, found.exact_microseconds)
    if found.similar is None:
        return _NO_FUZZY_CACHE if wanted_similar else _LEFT_OUT, exact
    fuzzy = _trace_of_similar(found.similar, found.fuzzy_microseconds)
    return fuzzy if refused is None else _refused(fuzzy, refused), exact


def _trace_of_similar(similar: FuzzyMatch, microseconds: float) -> StageTrace:
    outcome, reason = Outcome.DECLINED, "no similar request is stored"
    if similar.is_own:
        outcome, reason = Outcome.ANSWERED, "the same request, kept from an earlier run"
    elif similar.kept is not None:
        outcome, reason = Outcome.ANSWERED, f"close to an earlier request: {similar.matched}"
    elif similar.blocked is not None:
        reason = f"the nearest request differs: {similar.blocked}"
    evidence: dict[str, EvidenceValue] = {"compared": similar.compared}
    if similar.matched is not None:
        evidence["nearest" if similar.kept is None else "matched"] = similar.matched
        evidence["similarity"] = round(similar.similarity, 4)
        evidence["age_seconds"] = round(similar.age_seconds, 3)
    if similar.blocked is not None:
        evidence["blocked"] = similar.blocked
    return StageTrace(Stage.FUZZY, outcome, reason, microseconds, evidence)


def _refused(entry: StageTrace, why: str) -> StageTrace:
    return entry.copy_with(outcome=Outcome.DECLINED, reason=f"not given again: {why}")
