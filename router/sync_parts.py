"""The parts of a synchronous router that have methods of their own, imported when they are used."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

from router.concurrency.loop_thread import OnLoop, waiting
from router.learning.learner import Learner
from router.skills.manager import SkillManager

if TYPE_CHECKING:
    from router.skills.manager import ManagerReport
    from router.skills.observers import Observers
    from router.skills.registry import SkillRegistry


class SyncSkillManager(OnLoop[SkillManager]):
    """``SkillManager`` without ``await``."""

    reload = waiting(SkillManager.reload)
    load = waiting(SkillManager.load)
    unload = waiting(SkillManager.unload)
    start = waiting(SkillManager.start)
    stop = waiting(SkillManager.stop)

    @contextmanager
    def watch(self) -> Iterator[Self]:
        """Follow the disk while the block runs."""
        try:
            self.start()
            yield self
        finally:
            self.stop()

    def report(self) -> ManagerReport:
        """See ``SkillManager.report``."""
        return self._inner.report()

    @property
    def registry(self) -> SkillRegistry:
        """See ``SkillManager``."""
        return self._inner.registry

    @property
    def observers(self) -> Observers:
        """See ``SkillManager``."""
        return self._inner.observers


class SyncLearner(OnLoop[Learner]):
    """What a router has learnt, without ``await``."""

    calibrate = waiting(Learner.calibrate)

    def status(self) -> dict[str, Any]:
        """See ``Learner.status``."""
        return self._inner.status()
