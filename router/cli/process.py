"""Settings of the Python process that only a command may change: a library must not change them in
the process of the program that uses it.

How much the beginning gains: ``benchmarks/cold_start.py``; how much reloads gain while requests are
answered: ``benchmarks/hot_reload.py``.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from typing import Final

SWITCH_SECONDS: Final = 0.0002
"""How long a thread may keep the interpreter while another one waits for it; Python's own value is
5 ms. A request gives it up whenever numpy has more than a little to do, and then waits for the
thread that reads skills."""
MANY_OBJECTS: Final = 300_000
"""Python looks for garbage after this many new objects: more than opening a router over 574 skills
makes."""

_usual: Final = gc.get_threshold()


def start_quickly() -> None:
    """Call this before numpy is imported. Garbage is looked for only when a command has made very
    many objects, because what it loads stays; and not when the process ends, because all of its
    memory is given back then. And BLAS uses one thread: the matrices are small, and threads that
    share the cores with other programs wait for each other, so that a reload of 574 skills would
    take ten times as long. Plug-ins of pydantic are not looked for among the installed packages:
    the router has none, and they are found by reading files of each package."""
    gc.set_threshold(MANY_OBJECTS)
    atexit.register(gc.freeze)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")


def ready_to_serve() -> None:
    """Call this when everything is loaded, in a command that stays. What is loaded is never looked
    through for garbage again, which would stop every thread for 100 ms; later garbage is looked for
    as usual. The interpreter changes threads often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_usual)
    sys.setswitchinterval(SWITCH_SECONDS)
