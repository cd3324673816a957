"""Changes are proposed with their evidence, and made only when somebody accepts them."""

from __future__ import annotations

import json
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from kept_memory import settings_in
from scripted_model import ADA, NOW, PEANUTS, TALK, Scripted, memories, save, stored

from router.errors import InvalidRequest, UnknownMemory
from router.memory.curation.proposals import ChangeKind, Proposal
from router.memory.memory import Memory
from router.memory.model import AttributeValue
from router.retrieval.bundled_encoder import BundledEncoder


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


async def test_a_merged_memory_keeps_what_the_others_say_beside_their_texts(memory: Memory) -> None:
    graph = partial(memory.save, layer="graph", scope=ADA)
    cart = "The cart service depends on Redis and on the payments gateway"
    await graph(cart, tags=["infra"], usefulness=0.9, attributes={"entity": "cart"})
    relations: AttributeValue = ("depends -> Redis",)
    text = "The cart service probably depends on Redis and on the payments gateway"
    passing: dict[str, AttributeValue] = {"relations": relations, "expires_at": "2030-01-01"}
    await graph(text, tags=["ops"], attributes=passing)
    [proposal] = await memory.consolidate(scope=ADA)
    await memory.accept(proposal.id, scope=ADA)
    [kept] = [
        i for i in (await memory.list(scope=ADA)).items if "superseded_by" not in i.attributes
    ]
    assert (kept.content, set(kept.tags), kept.usefulness) == (text, {"infra", "ops"}, 0.9)
    assert kept.attributes == {"entity": "cart", "relations": relations}  # one of them lasts


async def test_of_many_copies_each_is_merged_once(memory: Memory) -> None:
    for sign in ".!?;,":
        await memory.save(f"Production deploys on Fridays are forbidden{sign}", layer="semantic")
    assert len(await memory.consolidate(scope={})) == 4


async def test_a_memory_that_is_merged_with_one_after_the_other_keeps_what_all_say(
    memory: Memory,
) -> None:
    for name, end in (("one", "!"), ("two", "?"), ("long", " here.")):
        text = f"Production deploys on Fridays are forbidden{end}"
        await memory.save(text, name=name, layer="semantic", tags=[name])
    for proposal in await memory.consolidate(scope={}):
        await memory.accept(proposal.id, scope={})
    items = (await memory.list(scope={})).items
    [kept] = [item for item in items if "superseded_by" not in item.attributes]
    assert set(kept.tags) == {"long", "one", "two"}


async def test_a_merge_that_was_rejected_is_not_drafted_again(
    asking: Memory, model: Scripted
) -> None:
    for text in (
        "Production deploys on Fridays are forbidden.",
        "Production deploys are forbidden on Fridays",
    ):
        await asking.save(text, layer="semantic", scope=ADA)
    model.answers = [json.dumps({"content": "On Fridays deploys are forbidden."})]
    [proposal] = await asking.consolidate(scope=ADA)
    await asking.reject(proposal.id, scope=ADA)
    assert await asking.consolidate(scope=ADA) == ()
    assert len(model.asked) == 1


async def test_what_waits_is_shown_behind_any_number_of_rejected_proposals(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("router.memory.records.MAX_PAGE", 1)
    for name in ("first", "second"):
        await memory.save(
            f"Send the {name} report",
            name=name,
            layer="prospective",
            scope=ADA,
            attributes={"due": "2026-01-01"},
        )
    first, second = await memory.consolidate(scope=ADA)
    await memory.reject(second.id, scope=ADA)
    assert await memory.proposals(scope=ADA) == (first,)


async def test_what_is_accepted_lives_as_long_as_its_layer_says(
    tmp_path: Path, encoder: BundledEncoder, model: Scripted
) -> None:
    settings = settings_in(tmp_path, layer_ttl_days={"user": 30})
    model.answers = [memories(PEANUTS)]
    async with Memory(settings, encoder=encoder, clock=NOW.timestamp, models=[model]) as made:
        [proposal] = (await made.extract(TALK, scope=ADA)).proposals
        await made.accept(proposal.id, scope=ADA)
        [item] = (await made.list(scope=ADA)).items
    assert item.attributes["expires_at"] == (NOW + timedelta(days=30)).isoformat()


async def test_the_same_merge_in_two_scopes_is_two_proposals(memory: Memory) -> None:
    for scope in (ADA, {"user": "ada"}):
        for name, sign in (("one", "."), ("two", "!")):
            text = f"Production deploys on Fridays are forbidden{sign}"
            await memory.save(text, name=name, layer="semantic", scope=scope)
    ours, everywhere = await memory.consolidate(scope=ADA)
    assert ours.replaces == everywhere.replaces
    for proposal in (ours, everywhere):
        await memory.accept(proposal.id, scope=ADA)
    assert await memory.proposals(scope=ADA) == ()
    assert await memory.consolidate(scope=ADA) == ()


async def test_a_proposal_that_waits_under_an_earlier_id_can_be_decided(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        due = {"due": "2026-01-01"}
        await memory.save(
            f"Send report {name}", name=name, layer="prospective", scope=ADA, attributes=due
        )
    with monkeypatch.context() as earlier:
        earlier.setattr(Proposal, "id", property(lambda self: f"earlier-{self.content}"))
        await memory.consolidate(scope=ADA)
    one, two = await memory.proposals(scope=ADA)
    await memory.accept(one.id, scope=ADA)
    await memory.reject(two.id, scope=ADA)
    assert await memory.proposals(scope=ADA) == ()
    assert await memory.consolidate(scope=ADA) == ()


async def test_a_merged_memory_is_as_old_as_its_newest_copy(memory: Memory) -> None:
    """It was dated when it was merged, and so an old value came before the one that holds."""
    await save(memory, "a", "The bread oven runs at 230 degrees.", "2026-01-01")
    await save(memory, "b", "The bread oven runs at 230 degrees!", "2026-03-01")
    await save(memory, "c", "The bread oven runs at 245 degrees.", "2026-06-01")
    await memory.consolidate(scope=ADA, policy=lambda proposal: proposal.kind is ChangeKind.MERGE)
    found = (await memory.recall("At how many degrees does the bread oven run?", ADA)).items
    assert [str(one.item.created.date()) for one in found] == ["2026-06-01", "2026-03-01"]


async def test_accepting_what_was_stored_meanwhile_loses_nothing_of_it(
    asking: Memory, model: Scripted
) -> None:
    """The stored item was overwritten: after an edit its text was lost, and else its tags."""
    model.answers = [memories(PEANUTS)]
    [proposal] = (await asking.extract(TALK, scope=ADA)).proposals
    where: dict[str, Any] = {"layer": "user", "scope": {"user": "ada"}}
    stored = await asking.save(proposal.content, **where, tags=["health"])
    await asking.accept(proposal.id, scope=ADA)
    kept = await asking.get(stored.name, **where)
    assert (kept.tags, kept.provenance) == (("health",), (proposal.source,))


async def test_accepting_does_not_undo_a_correction_made_meanwhile(
    asking: Memory, model: Scripted
) -> None:
    model.answers = [memories(PEANUTS)]
    [proposal] = (await asking.extract(TALK, scope=ADA)).proposals
    where: dict[str, Any] = {"layer": "user", "scope": {"user": "ada"}}
    stored = await asking.save(proposal.content, **where)
    await asking.edit(stored.name, **where, content="The user is allergic to cashews.")
    await asking.accept(proposal.id, scope=ADA)
    items = (await asking.list(scope=ADA, layers=["user"])).items
    assert {item.content for item in items} == {
        "The user is allergic to cashews.",
        "The user is allergic to peanuts.",
    }


OLD, NEW = "Our database is Postgres 14.", "Our database is MySQL 8 now."
FRIDAYS = "Production deploys on Fridays are forbidden."


@pytest.mark.parametrize(
    ("rows", "changed", "change"),
    [
        pytest.param(
            [("task", "Call the plumber", "2026-01-01", "prospective")],
            "task",
            {"attributes": {"due": "2026-12-24"}},
            id="a task that is no longer overdue",
        ),
        pytest.param(
            [("old", OLD, "2026-01-01"), ("new", NEW, "2026-05-01")],
            "new",
            {"content": "The cellar is damp."},
            id="another text in place of the newer one",
        ),
        pytest.param(
            [("old", OLD, "2026-01-01"), ("new", NEW, "2026-05-01")],
            "old",
            {"created": "2026-06-01"},
            id="the older one, saved again as the newest",
        ),
        pytest.param(
            [("one", FRIDAYS, "2026-01-01"), ("two", FRIDAYS.replace(".", "!"), "2026-05-01")],
            "two",
            {"content": "Production deploys on Mondays are forbidden."},
            id="one of two copies, corrected",
        ),
    ],
)
async def test_what_has_changed_since_is_not_accepted(
    memory: Memory, rows: list[tuple[str, ...]], changed: str, change: dict[str, Any]
) -> None:
    """A task was cancelled that had been put off, and a correction was marked as replaced."""
    for row in rows:
        await save(memory, *row)
    [proposal] = await memory.consolidate(scope=ADA)
    where: dict[str, Any] = {"layer": proposal.layer, "scope": ADA}
    if "created" in change:
        await memory.save(OLD, name=changed, **where, **change)
    else:
        await memory.edit(changed, **where, **change)
    before = (await memory.list(scope=ADA)).items
    with pytest.raises(InvalidRequest, match=f"'{changed}' has changed since it was proposed"):
        await memory.accept(proposal.id, scope=ADA)
    assert (await memory.list(scope=ADA)).items == before
    assert await memory.proposals(scope=ADA) == ()  # so that it may be proposed anew


async def test_a_new_memory_does_not_replace_what_was_corrected_since(
    asking: Memory, model: Scripted
) -> None:
    where: dict[str, Any] = {"layer": "user", "scope": {"user": "ada"}}
    await asking.save("I live in Berlin.", name="home", **where, created="2026-01-01")
    model.answers = [memories((1, "I moved to Hamburg", "user", "I moved to Hamburg."))]
    [proposal] = (await asking.extract("Last week I moved to Hamburg.", scope=ADA)).proposals
    assert proposal.replaces == ("home",)
    await asking.edit("home", **where, content="My parents live in Berlin.")
    assert (await asking.accept(proposal.id, scope=ADA)).replaces == ()
    items = (await asking.list(scope=ADA, layers=["user"])).items
    assert {(item.content, item.attributes.get("superseded_by")) for item in items} == {
        ("My parents live in Berlin.", None),
        ("I moved to Hamburg.", None),
    }


async def test_a_memory_that_also_states_what_stays_true_is_not_marked(memory: Memory) -> None:
    """Accepting the update lost an allergy."""
    await save(memory, "old", "I live in Graz and have a wasp allergy.", "2026-01-01")
    await save(memory, "new", "I moved to Linz.", "2026-05-01")
    await save(memory, "bus", "Bus 7 leaves at 8:10 and takes bicycles.", "2026-01-01")
    await save(memory, "later", "Bus 7 leaves at 8:25.", "2026-05-01")
    assert await memory.consolidate(scope=ADA) == ()
    for query, answer in (("Do I have an allergy?", "old"), ("Where do I live?", "new")):
        found = (await memory.recall(query, ADA)).items
        assert found[0].item.id == answer
