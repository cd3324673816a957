"""Keeps the local model as good as the evidence allows, off the path of requests.

A new model of all examples is fitted in a thread when there is enough new evidence. It was once
served only if a model without the newest examples did as well on them as the one before: that cost
a second fit each time and kept nothing bad away, with false labels among them either.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from filelock import FileLock, Timeout
from numpy.typing import NDArray

from router.concurrency.tasks import in_thread, one_matrix_thread, tell_failure
from router.errors import EncoderError, StoreError
from router.learning.coverage import ExampleCoverage
from router.learning.evidence import EvidenceStore, Example
from router.learning.local import LocalModel, answer_of
from router.learning.peers import Peers
from router.retrieval.encoders import Encoder
from router.retrieval.reader import encode_requests
from router.storage.private_files import FILE_MODE

_log: Final = logging.getLogger(__name__)

FORMAT: Final = "4"
"""The format of kept models. Change it when something else is fitted."""

FIRST_EXAMPLES: Final = 2
GROWTH: Final = 1.2
MIN_NEW: Final = 5
"""A fit is due when there are this many new examples, and a fifth more than at the last fit."""
DELAY_SECONDS: Final = 2.0
"""Pause between the first reason to train and the fit. A process that answers one request ends
before, and many saves in a row cause one fit."""
OTHERS_SECONDS: Final = 30.0
"""How long to wait at most for a fit of another process over the same evidence."""
OTHERS_POLL_SECONDS: Final = 0.2
"""How often it is asked whether that has ended."""


@dataclass(frozen=True, slots=True)
class TrainingReport:
    """How the last attempt went: whether it brought a new model."""

    shipped: bool


class Trainer:
    """Fits local models in the background. Belongs to one event loop.

    Attributes:
        calibrates: whether each model learns which requests its examples cover.
        model: the latest snapshot; None before the first.
        current: whether it was fitted for the skills as they are now.
        report: of the last attempt; None before it.
    """

    def __init__(
        self,
        encoder: Encoder,
        store: EvidenceStore,
        examples: Callable[[], Sequence[Example]],
        *,
        about: Callable[[], str],
        calibrates: bool,
        peers: Peers | None = None,
    ) -> None:
        """A trainer without a model.

        Args:
            store: keeps the model for the next start.
            examples: the labels that count now, oldest first; called in a thread.
            about: what the skills say of themselves now, as one digest: a kept model of others
                is not taken up.
            calibrates: whether each model learns which requests its examples cover; needed where
                no LLM judges its answers.
            peers: other processes, of which one fits for all; None where there are none.
        """
        self._encoder = encoder
        self._store = store
        self._examples = examples
        self._about = about
        self.calibrates = calibrates
        self._peers = peers
        self.model: LocalModel | None = None
        self.current = False
        self.report: TrainingReport | None = None
        self._vectors: dict[str, NDArray[np.float32]] = {}
        self._new = 0
        self._stale = False
        self._use_all = False
        self._versions = 0
        self._no_delay = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Take up the model that was kept for these skills, and see in the background whether there
        is more to learn by now."""
        self.model = await in_thread(self._kept)
        self.current = self.model is not None
        self._use_all = True
        self._begin()

    def note(self, labels: int = 1) -> None:
        """Count new labels; a fit begins when there are enough."""
        self._new += labels
        if self._new >= due(self.model):
            self._begin()

    def restart(self) -> None:
        """The skills are others now; a model over what is left is fitted."""
        self.current = False
        self._stale = True
        self._begin()

    def _begin(self) -> None:
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._train(), name="router-trainer")
            self._running.add_done_callback(partial(tell_failure, _log))

    async def trained(self) -> None:
        """Wait until the model is of all the evidence that there is now."""
        self._use_all = True
        self._begin()
        self._no_delay.set()
        while self._running is not None and not self._running.done():
            await asyncio.wait([self._running])

    async def aclose(self) -> None:
        """Stop; a fit under way is waited for and dropped."""
        if self._running is not None and not self._running.done():
            self._running.cancel()
            await asyncio.wait([self._running])

    async def _train(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(DELAY_SECONDS):
                await self._no_delay.wait()
        self._no_delay.clear()
        while True:
            self._stale = False
            new, self._new = self._new, 0
            use_all, self._use_all = self._use_all, False
            previous = self.model if self.current else None
            fitted: tuple[LocalModel | None, TrainingReport | None]
            try:
                key = "" if self._peers is None else await in_thread(self.key)
                if self._peers is not None and not await self._peers.may_fit(key):
                    fitted = await self._published(previous, key), None
                else:
                    fitted = await self._fitted(previous, new, use_all)
                    if self._peers is not None and fitted[0] not in (None, previous):
                        await self._peers.publish(key, fitted[0].to_bytes())
            except (EncoderError, StoreError) as error:
                _log.warning("not trained: %s", error)
                return
            if self._stale:  # the skills changed meanwhile
                self._use_all |= use_all
                continue
            self.model, report = fitted
            self.current = self._peers is None or self.model is not None
            self.report = report or self.report
            if not self._use_all:
                return

    async def _fitted(
        self, previous: LocalModel | None, new: int, use_all: bool
    ) -> tuple[LocalModel | None, TrainingReport | None]:
        """See ``_fit``. Processes that share the evidence fit one after the other, and take up what
        was fitted."""
        clock = asyncio.get_running_loop().time
        until = clock() + OTHERS_SECONDS
        while True:
            try:
                return await in_thread(
                    lambda: self._fit(previous, new, use_all, waits=clock() < until)
                )
            except Timeout:  # no thread waits, and closing need not
                await asyncio.sleep(OTHERS_POLL_SECONDS)

    def _fit(
        self, previous: LocalModel | None, new: int, use_all: bool, *, waits: bool
    ) -> tuple[LocalModel | None, TrainingReport | None]:
        """The model to serve, and how the fit of a new one went; None when none was due. With
        ``use_all``, one is due as soon as anything has changed. In a thread, which no other
        one joins.

        Raises:
            Timeout: another process fits, and this one ``waits``.
        """
        lock = FileLock(self._store.folder / "fitting.lock", mode=FILE_MODE)
        try:
            lock.acquire(blocking=False)
        except OSError as error:
            if waits and isinstance(error, Timeout):
                raise
        try:
            return self._fit_or_take_up(previous, new, use_all)
        finally:
            lock.release()

    def _fit_or_take_up(
        self, previous: LocalModel | None, new: int, use_all: bool
    ) -> tuple[LocalModel | None, TrainingReport | None]:
        key = self.key()
        kept = self._kept()
        if kept is not None and (
            previous is None
            or (
                kept.evidence_digest != previous.evidence_digest
                and kept.examples >= previous.examples
            )
        ):
            previous, new = kept, 0
        examples = [example for example in self._examples() if example.right]
        digest = _digest(examples)
        if previous is not None:
            new = max(new, abs(len(examples) - previous.examples))  # full evidence grows no more
            if previous.evidence_digest == digest or not (use_all or new >= due(previous)):
                return previous, None
        vectors = self._encoded(examples)
        self._versions += 1
        with one_matrix_thread():
            model = LocalModel.fit(examples, vectors, version=self._versions)
            if model is None:
                return None, TrainingReport(shipped=False)
            if self.calibrates:
                texts = [example.text for example in examples]
                model.coverage = ExampleCoverage.fit(
                    texts, [answer_of(e.skills) for e in examples], vectors
                )
        model.evidence_digest = digest
        if key == self.key():  # else it may be of the skills before, or after
            self._keep(model)
        return model, TrainingReport(shipped=True)

    async def take_published(self) -> None:
        """Another process has published a model: serve it, if it is for these skills."""
        if self._peers is not None and (self._running is None or self._running.done()):
            key = await in_thread(self.key)
            if not await self._peers.may_fit(key):
                self.model = await self._published(self.model if self.current else None, key)
                self.current = self.model is not None

    async def _published(self, previous: LocalModel | None, key: str) -> LocalModel | None:
        """The newest model of the process that fits; ``previous`` where there is none."""
        data = None if self._peers is None else await self._peers.published(key)
        if data is None:
            return previous
        try:
            dimension = await in_thread(self._dimension)
            self._versions += 1
            model = LocalModel.from_bytes(data, version=self._versions, dimension=dimension)
        except (ValueError, EncoderError) as error:
            _log.warning("a model of another process is not taken up: %s", error)
            return previous
        return (
            previous
            if previous is not None and previous.evidence_digest == model.evidence_digest
            else model
        )

    def _dimension(self) -> int:
        """In a thread: of the encoder's vectors."""
        for known in self._vectors.values():
            return len(known)
        return int(encode_requests(self._encoder, ["any"])[0].vectors.shape[1])

    def key(self) -> str:
        """In a thread: digest of what a model depends on besides the labels."""
        said = (FORMAT, self._encoder.identity, self._about(), str(self.calibrates))
        return hashlib.sha256("\0".join(said).encode()).hexdigest()

    def _kept(self) -> LocalModel | None:
        """The model that was kept for these skills and this encoder."""
        try:
            data = self._store.model(self.key())
            if data is None:
                return None
            self._versions += 1
            return LocalModel.from_bytes(data, version=self._versions)
        except (StoreError, ValueError) as error:
            _log.warning("a kept model is not taken up: %s", error)
            return None

    def _keep(self, model: LocalModel) -> None:
        try:
            self._store.keep_model(self.key(), model.to_bytes())
        except StoreError as error:
            _log.warning("a model is not kept for the next start: %s", error)

    def _encoded(self, examples: Sequence[Example]) -> NDArray[np.float32]:
        """Vectors of the texts; only new ones are encoded."""
        texts = [example.text for example in examples]
        missing = list(dict.fromkeys(text for text in texts if text not in self._vectors))
        if missing:
            encoded = encode_requests(self._encoder, missing)
            self._vectors.update((t, e.vectors[0]) for t, e in zip(missing, encoded, strict=True))
        self._vectors = {text: self._vectors[text] for text in dict.fromkeys(texts)}
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        return np.stack([self._vectors[text] for text in texts])


def _digest(examples: Sequence[Example]) -> str:
    rows = [(example.text, example.skills, example.weight) for example in examples]
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def due(model: LocalModel | None) -> float:
    """How many new examples are enough for another fit."""
    if model is None:
        return FIRST_EXAMPLES
    return max(MIN_NEW, (GROWTH - 1) * model.examples)
