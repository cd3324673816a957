"""Consolidation: what repeats, contradicts or has gone stale is proposed to be merged or marked."""

from __future__ import annotations

import json

import pytest
from cpu_time import cpu_time_at_most
from memory.remembered import NOW, item
from scripted_model import ADA, Scripted, save, stored

from router.errors import UnknownMemory
from router.memory.curation.consolidation import proposals_for
from router.memory.curation.proposals import ChangeKind
from router.memory.memory import Memory


async def test_an_accepted_update_marks_the_old_one_and_keeps_it(memory: Memory) -> None:
    await save(memory, "old", "Our database is Postgres 14.", "2026-01-01")
    await save(memory, "new", "Our database is MySQL 8 now.", "2026-05-01")
    [proposal] = await memory.consolidate(scope=ADA)
    await memory.accept(proposal.id[:6], scope=ADA)
    assert await stored(memory) == {"old": "new", "new": ""}
    assert await memory.proposals(scope=ADA) == ()
    with pytest.raises(UnknownMemory):
        await memory.accept(proposal.id, scope=ADA)


async def test_contradictions_copies_and_stale_tasks_are_proposed(memory: Memory) -> None:
    await save(memory, "may", "Deploys on Fridays are allowed.", "2026-01-01")
    await save(memory, "not", "Deploys on Fridays are not allowed.", "2026-02-01")
    await save(memory, "a", "The staging server runs in Frankfurt.", "2026-01-01")
    await save(memory, "b", "Our staging server runs in Frankfurt!", "2026-02-01")
    await save(memory, "dpa", "Sign the contract with the carrier.", "2026-08-01", "prospective")
    found = {proposal.kind: proposal for proposal in await memory.consolidate(scope=ADA)}
    assert found.keys() == {ChangeKind.CONTRADICTION, ChangeKind.MERGE, ChangeKind.STALE}
    for proposal in found.values():
        await memory.accept(proposal.id, scope=ADA)
    left = await stored(memory)
    assert left["may"] == "not"
    assert left["not"] == ""
    assert left["a"] == left["b"] != ""  # one of their own takes the place of both
    task = await memory.get("dpa", layer="prospective", scope=ADA)
    assert task.attributes["status"] == "cancelled"


@pytest.mark.parametrize(
    ("one", "other", "are_merged"),
    [
        ("The staging server runs in Frankfurt.", "Our staging server runs in Frankfurt!", True),
        ("Deploys on Fridays are forbidden.", "Deploys are forbidden on Fridays", True),
        ("The museum opens at 9 daily", "The museum does not open at 9 daily", False),
        ("The nightly backup runs before noon", "The nightly backup runs after noon", False),
        ("Petra reviews Karim's code", "Karim reviews Petra's code", False),
        (
            "The night train runs from Ghent to Lyon",
            "The night train runs from Lyon to Ghent",
            False,
        ),
        ("Big dogs often chase small cats", "Small cats often chase big dogs", False),
        ("The blue bus stops here every day", "The blue bus stops here every 2 day", False),
        ("Ana and Ben water the big plants", "Ana and Ben and Cem water the big plants", False),
        ("Guests may park in the yard", "Guests may not park in the yard", False),
        ("The code of the cellar door works", "The code of the former cellar door works", False),
        ("Guests may park in the yard", "Guests may park in the yard unless asked", False),
    ],
)
def test_only_what_says_the_same_is_merged(one: str, other: str, *, are_merged: bool) -> None:
    items = [item("a", one, age=9), item("b", other, age=9)]
    kinds = {proposal.kind for proposal in proposals_for(items, NOW)}
    assert (ChangeKind.MERGE in kinds) is are_merged


def test_of_a_contradiction_it_is_said_which_one_is_kept() -> None:
    for age, kept in ((1, "the later is kept"), (9, "they are of one date; the second is kept")):
        items = [
            item("may", "Dogs are allowed in the shop.", age=9),
            item("not", "Dogs are not allowed in the shop.", age=age),
        ]
        [proposal] = proposals_for(items, NOW)
        assert (proposal.by, proposal.evidence[1].endswith("not allowed in the shop.")) == (
            "not",
            True,
        )
        assert proposal.reason == f"They contradict each other; {kept}."


def test_long_memories_are_looked_through_quickly() -> None:
    """They are no copies of each other; to split each pair into words anew took 5 s."""
    texts = [" ".join(f"word{(n + 7 * m) % 999}" for m in range(5_000)) for n in range(40)]
    items = [item(f"m{n}", text, age=n) for n, text in enumerate(texts)]
    with cpu_time_at_most(1):
        assert ChangeKind.MERGE not in {each.kind for each in proposals_for(items, NOW)}


@pytest.mark.parametrize(
    ("draft", "kept"),
    [
        ("Our staging server runs in Frankfurt.", True),
        ("Our staging server runs in Paris.", False),
        ("Our staging server runs in Frankfurt on 7 machines.", False),
    ],
)
async def test_a_draft_that_adds_anything_is_not_used(
    asking: Memory, model: Scripted, draft: str, *, kept: bool
) -> None:
    await save(asking, "a", "The staging server runs in Frankfurt.", "2026-01-01")
    await save(asking, "b", "Our staging server runs in Frankfurt!", "2026-02-01")
    model.answers = [json.dumps({"content": draft})]
    [proposal] = await asking.consolidate(scope=ADA)
    assert (proposal.content == draft) is kept
