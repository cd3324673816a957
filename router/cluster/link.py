"""The connection to Redis or Valkey, with a deadline and a circuit breaker.

All operations go through ``Link.run``. While the server does not answer, or refuses, ``run`` raises
``NoRedis`` at once and the process continues without it. A background task tries to reach the
server again, so that no request waits for such an attempt.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from router.concurrency.breaker import BreakerState, CircuitBreaker, GuardedCall
from router.concurrency.tasks import BackgroundTasks, raise_if_cancelled
from router.errors import ConfigurationError
from router.events import Degraded, Events, Recovered
from router.version import install_extra

if TYPE_CHECKING:
    from redis.asyncio import Redis

    from router.settings.settings import ClusterSettings

_log: Final = logging.getLogger(__name__)

PART: Final = "cluster"
"""The name of this part in events, metrics and ``/readyz``."""
CONNECTIONS: Final = 8
"""The largest number of operations at the same time; further ones wait."""
FAILURES: Final = 3
"""After this many failed operations in a row, the breaker opens."""
RETRY_SECONDS: Final = 1.0
"""The pause between two attempts to reach the server while the breaker is open."""

T = TypeVar("T")


class NoRedis(Exception):
    """The server cannot be used now; the text says why. It never leaves ``router.cluster``."""


class Link:
    """The connection of one process. Belongs to one event loop. ``run`` and ``script`` raise
    ``NoRedis`` where the server cannot be used."""

    def __init__(self, settings: ClusterSettings, events: Events) -> None:
        """Nothing is connected yet. ``events`` are told when the server is lost and back.

        Raises:
            ConfigurationError: the address is not one, or the extra ``redis`` is not installed.
        """
        self._settings = settings
        self._events = events
        self._deadline = settings.deadline_seconds
        self._redis = connect(settings, socket_timeout=settings.deadline_seconds)
        self._scripts: dict[str, Any] = {}
        self._places = asyncio.Semaphore(CONNECTIONS)
        self._breaker = CircuitBreaker(
            failures=FAILURES, reset_seconds=RETRY_SECONDS, clock=time.monotonic
        )
        self._background = BackgroundTasks(_log)
        self._probing = False
        self._returned: list[Callable[[], Awaitable[None]]] = []
        self.trouble = ""
        """Why the server is not used at present; empty while it is."""

    @property
    def is_up(self) -> bool:
        """Whether the server is used at present."""
        return not self.trouble

    def when_back(self, work: Callable[[], Awaitable[None]]) -> None:
        """Call ``work`` each time that the server answers again. It may raise ``NoRedis``."""
        self._returned.append(work)

    async def run(self, work: Callable[[Any], Awaitable[T]]) -> T:
        """Run one operation: call ``work`` with the client, and return its result."""
        if self.trouble:
            raise NoRedis(self.trouble)
        try:
            async with asyncio.timeout(self._deadline):
                await self._places.acquire()
        except TimeoutError:  # says nothing about the server
            raise NoRedis("too many operations wait for Redis") from None
        try:
            call = None if self.trouble else self._breaker.try_call()
            if call is None:
                raise NoRedis(self.trouble or "Redis is being tried")
            with call:
                return await self._called(call, work)
        finally:
            self._places.release()

    async def _called(self, call: GuardedCall, work: Callable[[Any], Awaitable[T]]) -> T:
        try:
            async with asyncio.timeout(self._deadline):
                found = await work(self._redis)
        except troubles() as error:
            raise_if_cancelled()  # the client may take that for a lost connection
            self._failed(call, error)
            raise NoRedis(reason_of(error)) from error
        call.succeeded()
        return found

    async def script(self, text: str, keys: Sequence[str], *arguments: str | int | bytes) -> Any:
        """Run a script of ``router.cluster.scripts``. Only its digest is sent where the server
        knows it."""
        script = self._scripts.get(text)
        if script is None:
            script = self._scripts[text] = self._redis.register_script(text)
        return await self.run(lambda _: script(keys, arguments))

    def _failed(self, call: GuardedCall, error: Exception) -> None:
        from redis.exceptions import ResponseError

        if isinstance(error, ResponseError):  # such as out of memory: it says so itself
            call.refused()
        else:
            call.failed()
        if self._breaker.state is not BreakerState.CLOSED and not self._probing:
            self._probing = True
            self.trouble = reason_of(error)
            _log.warning("going on alone: %s", self.trouble)
            self._events.emit(Degraded(PART, self.trouble))
            self._background.run(self._probe())

    async def _probe(self) -> None:
        """Try to write until it succeeds."""
        while True:
            await asyncio.sleep(RETRY_SECONDS)
            call = self._breaker.try_call()
            if call is None:
                continue
            with call:
                try:
                    async with asyncio.timeout(self._deadline):
                        await self._redis.set(f"{self._settings.namespace}:probe", b"1", ex=60)
                except troubles() as error:
                    call.failed()
                    self.trouble = reason_of(error)
                    continue
                call.succeeded()
            break
        self.trouble, self._probing = "", False
        _log.warning("Redis answers again")
        self._events.emit(Recovered(PART))
        for work in self._returned:
            try:
                await work()
            except NoRedis:  # it is lost again, and there will be another return
                pass
            except Exception:  # noqa: BLE001 - one part's fault must not keep another from its work
                _log.exception("not all is done now that Redis answers again")

    async def aclose(self) -> None:
        """Stop trying and close the connections. Closing twice is fine."""
        await self._background.aclose()
        await self._redis.aclose()


def connect(settings: ClusterSettings, *, socket_timeout: float) -> Redis:
    """A client of the configured server; nothing is connected yet. An answer may take
    ``socket_timeout`` seconds.

    Raises:
        ConfigurationError: the address is not one, or the extra ``redis`` is not installed.
    """
    try:
        from redis.asyncio import Redis
        from redis.asyncio.retry import Retry
        from redis.backoff import NoBackoff
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"setting cluster.url: needs the extra `redis`: {install_extra('redis')}"
        ) from error
    password = settings.password
    options: dict[str, Any] = {} if password is None else {"password": password.get_secret_value()}
    try:
        client: Redis = Redis.from_url(
            settings.url or "",
            socket_timeout=socket_timeout,
            socket_connect_timeout=settings.deadline_seconds,
            retry=Retry(NoBackoff(), 0),  # the breaker decides when to try again
            protocol=2,  # the answers of streams have another shape in version 3
            **options,
        )
    except ValueError as error:
        raise ConfigurationError(f"setting cluster.url: {error}") from error
    return client


def reason_of(error: Exception) -> str:
    """Why the server cannot be used, in a sentence."""
    reason = str(error).strip() or "no answer in time"
    return f"Redis cannot be used: {reason[:200]}"


def troubles() -> tuple[type[Exception], ...]:
    """The exceptions of a client whose server cannot be used."""
    from redis.exceptions import RedisError

    return (RedisError, OSError, TimeoutError)
