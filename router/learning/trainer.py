"""Fits the local model again when there are enough new labels, without delaying requests.

A new model of all examples is fitted in a thread and used at once. It is not compared with the
previous model on the newest examples first: this cost a second fit each time and did not keep out
worse models, not even where labels were false.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
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
"""The version of stored models. Change it whenever a model is fitted differently."""

FIRST_EXAMPLES: Final = 2
GROWTH: Final = 1.2
MIN_NEW: Final = 5
"""A fit is due after at least this many new examples which also are a fifth of those of the last
fit."""
DELAY_SECONDS: Final = 2.0
"""The pause before a fit. A process that answers only one request ends before it, and several
changes in a row cause one fit."""
MAX_WAIT_FOR_OTHERS_SECONDS: Final = 30.0
"""The longest wait for another process that fits a model to the same evidence."""
POLL_SECONDS: Final = 0.2
"""The pause between two checks whether the other process has finished."""


class Trainer:
    """Fits local models in the background. Belongs to one event loop.

    Attributes:
        calibrates: whether each model's coverage is fitted, too.
        model: the latest model; None before the first.
        current: whether it was fitted for the current skills.
        fitted_last: whether the last fit gave a model; None before it.
    """

    def __init__(
        self,
        encoder: Encoder,
        store: EvidenceStore,
        examples: Callable[[], Sequence[Example]],
        *,
        skills_digest: Callable[[], str],
        calibrates: bool,
        peers: Peers | None = None,
    ) -> None:
        """A trainer without a model.

        Args:
            store: stores the model for the next start.
            examples: returns the examples to fit to, oldest first; called in a thread.
            skills_digest: returns a digest of the current skills' descriptions. A stored model of
                other descriptions is not used.
            calibrates: whether to fit each model's coverage, which is needed without an LLM.
            peers: the other processes of a cluster, of which one fits for all; None without one.
        """
        self._encoder = encoder
        self._store = store
        self._examples = examples
        self._skills_digest = skills_digest
        self.calibrates = calibrates
        self._peers = peers
        self.model: LocalModel | None = None
        self.current = False
        self.fitted_last: bool | None = None
        self._vectors: dict[str, NDArray[np.float32]] = {}
        self._new_labels = 0
        self._skills_changed = False
        self._fit_on_any_change = False
        self._last_version = 0
        self._skip_delay = asyncio.Event()
        self._running: asyncio.Task[None] | None = None

    async def begin(self) -> None:
        """Use the model that is stored for these skills, and check in the background whether there
        are newer examples."""
        self.model = await in_thread(self._stored_model)
        self.current = self.model is not None
        self._fit_on_any_change = True
        self._start_training()

    def note(self, labels: int = 1) -> None:
        """Count new labels, and start a fit when there are enough."""
        self._new_labels += labels
        if self._new_labels >= labels_until_fit(self.model):
            self._start_training()

    def restart(self) -> None:
        """The skills have changed: fit a model for the new ones."""
        self.current = False
        self._skills_changed = True
        self._start_training()

    def _start_training(self) -> None:
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._train(), name="router-trainer")
            self._running.add_done_callback(partial(tell_failure, _log))

    async def trained(self) -> None:
        """Wait until the model is fitted to all the examples that there are now."""
        self._fit_on_any_change = True
        self._start_training()
        self._skip_delay.set()
        while self._running is not None and not self._running.done():
            await asyncio.wait([self._running])

    async def aclose(self) -> None:
        """Stop. Waits for a fit under way, whose model is not used."""
        if self._running is not None and not self._running.done():
            self._running.cancel()
            await asyncio.wait([self._running])

    async def _train(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(DELAY_SECONDS):
                await self._skip_delay.wait()
        self._skip_delay.clear()
        while True:
            self._skills_changed = False
            new, self._new_labels = self._new_labels, 0
            fit_on_any_change, self._fit_on_any_change = self._fit_on_any_change, False
            previous = self.model if self.current else None
            fitted: tuple[LocalModel | None, bool | None]
            try:
                key = "" if self._peers is None else await in_thread(self.key)
                if self._peers is not None and not await self._peers.may_fit(key):
                    fitted = await self._published(previous, key), None
                else:
                    fitted = await self._fit_in_turn(previous, new, fit_on_any_change)
                    if self._peers is not None and fitted[0] not in (None, previous):
                        await self._peers.publish(key, fitted[0].to_bytes())
            except (EncoderError, StoreError) as error:
                _log.warning("not trained: %s", error)
                return
            if self._skills_changed:  # during the fit: its model is of the old skills
                self._fit_on_any_change |= fit_on_any_change
                continue
            self.model, is_fitted = fitted
            self.current = self._peers is None or self.model is not None
            self.fitted_last = self.fitted_last if is_fitted is None else is_fitted
            if not self._fit_on_any_change:
                return

    async def _fit_in_turn(
        self, previous: LocalModel | None, new: int, fit_on_any_change: bool
    ) -> tuple[LocalModel | None, bool | None]:
        """See ``_fit``. Processes that share the evidence file take turns, and use each other's
        models."""
        clock = asyncio.get_running_loop().time
        until = clock() + MAX_WAIT_FOR_OTHERS_SECONDS
        while True:
            try:
                return await in_thread(
                    lambda: self._fit(previous, new, fit_on_any_change, waits=clock() < until)
                )
            except Timeout:  # wait here, not in a thread, so that closing can cancel it
                await asyncio.sleep(POLL_SECONDS)

    def _fit(
        self, previous: LocalModel | None, new: int, fit_on_any_change: bool, *, waits: bool
    ) -> tuple[LocalModel | None, bool | None]:
        """The model to use, and whether the fit gave one; None where no fit was due. With
        ``fit_on_any_change``, a fit is due as soon as any example has changed. Called in a thread,
        one call at a time.

        Raises:
            Timeout: another process is fitting, and this one ``waits``; else both fit.
        """
        lock = FileLock(self._store.folder / "fitting.lock", mode=FILE_MODE)
        try:
            lock.acquire(blocking=False)
        except OSError as error:
            if waits and isinstance(error, Timeout):
                raise
        try:
            return self._fit_or_reuse(previous, new, fit_on_any_change)
        finally:
            lock.release()

    def _fit_or_reuse(
        self, previous: LocalModel | None, new: int, fit_on_any_change: bool
    ) -> tuple[LocalModel | None, bool | None]:
        key = self.key()
        stored = self._stored_model()
        if stored is not None and (
            previous is None
            or (
                stored.evidence_digest != previous.evidence_digest
                and stored.examples >= previous.examples
            )
        ):
            previous, new = stored, 0
        examples = [example for example in self._examples() if example.right]
        digest = _digest(examples)
        if previous is not None:
            # Where the store is full, new labels replace old ones and the number stays the same.
            new = max(new, abs(len(examples) - previous.examples))
            if previous.evidence_digest == digest or not (
                fit_on_any_change or new >= labels_until_fit(previous)
            ):
                return previous, None
        vectors = self._encoded(examples)
        self._last_version += 1
        with one_matrix_thread():
            model = LocalModel.fit(examples, vectors, version=self._last_version)
            if model is None:
                return None, False
            if self.calibrates:
                texts = [example.text for example in examples]
                model.coverage = ExampleCoverage.fit(
                    texts, [answer_of(e.skills) for e in examples], vectors
                )
        model.evidence_digest = digest
        if key == self.key():  # else the skills have changed since the examples were read
            self._store_model(model)
        return model, True

    async def take_published(self) -> None:
        """Another process has published a model: use it if it is for these skills."""
        if self._peers is not None and (self._running is None or self._running.done()):
            key = await in_thread(self.key)
            if not await self._peers.may_fit(key):
                self.model = await self._published(self.model if self.current else None, key)
                self.current = self.model is not None

    async def _published(self, previous: LocalModel | None, key: str) -> LocalModel | None:
        """The newest model that another process has published; ``previous`` where there is none."""
        data = None if self._peers is None else await self._peers.published(key)
        if data is None:
            return previous
        try:
            dimension = await in_thread(self._dimension)
            self._last_version += 1
            model = LocalModel.from_bytes(data, version=self._last_version, dimension=dimension)
        except (ValueError, EncoderError) as error:
            _log.warning("a model of another process is not taken up: %s", error)
            return previous
        return (
            previous
            if previous is not None and previous.evidence_digest == model.evidence_digest
            else model
        )

    def _dimension(self) -> int:
        """The dimension of the encoder's vectors. Called in a thread."""
        for known in self._vectors.values():
            return len(known)
        return int(encode_requests(self._encoder, ["any"])[0].vectors.shape[1])

    def key(self) -> str:
        """The key of stored models: a digest of what a model depends on besides the labels. Called
        in a thread."""
        parts = (FORMAT, self._encoder.identity, self._skills_digest(), str(self.calibrates))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()

    def _stored_model(self) -> LocalModel | None:
        """The model that is stored for these skills and this encoder; None without one."""
        try:
            data = self._store.model(self.key())
            if data is None:
                return None
            self._last_version += 1
            return LocalModel.from_bytes(data, version=self._last_version)
        except (StoreError, ValueError) as error:
            _log.warning("a kept model is not taken up: %s", error)
            return None

    def _store_model(self, model: LocalModel) -> None:
        try:
            self._store.keep_model(self.key(), model.to_bytes())
        except StoreError as error:
            _log.warning("a model is not kept for the next start: %s", error)

    def _encoded(self, examples: Sequence[Example]) -> NDArray[np.float32]:
        """The vectors of the examples; only new texts are encoded."""
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


def labels_until_fit(model: LocalModel | None) -> float:
    """The number of new examples after which another fit is due."""
    if model is None:
        return FIRST_EXAMPLES
    return max(MIN_NEW, (GROWTH - 1) * model.examples)
