"""The layer procedural: what has worked comes first."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory.remembered import ask, item

from router.memory.layers.stored import proven
from router.memory.model import BlockingLayer, Scope
from router.memory.stores.memory_store import MemoryStore

EVERYBODY = Scope()


def test_of_two_procedures_alike_the_one_that_worked_comes_first(
    store: MemoryStore, layers: Mapping[str, BlockingLayer]
) -> None:
    outcomes = {"first": {}, "second": {"successes": 20}, "third": {"failures": 20}}
    for name, counts in outcomes.items():
        text = f"Deploy to staging: push a tag ({name} way)"
        store.save([item(name, text, layer="procedural", attributes=counts)])
    found = layers["procedural"].search(ask("how do I deploy to staging?"), scope=EVERYBODY, k=3)
    assert found[0].id == "second"
    rates = {one.id: one.attributes.get("success_rate") for one in found}
    assert rates == {"first": None, "second": 1.0, "third": 0.0}


@given(st.integers(0, 1000), st.integers(0, 1000))
def test_a_proven_rate_grows_with_success_and_never_exceeds_the_rate(won: int, lost: int) -> None:
    def bound(won: int, lost: int) -> float:
        return proven(item("a", "x", attributes={"successes": won, "failures": lost}))

    assert 0 <= bound(won, lost) <= (won / (won + lost) if won + lost else 0)
    assert bound(won + 1, lost) > bound(won, lost)
    assert bound(won, lost + 1) <= bound(won, lost)


def test_counts_that_no_float_can_hold_are_counts_too() -> None:
    often = item("a", "x", attributes={"successes": 10**400, "failures": 10**400})
    assert proven(often) == pytest.approx(0.5, abs=1e-3)
