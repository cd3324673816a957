"""Shares what is learnt between processes: labels, outcomes and models.

Each process stores all labels in a file of its own. A Redis stream only transports them: what the
server loses is sent again by a process that has it. A process that starts, or has missed records,
asks for all labels, and the others send those that they have.

For each pair of skills and encoder, one process fits the models. It holds a lease, and publishes
models with its fencing token, so that a former leader cannot publish any more.

The outcomes of local answers are pooled, because all processes use the same model and can estimate
its risks together. Each process has an account of the error bound of its own
(``router.learning.account``).
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import random
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from router.cluster import scripts
from router.cluster.follower import Follower, Record
from router.cluster.keys import KEPT_SECONDS, Keys
from router.cluster.link import Link, NoRedis
from router.cluster.outbox import Outbox
from router.concurrency.tasks import BackgroundTasks, in_thread
from router.errors import StoreError

if TYPE_CHECKING:
    from router.learning.learner import Learner
    from router.learning.peers import Label
    from router.settings.settings import Settings

_log: Final = logging.getLogger(__name__)

STREAM_LENGTH: Final = 50_000
"""The number of records that the stream holds; more than all labels of one process."""
BATCH: Final = 200
"""The number of labels in one write."""
LEASE_SECONDS: Final = 10.0
MAX_MODEL_BYTES: Final = 64 * 2**20
RESYNC_SECONDS: Final = 30
"""Within this time, all labels are sent only once, however many processes ask for them."""


class SharedLearning:
    """Connects this process's learner with those of the others. Belongs to one event loop."""

    def __init__(self, link: Link, keys: Keys, settings: Settings, *, name: str) -> None:
        """Nothing is read yet; ``name`` is this process's."""
        self._link = link
        self._keys = keys
        self._settings = settings
        self._name = name
        self._learner: Learner | None = None
        self._lease_tokens: dict[str, str] = {}  # tokens by key of the model
        self._outbox = Outbox("labels", self._append, read=str, max_batch=BATCH)
        self._background = BackgroundTasks(_log)
        self.follower = Follower(
            settings.cluster, keys.evidence, take=self._apply_records, missed=self._ask_for_all
        )

    async def open(self) -> None:
        """Open the outbox. Opening it again does no harm.

        Raises:
            StoreError: it cannot be opened.
        """
        await self._outbox.open(self._settings.evidence_directory / "cluster.sqlite3")

    def begin(self, learner: Learner) -> None:
        """Follow what the others learn, and ask them for all their labels."""
        self._learner = learner
        self.follower.start()
        self._background.run(self._stay_leader())
        self._background.run(self._ask_for_all())

    async def aclose(self) -> None:
        """Stop, and release the leases. The next process with this evidence file sends what is
        left. Closing twice is fine."""
        await self.follower.aclose()
        await self._background.aclose()
        for key, token in self._lease_tokens.items():
            with suppress(NoRedis):
                await self._link.script(
                    scripts.RELEASE, 3 * (self._keys.fitting(key),), token, "", 0
                )
        self._lease_tokens.clear()
        await self._outbox.aclose()

    # Labels and outcomes

    async def tell_labels(self, labels: Sequence[Label]) -> None:
        """See ``Peers``."""
        if self._learner is not None:  # else they are sent when all labels are asked for
            await self._outbox.put([_record("label", self._name, label) for label in labels])

    def tell_outcome(self, outcome: Sequence[Any]) -> None:
        """See ``Peers``."""
        self._background.run(self._tell_outcome(outcome))

    async def _tell_outcome(self, outcome: Sequence[Any]) -> None:
        learner = self._learner
        if learner is not None:
            key = await in_thread(learner.trainer.key)
            with suppress(NoRedis):
                await self._append([_record("outcome", self._name, [key, outcome])])

    async def _append(self, records: Sequence[str]) -> None:
        """Raises ``NoRedis``."""
        await self._link.script(scripts.APPEND, (self._keys.evidence,), STREAM_LENGTH, *records)

    async def _apply_records(self, records: list[Record]) -> None:
        learner = self._learner
        labels: list[Any] = []
        outcomes: list[Any] = []
        resync_requested = model_published = False
        for record in records:
            try:
                kind, sender, payload = json.loads(record["record"])
            except (ValueError, TypeError, KeyError, RecursionError):
                continue  # a later version wrote it
            if sender == self._name:
                continue
            if kind == "label":
                labels.append(payload)
            elif kind == "outcome":
                outcomes.append(payload)
            resync_requested |= kind == "resync"
            model_published |= kind == "model"
        if learner is None:
            return
        if outcomes:
            key = await in_thread(learner.trainer.key)
            pairs = (
                payload for payload in outcomes if isinstance(payload, list) and len(payload) == 2
            )
            learner.pool(outcome for outcome_key, outcome in pairs if outcome_key == key)
        try:
            if labels:
                await learner.take_in(labels)
        except StoreError as error:
            _log.error("labels of others are not kept: %s", error)
        if model_published:
            await learner.trainer.take_published()
        if resync_requested:
            self._background.run(self._send_all())

    async def _ask_for_all(self) -> None:
        """Ask the others for all labels, and send those of this process: after a flush of the
        server, each process may have labels that no other has."""
        with suppress(NoRedis):
            await self._append([_record("resync", self._name, None)])
        await self._send_all()

    async def _send_all(self) -> None:
        """Send all labels, unless a process with the same labels has just done so."""
        learner = self._learner
        if learner is None:
            return
        await asyncio.sleep(random.random())  # noqa: S311 - so that not all send at once
        try:
            labels = await learner.labels()
            digest = hashlib.sha256(json.dumps(labels).encode()).hexdigest()[:16]
            key = f"{self._keys.resync}:{digest}"
            if not labels or not await self._link.run(
                lambda redis: redis.set(key, self._name, nx=True, ex=RESYNC_SECONDS)
            ):
                return
            for start in range(0, len(labels), BATCH):
                batch = labels[start : start + BATCH]
                await self._append([_record("label", self._name, label) for label in batch])
        except (NoRedis, StoreError) as error:
            _log.debug("not all labels are sent: %s", error)

    # Models

    async def may_fit(self, key: str) -> bool:
        """See ``Peers``."""
        if key in self._lease_tokens:
            return True
        keys = (self._keys.fitting(key), self._keys.outcome(key), self._keys.token)
        try:
            status, token = await self._link.script(
                scripts.JOIN, keys, int(LEASE_SECONDS * 1000), ""
            )
        except NoRedis:
            return True
        if status == b"lead":
            self._lease_tokens[key] = token.decode()
        return bool(status == b"lead")

    async def _stay_leader(self) -> None:
        while True:
            await asyncio.sleep(LEASE_SECONDS / 3)
            for key, token in list(self._lease_tokens.items()):
                with suppress(NoRedis):
                    if not await self._link.script(
                        scripts.RENEW, (self._keys.fitting(key),), token, int(LEASE_SECONDS * 1000)
                    ):
                        # The lease has expired, and another process may have it.
                        self._lease_tokens.pop(key, None)

    async def publish(self, key: str, model: bytes) -> None:
        """See ``Peers``."""
        token = self._lease_tokens.get(key)
        if token is None or len(model) > MAX_MODEL_BYTES:
            return
        digest = hashlib.sha256(model).hexdigest()
        keys = (self._keys.fitting(key), self._keys.newest(key), self._keys.model(digest))
        with suppress(NoRedis):
            published = await self._link.script(
                scripts.PUBLISH, keys, token, digest, model, KEPT_SECONDS * 1000
            )
            if published:
                await self._append([_record("model", self._name, key)])
            else:
                self._lease_tokens.pop(key, None)

    async def published(self, key: str) -> bytes | None:
        """See ``Peers``."""
        keys = self._keys
        try:
            digest = await self._link.run(lambda redis: redis.hget(keys.newest(key), "digest"))
            if digest is None:
                return None
            name = keys.model(digest.decode("ascii", "replace"))
            model: bytes | None = await self._link.run(lambda redis: redis.get(name))
        except NoRedis:
            return None
        if model is None or hashlib.sha256(model).hexdigest().encode() != digest:
            return None
        return model


def _record(kind: str, sender: str, payload: Any) -> str:
    return json.dumps([kind, sender, payload])
