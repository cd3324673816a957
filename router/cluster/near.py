"""Answers that this process has read from Redis, and may use without asking Redis again.

A process may use them while it is *in touch*: it has read the stream of changes to its end, in a
read that began less than ``TRUST_SECONDS`` ago. A process that drops or replaces an answer waits
for ``SETTLE_SECONDS`` after Redis has the change, and only then reports success. By then every
other process has either read the change, or is no longer in touch and asks Redis. This also holds
for a process that is cut off or was stopped for a while, because each process checks its own clock
before it uses an answer.

A request may share the decision of an identical request that is under way in this process. That
other request may have read its answer before a drop. So both must have begun in the same *epoch*.
An epoch ends with each drop that this process reads and, while it is not in touch, every
``TRUST_SECONDS``.

The clock never goes back, and it counts the time that the machine sleeps. ``SETTLE_SECONDS`` is
longer than ``TRUST_SECONDS`` by more than two machines' clocks can drift apart in so short a time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from router.cluster.follower import Follower, now
from router.stages.exact import ExactCache
from router.stages.validation import KeptAnswer

if TYPE_CHECKING:
    from router.settings.settings import ExactSettings

TRUST_SECONDS: Final = 0.25
SETTLE_SECONDS: Final = 0.3
LIFE_SECONDS: Final = 60.0
"""An answer is read again after this time, so none outlives its time in Redis by more."""


class NearAnswers:
    """The answers in the memory of one process. Belongs to one event loop.

    Attributes:
        changes: how many answers have been dropped or replaced so far.
    """

    def __init__(self, settings: ExactSettings, follower: Follower) -> None:
        """``follower`` reads the stream of changes, whose taker calls ``drop`` and ``clear``."""
        self._answers: ExactCache[KeptAnswer] = ExactCache(
            settings.max_entries,
            min(settings.ttl_seconds, LIFE_SECONDS),
            now,
            max_bytes=settings.max_bytes,
        )
        self._follower = follower
        self.changes = 0
        self._epoch = 0
        self._epoch_began = now()

    @property
    def _in_touch(self) -> bool:
        return now() - self._follower.read_at <= TRUST_SECONDS

    def epoch(self) -> int:
        """The number of the epoch that a request belongs to which begins now."""
        if not self._in_touch and now() - self._epoch_began > TRUST_SECONDS:
            self.end_epoch()
        return self._epoch

    def end_epoch(self) -> None:
        """From now on, no request shares a decision that began before."""
        self._epoch += 1
        self._epoch_began = now()

    def get(self, text: str, context: str) -> KeptAnswer | None:
        """The answer, if it may be used without asking Redis."""
        return self._answers.get(text, context) if self._in_touch else None

    def put(self, text: str, context: str, kept: KeptAnswer, *, changes: int) -> None:
        """Remember an answer that was read from Redis.

        Args:
            text, context: the request and its cache context.
            kept: the answer.
            changes: the value of ``changes`` when the read began. If it has changed, the answer may
                have been dropped meanwhile, and is not remembered.
        """
        if changes == self.changes:
            self._answers.set(text, kept, context)

    def drop(self, text: str, context: str) -> None:
        """Forget an answer that has been dropped or replaced in Redis."""
        self._answers.discard(text, context)
        self.changes += 1

    def clear(self) -> None:
        """Forget all answers."""
        self._answers.clear()
        self.changes += 1
        self.end_epoch()
