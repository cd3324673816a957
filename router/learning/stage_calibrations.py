"""The calibrations of all stages, and which of them the confidence of an answer belongs to.

Each stage whose confidence is calibrated has a ``Calibration`` of its own. Its outcomes come from
feedback, one by one, and from files of labelled requests, each row of which counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from router.concurrency.tasks import in_thread
from router.learning.calibration import Calibration

if TYPE_CHECKING:
    from router.result import RoutingResult

LOCAL: Final = "local"
"""The source of the confidence of a local answer, which the error bound or the coverage
calibrates."""
CALIBRATED: Final = ("llm", "vector")
"""Stages whose confidence is calibrated. A cached answer has the confidence of one of them."""
MAX_ROWS: Final = 20_000
"""Only this many newest rows are remembered as counted."""

OWN_CONFIDENCE: Final = "own_confidence"
"""Key in the trace evidence of the stage that answered: its confidence before calibration."""
COVERAGE: Final = "coverage"
"""Key in the trace evidence of a local answer: P(the request is covered)."""
CORRECTED: Final = "corrected"
"""Key in the trace evidence of an answer that is a person's correction."""
ENCODER_FAULT: Final = "encoder"
"""Key in the trace evidence of an answer by words alone: why the request could not be encoded."""
WORDS: Final = "words"
"""The source of the confidence of such an answer, which is right less or more often than others of
the same confidence."""


class StageCalibrations:
    """The calibrations of one router, by stage. Belongs to its loop; fits in threads."""

    def __init__(
        self, states: Mapping[str, Mapping[str, Any]] | None = None, rows: Iterable[object] = ()
    ) -> None:
        """Restore the calibrations from the results of ``to_dict`` and ``rows``.

        Raises KeyError, TypeError, ValueError or AttributeError where they have another form."""
        states = {} if states is None else states
        self._by_stage = {stage: Calibration.from_dict(state) for stage, state in states.items()}
        self._rows = {str(row): None for row in rows}  # oldest first

    @property
    def rows(self) -> list[str]:
        """The labelled rows that were counted, oldest first."""
        return list(self._rows)

    def to_dict(self) -> dict[str, Any]:
        """The calibrations as plain JSON types."""
        return {stage: calibration.to_dict() for stage, calibration in self._by_stage.items()}

    def drop(self) -> None:
        """Forget all outcomes, because they are of other skills than the current ones."""
        for calibration in self._by_stage.values():
            calibration.drop()
        self._rows.clear()

    def counted(self, row: str) -> bool:
        """Whether a labelled row has been counted already."""
        return row in self._rows

    async def observe(self, stage: str, confidence: float, *, right: bool) -> None:
        """Store whether an answer of a stage with this raw confidence was right."""
        self._note(stage, confidence, right=right)
        await self._refit()

    async def add_outcomes(self, outcomes: Iterable[tuple[str, str, float, bool]]) -> None:
        """Store outcomes of labelled rows; see ``Learner.calibrate``."""
        for row, stage, confidence, right in outcomes:
            if stage != CORRECTED and row not in self._rows:
                self._rows[row] = None
                self._note(stage, confidence, right=right)
        while len(self._rows) > MAX_ROWS:
            del self._rows[next(iter(self._rows))]
        await self._refit()

    def calibrated(self, verdict: RoutingResult) -> RoutingResult:
        """The verdict with a calibrated confidence, if its stage has a fitted calibration. The
        trace entry of that stage then holds the confidence before calibration."""
        if verdict.calibrated:
            return verdict
        own, calibration = verdict.confidence, self._by_stage.get(confidence_source(verdict))
        if calibration is None or calibration.calibrator is None:
            return verdict
        trace = tuple(
            entry.with_evidence({OWN_CONFIDENCE: own}) if entry.stage is verdict.stage else entry
            for entry in verdict.trace
        )
        return verdict.copy_with(
            confidence=calibration.calibrator(own),
            calibrated=True,
            evidence_count=calibration.outcomes,
            trace=trace,
        )

    def status(self) -> dict[str, Any]:
        """The state of each stage's calibration, as plain JSON types."""
        return {stage: _shown(calibration) for stage, calibration in self._by_stage.items()}

    def _note(self, stage: str, confidence: float, *, right: bool) -> None:
        self._by_stage.setdefault(stage, Calibration()).observe(confidence, right=right)

    async def _refit(self) -> None:
        for calibration in list(self._by_stage.values()):
            if calibration.due:
                calibration.adopt(await in_thread(calibration.fitting()))


def confidence_source(result: RoutingResult) -> str:
    """Where the confidence of an answer comes from: the name of the stage that answered,
    ``corrected`` for a person's correction, ``local`` for the local model, or ``words`` for words
    alone."""
    if any(CORRECTED in entry.evidence for entry in result.trace):
        return CORRECTED
    own = [entry.evidence for entry in result.trace if entry.stage is result.stage]
    if any(COVERAGE in evidence for evidence in own):
        return LOCAL
    return WORDS if any(ENCODER_FAULT in evidence for evidence in own) else result.stage.value


def own_confidence(result: RoutingResult) -> float:
    """The confidence of the stage that answered, before calibration."""
    for entry in result.trace:
        own = entry.evidence.get(OWN_CONFIDENCE)
        if entry.stage is result.stage and isinstance(own, float):
            return own
    return result.confidence


def _shown(calibration: Calibration) -> dict[str, Any]:
    fitted = calibration.calibrator
    if fitted is None:
        return {"calibrated": False, "outcomes": calibration.outcomes}
    return {
        "calibrated": True,
        "outcomes": fitted.pairs,
        "method": fitted.method,
        "held_out_error": fitted.held_out_error,
    }
