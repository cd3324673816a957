"""Looking through memories, changing, exporting and forgetting them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from kept_memory import settings_in
from numpy.typing import NDArray

from router.errors import InvalidRequest, UnknownMemory
from router.memory.contexts.usage_patterns import QueryPatternTracker
from router.memory.memory import Memory
from router.memory.model import MemoryItem, Scope
from router.memory.records import Records
from router.memory.stores.memory_store import MemoryStore
from router.retrieval.bundled_encoder import BundledEncoder

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
ADA = {"user": "ada", "project": "shop"}
BEN = {"user": "ben", "project": "shop"}


@pytest.fixture
def now() -> list[datetime]:
    """What time it is; a test may set it."""
    return [NOW]


@pytest.fixture
async def memory(
    tmp_path: Path, encoder: BundledEncoder, now: list[datetime]
) -> AsyncIterator[Memory]:
    settings = settings_in(tmp_path, layer_ttl_days={"session": 7})
    async with Memory(settings, encoder=encoder, clock=lambda: now[0].timestamp()) as opened:
        yield opened


async def test_what_a_scope_sees_is_listed_newest_first_in_pages(memory: Memory) -> None:
    for number in range(5):
        created = NOW - timedelta(days=number)
        text = f"Fact {number}"
        await memory.save(text, layer="semantic", name=f"f{number}", scope=ADA, created=created)
    await memory.save("Of Ben", layer="semantic", scope=BEN)
    first = await memory.list(scope=ADA, limit=3)
    second = await memory.list(scope=ADA, limit=3, after=first.next)
    assert [item.id for item in (*first.items, *second.items)] == ["f0", "f1", "f2", "f3", "f4"]
    assert second.next is None


@pytest.mark.parametrize("after", ["x", "1", "1:", "1:x", "nan:1", f"1:{10**40}", f"1:-{10**40}"])
async def test_what_ends_no_page_is_refused(memory: Memory, after: str) -> None:
    await memory.save("JWT is a signed token", layer="semantic", scope=ADA)
    with pytest.raises(InvalidRequest, match="the end of no page"):
        await memory.list(scope=ADA, after=after)


async def test_the_same_text_saved_twice_is_one_item(memory: Memory) -> None:
    for _ in range(2):
        await memory.save("JWT is a signed token", layer="semantic", scope=ADA)
    assert len((await memory.list(scope=ADA)).items) == 1


async def test_saving_offers_what_it_may_replace_and_marks_it_when_told(memory: Memory) -> None:
    early = NOW - timedelta(days=90)
    await memory.save(
        "Our database is Postgres 14", layer="project", name="old", scope=ADA, created=early
    )
    text = "We moved from Postgres to MySQL 8"
    offered = await memory.save(text, layer="project", name="new", scope=ADA)
    assert [item.id for item in offered.supersedes] == ["old"]
    done = await memory.save(
        text, layer="project", name="new", scope=ADA, supersede=offered.supersedes
    )
    assert done.supersedes == ()
    answer = await memory.recall("Which database do we use?", ADA)
    assert [one.item.id for one in answer.items] == ["new"]
    history = await memory.recall("Which database did we use two months ago?", ADA)
    assert history.items[0].item.id == "old"
    assert (await memory.get("old", layer="project", scope=ADA)).attributes[
        "superseded_by"
    ] == "new"


async def save_chain(memory: Memory, **newest: Any) -> None:
    """Three databases, each of which has replaced the one before."""
    texts = {
        "a": "Our database is Postgres 14",
        "b": "We moved from Postgres to MySQL 8",
        "c": "We moved from MySQL to CockroachDB",
    }
    before: list[str] = []
    for days, (name, text) in zip((90, 60, 30), texts.items(), strict=True):
        await memory.save(
            text,
            layer="project",
            name=name,
            scope=ADA,
            created=NOW - timedelta(days=days),
            supersede=before,
            **(newest if name == "c" else {}),
        )
        before = [name]


async def marks(memory: Memory) -> dict[str, object]:
    """What each item of Ada is replaced by."""
    items = (await memory.list(scope=ADA)).items
    return {item.id: item.attributes.get("superseded_by") for item in items}


async def test_if_a_replacement_is_deleted_what_it_had_replaced_is_valid_again(
    memory: Memory,
) -> None:
    await save_chain(memory)
    await memory.delete("c", layer="project", scope=ADA)
    assert await marks(memory) == {"a": "b", "b": None}
    await memory.delete("b", layer="project", scope=ADA)
    item = await memory.get("a", layer="project", scope=ADA)
    assert dict(item.attributes) == {}
    for query in ("Which database do we use?", "postgres"):
        answer = await memory.recall(query, ADA)
        assert [one.item.id for one in answer.items] == ["a"]


async def test_if_the_middle_of_a_chain_is_deleted_its_ends_are_joined(memory: Memory) -> None:
    await save_chain(memory)
    last = (await memory.get("b", layer="project", scope=ADA)).attributes
    await memory.delete("b", layer="project", scope=ADA)
    assert await marks(memory) == {"a": "c", "c": None}
    first = (await memory.get("a", layer="project", scope=ADA)).attributes
    assert first["superseded_at"] == last["superseded_at"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("Which database do we use?", ["c"]),
        ("When did we move to MySQL?", ["b", "c"]),
        ("When did we switch from Postgres to MySQL?", ["b", "a"]),
        ("Why did we leave Postgres?", ["b", "a"]),
        ("Have we ever used Postgres?", ["a", "b"]),
        ("What was our first database?", ["a", "b", "c"]),
        ("What was our original database?", ["a", "b", "c"]),
        ("What was our previous database?", ["b", "a", "c"]),
        ("What were our databases over time?", ["a", "b", "c"]),
        ("Tell me the history of our database", ["a", "b", "c"]),
        ("Which database did we use before?", ["b", "a", "c"]),
        ("What did we use before CockroachDB?", ["b", "c"]),
        ("What did we use before MySQL?", ["a", "b", "c"]),
    ],
)
async def test_of_a_chain_of_replacements_that_is_given_which_the_query_names(
    memory: Memory, query: str, found: list[str]
) -> None:
    await save_chain(memory)
    answer = await memory.recall(query, ADA)
    assert [one.item.id for one in answer.items] == found


async def test_who_asks_whether_something_was_ever_used_is_told_of_it(memory: Memory) -> None:
    await memory.save("CI runs on Jenkins", layer="project", name="old", scope=ADA)
    text = "replaced Jenkins by GitHub Actions, builds take 6 minutes"
    await memory.save(text, layer="project", name="new", scope=ADA, supersede=["old"])
    answer = await memory.recall("Did we ever use Jenkins?", ADA)
    assert answer.items[0].item.id == "old"


async def test_ever_is_no_word_that_an_answer_must_have(memory: Memory) -> None:
    await memory.save("We migrated production from Heroku to AWS", layer="project", scope=ADA)
    [found] = (await memory.recall("Did we ever use AWS?", ADA)).items
    assert found.item.content == "We migrated production from Heroku to AWS"


async def test_what_contradicts_the_answer_is_found_in_another_layer(memory: Memory) -> None:
    await memory.save("Tom likes olives", layer="user", scope=ADA)
    await memory.save("Tom hates olives", layer="project", scope=ADA)
    answer = await memory.recall("Does Tom like olives?", ADA)
    assert len(answer.conflicts) == 1


async def test_a_name_that_was_replaced_is_found_behind_what_is_valid(memory: Memory) -> None:
    await memory.save("I live in Bergen", layer="user", name="old", scope=ADA)
    await memory.save("I moved to Oslo", layer="user", name="new", scope=ADA, supersede=["old"])
    now = await memory.recall("Bergen", ADA)
    assert [one.item.id for one in now.items] == ["new", "old"]
    then = await memory.recall("Did I ever live in Bergen?", ADA)
    assert [one.item.id for one in then.items] == ["old"]


@pytest.mark.parametrize(
    ("old", "new", "query"),
    [
        ("Ada lives in Bergen", "She moved to Oslo in May", "When did Ada move?"),
        (
            "Our Shop database is Postgres 14",
            "We moved to MySQL 8",
            "Which database did we choose for the Shop?",
        ),
        (
            "The Stripe API key is stored in 1Password",
            "API keys are stored in Vault now",
            "Where did we put the Stripe API key?",
        ),
        (
            "The Berlin office opens at 7",
            "The office opens at 9",
            "When did the Berlin office open?",
        ),
    ],
)
async def test_what_was_replaced_is_no_answer_because_the_query_names_what_it_is_about(
    memory: Memory, old: str, new: str, query: str
) -> None:
    await memory.save(old, layer="semantic", name="old", scope=ADA)
    await memory.save(new, layer="semantic", name="new", scope=ADA, supersede=["old"])
    answer = await memory.recall(query, ADA)
    assert [one.item.id for one in answer.items] == ["new"]


async def test_if_a_query_names_the_first_of_a_chain_the_last_is_given_too(memory: Memory) -> None:
    before: list[str] = []
    for name in ("Postgres", "MySQL", "CockroachDB"):
        text = f"We moved to {name}" if before else f"Our database is {name}"
        await memory.save(text, layer="project", name=name, scope=ADA, supersede=before)
        before = [name]
    answer = await memory.recall("Is our database Postgres?", ADA)
    assert {one.item.id for one in answer.items} == {"Postgres", "CockroachDB"}


async def test_if_a_replacement_expires_what_it_had_replaced_is_valid_again(
    memory: Memory, now: list[datetime]
) -> None:
    until = (NOW + timedelta(days=1)).isoformat()
    await save_chain(memory, attributes={"expires_at": until})
    now[0] += timedelta(days=2)
    assert await marks(memory) == {"a": "b", "b": None}


async def test_a_copy_of_a_replacement_may_be_deleted(memory: Memory) -> None:
    await save_chain(memory)
    await memory.save("We moved to MySQL 8", layer="semantic", name="b", scope=ADA)
    await memory.delete("b", layer="semantic", scope=ADA)
    assert await marks(memory) == {"a": "b", "b": "c", "c": None}


OLD_PASSWORD, NEW_PASSWORD = "The wifi password is osprey-42.", "The wifi password is bittern-77."


async def test_a_memory_replaces_one_of_another_layer(memory: Memory) -> None:
    early = NOW - timedelta(days=90)
    await memory.save(OLD_PASSWORD, layer="semantic", name="w", scope=ADA, created=early)
    await memory.save("We work on Fridays", layer="project", name="w", scope=ADA, created=early)
    offered = await memory.save(NEW_PASSWORD, layer="project", name="new", scope=ADA)
    assert [(item.layer, item.id) for item in offered.supersedes] == [("semantic", "w")]
    asked = await memory.recall("What is the wifi password?", ADA)
    assert [one.item.content for one in asked.items] == [NEW_PASSWORD, OLD_PASSWORD]
    await memory.save(
        NEW_PASSWORD, layer="project", name="new", scope=ADA, supersede=offered.supersedes
    )
    told = await memory.recall("What is the wifi password?", ADA)
    assert [one.item.content for one in told.items] == [NEW_PASSWORD]
    assert (await memory.get("w", layer="project", scope=ADA)).attributes == {}
    await memory.delete("new", layer="project", scope=ADA)
    again = await memory.recall("What is the wifi password?", ADA)
    assert [one.item.content for one in again.items] == [OLD_PASSWORD]


@pytest.mark.parametrize(("first", "second"), [("semantic", "project"), ("project", "semantic")])
async def test_a_memory_that_is_moved_to_another_layer_is_found_there(
    memory: Memory, first: str, second: str
) -> None:
    moved = await memory.save(NEW_PASSWORD, layer=first, scope=ADA)
    await memory.save(NEW_PASSWORD, layer=second, scope=ADA, supersede=[moved.name])
    for layer in (second, first):
        answer = await memory.recall("What is the wifi password?", ADA)
        assert [one.item.layer for one in answer.items] == [layer]
        await memory.delete(moved.name, layer=layer, scope=ADA)


async def test_a_replacement_may_have_the_name_of_what_it_replaces_in_another_layer(
    memory: Memory,
) -> None:
    old = await memory.save("The guest network is osprey", layer="semantic", name="w", scope=ADA)
    assert old.item is not None
    text = "Visitors now get an access card"
    await memory.save(text, layer="project", name="w", scope=ADA, supersede=[old.item])
    answer = await memory.recall("What is the guest network?", ADA)
    assert [one.item.content for one in answer.items] == [text]
    await memory.delete("w", layer="project", scope=ADA)
    again = await memory.recall("What is the guest network?", ADA)
    assert [one.item.content for one in again.items] == ["The guest network is osprey"]


async def test_what_a_user_saves_comes_before_what_it_replaces_in_the_project_for_that_user_only(
    memory: Memory,
) -> None:
    shop = {"project": "shop"}
    early = NOW - timedelta(days=90)
    await memory.save(OLD_PASSWORD, layer="project", name="old", scope=shop, created=early)
    report = await memory.save(NEW_PASSWORD, layer="project", name="new", scope=ADA)
    assert report.supersedes == ()
    hers = await memory.recall("What is the wifi password?", ADA)
    assert [one.item.id for one in hers.items] == ["new", "old"]
    his = await memory.recall("What is the wifi password?", BEN)
    assert [one.item.id for one in his.items] == ["old"]


async def test_what_is_not_there_cannot_be_superseded(memory: Memory) -> None:
    with pytest.raises(UnknownMemory):
        await memory.save("MySQL", layer="project", scope=ADA, supersede=["nothing"])
    assert (await memory.list(scope=ADA)).items == ()


async def test_an_item_is_changed_in_its_own_scope_only(memory: Memory) -> None:
    attributes = {"due": "2026-03-06", "status": "open"}
    await memory.save("Pay", layer="prospective", name="t", scope=ADA, attributes=attributes)
    with pytest.raises(UnknownMemory):
        await memory.edit("t", layer="prospective", scope=BEN, content="Mine")
    changed = {"status": "complete", "due": None}
    await memory.edit("t", layer="prospective", scope=ADA, content="Pay rent", attributes=changed)
    item = await memory.get("t", layer="prospective", scope=ADA)
    assert (item.content, dict(item.attributes)) == ("Pay rent", {"status": "done"})


async def test_an_item_goes_when_its_time_is_over(memory: Memory, now: list[datetime]) -> None:
    until = (NOW + timedelta(days=1)).isoformat()
    await memory.save("Short", layer="semantic", scope=ADA, attributes={"expires_at": until})
    await memory.save("We talk about tea", layer="session", scope=ADA)
    await memory.save("Long", layer="semantic", scope=ADA)
    assert len((await memory.list(scope=ADA)).items) == 3
    now[0] += timedelta(days=2)
    assert {one.content for one in (await memory.list(scope=ADA)).items} == {
        "Long",
        "We talk about tea",
    }
    now[0] += timedelta(days=6)
    assert [one.content for one in (await memory.list(scope=ADA)).items] == ["Long"]


async def test_what_has_expired_is_gone_for_every_call(memory: Memory, now: list[datetime]) -> None:
    until = {"expires_at": (NOW + timedelta(days=1)).isoformat()}

    async def expire(name: str) -> None:
        now[0] = NOW
        await memory.save("Short", layer="semantic", name=name, scope=ADA, attributes=until)
        now[0] = NOW + timedelta(days=2)

    await expire("a")
    with pytest.raises(UnknownMemory):
        await memory.get("a", layer="semantic", scope=ADA)
    await expire("b")
    with pytest.raises(UnknownMemory):
        await memory.edit("b", layer="semantic", scope=ADA, tags=["x"])
    await expire("c")
    assert await memory.export(owner=ADA) == ()
    await expire("d")
    await memory.save("Short!", layer="semantic", name="e", scope=ADA)
    assert await memory.consolidate(scope=ADA) == ()


async def test_a_profile_is_what_is_known_of_a_user_and_holds_now(memory: Memory) -> None:
    early = NOW - timedelta(days=90)
    mine = {"user": "ada"}
    await memory.save("I live in Leipzig", layer="user", scope=mine, created=early)
    moved = "I moved to Copenhagen"
    offered = await memory.save(moved, layer="user", scope=mine)
    await memory.save(moved, layer="user", scope=mine, supersede=offered.supersedes)
    await memory.save("I am allergic to peanuts", layer="user", scope=mine, created=early)
    profile = await memory.profile(scope=ADA)
    assert [item.content for item in profile.items] == [
        "I moved to Copenhagen",
        "I am allergic to peanuts",
    ]
    with pytest.raises(InvalidRequest, match="name a user"):
        await memory.profile(scope={})


@pytest.mark.parametrize(
    "values",
    [
        {"attributes": {"a": {"b": "c"}}},
        {"attributes": {"a": float("nan")}},
        {"attributes": "a"},
        {"created": "yesterday"},
        {"provenance": "file:a"},
        {"supersede": "abc"},
        {"tags": "abc"},
        {"type": 5},
        {"usefulness": "much"},
    ],
    ids=str,
)
async def test_what_no_import_would_take_is_not_saved(
    memory: Memory, values: dict[str, Any]
) -> None:
    await memory.save("Fact of Ada", layer="semantic", name="a", scope=ADA)
    with pytest.raises(InvalidRequest, match=f"^{next(iter(values))}"):
        await memory.save("Another fact", layer="semantic", scope=ADA, **values)
    for changed in ({"tags": "abc"}, {"attributes": {"a": {"b": "c"}}}):
        with pytest.raises(InvalidRequest, match=f"^{next(iter(changed))}"):
            await memory.edit("a", layer="semantic", scope=ADA, **changed)
    lines = await memory.export(owner={"user": "ada"})
    assert await memory.import_lines(lines, owner=ADA) == 1


async def test_an_attribute_of_none_is_none(memory: Memory) -> None:
    values: dict[str, Any] = {"a": None, "b": "c"}
    report = await memory.save("Fact of Ada", layer="semantic", scope=ADA, attributes=values)
    assert report.item is not None
    assert dict(report.item.attributes) == {"b": "c"}


async def test_layers_that_hold_no_memories_cannot_be_listed(memory: Memory) -> None:
    for layers in ("user", ["usr"], ["proposals"]):
        with pytest.raises(InvalidRequest, match=r"^layers: "):
            await memory.list(scope=ADA, layers=layers)


async def test_an_import_takes_nothing_of_somebody_else_and_names_the_line(memory: Memory) -> None:
    await memory.save("Fact of Ada", layer="semantic", name="a", scope=ADA)
    lines = await memory.export(owner={"user": "ada"})
    with pytest.raises(InvalidRequest, match="line 1: 'a' belongs to somebody else"):
        await memory.import_lines(lines, owner=BEN)
    with pytest.raises(InvalidRequest, match="line 2: no exported memory"):
        await memory.import_lines([*lines, "{}"], owner=ADA)


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("[" * 200_000, "line 1: no exported memory"),
        (
            json.dumps(
                {
                    "id": "m",
                    "layer": "meta",
                    "content": "x",
                    "created": NOW.isoformat(),
                    "scope": ADA,
                }
            ),
            "line 1: layer: 'meta' is none of session, project",
        ),
    ],
    ids=["nested without end", "no layer that holds items"],
)
async def test_an_import_refuses_what_no_export_gives(
    memory: Memory, line: str, fault: str
) -> None:
    with pytest.raises(InvalidRequest, match=fault):
        await memory.import_lines([line])
    assert (await memory.list(scope=ADA)).items == ()


async def test_an_import_with_one_wrong_line_stores_nothing_and_names_it(memory: Memory) -> None:
    fact = {"layer": "semantic", "content": "x", "created": NOW.isoformat(), "scope": ADA}
    lines = [json.dumps({**fact, "id": f"f{n}"}) for n in range(600)]
    for wrong in ({"relations": "Redis"}, {"due": "soon"}, {"expires_at": "soon"}):
        bad = json.dumps({**fact, "id": "bad", "attributes": wrong})
        with pytest.raises(InvalidRequest, match=f"line 601: .*attributes.{next(iter(wrong))}"):
            await memory.import_lines([*lines, bad])
    assert (await memory.list(scope=ADA)).items == ()


async def test_documents_come_back_by_an_import(memory: Memory, tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text("JWT expires after an hour.", encoding="utf-8")
    await memory.ingest(tmp_path / "note.md", scope=ADA)
    lines = await memory.export(owner=ADA)
    await memory.forget(ADA)
    assert await memory.import_lines(lines) == 1
    assert await memory.export(owner=ADA) == lines


async def test_what_is_forgotten_is_gone_from_the_disk_and_others_keep_theirs(
    memory: Memory, tmp_path: Path
) -> None:
    zelda = {"user": "zelda-quux", "project": "shop"}
    await memory.save("The zanzibar code is quokka", layer="semantic", scope=zelda)
    await memory.assemble("zanzibar", scope=zelda)
    await memory.save("Ben likes tapirs", layer="semantic", scope=BEN)
    assert (await memory.recall("zanzibar", zelda)).items
    report = await memory.forget({"user": "zelda-quux"})
    assert (report.items, report.left, report.vectors, report.waiting) == (1, 0, 0, 0)
    kept = b"".join(file.read_bytes() for file in (tmp_path / "kept").rglob("*") if file.is_file())
    assert (b"quokka" in kept, b"zelda-quux" in kept) == (False, False)
    assert b"tapir" in kept
    assert (await memory.recall("zanzibar", zelda)).items == ()
    assert (await memory.recall("tapirs", BEN)).items


async def test_the_names_of_forgotten_memory_files_are_gone_from_the_disk(
    tmp_path: Path, encoder: BundledEncoder
) -> None:
    shop = {"project": "shop"}
    async with Memory(settings_in(tmp_path, project="shop"), encoder=encoder) as memory:
        await memory.save("The mule is called Platero.", name="zanzibar-mule")
        assert (await memory.assemble("mule", scope=shop)).chunks
        await memory.forget(shop)
    kept = (file.read_bytes() for file in (tmp_path / "kept").rglob("*") if file.is_file())
    assert b"zanzibar-mule" not in b"".join(kept)


async def test_everybody_cannot_be_forgotten_at_once(memory: Memory) -> None:
    with pytest.raises(InvalidRequest, match="name a user"):
        await memory.forget({})


async def test_the_cache_can_be_cleared(memory: Memory) -> None:
    await memory.recall("What is JWT?", ADA)
    assert await memory.clear_cache() > 0
    assert (await memory.status())["cache"]["entries"] == 0


class Meanwhile(BundledEncoder):
    """While it encodes this text, somebody else changes the memory."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text
        self.change: Callable[[], object] | None = None

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self._text in texts and self.change is not None:
            change, self.change = self.change, None
            change()
        return super().encode(texts)


@pytest.mark.parametrize("edited", ["a", "b"])
async def test_changes_that_meet_are_both_kept(tmp_path: Path, edited: str) -> None:
    first, second, text = "Tokens last a day", "Tokens last a minute", "Tokens last an hour"
    encoder = Meanwhile(text if edited == "a" else second)
    store = MemoryStore.open(tmp_path, encoder=encoder)
    tracker = QueryPatternTracker(tmp_path / "patterns", clock=NOW.timestamp)
    records = Records(store, tracker, ttl_days={}, time_zone=UTC, clock=NOW.timestamp)
    for name, content in (("a", first), ("b", second)):
        records.save(MemoryItem(name, "semantic", content, NOW), supersede=())
    edit = partial(records.edit, "semantic", edited, Scope(), content=text, tags=["auth"])
    mark = partial(records.mark, "semantic", ["a"], "b", Scope())
    if edited == "a":
        encoder.change = mark
        edit(attributes=None)
    else:
        encoder.change = partial(edit, attributes=None)
        mark()
    changed = store.get("semantic", edited, Scope())
    marked = store.get("semantic", "a", Scope())
    store.close()
    tracker.close()
    assert (changed.content, changed.tags) == (text, ("auth",))
    assert marked.attributes["superseded_by"] == "b"


async def test_a_profile_leaves_out_only_what_is_marked_as_replaced(memory: Memory) -> None:
    """Of an allergy a later sentence with one of its words made the profile say nothing."""
    early = NOW - timedelta(days=90)
    texts = {"nuts": "I have a peanut allergy.", "home": "I live in Leipzig."}
    for name, text in texts.items():
        await memory.save(text, layer="user", name=name, scope=ADA, created=early)
    await memory.save("I bought a new peanut butter.", layer="user", name="butter", scope=ADA)
    moved = await memory.save("I moved to Oslo.", layer="user", name="moved", scope=ADA)
    assert [item.id for item in moved.supersedes] == ["home"]
    known = (await memory.profile(scope=ADA)).items
    assert {item.id for item in known} == {"nuts", "home", "butter", "moved"}
    await memory.save(
        "I moved to Oslo.", layer="user", name="moved", scope=ADA, supersede=moved.supersedes
    )
    known = (await memory.profile(scope=ADA)).items
    assert {item.id for item in known} == {"nuts", "butter", "moved"}


async def test_a_profile_is_whole_and_says_where_it_goes_on(memory: Memory) -> None:
    """It ended after a hundred items without a word, and the oldest allergy was not in it."""
    wasps: dict[str, Any] = {
        "layer": "user",
        "name": "wasps",
        "scope": ADA,
        "created": NOW - timedelta(days=900),
    }
    await memory.save("I am allergic to wasps.", **wasps)
    for number in range(120):
        await memory.save(f"I own record {number}.", layer="user", scope=ADA)
    whole = await memory.profile(scope=ADA)
    assert (len(whole.items), whole.items[-1].id, whole.next) == (121, "wasps", None)
    first = await memory.profile(scope=ADA, limit=100)
    rest = await memory.profile(scope=ADA, limit=100, after=first.next)
    assert (*first.items, *rest.items) == whole.items


async def test_a_page_of_a_profile_is_not_empty_while_others_follow(memory: Memory) -> None:
    await memory.save("I live in Leipzig.", layer="user", name="old", scope=ADA)
    later: dict[str, Any] = {"layer": "user", "scope": ADA, "created": NOW - timedelta(days=9)}
    await memory.save("I live in Oslo.", name="new", supersede=["old"], **later)
    page = await memory.profile(scope=ADA, limit=1)
    assert [item.id for item in page.items] == ["new"]


async def test_what_is_not_named_stays_if_the_same_text_is_saved_again(memory: Memory) -> None:
    """To mark what a memory replaces, one is asked to save it again, which lost its date."""
    early: dict[str, Any] = {"layer": "project", "scope": ADA, "created": NOW - timedelta(days=60)}
    await memory.save("We bake with spelt.", name="s1", **early)
    text = "We moved from spelt to rye."
    values: dict[str, Any] = {"tags": ["flour"], "type": "decision", "attributes": {"by": "Jonas"}}
    first = await memory.save(text, **early, **values)
    again = await memory.save(text, layer="project", scope=ADA, supersede=first.supersedes)
    assert again.item == first.item
    changed = await memory.save(text, layer="project", scope=ADA, attributes={"for": "the shop"})
    assert changed.item
    assert dict(changed.item.attributes) == {"by": "Jonas", "for": "the shop"}


async def test_a_task_that_is_saved_again_stays_done(memory: Memory) -> None:
    task: dict[str, Any] = {"layer": "prospective", "scope": ADA}
    done = {"status": "done", "due": "2026-03-05"}
    await memory.save("Pay the rent.", **task, attributes=done)
    again = await memory.save("Pay the rent.", **task)
    assert again.item
    assert dict(again.item.attributes) == done


async def test_another_text_under_a_name_takes_nothing_over(memory: Memory) -> None:
    named: dict[str, Any] = {"layer": "project", "scope": ADA, "name": "flour"}
    await memory.save("We bake with spelt.", **named, tags=["flour"])
    other = await memory.save("We bake with rye.", **named)
    assert other.item
    assert (other.item.tags, other.item.created) == ((), NOW)


@pytest.mark.parametrize("is_marked", [True, False])
async def test_what_is_said_anew_after_something_else_held_is_the_newest(
    memory: Memory, *, is_marked: bool
) -> None:
    """Who has moved back says so with the words of before."""
    for days, text in ((60, "I live in Leipzig."), (30, "I moved to Hamburg.")):
        created = NOW - timedelta(days=days)
        saved = await memory.save(text, layer="user", scope=ADA, created=created)
    if is_marked:
        await memory.save(text, layer="user", scope=ADA, supersede=saved.supersedes)
    back = await memory.save("I live in Leipzig.", layer="user", scope=ADA)
    assert back.item
    assert (back.item.created, dict(back.item.attributes)) == (NOW, {})
    found = (await memory.recall("Where do I live?", ADA)).items
    assert found[0].item.content == "I live in Leipzig."


async def test_what_happens_again_happens_now(memory: Memory) -> None:
    run: dict[str, Any] = {"layer": "episodic", "scope": ADA}
    await memory.save("I went for a run.", **run, created=NOW - timedelta(days=9))
    again = await memory.save("I went for a run.", **run)
    assert again.item
    assert again.item.created == NOW


async def test_what_would_expire_at_once_is_not_saved(memory: Memory) -> None:
    """It was reported as saved, and nothing was stored."""
    gone: dict[str, Any] = {"expires_at": (NOW - timedelta(days=1)).isoformat()}
    with pytest.raises(InvalidRequest, match="is past"):
        await memory.save("Milk voucher", layer="semantic", scope=ADA, attributes=gone)


async def test_what_a_wider_scope_holds_cannot_be_named_as_replaced(memory: Memory) -> None:
    """It was said that there is no memory of that name, though it can be read."""
    shop = {"project": "shop"}
    await memory.save("Our bank is GLS.", layer="project", name="bank", scope=shop)
    with pytest.raises(InvalidRequest, match="'bank' belongs to a wider scope"):
        await memory.save("My bank is ING.", layer="project", scope=ADA, supersede=["bank"])


async def test_a_change_of_another_thing_is_no_answer_to_the_question(memory: Memory) -> None:
    """It came first, with the relevance of the answer, because it shares a word with that."""
    early: dict[str, Any] = {"layer": "project", "scope": ADA, "created": NOW - timedelta(days=90)}
    await memory.save("The oven must be cleaned every evening.", name="clean", **early)
    moved = await memory.save("The oven was moved to the back room.", layer="project", scope=ADA)
    assert moved.supersedes == ()
    found = (await memory.recall("How often must the oven be cleaned?", ADA)).items
    assert found[0].item.id == "clean"


async def test_who_has_parted_is_told_so(memory: Memory) -> None:
    """The break-up was not shown, because it does not name what Mats was."""
    mats: dict[str, Any] = {"layer": "user", "scope": ADA, "created": NOW - timedelta(days=90)}
    await memory.save("Mats is my boyfriend.", **mats)
    await memory.save("I broke up with Mats.", layer="user", scope=ADA)
    found = (await memory.recall("Who is my boyfriend?", ADA)).items
    assert found[0].item.content == "I broke up with Mats."


async def test_an_old_text_that_is_saved_again_does_not_undo_its_correction(memory: Memory) -> None:
    """The corrected item still has the id that is made from the old text. It was overwritten, and
    the correction and its tags were lost."""
    where: dict[str, Any] = {"layer": "project", "scope": ADA}
    old, corrected = "The pump is serviced in May", "The pump is serviced in September by Rita"
    first = await memory.save(old, **where, tags=["heat"], created=NOW - timedelta(days=9))
    await memory.edit(first.name, **where, content=corrected)
    again = await memory.save(old, **where)
    assert await memory.save(old, **where) == again  # the same text is one item
    items = (await memory.list(scope=ADA)).items
    assert {item.id: (item.content, item.tags) for item in items} == {
        first.name: (corrected, ("heat",)),
        again.name: (old, ()),
    }
    assert [item.content for item in again.supersedes] == [corrected]


async def test_a_name_that_is_given_is_that_of_the_item(memory: Memory) -> None:
    where: dict[str, Any] = {"layer": "project", "scope": ADA}
    first = await memory.save("The pump is serviced in May", **where)
    await memory.edit(first.name, **where, content="The pump is serviced in June")
    await memory.save("The pump is serviced in May", **where, name=first.name)
    assert [one.content for one in (await memory.list(scope=ADA)).items] == [
        "The pump is serviced in May"
    ]


async def test_an_edit_that_would_remove_the_item_at_once_is_refused(memory: Memory) -> None:
    """It was said to be changed, and it was gone."""
    where: dict[str, Any] = {"layer": "semantic", "scope": ADA}
    await memory.save("Milk voucher", name="milk", **where)
    gone: dict[str, Any] = {"expires_at": (NOW - timedelta(days=1)).isoformat()}
    with pytest.raises(InvalidRequest, match="is past"):
        await memory.edit("milk", **where, attributes=gone)
    assert (await memory.get("milk", **where)).content == "Milk voucher"


async def test_an_import_says_which_lines_it_does_not_store_because_their_time_is_over(
    memory: Memory,
) -> None:
    """They were counted as stored, and were not there. The others of an old export are wanted."""
    rows: list[dict[str, Any]] = [
        {"id": name, "layer": "semantic", "content": name, "created": "2026-01-01T00:00:00Z"}
        for name in ("gone", "kept")
    ]
    rows[0]["attributes"] = {"expires_at": "2026-02-01T00:00:00Z"}
    left_out: list[str] = []
    told: list[tuple[int, int]] = []
    lines = [json.dumps(row) for row in rows]
    stored = await memory.import_lines(
        lines, left_out=left_out.append, progress=lambda *done: told.append(done)
    )
    assert (stored, told) == (1, [(1, 1)])
    assert left_out == ["line 1: 'gone': attributes.expires_at: 2026-02-01T00:00:00+00:00 is past"]
    assert [item.id for item in (await memory.list(scope={})).items] == ["kept"]


async def test_what_is_saved_twice_in_order_is_in_that_order(
    memory: Memory, now: list[datetime]
) -> None:
    """A script of first memories that ran twice turned each update back."""
    old, new = "I live in Mainz.", "I moved to Wiesbaden."
    for text in (old, new) * 3:
        now[0] += timedelta(seconds=1)
        await memory.save(text, layer="user", scope=ADA)
    found = await memory.recall("Where do I live?", ADA)
    assert found.items[0].item.content == new
