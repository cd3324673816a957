"""``Memory`` without ``await``."""

from __future__ import annotations

from typing import Any

from router.concurrency.loop_thread import SyncFace, taking, waiting
from router.memory.memory import Memory


class SyncMemory(SyncFace[Memory]):
    """``Memory`` for code that has no event loop, or sits inside one that it cannot await in; safe
    to share between threads.

    with SyncMemory() as memory:
        found = memory.recall("why Postgres?", {"project": "shop"})
    """

    @taking(Memory)
    def __init__(self, *given: Any, **parts: Any) -> None:
        """Takes what ``Memory`` takes."""
        super().__init__(Memory(*given, **parts), "memory")

    @property
    def away(self) -> bool:
        """See ``Memory.away``."""
        return self._inner.away

    open = waiting(Memory.open)
    classify = waiting(Memory.classify)
    route = waiting(Memory.route)
    recall = waiting(Memory.recall)
    feedback = waiting(Memory.feedback)
    reset_feedback = waiting(Memory.reset_feedback)
    search = waiting(Memory.search)
    get = waiting(Memory.get)
    save = waiting(Memory.save)
    delete = waiting(Memory.delete)
    sync = waiting(Memory.sync)
    list = waiting(Memory.list)
    edit = waiting(Memory.edit)
    profile = waiting(Memory.profile)
    export = waiting(Memory.export)
    import_lines = waiting(Memory.import_lines)
    forget = waiting(Memory.forget)
    consolidate = waiting(Memory.consolidate)
    extract = waiting(Memory.extract)
    proposals = waiting(Memory.proposals)
    accept = waiting(Memory.accept)
    reject = waiting(Memory.reject)
    clear_cache = waiting(Memory.clear_cache)
    assemble = waiting(Memory.assemble)
    ingest = waiting(Memory.ingest)
    get_consolidation_candidates = waiting(Memory.get_consolidation_candidates)
    status = waiting(Memory.status)
