"""What the tests of the caches share: a clock that is set by hand, and answers to keep."""

from __future__ import annotations

from router.result import Decision, RoutingResult, Stage


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
