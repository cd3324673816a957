"""Encodes requests with an encoder that may be down, so that no request waits for it for long.

A server of embeddings may refuse, or take the connection and never answer. While one does, requests
are ranked by their words alone (``RequestReader.read``). Three things keep them from waiting:

* a limit on the time that encoding one request may take, the setting ``encoder.timeout_seconds``;
* threads of its own. A thread cannot be cancelled, so a call that hangs keeps one; the threads of
  the event loop are few, and the program that the router is part of uses them, too. Nor do these
  threads keep the process from ending;
* a circuit breaker, which opens at once when the time is over, because each try costs a request all
  of it, and after ``FAILURES`` failures in a row otherwise. It stays closed where the encoder has
  answered other requests in that time: such an encoder works, but more is asked than it can do.

Skills are encoded elsewhere, in batches, and may take longer.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Final, TypeVar

from router.concurrency.breaker import CircuitBreaker
from router.concurrency.tasks import DaemonThreads, in_thread
from router.errors import EncoderError
from router.events import Events, OptionalPart
from router.retrieval.encoders import Encoder, of_requests

T = TypeVar("T")

_log: Final = logging.getLogger(__name__)

ENCODING_SECONDS: Final = 10.0
"""The limit where the settings name none."""
FAILURES: Final = 3
"""Failures in a row after which the encoder is left alone ..."""
RESET_SECONDS: Final = 30.0
"""... for this long; then one request tries it again."""
MAX_CALLS: Final = 8
"""So many calls run at the same time; others wait for them, within their own limit."""


class GuardedEncoder:
    """An encoder for requests. One for all indexes of a router, so that they share its breaker.
    Belongs to one event loop.

    Attributes:
        identity, static: the encoder's.
    """

    def __init__(
        self,
        encoder: Encoder,
        *,
        seconds: float = ENCODING_SECONDS,
        events: Events | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``seconds`` is the limit for one request; ``events`` are told when the encoder fails and
        when it works again."""
        self.identity, self.static = encoder.identity, encoder.static
        self._encoder = of_requests(encoder, seconds)
        self._seconds = seconds
        self._part = OptionalPart("encoder", Events() if events is None else events)
        self._breaker = CircuitBreaker(failures=FAILURES, reset_seconds=RESET_SECONDS, clock=clock)
        self._threads = DaemonThreads(MAX_CALLS, "request-encoder")
        self._answers = 0

    async def ask(self, work: Callable[[Encoder], T]) -> T:
        """What ``work`` gives, which is called with the encoder: here if the encoder is static,
        because that takes microseconds, which is less than a thread costs; else in a thread.

        Raises:
            EncoderError: the encoder failed, was late, or is left alone because it failed lately.
        """
        if self.static:
            return work(self._encoder)
        call = self._breaker.try_call()
        if call is None:
            reason = f"{self.identity}: it failed lately and is left alone for a while"
            self._part.failed(reason)
            raise EncoderError(reason)
        answers_before = self._answers
        with call:
            try:
                async with asyncio.timeout(self._seconds):
                    done = await in_thread(
                        partial(work, self._encoder), executor=self._threads, leaves=True
                    )
            except TimeoutError:
                if self._answers == answers_before:
                    call.refused()
                raise self._failed(
                    f"{self.identity}: no answer within {self._seconds:g} s"
                ) from None
            except EncoderError as error:
                call.failed()
                raise self._failed(str(error)) from error
            except Exception as error:  # of an encoder that breaks its protocol
                call.failed()
                what = f"{self.identity}: {type(error).__name__}: {error}"
                raise self._failed(what, trace=True) from error
            call.succeeded()
            self._answers += 1
        self._part.worked()
        return done

    def _failed(self, reason: str, *, trace: bool = False) -> EncoderError:
        """The error for a reason, which is logged, with its traceback if ``trace``."""
        _log.warning("requests are ranked by their words alone: %s", reason, exc_info=trace)
        self._part.failed(reason)
        return EncoderError(reason)
