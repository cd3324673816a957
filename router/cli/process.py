"""Settings of the Python process that only a command may change: a library must not change them in
the process of the program that uses it.

How much the beginning gains: ``benchmarks/cold_start.py``; how much reloads gain while requests are
answered: ``benchmarks/hot_reload.py``.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import Final

SWITCH_SECONDS: Final = 0.0002
"""How long a thread may keep the interpreter from another one that waits for it; Python's own is 5
ms. A request lets go of it whenever numpy has more than a little to do, and waits each time for the
thread that reads skills."""
MANY_OBJECTS: Final = 300_000
"""More than opening a router over 574 skills makes."""

_usual: Final = gc.get_threshold()


def start_quickly() -> None:
    """To be called before numpy is imported. Garbage is looked for only when a command has made
    very many objects, because what it loads stays. And the matrices are small: threads of a BLAS
    that share the cores with other programs wait for each other, and a reload of 574 skills takes
    ten times as long."""
    gc.set_threshold(MANY_OBJECTS)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def ready_to_serve() -> None:
    """To be called when everything is loaded, by a command that stays: what is loaded is never
    looked through for garbage again, which stops every thread for 100 ms, later garbage is looked
    for as usual, and the interpreter changes threads often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_usual)
    sys.setswitchinterval(SWITCH_SECONDS)
