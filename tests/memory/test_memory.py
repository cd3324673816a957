"""Memory as one object: every layer, files and documents end to end, on real stores."""

from __future__ import annotations

import asyncio
import copy
import dataclasses
import gc
import pickle
import shutil
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest
from kept_memory import settings_in
from memory.remembered import ids
from read_only import read_only
from servers.forgetful_server import ForgetfulServer

from router.errors import ConfigurationError, InvalidRequest, StoreError, UnknownMemory
from router.memory.conformance import LayerConformance
from router.memory.contexts.context import Strategy
from router.memory.files.store import FileStore
from router.memory.layers.project import ProjectLayer
from router.memory.memory import Memory
from router.memory.model import (
    AnyLayer,
    AttributeValue,
    LayerQuery,
    LayerSpec,
    LayerStatus,
    MemoryItem,
    QueryType,
    Scope,
    ScoreKind,
)
from router.memory.parts import bundled_counter
from router.memory.query.routing_table import Route
from router.memory.stores.memory_store import MemoryStore
from router.retrieval.bundled_encoder import BundledEncoder
from router.retrieval.encoders import Encoder

NOW = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
"""A Wednesday."""
ADA = {"user": "ada", "project": "shop", "session": "s1"}
Opened = Callable[..., AbstractAsyncContextManager[Memory]]


@pytest.fixture(autouse=True)
def _clean_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SERENA_HOME", str(tmp_path / "serena"))


@pytest.fixture
def opened(tmp_path: Path, encoder: BundledEncoder) -> Opened:
    """Opens this test's memory; keywords are settings of memory, and parts."""

    @asynccontextmanager
    async def opening(
        *,
        layers: Sequence[AnyLayer] = (),
        encoder: Encoder = encoder,
        routing_table: Any = None,
        **settings: Any,
    ) -> AsyncIterator[Memory]:
        async with Memory(
            settings_in(tmp_path, **settings),
            layers=layers,
            encoder=encoder,
            routing_table=routing_table,
            clock=NOW.timestamp,
        ) as memory:
            yield memory

    return opening


@pytest.fixture
async def memory(opened: Opened) -> AsyncIterator[Memory]:
    async with opened() as made:
        yield made


def write_file(tmp_path: Path, name: str, text: str) -> None:
    """What somebody else does with a memory file of the project."""
    file = tmp_path / "project" / ".serena" / "memories" / f"{name}.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


# ---------------------------------------------------------------- a disk that can only be read


@pytest.mark.parametrize("killed", [False, True])
async def test_memory_on_a_read_only_disk_is_read_and_says_that_it_saves_nothing(
    opened: Opened, tmp_path: Path, killed: bool
) -> None:
    gone = {"expires_at": (datetime.now(UTC) - timedelta(days=1)).isoformat()}
    kept, aside = tmp_path / "kept", tmp_path / "aside"
    async with opened() as memory:
        report = await memory.save("I prefer vim as an editor", layer="user", scope=ADA)
        await memory.save("My locker's code is 17", layer="user", scope=ADA, attributes=gone)
        if killed:  # what it left behind
            shutil.copytree(kept, aside)
    if killed:
        shutil.rmtree(kept)
        aside.rename(kept)
    assert (kept / "memory.db-wal").exists() == killed
    with read_only(kept):
        async with opened() as memory:
            answer = await memory.recall("Which editor do I prefer?", ADA)
            assert [one.item.id for one in answer.items] == [report.name]
            found = await memory.search("locker editor", scope=ADA)
            assert [item.content for item in found.items] == ["I prefer vim as an editor"]
            assert ids((await memory.list(scope=ADA)).items) == [report.name]
            context = await memory.assemble("editor", token_budget=100, scope=ADA)
            assert [chunk.item_id for chunk in context.chunks] == [report.name]
            for writing in (
                memory.save("I prefer emacs", layer="user", scope=ADA),
                memory.feedback("user", useful=True, query="Which editor do I prefer?"),
            ):
                with pytest.raises(StoreError, match="can only be read here, so nothing is saved"):
                    await writing


# ---------------------------------------------------------------- recall


SAVED_AND_ASKED = {
    "session": ("The error message says: port in use", "Repeat the last error message"),
    "project": ("We chose Postgres for its JSON support", "Why did we choose Postgres here?"),
    "user": ("I prefer vim as an editor", "Which editor do I prefer?"),
    "semantic": ("JWT is a signed token that carries claims", "What is JWT?"),
    "graph": ("The gateway depends on the auth service", "What depends on the auth service?"),
    "governance": ("Rule 7 forbids force pushes", "Which rule forbids force pushes?"),
    "episodic": ("The database went down at noon", "When did the database go down?"),
    "procedural": ("To deploy to staging run make stage", "How do I deploy to staging?"),
    "prospective": ("Task: renew the certificate", "Which tasks about the certificate are due?"),
    "planning": ("Migration plan: copy, switch, delete", "What is our plan for the migration?"),
}


async def test_what_is_saved_to_a_layer_is_recalled_from_it(memory: Memory) -> None:
    for layer, (content, query) in SAVED_AND_ASKED.items():
        whose = {"user": f"user of {layer}", "project": "shop"}
        await memory.save("Lunch is served at noon on Fridays", layer="semantic", scope=whose)
        await memory.save(content, layer=layer, name="wanted", scope=whose)
        found = await memory.recall(query, whose, confidence_threshold=0.3)
        assert found.layers[0].layer == layer
        assert [(one.item.layer, one.item.id) for one in found.items] == [(layer, "wanted")]
        assert found.confidence == found.items[0].relevance
        assert found.cascade_path == ()


async def test_an_answer_is_pickled_copied_and_written_as_a_dataclass(memory: Memory) -> None:
    await memory.save("I live in York", layer="user", scope=ADA, attributes={"title": "home"})
    answer = await memory.recall("Where do I live?", ADA)
    assert answer.items
    assert pickle.loads(pickle.dumps(answer)) == answer  # noqa: S301 - our own bytes
    assert copy.deepcopy(answer) == answer
    assert dataclasses.asdict(answer)["items"][0]["item"]["attributes"] == {"title": "home"}


async def test_a_query_that_names_no_subject_is_answered_with_what_its_layer_lists(
    memory: Memory,
) -> None:
    for name, layer, days, due in (
        ("yesterday", "episodic", 1, None),
        ("february", "episodic", 20, None),
        ("talk", "session", 0, None),
        ("certificate", "prospective", 9, "2026-03-01"),
        ("launch", "prospective", 9, "2026-04-01"),
    ):
        await memory.save(
            f"Carla moved the {name} to Lisbon",
            layer=layer,
            name=name,
            scope=ADA,
            created=NOW - timedelta(days=days, minutes=5),
            attributes=None if due is None else {"due": due},
        )
    for query, wanted in (
        ("What did we do yesterday?", "yesterday"),
        ("What happened last month?", "february"),
        ("Which tasks are overdue?", "certificate"),
        ("What did I just say?", "talk"),
    ):
        found = await memory.recall(query, ADA)
        assert found.items[0].item.id == wanted
        assert found.confidence > 0.5
        assert found.cascade_path == ()


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("20 Feb to 26 Feb", "vendors"),
        ("20 February \u2013 26 February", "vendors"),
        ("24 Feb", "vendors"),
        ("Catch me up on last week", "vendors"),
        ("Fill me in on last week.", "vendors"),
        ("Give me a rundown of last week", "vendors"),
        ("What is done today?", "login"),
        ("What has been done today?", "login"),
        ("What has been done?", "login"),
    ],
)
async def test_a_query_for_what_happened_is_answered_by_the_events_of_that_time(
    memory: Memory, query: str, wanted: str
) -> None:
    for name, day, content in (
        ("vendors", "2026-02-24", "Paid the vendors"),
        ("login", "2026-03-04", "Repaired the form with Carla"),
        ("roof", "2025-08-03", "Mended the roof"),
    ):
        await memory.save(content, layer="episodic", name=name, scope=ADA, created=day)
    await memory.save("Our pipes are dated by day", layer="semantic", scope=ADA)
    await memory.save("Renew the certificate", layer="prospective", scope=ADA)
    found = await memory.recall(query, ADA)
    assert found.items[0].item.id == wanted
    assert found.confidence > 0.5


@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("What am I working on?", ["certificate"]),
        ("Which tasks are in progress?", ["certificate"]),
        ("What is on my plate?", ["certificate", "launch"]),
    ],
)
async def test_tasks_come_before_what_only_shares_a_word_with_a_query_for_tasks(
    memory: Memory, query: str, wanted: list[str]
) -> None:
    for said in ("I am a nurse and work at the clinic.", "I drive a car with the plate B-KL 4471."):
        await memory.save(said, layer="user", scope=ADA)
    for name, status in (("certificate", "in_progress"), ("launch", "open")):
        await memory.save(
            f"The {name} of Lisbon",
            layer="prospective",
            name=name,
            scope=ADA,
            attributes={"status": status},
        )
    found = [one.item for one in (await memory.recall(query, ADA)).items]
    tasks = [item.id for item in found if item.layer == "prospective"]
    assert sorted(tasks) == wanted
    assert found[: len(tasks)] == [item for item in found if item.layer == "prospective"]


@pytest.mark.parametrize(
    "query",
    [
        "What am I working on?",
        "What is on my plate?",
        "How do I get to work?",
        "What happened in Q1?",
    ],
)
async def test_what_only_lies_nearest_to_a_query_without_a_subject_is_no_answer(
    memory: Memory, query: str
) -> None:
    for layer in ("user", "semantic", "procedural", "project", "planning"):
        await memory.save("The wifi password is hunter2", layer=layer, scope=ADA)
    assert (await memory.recall(query, ADA)).items == ()


@pytest.mark.parametrize(
    ("query", "layer"),
    [
        ("What do you know about me?", "user"),
        ("user preferences", "user"),
        ("What are our conventions?", "project"),
        ("What are the rules?", "governance"),
        ("What's the plan?", "planning"),
    ],
)
async def test_a_query_for_a_kind_of_memory_is_answered_with_the_newest_of_its_layer(
    memory: Memory, query: str, layer: str
) -> None:
    for each in SAVED_AND_ASKED:
        for number in range(2):
            await memory.save(
                f"{number} herons in {each[-3:]}",
                layer=each,
                scope=ADA,
                created=NOW - timedelta(days=number),
            )
    found = await memory.recall(query, ADA)
    assert [one.item.content for one in found.items] == [
        f"{n} herons in {layer[-3:]}" for n in (0, 1)
    ]
    assert 0 < found.confidence < 0.5


@pytest.mark.parametrize("told", ["I live in Ghent.", "The user lives in Ghent."])
async def test_who_asks_about_the_user_is_told_what_the_user_said(
    memory: Memory, told: str
) -> None:
    await memory.save(told, layer="user", scope=ADA)
    await memory.save("I am allergic to hazelnuts.", layer="user", scope=ADA)
    for query, wanted in (
        ("Where does the user live?", told),
        ("Does the user have allergies?", "I am allergic to hazelnuts."),
    ):
        found = await memory.recall(query, ADA)
        assert found.items[0].item.content == wanted
        assert found.confidence > 0.5


async def test_what_something_depends_on_comes_before_what_that_depends_on(memory: Memory) -> None:
    for text in ("{} depends on {}", "The {} service depends on the {} service"):
        for day, (entity, target) in enumerate((("checkout", "cart"), ("cart", "ledger")), start=1):
            await memory.save(
                text.format(entity, target),
                layer="graph",
                name=entity,
                scope=ADA,
                created=f"2026-05-0{day}",
                attributes={"entity": entity, "relations": (f"depends on -> {target}",)},
            )
        found = await memory.recall("What does checkout depend on?", ADA)
        assert [one.item.id for one in found.items] == ["checkout", "cart"], text


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("I'm based in Lyon", "Where do I live?"),
        ("I can't eat gluten", "dietary restrictions"),
        ("the vet said half a tablet of Metacam every morning", "What did the vet say?"),
        ("scared of spiders", "What am I afraid of?"),
        ("granny is in Graz", "Where is my grandmother?"),
    ],
)
async def test_everyday_matters_are_found_in_other_words(
    memory: Memory, text: str, question: str
) -> None:
    await memory.save(text, layer="user", scope={"user": "ada"})
    found = await memory.recall(question, ADA)
    assert [one.item.content for one in found.items] == [text]


async def test_what_something_depends_on_is_found_whatever_its_name_means_elsewhere(
    memory: Memory,
) -> None:
    for entity, text, relation in (
        ("search", "search service", "depends on -> index"),
        ("index", "a list of all trips", "runs on -> elastic"),
        ("web", "front end for riders", "uses -> search"),
    ):
        attributes: dict[str, Any] = {"entity": entity, "relations": (relation,)}
        await memory.save(text, layer="graph", name=entity, scope=ADA, attributes=attributes)
    found = await memory.recall("What does search depend on?", ADA)
    assert [one.item.id for one in found.items][:2] == ["search", "index"]
    found = await memory.recall("What uses search?", ADA)
    assert [one.item.id for one in found.items] == ["web", "search"]


async def save_services(memory: Memory) -> None:
    for entity, text, relations in (
        ("checkout", "checkout is a service", ("depends on -> cart", "depends on -> ledger")),
        ("cart", "cart needs redis", ("uses -> redis",)),
        ("redis", "redis lives on box7", ("runs on -> box7",)),
        ("gear", "gear train, brass", ("made by -> Zahnrad AG",)),
        ("arm", "arm", ("depends on -> gear",)),
    ):
        given = {"entity": entity, "relations": relations}
        await memory.save(text, layer="graph", name=entity, scope=ADA, attributes=given)


@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("What depends on redis?", "cart"),
        ("What depends on cart?", "checkout"),
        ("What uses cart?", "checkout"),
        ("What depends on the gear?", "arm"),
        ("What would break if redis is down?", "cart"),
        ("What does redis depend on?", "redis"),
        ("What does cart use?", "cart"),
        ("What does the arm depend on?", "arm"),
        ("Who makes the gear?", "gear"),
    ],
)
async def test_what_has_a_relation_to_something_comes_before_that_thing_only_if_it_is_asked_for(
    memory: Memory, query: str, first: str
) -> None:
    await save_services(memory)
    found = (await memory.recall(query, ADA)).items
    assert found[0].item.id == first
    assert found[0].relevance == max(one.relevance for one in found)


@pytest.mark.parametrize("query", ["Zahnrad AG", "Zahnrad", "What does Zahnrad AG make?"])
async def test_an_item_is_found_by_what_its_relations_lead_to(memory: Memory, query: str) -> None:
    await save_services(memory)
    assert [one.item.id for one in (await memory.recall(query, ADA)).items] == ["gear"]


async def test_a_context_says_the_relations_of_an_item(memory: Memory) -> None:
    await save_services(memory)
    context = await memory.assemble("What does checkout depend on?", scope=ADA)
    assert context.chunks[0].content == (
        "checkout is a service (checkout depends on cart; checkout depends on ledger)"
    )


@pytest.mark.parametrize(
    ("query", "reached"),
    [
        ("Who supplied the spruce of guitar 041?", ["guitar 041", "spruce set 17", "Ciresa"]),
        ("Where was the spruce of guitar 041 split?", ["guitar 041", "spruce set 17", "Ciresa"]),
        ("What model is guitar 041?", ["guitar 041"]),
    ],
)
async def test_relations_are_followed_to_what_a_question_says_of_the_other_end(
    memory: Memory, query: str, reached: list[str]
) -> None:
    for entity, text, relation in (
        ("guitar 041", "Guitar 041 is a concert model.", "uses -> spruce set 17"),
        ("spruce set 17", "Spruce set 17 was split in the Alps.", "supplied by -> Ciresa"),
        ("Ciresa", "Ciresa delivers every spring.", "represented by -> Fabio"),
    ):
        said: dict[str, AttributeValue] = {"entity": entity, "relations": (relation,)}
        await memory.save(text, layer="graph", name=entity, scope=ADA, attributes=said)
    found = await memory.recall(query, ADA)
    assert [one.item.id for one in found.items] == reached


async def test_what_an_entity_uses_is_found_beside_a_fact_of_its_name(memory: Memory) -> None:
    said: dict[str, AttributeValue] = {"entity": "CA-107", "relations": ("uses -> groupset GR-4",)}
    await memory.save("Bike frame CA-107 belongs to Mireia", layer="project", scope=ADA)
    await memory.save("Frame CA-107", layer="graph", scope=ADA, attributes=said)
    found = await memory.recall("What does CA-107 use?", ADA)
    assert found.items[0].item.content == "Frame CA-107"


async def test_a_rule_that_names_the_day_asked_about_comes_first(memory: Memory) -> None:
    for day, rule in (("Friday", "forbidden"), ("Monday", "announced a day before")):
        await memory.save(f"Deploys on {day}s are {rule}.", layer="project", scope=ADA)
    for day in ("Friday", "Monday"):
        found = await memory.recall(f"May I deploy on {day}?", ADA)
        assert day in found.items[0].item.content
    for asked in ("on", "during"):
        found = await memory.recall(f"May I deploy {asked} Friday?", ADA)
        assert found.confidence > 0.3


@pytest.mark.parametrize(
    ("layer", "text", "queries"),
    [
        (
            "episodic",
            "At the Holy Grail show in Berlin we sold two parlour guitars.",
            ["Berlin", "What about Berlin?", "parlour guitars"],
        ),
        ("semantic", "Our standards stand on Bittenfelder, the spindles on M9.", ["M9"]),
        ("semantic", "Spare keys for the van are kept in drawer D-4 of the desk.", ["D-4"]),
        ("semantic", "The label is printed by Druckerei Ohm on cotton paper.", ["Ohm"]),
    ],
)
async def test_a_keyword_finds_the_memory_that_contains_it(
    memory: Memory, layer: str, text: str, queries: list[str]
) -> None:
    await memory.save(text, layer=layer, scope=ADA)
    for query in queries:
        found = await memory.recall(query, ADA)
        assert [one.item.content for one in found.items] == [text], query


@pytest.mark.parametrize(
    "query", ["Berlin", "berlin?", "What about Berlin?", "Tell me about Berlin", "How about Berlin"]
)
async def test_a_keyword_finds_each_memory_that_contains_it_however_it_is_asked_for(
    memory: Memory, query: str
) -> None:
    texts = {
        "semantic": "Berlin has twelve districts.",
        "episodic": "We sold two guitars in Berlin.",
        "project": "The Berlin office closes at six.",
        "user": "My sister lives in Berlin.",
        "prospective": "Book the train to Berlin.",
    }
    for layer, text in texts.items():
        await memory.save(text, layer=layer, scope=ADA)
    found = await memory.recall(query, ADA)
    assert {one.item.content for one in found.items} == {*texts.values()}


async def test_the_parts_of_a_code_are_no_keywords(memory: Memory) -> None:
    text = "E-22 on the display means that 17 chips block the dust hose."
    await memory.save(text, layer="semantic", scope=ADA)
    assert (await memory.recall("E-17", ADA)).items == ()


async def test_an_event_of_another_time_does_not_keep_a_recall_from_the_layer_with_the_answer(
    memory: Memory,
) -> None:
    served, price = "We served 300 litres of beer.", "A litre of beer costs 9 euros."
    await memory.save(served, layer="episodic", scope=ADA, created="2025-12-10")
    await memory.save(price, layer="project", scope=ADA, created="2025-02-15")
    found = await memory.recall("What did a litre of beer cost in April?", ADA)
    assert [one.item.content for one in found.items] == [price, served]
    when = await memory.recall("How much beer did we serve in December?", ADA)
    assert ([one.item.content for one in when.items], when.cascade_path) == ([served], ())


@pytest.mark.parametrize("query", ["What should I do next?", "What is still open?"])
async def test_what_a_layer_lists_is_told_in_its_order(memory: Memory, query: str) -> None:
    for name, due in (("stamps", None), ("june", "2026-06-01"), ("april", "2026-04-01")):
        attributes = None if due is None else {"due": due}
        await memory.save(
            f"Task {name}", layer="prospective", name=name, scope=ADA, attributes=attributes
        )
    found = await memory.recall(query, ADA)
    assert [one.item.id for one in found.items] == ["april", "june", "stamps"]


async def test_a_search_takes_days_to_be_those_of_the_time_zone_that_is_set(opened: Opened) -> None:
    async with opened(time_zone="Pacific/Kiritimati") as memory:  # 14 hours ahead: 02:00, the 5th
        for name, hours in (("here", 10), ("utc", 30)):
            moment = NOW - timedelta(hours=hours)
            await memory.save(
                f"Moved {name}", name=name, layer="episodic", scope=ADA, created=moment
            )
        assert ids((await memory.search("What did we do yesterday?", scope=ADA)).items) == ["here"]


async def test_a_time_of_saving_is_taken_as_text_too(opened: Opened) -> None:
    async with opened(time_zone="UTC") as memory:
        for given in ("2026-03-01T09:30", datetime(2026, 3, 1, 9, 30), "2026-03-01T11:30+02:00"):
            saved = await memory.save("We moved", layer="episodic", scope=ADA, created=given)
            assert saved.item and saved.item.created == datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
        for wrong in ("soon", 5):
            with pytest.raises(InvalidRequest, match=r"created: .* is not an ISO date"):
                await memory.save("We moved", layer="episodic", created=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("zone", ["America/Los_Angeles", "Europe/Berlin", "Pacific/Auckland"])
async def test_a_day_of_saving_is_that_day_in_the_time_zone_that_is_set(
    opened: Opened, zone: str
) -> None:
    async with opened(time_zone=zone) as memory:
        await memory.save("We tasted mead.", layer="episodic", scope=ADA, created="2026-02-26")
        found = await memory.recall("What happened on 26 February?", ADA)
        assert [str(one.item.created.date()) for one in found.items] == ["2026-02-26"]
        assert (await memory.recall("What happened on 25 February?", ADA)).items == ()
        listed = (await memory.list(scope=ADA)).items
        assert [str(item.created.date()) for item in listed] == ["2026-02-26"]
        context = await memory.assemble("What happened on 26 February?", scope=ADA)
        assert "2026-02-26" in context.text
        counted = await memory.recall("What do you know about mead?", ADA)
        assert any("2026-02-26 to 2026-02-26" in one.item.content for one in counted.items)


async def test_an_item_tells_the_day_of_the_time_zone_that_is_set_wherever_it_is_given(
    opened: Opened,
) -> None:
    async with opened(time_zone="Europe/Berlin") as memory:
        saved = await memory.save("Likes tea.", layer="user", scope=ADA, created="2026-02-26")
        given = [
            saved.item,
            await memory.get(saved.name, layer="user", scope=ADA),
            await memory.edit(saved.name, layer="user", scope=ADA, tags=["taste"]),
            *(await memory.profile(scope=ADA)).items,
        ]
        assert [str(item.created.date()) for item in given if item] == ["2026-02-26"] * 4


async def test_the_evidence_of_a_proposal_tells_days_of_the_time_zone_that_is_set(
    opened: Opened,
) -> None:
    async with opened(time_zone="Europe/Berlin") as memory:
        for day, value in (("2026-02-25", "MySQL"), ("2026-02-26", "Postgres")):
            content = f"Our database is {value}"
            await memory.save(content, layer="semantic", scope=ADA, created=day)
        [proposal] = await memory.consolidate(scope=ADA)
        assert proposal.evidence == (
            "2026-02-25: Our database is MySQL",
            "2026-02-26: Our database is Postgres",
        )


async def test_times_of_attributes_are_in_the_time_zone_that_is_set(opened: Opened) -> None:
    async with opened(time_zone="America/Los_Angeles") as memory:
        given = {"expires_at": "2026-03-28", "due": "2026-03-05T17:00"}
        saved = await memory.save("Pay", layer="prospective", scope=ADA, attributes=given)
        assert saved.item and dict(saved.item.attributes) == {
            "expires_at": "2026-03-28T07:00:00+00:00",
            "due": "2026-03-05T17:00:00-08:00",
        }
        changes = {"expires_at": "2026-03-29T12:00", "due": "2026-03-06"}
        edited = await memory.edit(saved.name, layer="prospective", scope=ADA, attributes=changes)
        assert dict(edited.attributes) == {
            "expires_at": "2026-03-29T19:00:00+00:00",
            "due": "2026-03-06",
        }


async def test_attributes_that_are_read_may_be_named_in_capital_letters(opened: Opened) -> None:
    zone = "Europe/Berlin"
    async with opened(time_zone=zone, layer_ttl_days={"semantic": 30}) as memory:
        given = {"Due": "2026-12-01T10:00", "Status": "blocked"}
        task = await memory.save("Pay", layer="prospective", scope=ADA, attributes=given)
        assert task.item and dict(task.item.attributes) == {
            "due": "2026-12-01T10:00:00+01:00",
            "status": "blocked",
        }
        changes = {"DUE": "2027-01-01T09:00", "Status": None}
        edited = await memory.edit(task.name, layer="prospective", scope=ADA, attributes=changes)
        assert dict(edited.attributes) == {"due": "2027-01-01T09:00:00+01:00"}

        fair = await memory.save(
            "The fair is on", layer="semantic", attributes={"Expires_At": "2026-12-01"}
        )
        assert fair.item and fair.item.attributes["expires_at"] == "2026-11-30T23:00:00+00:00"

        old = await memory.save("The code is 4711", layer="semantic", questions=["What opens it?"])
        new = await memory.save(
            "The code is 4812",
            layer="semantic",
            attributes={"Questions": ("How do I get in?",)},
            supersede=[old.name],
        )
        assert new.item and new.item.attributes["questions"] == ("How do I get in?",)


async def test_a_task_that_names_no_day_does_not_answer_when_something_is(opened: Opened) -> None:
    async with opened() as memory:

        async def first(query: str) -> str:
            return (await memory.recall(query, ADA)).items[0].item.id

        for name, layer, content in (
            ("renew", "prospective", "Renew the passport."),
            ("expiry", "user", "My passport expires in August 2027."),
        ):
            await memory.save(content, name=name, layer=layer, scope=ADA)
        assert await first("When does my passport expire?") == "expiry"
        assert await first("Until when is the passport valid?") == "expiry"
        assert await first("Do I need to renew my passport?") == "renew"
        await memory.edit("renew", layer="prospective", scope=ADA, attributes={"due": "2026-04-01"})
        assert await first("When is the passport to be renewed?") == "renew"


async def test_answers_are_cached_for_as_long_as_the_setting_says(opened: Opened) -> None:
    async with opened(cache_ttl_seconds=1e-9) as memory:
        await memory.route("What is JWT?", scope=ADA)
        again = await memory.route("What is JWT?", scope=ADA)
    assert not again.stats.cache_hit


@pytest.mark.parametrize(
    ("query", "neighbour"),
    [
        ("What is the guest wifi password?", "Home wifi password is hunter2"),
        ("What is our staging database?", "Our production database is Postgres"),
        ("What is my private email?", "My work email is ada@x.org"),
        ("When is my dentist appointment?", "My doctor appointment is on Friday"),
        ("What is my husband's name?", "my wife is called Claire"),
    ],
)
async def test_a_neighbour_of_what_is_asked_for_is_no_sure_answer(
    memory: Memory, query: str, neighbour: str
) -> None:
    await memory.save(neighbour, layer="user", scope=ADA)
    assert (await memory.recall(query, ADA)).confidence < 0.5


# ---------------------------------------------------------------- memory files


async def test_an_edit_by_somebody_else_is_seen_by_the_next_query(
    memory: Memory, tmp_path: Path
) -> None:
    query = "Why did we choose this database here?"
    write_file(tmp_path, "database", "We chose Postgres as the database here.")
    await memory.recall(query, ADA)
    write_file(tmp_path, "database", "We chose MySQL as the database here.")
    found = await memory.recall(query, ADA)
    assert [one.item.content.split()[2] for one in found.items] == ["MySQL"]


async def test_files_of_a_project_are_shown_to_it_alone_and_global_ones_to_all(
    opened: Opened, tmp_path: Path
) -> None:
    for number in range(30):
        write_file(tmp_path, f"note-{number}", "We chose Postgres, Postgres and Postgres here.")
    async with opened(project="shop") as memory:
        await memory.save("On other projects we chose Postgres too.", name="global/database")

        async def seen(scope: Mapping[str, str] | None) -> tuple[list[str], str]:
            found = await memory.route(
                "Why did we choose Postgres?", scope=scope or {}, layers=["project"]
            )
            context = await memory.assemble("Postgres", "lexical", 1000, scope=scope)
            return ids(found.results[0].items), context.text

        names, text = await seen({"project": "shop"})
        assert any(name.startswith("note-") for name in names)
        assert "Postgres and Postgres" in text
        for others in ({"project": "bank"}, None):
            names, text = await seen(others)
            assert names == ["global/database"]
            assert "Postgres and Postgres" not in text
            assert "other projects" in text


async def test_a_search_and_a_name_give_files_of_a_project_to_it_alone(
    opened: Opened, server: ForgetfulServer
) -> None:
    async with opened(service={"url": server.url, "probe_seconds": 60}, project="shop") as memory:
        await memory.save("Deploy with make release.", name="ops/deploy")
        await memory.save("Everybody tags a release.", name="global/release")
        ours = await memory.search("release", scope=ADA)
        theirs = await memory.search("release", scope={"project": "bank"})
        alone = await memory.search("release", scope={"project": "bank"}, semantic_only=True)
        names = [(await memory.get(name, scope=ADA)).id for name in ids(ours.items)]
        assert (await memory.get("global/release")).content == "Everybody tags a release."
        for name in ("ops/deploy", "global/deploy", "forgetful:1"):
            with pytest.raises(UnknownMemory) as raised:
                await memory.get(name, scope={"project": "bank"})
            assert raised.value.suggestions == ()
        with pytest.raises(UnknownMemory):
            await memory.delete("ops/deploy", scope={"project": "bank"})
        await memory.delete("ops/deploy", scope=ADA)
    assert {*names} == {"ops/deploy", "global/release"}
    assert ids(theirs.items) == ["global/release"]
    assert (alone.items, alone.service.status) == ((), LayerStatus.SKIPPED)


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"scope": ADA}, r"the scope \(user, project, session\)"),
        ({"type": "fact", "created": NOW, "usefulness": 0.9}, "type, created, usefulness"),
        ({"provenance": ["chat"], "attributes": {"due": "2026-12-01"}}, "provenance, attributes"),
        ({"supersede": ["old"], "questions": ["How?"]}, "supersede, questions"),
    ],
)
async def test_what_a_file_cannot_have_is_refused_by_its_name(
    memory: Memory, given: dict[str, Any], named: str
) -> None:
    with pytest.raises(InvalidRequest, match=f"name a layer for {named}$"):
        await memory.save("Deploy with make release", name="ops/deploy", **given)


async def test_a_recall_and_a_context_ask_the_service_too(
    opened: Opened, server: ForgetfulServer
) -> None:
    async with opened(service={"url": server.url, "probe_seconds": 60}, project="shop") as memory:
        server.add("The gateway checks tokens of every request.")
        ours = await memory.recall("What does the gateway check?", ADA)
        context = await memory.assemble("What does the gateway check?", scope=ADA)
        theirs = await memory.recall(
            "What does the gateway check?", {"user": "bob", "project": "bank"}
        )
    assert [one.item.layer for one in ours.items] == ["forgetful"]
    assert "forgetful" in {report.layer for report in ours.layers}
    assert [chunk.content for chunk in context.chunks] == [ours.items[0].item.content]
    assert theirs.items == ()


# ---------------------------------------------------------------- saving, getting, deleting


@pytest.mark.parametrize("given", ["memories", {"directory": "memories"}])
def test_what_is_no_settings_is_told_so(given: Any) -> None:
    with pytest.raises(ConfigurationError, match="settings: expected Settings, not "):
        Memory(given)


async def test_what_cannot_be_saved_is_refused_with_the_reason(memory: Memory) -> None:
    refused: list[tuple[dict[str, Any], str]] = [
        ({"layer": "meta"}, "layer: 'meta' is none of session"),
        ({"layer": "semantic", "content": 5}, "content: expected a string, not int"),
        ({"layer": "semantic", "tags": "auth"}, "tags: Input should be a valid list"),
        ({"layer": "documents"}, "layer: 'documents' is none of session"),
        ({"layer": "user"}, "needs scope.user"),
        ({"layer": "semantic", "scope": {"team": "x"}}, "scope: unknown 'team'"),
        ({"layer": "semantic", "usefulness": 2.0}, "usefulness"),
        ({"layer": "prospective", "attributes": {"due": "soon"}}, "due"),
        ({"name": "../out"}, "name"),
        # They had no bound but that of a message, some megabytes.
        ({"layer": "semantic", "type": "x" * 201}, "type: 201 characters; at most 200"),
        ({"layer": "semantic", "tags": ["a", "x" * 201]}, "tag: 201 characters; at most 200"),
        ({"layer": "semantic", "attributes": {"x" * 99_999: "yy"}}, "attributes and provenance"),
        ({"layer": "semantic", "attributes": {"x": ("y" * 99_999,)}}, "100,005 characters; at"),
        ({"layer": "semantic", "provenance": ["x" * 100_001]}, "attributes and provenance"),
    ]
    for arguments, said in refused:
        with pytest.raises(InvalidRequest) as caught:
            await memory.save(**{"content": "Something to remember"} | arguments)
        assert said in str(caught.value)


async def test_an_item_is_deleted_in_its_own_scope_only(memory: Memory) -> None:
    saved = await memory.save("JWT is a token", layer="semantic", name="jwt", scope={"user": "ada"})
    assert (saved.name, saved.layer, saved.supersedes) == ("jwt", "semantic", ())
    for scope in ({"user": "bob"}, None, ADA):
        with pytest.raises(UnknownMemory, match="no memory named 'jwt'"):
            await memory.delete("jwt", layer="semantic", scope=scope)
    await memory.delete("jwt", layer="semantic", scope={"user": "ada"})
    with pytest.raises(UnknownMemory):
        await memory.get("jwt", layer="semantic", scope={"user": "ada"})


# ---------------------------------------------------------------- classification and feedback


async def test_routes_can_be_overridden(opened: Opened) -> None:
    table = {QueryType.FACTUAL: Route({"graph": 1.0}, {"semantic": 0.5})}
    async with opened(routing_table=table) as memory:
        found = await memory.classify("What is JWT?")
        await memory.save("JWT is a signed token", layer="semantic", scope=ADA)
        answer = await memory.recall("What is JWT?", ADA)
    assert [choice.name for choice in found.layers] == ["graph"]
    assert answer.cascade_path[0].layers[0] == "semantic"


# ---------------------------------------------------------------- layers of one's own


class Recipes:
    """A plug-in on the event loop."""

    spec = LayerSpec(
        "recipes",
        "Recipes for the kitchen.",
        ("How long does pasta boil?", "What goes into a carbonara?"),
    )

    async def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        text = "Pasta boils for nine minutes."
        return [
            MemoryItem("pasta", self.spec.name, text, NOW, score=1.0, score_kind=ScoreKind.BM25)
        ]


class BlockingRecipes(Recipes):
    """The same in a thread, which it remembers."""

    def __init__(self) -> None:
        self.thread = ""

    def search(  # type: ignore[override]
        self, query: LayerQuery, *, scope: Scope, k: int
    ) -> Sequence[MemoryItem]:
        self.thread = threading.current_thread().name
        return asyncio.run(super().search(query, scope=scope, k=k))


@pytest.mark.parametrize("layer", [Recipes(), BlockingRecipes()], ids=["async", "blocking"])
async def test_a_layer_of_ones_own_is_classified_read_and_shown(
    opened: Opened, layer: AnyLayer
) -> None:
    async with opened(layers=[layer]) as memory:
        found = await memory.recall("How long does pasta boil?", ADA)
        status = await memory.status()
    assert [one.item.id for one in found.items] == ["pasta"]
    assert "recipes" in [state["name"] for state in status["layers"]]
    if isinstance(layer, BlockingRecipes):
        assert layer.thread.startswith("memory-layer-")


async def test_a_layer_of_a_built_in_ones_name_takes_its_place(opened: Opened) -> None:
    layer = Recipes()
    layer.spec = LayerSpec("semantic", "Recipes.")
    async with opened(layers=[layer]) as memory:
        found = await memory.route("Pasta?", scope=ADA, layers=["semantic"])
        status = await memory.status()
    assert ids(found.results[0].items) == ["pasta"]
    assert len(status["layers"]) == 11


ENCODER = BundledEncoder()


class TestProjectWithFiles(LayerConformance):
    """The layer ``project`` with memory files of another project beside it."""

    folder: ClassVar[Path]

    @pytest.fixture(autouse=True)
    def _in(self, tmp_path: Path) -> None:
        type(self).folder = tmp_path

    async def make_layer(self) -> AnyLayer:
        self._store = MemoryStore.open(self.folder / "kept", encoder=ENCODER)
        files = FileStore(self.folder / "project", serena_home=self.folder / "home")
        return ProjectLayer(self._store, files, project="loom")

    async def fill(self, layer: AnyLayer, items: Sequence[MemoryItem]) -> None:
        self._store.save([item for item in items if item.scope.project])
        if not (self.folder / "project").exists():
            write_file(self.folder, "loom", "To deploy the service of the loom, zanzibarloom.")

    async def close(self, layer: AnyLayer) -> None:
        self._store.close()


# ---------------------------------------------------------------- contexts


async def test_every_strategy_reads_what_it_promises(memory: Memory, tmp_path: Path) -> None:
    await memory.save("Postgres was chosen for JSON", layer="project", scope=ADA)
    await memory.save("Ben asked about Postgres", layer="episodic", scope=ADA)
    write_file(tmp_path, "database", "Postgres runs in the cellar.")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "db.md").write_text("# Postgres\nBackups of Postgres run at two.")
    await memory.ingest(tmp_path / "docs", scope=ADA)
    found = {}
    for strategy in Strategy:
        context = await memory.assemble("Postgres", strategy, 1000, scope=ADA)
        assert context.strategy is strategy
        assert context.tokens <= context.budget
        found[strategy.value] = {chunk.content.split()[-1] for chunk in context.chunks}
    assert found == {
        "lexical": {"JSON", "Postgres", "cellar."},
        "episodic": {"Postgres"},
        "hybrid": {"JSON", "Postgres", "cellar."},
        "rag": {"JSON", "Postgres", "cellar.", "two."},
    }


# ---------------------------------------------------------------- opening and closing


def open_files() -> set[str]:
    """Paths that this process holds open."""
    found = set()
    for link in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            found.add(str(link.readlink()))
    return {path for path in found if path.startswith("/")}


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="lists files by /proc")
async def test_closing_leaves_no_thread_and_no_file(opened: Opened, tmp_path: Path) -> None:
    async with opened(layers=[BlockingRecipes()]) as memory:
        await memory.save("JWT is a signed token", layer="semantic", scope=ADA)
        await memory.save("Postgres runs in the cellar.", name="database")
        await memory.recall("What is JWT?", ADA)
        await memory.recall("How long does pasta boil?", ADA)
        await memory.assemble("Postgres", scope=ADA)
        assert any(str(tmp_path / "kept") in path for path in open_files())
    assert [t.name for t in threading.enumerate() if t.name.startswith("memory-")] == []
    assert [path for path in open_files() if str(tmp_path) in path] == []


@pytest.mark.parametrize(
    "name", ["memory.db", "weights.sqlite3", "patterns.sqlite3", "outbox-*.sqlite3"]
)
async def test_one_damaged_store_is_named_the_others_are_closed_and_it_opens_when_mended(
    tmp_path: Path, encoder: BundledEncoder, name: str
) -> None:
    settings = settings_in(tmp_path, service={"url": "http://127.0.0.1:9"})
    async with Memory(settings, encoder=encoder):
        [damaged] = (tmp_path / "kept").glob(name)
    content = damaged.read_bytes()
    damaged.write_bytes(b"no database at all" * 1000)
    memory = Memory(settings, encoder=encoder)
    with pytest.raises(StoreError, match=str(damaged)):
        await memory.open()
    gc.collect()  # a store that was left open would be an error now
    assert [path for path in open_files() if str(tmp_path) in path] == []
    damaged.write_bytes(content)
    assert (await memory.recall("What is JWT?")).items == ()
    await memory.aclose()


class Nameless(Recipes):
    spec = LayerSpec("nameless", "")


@pytest.mark.parametrize("layers", [[Nameless()], [Recipes(), Recipes()]])
async def test_a_faulty_layer_of_ones_own_is_refused_and_everything_closed(
    tmp_path: Path, encoder: BundledEncoder, layers: list[AnyLayer]
) -> None:
    settings = settings_in(tmp_path, service={"url": "http://127.0.0.1:9"})
    with pytest.raises(ConfigurationError, match=layers[0].spec.name):
        async with Memory(settings, encoder=encoder, layers=layers):
            pass
    gc.collect()
    assert [path for path in open_files() if str(tmp_path) in path] == []


async def test_first_calls_that_come_together_open_it_once(
    tmp_path: Path, encoder: BundledEncoder
) -> None:
    memory = Memory(settings_in(tmp_path), encoder=encoder)
    found = await asyncio.gather(
        *(memory.save(f"Note {n}", layer="semantic", name=str(n)) for n in range(8))
    )
    files = sum(path.endswith("/weights.sqlite3") for path in open_files())
    await memory.aclose()
    assert len(found) == 8
    assert files == 1


async def test_a_cancelled_opening_leaves_nothing_open(
    tmp_path: Path, encoder: BundledEncoder
) -> None:
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()

    class Telling(Recipes):
        """Its spec is read while the stores are opened."""

        @property
        def spec(self) -> LayerSpec:  # type: ignore[override]
            loop.call_soon_threadsafe(begun.set)
            return Recipes.spec

    async def use() -> None:
        async with Memory(settings_in(tmp_path), encoder=encoder, layers=[Telling()]):
            raise AssertionError("it was cancelled before")

    using = asyncio.create_task(use())
    await begun.wait()
    using.cancel()
    with pytest.raises(asyncio.CancelledError):
        await using
    gc.collect()
    assert [path for path in open_files() if str(tmp_path) in path] == []


async def test_closing_lets_calls_under_way_end_and_refuses_later_ones(opened: Opened) -> None:
    async with opened() as memory:
        saving = [
            asyncio.create_task(memory.save(f"Note {n}", layer="semantic", name=str(n)))
            for n in range(5)
        ]
        await asyncio.sleep(0)
        await memory.aclose()
        assert len(await asyncio.gather(*saving)) == 5
        with pytest.raises(RuntimeError, match="closed"):
            await memory.recall("What is JWT?")
    async with opened() as memory:
        assert (await memory.get("4", layer="semantic")).content == "Note 4"


async def test_two_memories_share_a_folder(opened: Opened) -> None:
    async with opened() as one, opened() as other:
        await one.recall("What is JWT?", ADA)
        await other.save("JWT is a signed token", layer="semantic", scope=ADA)
        assert len((await one.recall("What is JWT?", ADA)).items) == 1


@pytest.mark.parametrize(
    ("text", "at_least"),
    [
        ("Renew the certificate", 3),
        ("x" * 20_000, 20_000),
        ("Продлите сертификат", 18),
        ("日本語のテキスト", 8),
        ("\u200b" * 500, 500),
        ("\n" * 500, 500),
        ("a" + " " * 4_000 + "b", 1_000),
        ("", 0),
    ],
)
def test_what_the_encoder_does_not_read_counts_in_a_budget_all_the_same(
    text: str, at_least: int
) -> None:
    assert at_least <= bundled_counter()(text) <= 1.3 * at_least


@pytest.mark.parametrize("name", ["sesion", "meta"])
async def test_days_of_a_layer_that_nothing_is_saved_to_are_refused(
    tmp_path: Path, encoder: BundledEncoder, name: str
) -> None:
    memory = Memory(settings_in(tmp_path, layer_ttl_days={name: 3}), encoder=encoder)
    with pytest.raises(ConfigurationError, match=f"layer_ttl_days: '{name}' is none of session, "):
        await memory.recall("What is there?", ADA)
    await memory.aclose()
