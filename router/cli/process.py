"""What the router sets for a process of its own, and a library must not set for its host's.

All of it is about reloads while requests are answered. Measured over 574 skills, a request of 2 ms
took up to 200 ms without it and 20 with it.
"""

from __future__ import annotations

import gc
import os
import sys
from typing import Final

SWITCH_SECONDS: Final = 0.0002
"""How long a thread may keep the interpreter from another one that waits for it. A request lets go
of it some ten times, whenever numpy works, and waits as often for the thread that reads skills."""
COLLECTIONS: Final = (700, 10, 100)
"""Python's own thresholds of garbage collection, with a full one a tenth as often. It stops every
thread for 100 ms, and finds next to nothing, because the router makes no cycles that live long."""


def before_numpy() -> None:
    """To be called before numpy is imported. The matrices are small, and threads of a BLAS that
    share the cores with other programs wait for each other: a reload of 574 skills takes ten times
    as long then."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def ready_to_serve() -> None:
    """To be called when everything is loaded, by a command that stays: the interpreter changes
    threads often, and what is loaded is never looked through for garbage again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECTIONS)
    sys.setswitchinterval(SWITCH_SECONDS)
