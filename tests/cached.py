"""What the tests of the caches share: a clock that is set by hand, and answers to keep."""

from __future__ import annotations

from router.result import Decision, RoutingResult, Stage


class Clock:
    """Stands still until ``now`` is set."""

    def __init__(self) -> None:
        self.now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def answer(name: str) -> RoutingResult:
    """An answer that chose one skill."""
    return RoutingResult(
        decision=Decision.ROUTE,
        selected_skills=(name,),
        confidence=0.9,
        stage=Stage.LLM,
        catalog_version="1",
        id=name,
    )
