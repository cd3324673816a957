"""Keeps the local model as good as the evidence allows, off the path of requests.

A new model is fitted in a thread when there is enough new evidence. It takes its place only if it
does at least as well on the newest examples, which neither has seen; otherwise it is dropped, and
the next attempt waits for more evidence.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.errors import EncoderError
from router.flight import in_thread
from router.learning.calibration import MIN_PAIRS, Calibrator
from router.learning.evidence import Example
from router.learning.local import LocalModel, answer_of
from router.retrieval.encoders import Encoder
from router.retrieval.index import encode_requests

_log: Final = logging.getLogger(__name__)

FIRST_EXAMPLES: Final = 2
GROWTH: Final = 1.2
MIN_NEW: Final = 5
"""A fit is due when there are this many new examples, and a fifth more than at the last fit."""
HELD_OUT: Final = 0.2
"""Of the new examples; the newest."""
DELAY_SECONDS: Final = 2.0
"""From the first reason to train to the fit: a process that answers one request ends before, and
somebody who saves skill after skill causes one fit."""
MIN_CALIBRATED: Final = 40
MAX_CALIBRATED: Final = 2_000
FOLDS: Final = 5
MIN_HELD_OUT: Final = 5
"""With fewer there is nothing to compare by, and the newer model takes its place."""


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """How the last attempt went.

    Attributes:
        version: of the model that serves now; 0 for none.
        examples: that it was fitted on.
        shipped: whether the attempt brought a new model.
        accuracy: of the candidate on the held-out examples; None when there were too few.
        incumbent: of the model before it on the same; None likewise.
    """

    version: int
    examples: int
    shipped: bool
    accuracy: float | None = None
    incumbent: float | None = None


class Trainer:
    """Fits local models in the background. Belongs to one event loop.

    Attributes:
        model: the snapshot that serves; None before the first.
        report: of the last attempt; None before it.
    """

    def __init__(
        self,
        encoder: Encoder,
        examples: Callable[[], Sequence[Example]],
        *,
        calibrates: bool,
    ) -> None:
        """A trainer without a model.

        Args:
            encoder: of the router.
            examples: the labels that count now, oldest first; called in a thread.
            calibrates: whether a model is told how far its probabilities hold; needed where
                nothing else judges them.
        """
        self._calibrates = calibrates
        self.model: LocalModel | None = None
        self.report: TrainingReport | None = None
        self._encoder = encoder
        self._examples = examples
        self._vectors: dict[str, NDArray[np.float32]] = {}
        self._new = 0
        self._fitted_on = 0
        self._stale = False
        self._versions = 0
        self._hurry = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    def note(self, labels: int = 1) -> None:
        """There are so many new labels; a fit begins when they are enough."""
        self._new += labels
        due = max(MIN_NEW, (GROWTH - 1) * self._fitted_on)
        if self.model is None:
            due = FIRST_EXAMPLES
        if self._new >= due:
            self._begin()

    def restart(self) -> None:
        """The skills are others now: what serves goes, and a model over what is left is fitted."""
        self.model = None
        self._stale = True
        self._begin()

    def _begin(self) -> None:
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._train(), name="router-trainer")

    async def trained(self) -> None:
        """Wait until no fit is under way or due."""
        self._hurry.set()
        while self._running is not None and not self._running.done():
            await asyncio.wait([self._running])

    async def aclose(self) -> None:
        """Stop; a fit under way is waited for and dropped."""
        if self._running is not None:
            self._running.cancel()
            await asyncio.wait([self._running])

    async def _train(self) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._hurry.wait(), DELAY_SECONDS)
        self._hurry.clear()
        while True:
            self._stale = False
            new, self._new = self._new, 0
            previous = self.model
            try:
                fitted = await in_thread(lambda: self._fit(previous, new))  # noqa: B023 - awaited
            except EncoderError as error:
                _log.warning("not trained: %s", error)
                return
            if self._stale:  # the skills changed meanwhile
                continue
            model, report = fitted
            self.report = report
            if report.shipped:
                self.model = model
                self._fitted_on = report.examples
            return

    def _fit(
        self, previous: LocalModel | None, new: int
    ) -> tuple[LocalModel | None, TrainingReport]:
        """A candidate, and how it compares. In a thread, which no other one joins."""
        examples = [example for example in self._examples() if example.right]
        vectors = self._encoded(examples)
        held_out = int(HELD_OUT * new)
        accuracy = incumbent = None
        if previous is not None and held_out >= MIN_HELD_OUT:
            seen, unseen = examples[:-held_out], examples[-held_out:]
            candidate = LocalModel.fit(seen, vectors[:-held_out], version=0)
            incumbent = _accuracy(previous, unseen, vectors[-held_out:])
            accuracy = 0.0
            if candidate is not None:
                accuracy = _accuracy(candidate, unseen, vectors[-held_out:])
            if accuracy < incumbent:
                report = TrainingReport(
                    previous.version, previous.examples, False, accuracy, incumbent
                )
                return previous, report
        self._versions += 1
        model = LocalModel.fit(examples, vectors, version=self._versions)
        if model is None:
            return None, TrainingReport(0, 0, True)
        if self._calibrates:
            model.calibrator = cross_fitted(examples, vectors)
        report = TrainingReport(model.version, model.examples, True, accuracy, incumbent)
        return model, report

    def _encoded(self, examples: Sequence[Example]) -> NDArray[np.float32]:
        """Vectors of the texts; only new ones are encoded."""
        texts = [example.text for example in examples]
        missing = list(dict.fromkeys(text for text in texts if text not in self._vectors))
        if missing:
            self._vectors.update(zip(missing, encode_requests(self._encoder, missing), strict=True))
        self._vectors = {text: self._vectors[text] for text in dict.fromkeys(texts)}
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        return np.stack([self._vectors[text] for text in texts])


def cross_fitted(examples: Sequence[Example], vectors: NDArray[np.float32]) -> Calibrator | None:
    """How far a model's probabilities hold, from examples that each fold's model has not seen; None
    with fewer than ``MIN_CALIBRATED`` of them.

    A fifth of the answers are kept from each fold's model altogether: to it, their examples are
    requests that no example speaks about, which is what most of the traffic may be.
    """
    if len(examples) < MIN_CALIBRATED:
        return None
    answers = [answer_of(example.skills) for example in examples]
    fold_of = {name: n % FOLDS for n, name in enumerate(sorted(set(answers)))}
    chosen = np.random.default_rng(0).permutation(len(examples))[:MAX_CALIBRATED]
    confidences: list[float] = []
    right: list[bool] = []
    for fold in range(FOLDS):
        seen = [
            i for n, i in enumerate(chosen) if n % FOLDS != fold and fold_of[answers[i]] != fold
        ]
        model = LocalModel.fit([examples[i] for i in seen], vectors[seen], version=0)
        if model is None:
            continue
        for n, i in enumerate(chosen):
            if n % FOLDS == fold:
                found = model.answer(examples[i].text, vectors[i])
                confidences.append(found.signals.probability)
                right.append(found.answer == answers[i])
    return Calibrator.fit(confidences, right) if len(right) >= MIN_PAIRS else None


def _accuracy(
    model: LocalModel, examples: Sequence[Example], vectors: NDArray[np.float32]
) -> float:
    right = sum(
        model.answer(example.text, vector).answer == answer_of(example.skills)
        for example, vector in zip(examples, vectors, strict=True)
    )
    return right / len(examples)
