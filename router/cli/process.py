"""What the router sets for a process of its own, and a library must not set for its host's.

All of it is about reloads while requests are answered (``benchmarks/hot_reload.py``).
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


def before_numpy() -> None:
    """To be called before numpy is imported. The matrices are small, and threads of a BLAS that
    share the cores with other programs wait for each other: a reload of 574 skills takes ten times
    as long then."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def ready_to_serve() -> None:
    """To be called when everything is loaded, by a command that stays: what is loaded is never
    looked through for garbage again, which stops every thread for 100 ms, and the interpreter
    changes threads often."""
    gc.collect()
    gc.freeze()
    sys.setswitchinterval(SWITCH_SECONDS)
