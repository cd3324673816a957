"""An event loop in a thread of its own, and the faces over it that are used without ``await``."""

from __future__ import annotations

import asyncio
import inspect
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from functools import update_wrapper
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar

from router.errors import ForkedProcess

A = TypeVar("A")
P = ParamSpec("P")
T = TypeVar("T")


class LoopThread:
    """Runs coroutines of any thread on one loop, until it is closed.

    The thread is started when it is first needed, so that a process may fork before.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._closed = False
        self._submitting = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._process: int | None = None

    def wait(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of ``work``, or what it raises.

        Raises:
            ForkedProcess: the thread runs in the process that this one was forked from.
            RuntimeError: the thread is closed, or is the caller's own.
        """
        if threading.current_thread() is self._thread:  # it would wait for itself, for ever
            work.close()
            raise RuntimeError(f"this {self._name} cannot be waited for in its own thread")
        try:
            return self.submit(work).result()
        except BaseException:
            # Above all for Ctrl-C, which may come at any moment. Nobody waits for the work any
            # more, so it is stopped, unless the loop has ended and stopped it already.
            if self._loop is not None and not self._is_elsewhere():
                with suppress(RuntimeError):
                    self._loop.call_soon_threadsafe(_stop, work)
            raise

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin ``work``, for callers that do not wait, or wait on a loop of their own.

        Raises:
            ForkedProcess, RuntimeError: as for ``wait``.
        """
        if self._is_elsewhere():  # looked at first: a fork may have left the lock taken for ever
            work.close()
            raise ForkedProcess(self._name)
        with self._submitting:
            if self._closed:
                work.close()
                raise RuntimeError(f"this {self._name} is closed")
            return asyncio.run_coroutine_threadsafe(work, self._started())

    def close(self, last: Callable[[], Awaitable[None]]) -> None:
        """Run ``last`` on the loop, give other threads what they wait for, and end the thread.
        Closing twice is fine, and so is closing in a forked process, which has nothing to end.

        Raises:
            Exception: what ``last`` raises; the thread has ended all the same.
            RuntimeError: the thread is the caller's own; it goes on.
        """
        if self._is_elsewhere():
            return
        if threading.current_thread() is self._thread:
            raise RuntimeError(f"this {self._name} cannot be closed in its own thread")
        with self._submitting:
            closed, self._closed = self._closed, True
            loop = self._started() if not closed else None
        fault: BaseException | None = None
        if loop is not None:
            ending = asyncio.run_coroutine_threadsafe(self._shut_down(loop, last), loop)
            fault = ending.exception()
        if self._thread is not None:
            self._thread.join()
        if loop is not None:
            loop.close()
        if fault is not None:
            raise fault

    def _is_elsewhere(self) -> bool:
        return self._process is not None and self._process != os.getpid()

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._process = os.getpid()
            self._loop = asyncio.new_event_loop()
            self._thread = threading.Thread(
                target=self._loop.run_forever, name=self._name, daemon=True
            )
            self._thread.start()
        return self._loop

    async def _shut_down(
        self, loop: asyncio.AbstractEventLoop, last: Callable[[], Awaitable[None]]
    ) -> None:
        try:
            await last()
        finally:  # who closes again must not wait for ever
            # Nor must a caller in another thread, for work that stops with the loop.
            rest = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.gather(*rest, return_exceptions=True)
            await loop.shutdown_default_executor()
            loop.call_soon(loop.stop)


def _stop(work: Coroutine[Any, Any, Any]) -> None:
    """Cancel the task that runs this coroutine, if there is one."""
    for task in asyncio.all_tasks():
        if task.get_coro() is work:
            task.cancel()


class OnLoop(Generic[A]):
    """An asynchronous object that is used without ``await``. A subclass derives each method:

    class SyncThing(OnLoop[Thing]):
        find = waiting(Thing.find)
    """

    def __init__(self, inner: A, thread: LoopThread) -> None:
        """``inner`` lives on the loop of ``thread``."""
        self._inner = inner
        self._thread = thread


def waiting(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[OnLoop[A], P], T]:
    """The same method, called without ``await``."""

    def call(face: OnLoop[A], /, *args: P.args, **kwargs: P.kwargs) -> T:
        return face._thread.wait(method(face._inner, *args, **kwargs))

    update_wrapper(call, method)
    return call


def taking(
    arguments_of: Callable[P, Any],
) -> Callable[[Callable[Concatenate[A, ...], T]], Callable[Concatenate[A, P], T]]:
    """For a method that hands its arguments on: type checkers and help show what they may be."""

    def shown(method: Callable[Concatenate[A, ...], T]) -> Callable[Concatenate[A, P], T]:
        own = inspect.signature(method)
        first, handed_on = next(iter(own.parameters.values())), inspect.signature(arguments_of)
        parameters = [first, *handed_on.parameters.values()]
        vars(method)["__signature__"] = own.replace(parameters=parameters)
        return method

    return shown


class ClosedByBlock:
    """An object with ``close`` that the end of a ``with`` block calls."""

    def close(self) -> None:
        """Close it; a block calls this last."""
        raise NotImplementedError

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


class OpenedInBlock:
    """An object with ``open`` and ``aclose`` that ``async with`` opens and closes."""

    async def open(self) -> Any:
        """Open it; a block calls this first."""
        raise NotImplementedError

    async def aclose(self) -> None:
        """Close it; a block calls this last."""
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        try:
            await self.open()
        except BaseException:  # cancelled above all: nobody else would close what is open by now
            await self.aclose()
            raise
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


class OwnLoop:
    """The event loop that an object belongs to: the first one that uses it. On another one its
    locks and tasks would never be woken."""

    def __init__(self, name: str, sync: str) -> None:
        """``name`` is what the error calls the object, ``sync`` the class to use instead."""
        self._name = name
        self._sync = sync
        self._loop: asyncio.AbstractEventLoop | None = None

    def check(self, *, closing: bool = False) -> None:
        """Take the running loop as the object's own if it has none yet. When its own has ended,
        another one may still close it.

        Raises:
            RuntimeError: it belongs to another loop.
        """
        here = asyncio.get_running_loop()
        if self._loop is None:
            self._loop = here
        elif self._loop is not here and not (closing and self._loop.is_closed()):
            raise RuntimeError(
                f"this {self._name} belongs to the event loop that used it first, and this is "
                f"another one: make one for each loop, or one {self._sync} for all of them"
            )


Opened = TypeVar("Opened", bound=OpenedInBlock)


class SyncFace(ClosedByBlock, OnLoop[Opened]):
    """An object with ``open`` and ``aclose``, used without ``await``. It has a thread of its own,
    and is safe to share between threads."""

    def __init__(self, inner: Opened, name: str) -> None:
        """``name`` is what errors call it."""
        super().__init__(inner, LoopThread(name))

    def __enter__(self) -> Self:
        try:
            self._thread.wait(self._inner.open())
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Finish what other threads asked, close everything, and end the thread. Closing twice is
        fine."""
        self._thread.close(self._inner.aclose)
