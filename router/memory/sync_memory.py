"""``Memory`` without ``await``."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import update_wrapper
from types import TracebackType
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from router.loop_thread import LoopThread
from router.memory.memory import Memory
from router.settings import Settings

P = ParamSpec("P")
T = TypeVar("T")


def _waiting(
    method: Callable[Concatenate[Memory, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[SyncMemory, P], T]:
    """The same method, called without ``await``."""

    def call(face: SyncMemory, /, *args: P.args, **kwargs: P.kwargs) -> T:
        return face._thread.wait(method(face._memory, *args, **kwargs))

    update_wrapper(call, method)
    return call


class SyncMemory:
    """``Memory`` for code that has no event loop, or sits inside one that it cannot await in; safe
    to share between threads.

    with SyncMemory() as memory:
        found = memory.recall("why Postgres?", {"project": "shop"})
    """

    def __init__(self, settings: Settings | None = None, **parts: Any) -> None:
        """Takes what ``Memory`` takes."""
        self._memory = Memory(settings, **parts)
        self._thread = LoopThread("memory")

    def __enter__(self) -> Self:
        try:
            self._thread.wait(self._memory.open())
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Finish what other threads asked, and close all stores. Closing twice is fine."""
        self._thread.close(self._memory.aclose)

    classify = _waiting(Memory.classify)
    route = _waiting(Memory.route)
    recall = _waiting(Memory.recall)
    feedback = _waiting(Memory.feedback)
    reset_feedback = _waiting(Memory.reset_feedback)
    search = _waiting(Memory.search)
    get = _waiting(Memory.get)
    save = _waiting(Memory.save)
    delete = _waiting(Memory.delete)
    sync = _waiting(Memory.sync)
    assemble = _waiting(Memory.assemble)
    ingest = _waiting(Memory.ingest)
    get_consolidation_candidates = _waiting(Memory.get_consolidation_candidates)
    status = _waiting(Memory.status)
