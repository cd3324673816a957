"""Stages 1 and 2 of the cascade: the fuzzy and the exact cache of earlier answers.

Both caches are behind one interface (``AnswerCache``). A cached answer that was decided over other
skills, or with other evidence, is validated before it is used (``router/stages/validation.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple

from router.errors import EncoderError
from router.events import CacheLookup, CacheOutcome, Events
from router.request import Request
from router.result import EvidenceValue, Outcome, RoutingResult, Stage, StageTrace
from router.stages.answers import AnswerCache, Found
from router.stages.fuzzy import FuzzyMatch
from router.stages.validation import Basis, DecidedBy, KeptAnswer, marks, reason_invalid

if TYPE_CHECKING:
    from router.retrieval.index import SkillIndex
    from router.skills.catalog import Catalog

_LEFT_OUT: Final = StageTrace(Stage.FUZZY, Outcome.SKIPPED, "the caller left the fuzzy cache out")
_NO_FUZZY_CACHE: Final = StageTrace(Stage.FUZZY, Outcome.SKIPPED, "there is no fuzzy cache")
_IDENTICAL: Final = StageTrace(
    Stage.FUZZY, Outcome.SKIPPED, "the exact cache holds this very request"
)
_EXACT_HIT: Final = StageTrace(Stage.EXACT, Outcome.ANSWERED, "an identical request")
_LLM_NOT_NEEDED: Final = StageTrace(Stage.LLM, Outcome.SKIPPED, "a cache answered")
_VECTOR_NOT_NEEDED: Final = StageTrace(Stage.VECTOR, Outcome.SKIPPED, "a cache answered")


class PreparedRequest(NamedTuple):
    """A request, with everything else that its answer depends on.

    Attributes:
        request: the request itself.
        cache_context: a digest of everything but the text and the catalog that changes the answer.
            The text and this digest are the cache key.
        skill_index: the index over the current skills.
        evidence_digest: a digest of the labels that the local model was fitted on; empty where no
            local model may answer without an LLM.
        use_fuzzy: whether the fuzzy cache may answer this request and may store its answer.
    """

    request: Request
    cache_context: str
    skill_index: SkillIndex
    evidence_digest: str
    use_fuzzy: bool


class CacheStages:
    """Looks requests up in the caches, validates what it finds, and stores new answers."""

    def __init__(self, cache: AnswerCache, events: Events, ids: Iterator[str]) -> None:
        """Each look-up emits its outcome to ``events``. Each answer from the cache gets a new id,
        the next one of ``ids``, so that feedback can be given on it."""
        self._cache = cache
        self._events = events
        self._ids = ids

    async def answer(
        self, prepared: PreparedRequest, *, emit_events: bool = True
    ) -> tuple[RoutingResult | None, tuple[StageTrace, ...]]:
        """The cached answer, or None when there is no valid one, and the trace entries of both
        stages. ``emit_events`` is False where the look-up serves no request."""
        catalog, use_fuzzy = prepared.skill_index.catalog, prepared.use_fuzzy
        found = await self._cache.find(
            prepared.request.text, prepared.cache_context, similar=use_fuzzy
        )
        kept, invalid, state = found.kept, None, (catalog.version, prepared.evidence_digest)
        if kept is not None and kept.valid_for != state:
            invalid = await self._reason_invalid(kept, found.text, prepared)
            if invalid is None:
                kept.valid_for = state
        trace = _trace(found, use_fuzzy=use_fuzzy, invalid=invalid)
        if emit_events and self._events.listening:
            self._emit_events(trace, None if invalid is None else found.stage)
        if kept is None or invalid is not None:
            return None, trace
        hit = kept.result.copy_with(
            stage=found.stage,
            from_cache=True,
            catalog_version=catalog.version,
            trace=(*trace, _LLM_NOT_NEEDED, _trace_of_vector(kept, found.text, prepared)),
            id=next(self._ids),
        )
        return hit, trace

    async def keep(
        self,
        text: str,
        context: str,
        result: RoutingResult,
        basis: Basis,
        catalog: Catalog,
        *,
        use_fuzzy: bool,
    ) -> None:
        """Store an answer together with its basis, so that it can be validated over later
        catalogs. Without ``use_fuzzy`` only identical requests will find it."""
        kept = KeptAnswer(result.copy_with(trace=()), basis)  # a hit has a trace of its own
        await self._cache.keep(text, context, kept, similar=use_fuzzy)
        if basis.decided_by is not DecidedBy.ROUTER:
            await self._cache.keep_marks(basis.catalog, marks(catalog))

    async def _reason_invalid(
        self, kept: KeptAnswer, text: str, prepared: PreparedRequest
    ) -> str | None:
        """Why an answer of another catalog or other evidence is invalid; None when it is valid."""
        earlier = None if kept.basis is None else await self._cache.marks_of(kept.basis.catalog)
        available = prepared.request.available
        try:
            return await reason_invalid(
                kept, text, prepared.skill_index, available=available, earlier_marks=earlier
            )
        except EncoderError as error:
            return f"whether it still holds cannot be found out: {error}"

    def _emit_events(self, trace: tuple[StageTrace, ...], invalid_in: Stage | None) -> None:
        """Emit an event for each stage that ran. ``invalid_in`` is the stage that found an invalid
        answer, if one did."""
        fuzzy, exact = trace
        for entry in (exact, fuzzy):
            outcome, refused_by = CacheOutcome.MISS, ""
            if entry.outcome is Outcome.ANSWERED:
                outcome = CacheOutcome.HIT
            elif entry.stage is invalid_in:
                outcome, refused_by = CacheOutcome.REFUSED, "validation"
            elif "blocked" in entry.evidence:
                outcome, refused_by = CacheOutcome.REFUSED, "gate"
            if entry.outcome is not Outcome.SKIPPED:
                self._events.emit(CacheLookup(entry.stage, outcome, entry.reason, refused_by))


def _trace(found: Found, *, use_fuzzy: bool, invalid: str | None) -> tuple[StageTrace, StageTrace]:
    """The trace entries of both stages; ``invalid`` says why the answer found is invalid, if so."""
    if found.kept is not None and found.stage is Stage.EXACT:
        exact = _EXACT_HIT.copy_with(microseconds=found.exact_microseconds)
        return _IDENTICAL, exact if invalid is None else _declined(exact, invalid)
    reason = "no identical request is stored"
    if found.alone:
        reason = f"{reason} by this process; {found.alone}"
    exact = StageTrace(Stage.EXACT, Outcome.DECLINED, reason, found.exact_microseconds)
    if found.similar is None:
        return _NO_FUZZY_CACHE if use_fuzzy else _LEFT_OUT, exact
    fuzzy = _trace_of_similar(found.similar, found.fuzzy_microseconds)
    return fuzzy if invalid is None else _declined(fuzzy, invalid), exact


def _trace_of_vector(kept: KeptAnswer, text: str, prepared: PreparedRequest) -> StageTrace:
    """The trace entry of stage 4 for an answer that was kept for this text. It says which text was
    read, where retrieval read one that had a history."""
    request, basis = prepared.request, kept.basis
    if not request.history or basis is None or basis.decided_by is not DecidedBy.ROUTER:
        return _VECTOR_NOT_NEEDED
    from router.stages.followup import reading_behind

    names = prepared.skill_index.skill_names
    read = reading_behind(replace(request, text=text), kept.result.reasoning, names)
    return _VECTOR_NOT_NEEDED.with_evidence(read.evidence)


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


def _declined(entry: StageTrace, invalid: str) -> StageTrace:
    return entry.copy_with(outcome=Outcome.DECLINED, reason=f"not given again: {invalid}")
