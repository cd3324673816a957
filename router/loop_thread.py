"""An event loop in a thread of its own, for the faces that are used without ``await``."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs coroutines of any thread on one loop, until it is closed."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._closed = False
        self._submitting = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of ``work``, or what it raises.

        Raises:
            RuntimeError: the thread is closed.
        """
        try:
            with self._submitting:
                if self._closed:
                    work.close()
                    raise RuntimeError(f"this {self._name} is closed")
                future = asyncio.run_coroutine_threadsafe(work, self._loop)
            return future.result()
        except BaseException:
            # Ctrl-C above all, which may come between any two steps: what nobody waits for any
            # more is stopped. A loop that has ended has nothing left to stop.
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(_stop, work)
            raise

    def close(self, last: Callable[[], Awaitable[None]]) -> None:
        """Run ``last`` on the loop, give other threads what they wait for, and end the thread.
        Closing twice is fine."""
        with self._submitting:
            closed, self._closed = self._closed, True
        if not closed:
            asyncio.run_coroutine_threadsafe(self._shut_down(last), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        if not closed:
            self._loop.close()

    async def _shut_down(self, last: Callable[[], Awaitable[None]]) -> None:
        await last()
        # A caller in another thread would wait for ever for work that stops with the loop.
        rest = asyncio.all_tasks() - {asyncio.current_task()}
        await asyncio.gather(*rest, return_exceptions=True)
        await self._loop.shutdown_default_executor()


def _stop(work: Coroutine[Any, Any, Any]) -> None:
    """Cancel the task that runs this coroutine, if there is one."""
    for task in asyncio.all_tasks():
        if task.get_coro() is work:
            task.cancel()
