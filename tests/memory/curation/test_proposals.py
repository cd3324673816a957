"""Changes are proposed with their evidence, and made only when somebody accepts them."""

from __future__ import annotations

import json

import pytest
from scripted_model import ADA, PEANUTS, TALK, Scripted, memories, save, stored

from router.errors import InvalidRequest, UnknownMemory
from router.memory.curation.proposals import ChangeKind
from router.memory.memory import Memory


async def test_proposing_changes_nothing_and_shows_the_evidence(memory: Memory) -> None:
    await save(memory, "old", "Our database is Postgres 14.", "2026-01-01")
    await save(memory, "new", "Our database is MySQL 8 now.", "2026-05-01")
    [proposal] = await memory.consolidate(scope=ADA)
    assert (proposal.kind, proposal.replaces, proposal.by) == (ChangeKind.UPDATE, ("old",), "new")
    assert proposal.evidence == (
        "2026-01-01: Our database is Postgres 14.",
        "2026-05-01: Our database is MySQL 8 now.",
    )
    assert await stored(memory) == {"old": "", "new": ""}
    assert await memory.proposals(scope=ADA) == (proposal,)
    assert await memory.consolidate(scope=ADA) == ()  # it waits already


async def test_a_proposal_that_does_not_wait_is_named_as_one(memory: Memory) -> None:
    for decide in (memory.accept, memory.reject):
        with pytest.raises(UnknownMemory, match="no proposal named 'nothing'"):
            await decide("nothing", scope=ADA)


async def test_what_is_rejected_is_not_proposed_again(memory: Memory) -> None:
    await save(memory, "old", "Our database is Postgres 14.", "2026-01-01")
    await save(memory, "new", "Our database is MySQL 8 now.", "2026-05-01")
    [proposal] = await memory.consolidate(scope=ADA)
    await memory.reject(proposal.id, scope=ADA)
    assert await memory.consolidate(scope=ADA) == ()
    assert await stored(memory) == {"old": "", "new": ""}


async def test_a_policy_may_accept_at_once(memory: Memory) -> None:
    await save(memory, "old", "Our database is Postgres 14.", "2026-01-01")
    await save(memory, "new", "Our database is MySQL 8 now.", "2026-05-01")
    await memory.consolidate(scope=ADA, policy=lambda proposal: proposal.kind is ChangeKind.UPDATE)
    assert await stored(memory) == {"old": "new", "new": ""}


async def test_what_waits_is_found_by_nobody_and_forgotten_with_its_owner(
    asking: Memory, model: Scripted
) -> None:
    model.answers = [memories(PEANUTS)]
    await asking.extract(TALK, scope=ADA)
    assert (await asking.recall("peanuts", ADA)).items == ()
    assert await asking.export(owner={"user": "ada"}) == ()
    assert (await asking.forget({"user": "ada"})).items == 1
    assert await asking.proposals(scope=ADA) == ()


async def test_a_proposal_cannot_be_imported_as_a_memory(memory: Memory) -> None:
    row = {
        "id": "x",
        "layer": "proposals",
        "content": "x",
        "created": "2026-01-01T00:00:00Z",
    }
    with pytest.raises(InvalidRequest, match="line 1"):
        await memory.import_lines([json.dumps(row)])


async def test_a_merged_memory_answers_the_questions_of_all(memory: Memory) -> None:
    for content, asked in (
        ("Production deploys on Fridays are forbidden.", "When may I not release?"),
        ("Production deploys are forbidden on Fridays!", "Is shipping before the weekend fine?"),
    ):
        await memory.save(content, layer="semantic", scope=ADA, questions=[asked])
    [proposal] = await memory.consolidate(scope=ADA)
    assert proposal.kind is ChangeKind.MERGE
    await memory.accept(proposal.id, scope=ADA)
    kept = [
        item.attributes.get("questions")
        for item in (await memory.list(scope=ADA, layers=["semantic"])).items
        if "superseded_by" not in item.attributes
    ]
    assert [set(asked) for asked in kept if isinstance(asked, tuple)] == [
        {"When may I not release?", "Is shipping before the weekend fine?"}
    ]
