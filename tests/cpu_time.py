"""Bounds on the CPU time of a piece of code, which other programs on the machine cannot use up."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def cpu_time_at_most(seconds: float) -> Iterator[None]:
    """Fail if the code inside takes more CPU time of this thread than ``seconds``.

    Wall-clock time would depend on what else runs. CPU time still grows by half or so where
    programs share a core's caches, so a bound should be several times what a quiet machine needs.

    The code inside may set off a full garbage collection, which takes half a second where earlier
    tests have left millions of objects. So only what it makes itself is looked through.
    """
    gc.freeze()
    try:
        started = time.thread_time()
        yield
        spent = time.thread_time() - started
    finally:
        gc.unfreeze()
    assert spent <= seconds, f"took {spent:.3f} s of CPU time; at most {seconds:g} s are allowed"


def cpu_time_of(call: Callable[[], object]) -> float:
    """The CPU time of this thread that a call takes: the least of three, because other programs
    only add to it. Meant for ratios: of twice the input a linear call takes twice the time, on any
    machine, and a quadratic one four times."""
    spent: list[float] = []
    for _ in range(3):
        started = time.thread_time()
        call()
        spent.append(time.thread_time() - started)
    return min(spent)
