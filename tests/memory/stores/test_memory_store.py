"""The store over each of its databases: what it keeps, what it finds, and for whom."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from unittest.mock import Mock
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from memory.remembered import NOW, ids, item
from numpy.typing import NDArray

from router.errors import EncoderError, InvalidRequest, StoreError, UnknownMemory
from router.memory.model import MAX_QUERY_CHARACTERS, MemoryItem, Period, Scope, ScoreKind
from router.memory.stores.memory_store import MemoryStore
from router.memory.stores.spaces import Filter, Place
from router.retrieval.bundled_encoder import BundledEncoder
from router.retrieval.encoders import Encoder, unit

ADA = Scope(user="ada")
BOB = Scope(user="bob")
EVERYBODY = Scope()
LATEST = datetime.max.replace(tzinfo=UTC)
"""In seconds, as a float, it is rounded up into the year 10000, which no datetime can hold."""


@pytest.fixture(params=["sqlite", "postgres"])
def open_store(
    request: pytest.FixtureRequest, tmp_path: Path, encoder: BundledEncoder
) -> Iterator[Callable[..., MemoryStore]]:
    """Opens the store of this test, as often as it is called; all are closed at the end."""
    with ExitStack() as opened:
        open_one: Callable[..., MemoryStore]
        if request.param == "sqlite":
            open_one = partial(MemoryStore.open, tmp_path / "memory")
        else:
            open_one = partial(MemoryStore.connect, request.getfixturevalue("postgres_url"))

        def opening(encoder: Encoder = encoder) -> MemoryStore:
            store = open_one(encoder=encoder, clock=NOW.timestamp)
            opened.callback(store.close)
            return store

        yield opening


def find(store: MemoryStore, text: str, scope: Scope = EVERYBODY, k: int = 5) -> list[str]:
    return ids(store.search("semantic", text, scope=scope, k=k))


def test_an_item_is_as_near_as_the_nearest_of_its_texts_and_found_once(store: MemoryStore) -> None:
    asked = ("What am I allergic to?", "Which food is dangerous for me?")
    nuts = item("nuts", "Hazelnuts make my throat swell.", attributes={"questions": asked})
    store.save([nuts, item("shoes", "My shoes are blue.")])
    by_meaning = store.semantic("semantic", "Which foods are harmful?", scope=EVERYBODY, k=5)
    assert ids(by_meaning) == ["nuts", "shoes"]
    (exact, _) = store.semantic("semantic", asked[0], scope=EVERYBODY, k=5)
    assert exact.score == pytest.approx(1.0, abs=1e-5)
    assert ids(store.lexical("semantic", "allergic", scope=EVERYBODY, k=5)) == ["nuts"]
    store.save([replace(nuts, attributes={})])
    assert store.lexical("semantic", "allergic", scope=EVERYBODY, k=5) == []
    (best, _) = store.semantic("semantic", asked[0], scope=EVERYBODY, k=5)
    assert best.score is not None and best.score < 0.9
    assert store.left_of(EVERYBODY) == (2, 2)


def test_an_item_comes_back_as_it_was_saved(store: MemoryStore) -> None:
    saved = MemoryItem(
        id="auth/login",
        layer="semantic",
        content="JWT tokens expire\nafter an hour — per “RFC”",
        created=datetime(2024, 1, 2, 3, 4, 5, 678901, tzinfo=UTC),
        type="fact",
        tags=("auth", "Ünïcode tag"),
        accessed=NOW,
        usefulness=0.25,
        scope=Scope("ada", None, "monday"),
        provenance=("file:auth/login", "forgetful:17"),
        attributes={"count": 3, "share": 0.5, "yes": True, "names": ("a", "b"), "note": "\ud800"},
    )
    store.save([saved])
    assert store.get("semantic", "auth/login", Scope("ada", "engine", "monday")) == saved


def test_what_was_saved_is_there_after_opening_again(
    open_store: Callable[..., MemoryStore],
) -> None:
    store = open_store()
    store.save([item("jwt", "JWT tokens expire after an hour")])
    generation = store.generation
    store.close()
    again = open_store()
    assert find(again, "when does a JWT expire?") == ["jwt"]
    assert again.generation == generation


def test_saving_again_replaces(store: MemoryStore) -> None:
    store.save([item("port", "Redis listens on 6379"), item("other", "Kafka listens on 9092")])
    store.save([item("port", "Valkey listens on 6380")])
    assert ids(store.lexical("semantic", "redis", scope=EVERYBODY, k=5)) == []
    assert ids(store.lexical("semantic", "valkey", scope=EVERYBODY, k=5)) == ["port"]
    assert [c.items for c in store.coverage("", scope=EVERYBODY)] == [2]


def test_of_one_item_saved_twice_at_once_the_later_stays(store: MemoryStore) -> None:
    store.save([item("port", "Redis on 6379"), item("port", "Valkey on 6380")])
    assert store.get("semantic", "port", EVERYBODY).content == "Valkey on 6380"


def test_a_deleted_item_is_gone_from_every_search(store: MemoryStore) -> None:
    store.save([item("a", "Redis listens on 6379"), item("b", "Redis stores sessions")])
    find(store, "redis")  # what a search keeps in memory must not outlive the item
    assert store.delete("semantic", ["a", "never"], EVERYBODY) == 1
    assert find(store, "redis") == ["b"]
    with pytest.raises(UnknownMemory):
        store.get("semantic", "a", EVERYBODY)


def test_an_item_is_replaced_only_as_long_as_its_replacement_is_stored(store: MemoryStore) -> None:
    marks = {"superseded_by": "new", "superseded_at": NOW.isoformat(), "source": "a call"}
    store.save([item("old", "Redis listens on 6379", attributes=marks), item("new", "on 6380")])
    store.save([item("new", "on 6380", scope=ADA)])
    store.delete("semantic", ["new"], ADA)
    assert store.get("semantic", "old", EVERYBODY).attributes == marks
    store.delete("semantic", ["new"], EVERYBODY)
    assert store.get("semantic", "old", EVERYBODY).attributes == {"source": "a call"}


def test_a_mark_that_names_nothing_goes_with_the_deletion_of_that_name(store: MemoryStore) -> None:
    store.save([item("old", "Redis", attributes={"superseded_by": "never"})])
    assert store.delete("semantic", ["never"], EVERYBODY) == 0
    assert store.get("semantic", "old", EVERYBODY).attributes == {}


def marked_in_turn(count: int) -> list[MemoryItem]:
    """Items each of which the next one has replaced."""
    marks = [{"superseded_by": f"i{n + 1}"} for n in range(count)]
    return [item(f"i{n}", "Redis", attributes=mark) for n, mark in enumerate(marks)]


def test_to_delete_an_item_reads_only_its_mark_and_those_that_name_it(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.save(marked_in_turn(40))
    loads = Mock(wraps=json.loads)
    with monkeypatch.context() as patched:
        patched.setattr(json, "loads", loads)
        store.delete("semantic", ["i7"], EVERYBODY)
    read = {call.args[0] for call in loads.call_args_list} - {"[]"}  # the tags
    assert read == {'{"superseded_by": "i7"}', '{"superseded_by": "i8"}'}
    assert store.get("semantic", "i6", EVERYBODY).attributes == {"superseded_by": "i8"}


def test_of_many_that_are_deleted_at_once_the_marks_lead_over_all(store: MemoryStore) -> None:
    store.save(marked_in_turn(1_300))
    store.delete("semantic", [f"i{n}" for n in range(1, 1_300)], EVERYBODY)
    assert store.get("semantic", "i0", EVERYBODY).attributes == {"superseded_by": "i1300"}


@pytest.mark.parametrize("name", ["new", 'the "new" \\ one', "neu\u00e9\U0001f600"])
def test_a_mark_is_of_use_after_an_item_was_corrected(store: MemoryStore, name: str) -> None:
    """What is marked anew by a deletion is found by the next one."""
    store.save([item("old", "1", attributes={"superseded_by": "mid"}), item(name, "3")])
    store.save([item("mid", "2", attributes={"superseded_by": name})])
    store.delete("semantic", ["mid"], EVERYBODY)
    assert store.get("semantic", "old", EVERYBODY).attributes == {"superseded_by": name}
    store.delete("semantic", [name], EVERYBODY)
    assert store.get("semantic", "old", EVERYBODY).attributes == {}


def test_deleting_what_everybody_has_takes_more_than_seeing_it(store: MemoryStore) -> None:
    store.save([item("rule", "never force-push")])
    assert store.delete("semantic", ["rule"], ADA) == 0
    assert find(store, "force-push", ADA) == ["rule"]


def test_one_id_may_stand_for_different_items_of_different_scopes(store: MemoryStore) -> None:
    store.save([item("editor", "the editor is vim", scope=ADA)])
    store.save([item("editor", "the editor is nano", scope=BOB)])
    assert store.get("semantic", "editor", ADA).content == "the editor is vim"
    assert store.get("semantic", "editor", BOB).content == "the editor is nano"


def test_of_two_items_with_one_id_the_more_particular_answers(store: MemoryStore) -> None:
    store.save([item("editor", "the editor is nano"), item("editor", "editor: vim", scope=ADA)])
    found = store.search("semantic", "which editor?", scope=ADA, k=5)
    assert [one.content for one in found] == ["editor: vim"]
    assert store.get("semantic", "editor", ADA).content == "editor: vim"


def test_the_same_words_in_another_layer_are_not_found(store: MemoryStore) -> None:
    store.save([item("a", "Redis listens on 6379", layer="episodic")])
    assert find(store, "redis") == []


def test_scores_are_of_the_kind_that_was_asked_for(store: MemoryStore) -> None:
    store.save([item("a", "Redis listens on 6379"), item("b", "Kafka keeps a log")])
    lexical = store.lexical("semantic", "redis", scope=EVERYBODY, k=5)
    semantic = store.semantic("semantic", "redis", scope=EVERYBODY, k=5)
    fused = store.search("semantic", "redis", scope=EVERYBODY, k=5)
    assert [(one.id, one.score_kind) for one in lexical] == [("a", ScoreKind.BM25)]
    assert [one.score_kind for one in semantic] == [ScoreKind.COSINE, ScoreKind.COSINE]
    assert (fused[0].id, fused[0].score_kind) == ("a", ScoreKind.FUSED)
    assert all(one.score is not None and -1.001 <= one.score <= 1.001 for one in semantic)


def test_an_item_that_only_means_the_same_is_found(store: MemoryStore) -> None:
    store.save([item("car", "The automobile needs new tyres"), item("x", "Lunch is at noon")])
    assert find(store, "vehicle wheels", k=1) == ["car"]


@pytest.mark.parametrize(
    ("content", "query"),
    [
        ("部署流程:先测试再发布", "部署流程是什么"),
        ("Развёртывание сервиса на сервере", "как сделать развёртывание"),
        ("The C++ compiler and C# bindings", "c#"),
        ('She said "never again"', '"never again'),
        ("don't deploy on Fridays", "don't"),
    ],
)
def test_words_of_any_language_and_sign_are_found(
    store: MemoryStore, content: str, query: str
) -> None:
    store.save([item("a", content), item("b", "something else entirely")])
    assert ids(store.lexical("semantic", query, scope=EVERYBODY, k=5)) == ["a"]


def test_scores_by_words_do_not_depend_on_what_others_save(store: MemoryStore) -> None:
    store.save([item(f"a{n}", f"redis note {n}", scope=ADA) for n in range(5)])
    before = store.search("semantic", "redis note 3", scope=ADA, k=5)
    store.save([item(f"b{n}", "redis note " * 50, scope=BOB) for n in range(50)])
    assert store.search("semantic", "redis note 3", scope=ADA, k=5) == before


def test_a_common_word_does_not_hide_what_holds_only_it(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("router.memory.stores.lexical.MATCHES", 20)
    store.save([item(f"n{n}", f"carla spoke of matter {n}", age=30 - n) for n in range(30)])
    store.save([item("rare", "carla bought a xylophone", age=40)])
    found = ids(store.lexical("semantic", "carla xylophone", scope=EVERYBODY, k=31))
    assert found[0] == "rare"
    assert len(found) == 31


def test_a_period_is_a_filter_before_the_best_are_taken(store: MemoryStore) -> None:
    store.save([item(f"new{n}", "deploy deploy deploy", age=0.1) for n in range(150)])
    store.save([item("old", "the deploy in spring", age=40)])
    spring = Filter(period=Period(NOW - timedelta(days=50), NOW - timedelta(days=30)))
    for search in (store.search, store.lexical, store.semantic):
        assert ids(search("semantic", "deploy", scope=EVERYBODY, k=1, where=spring)) == ["old"]


def test_a_period_that_many_items_lie_in_filters_as_well(store: MemoryStore) -> None:
    store.save([item(f"in{n}", f"deploy number {n}", age=10) for n in range(700)])
    store.save([item(f"out{n}", f"deploy number {n}", age=1) for n in range(700)])
    wide = Filter(period=Period(NOW - timedelta(days=20), NOW - timedelta(days=5)))
    found = ids(store.search("semantic", "deploy number 7", scope=EVERYBODY, k=20, where=wide))
    assert found[0] == "in7"
    assert {one[:2] for one in found} == {"in"}


def test_a_word_is_found_in_a_wide_period_though_it_is_more_common_after_it(
    store: MemoryStore,
) -> None:
    store.save([item(f"in{n}", "deploy done", age=10) for n in range(600)])
    store.save([item(f"out{n}", "deploy done", age=1) for n in range(700)])
    wide = Filter(period=Period(NOW - timedelta(days=20), NOW - timedelta(days=5)))
    found = ids(store.lexical("semantic", "deploy", scope=EVERYBODY, k=5, where=wide))
    assert [one[:2] for one in found] == ["in"] * 5


def test_a_date_without_a_time_is_due_when_the_day_is_over_for_who_asks(store: MemoryStore) -> None:
    for day in ("14", "15", "16"):
        due = {"due": f"2024-05-{day}"}
        store.save([item(day, "Water the plants", layer="prospective", attributes=due)])
    start = datetime(2024, 5, 15, tzinfo=ZoneInfo("Europe/Berlin"))
    today = Filter(due=Period(start, start + timedelta(days=1)))
    assert ids(store.soonest("prospective", scope=EVERYBODY, k=5, where=today)) == ["15"]


def test_the_newest_come_first(store: MemoryStore) -> None:
    store.save([item("b", "two", age=2), item("a", "one", age=1, scope=ADA), item("c", "3", age=3)])
    assert ids(store.newest("semantic", scope=ADA, k=2)) == ["a", "b"]


def test_every_change_of_what_can_be_found_raises_the_generation(store: MemoryStore) -> None:
    one = item("a", "Redis listens on 6379", layer="procedural")
    seen = [store.generation]
    for write in (
        lambda: store.save([one]),
        lambda: store.delete("procedural", ["a"], EVERYBODY),
    ):
        write()
        seen.append(store.generation)
    assert seen == sorted(set(seen))


def test_what_changes_nothing_leaves_the_generation(store: MemoryStore) -> None:
    store.save([item("a", "Redis listens on 6379")])
    before = store.generation
    store.touch([item("a", "Redis listens on 6379")])
    store.save([])
    store.delete("semantic", ["never"], EVERYBODY)
    find(store, "redis")
    assert store.generation == before


def test_touching_notes_when(store: MemoryStore) -> None:
    one = item("a", "Redis listens on 6379")
    store.save([one])
    store.touch([one])
    assert store.get("semantic", "a", EVERYBODY) == replace(one, accessed=NOW)


def test_a_time_of_the_year_10000_that_was_saved_once_is_read_as_the_last_of_9999(
    store: MemoryStore,
) -> None:
    store.save([item("a", "Redis listens on 6379"), item("b", "Redis is quick")])
    with store._db.writing() as db:
        db.execute("UPDATE items SET created = ?, accessed = ?", (LATEST.timestamp(),) * 2)
    found = store.search("semantic", "redis", scope=EVERYBODY, k=5)
    assert {(one.created.year, one.accessed and one.accessed.year) for one in found} == {
        (9999,) * 2
    }
    [covered] = store.coverage("", scope=EVERYBODY)
    assert (covered.oldest.year, covered.newest.year) == (9999, 9999)
    store.save([replace(one, layer="semantic") for one in found])


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (item("a", "likes tea", layer="user", scope=Scope(project="p")), "scope.user"),
        (item("a", "uses tabs", layer="project", scope=ADA), "scope.project"),
        (item("a", "x", attributes={"due": "tomorrow"}), "attributes.due"),
        (item("a", "x", attributes={"due": 7}), "attributes.due"),
        (replace(item("a", "x"), created=LATEST), "out of the range of times"),
        (item("a", "x", attributes={"expires_at": f"{LATEST}"}), "out of the range of times"),
        (item("a", "x", type="\ud800"), "surrogate"),
        (item("a", "x", attributes={"odd": object()}), "attributes"),
    ],
)
def test_what_cannot_be_stored_is_refused_and_nothing_of_it_is_kept(
    store: MemoryStore, bad: MemoryItem, message: str
) -> None:
    with pytest.raises(InvalidRequest, match=message):
        store.save([item("good", "Redis listens on 6379"), bad])
    assert find(store, "redis") == []


@pytest.mark.parametrize("text", ["", "  ", "x" * (MAX_QUERY_CHARACTERS + 1), "nul\0", "\ud800"])
def test_a_query_that_is_no_text_is_refused(store: MemoryStore, text: str) -> None:
    with pytest.raises(InvalidRequest):
        store.search("semantic", text, scope=EVERYBODY, k=5)


def test_a_name_that_no_text_can_hold_is_refused(store: MemoryStore) -> None:
    store.save([item("a", "Redis")])
    name = "\udcff"  # what an argument that is no UTF-8 becomes
    for call in (
        lambda: store.get("semantic", name, EVERYBODY),
        lambda: store.get_stored("semantic", name, EVERYBODY),
        lambda: store.delete("semantic", [name], EVERYBODY),
        lambda: store.page(EVERYBODY, layers=[name], after=Place(), limit=5),
    ):
        with pytest.raises(InvalidRequest, match="a lone surrogate"):
            call()
    assert find(store, "redis") == ["a"]


def test_any_text_can_be_searched_for(store: MemoryStore) -> None:
    store.save([item("a", 'AND OR NOT NEAR( "quoted" * : ^ {} 部署 c++')])

    @given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=200))
    def search(text: str) -> None:
        if not text.isspace():
            assert set(find(store, text)) <= {"a"}

    search()


def test_a_closed_store_says_so(store: MemoryStore) -> None:
    store.save([item("a", "Redis")])
    store.close()
    with pytest.raises(StoreError, match="closed"):
        find(store, "redis")


def test_many_threads_may_search_while_others_save(store: MemoryStore) -> None:
    store.save([item("fixed", "the xylophone is in the attic")])
    done = threading.Event()

    def search() -> bool:
        rounds = 0
        while not done.is_set() or rounds == 0:
            rounds += 1
            if find(store, "where is the xylophone?", k=1) != ["fixed"]:
                return False
        return True

    def save(worker: int) -> None:
        for n in range(25):
            store.save([item(f"{worker}-{n}", f"note {n} of worker {worker}")])

    with ThreadPoolExecutor(6) as pool:
        searches = [pool.submit(search) for _ in range(4)]
        saves = [pool.submit(save, worker) for worker in range(2)]
        for one in saves:
            one.result()
        done.set()
        assert [found.result() for found in searches] == [True] * 4
    assert [c.items for c in store.coverage("", scope=EVERYBODY)] == [51]
    assert len(store.semantic("semantic", "note", scope=EVERYBODY, k=100)) == 51


class Failing:
    """The bundled encoder, which fails when it is told to, or whenever it is given ``refused``, and
    of which another model may take the name."""

    static = True
    identity = "failing"

    def __init__(self) -> None:
        self._encoder = BundledEncoder()
        self.encoded: list[str] = []
        self.reset()

    def reset(self) -> None:
        self.down = self.gives_no_numbers = False
        self.refused = ""
        self.width = 256
        self.encoded.clear()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.down:
            raise EncoderError("the embedding service is down")
        if self.gives_no_numbers:
            return np.full((len(texts), self.width), np.nan, dtype=np.float32)
        if self.refused in texts:
            raise EncoderError("the text is too long for the model")
        self.encoded += texts
        return unit(self._encoder.encode(texts)[:, : self.width])

    def encode_documents(self, documents: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        raise NotImplementedError


@pytest.fixture(scope="module")
def failing_model() -> Failing:
    return Failing()


@pytest.fixture
def failing(failing_model: Failing) -> Failing:
    failing_model.reset()
    return failing_model


@pytest.mark.parametrize("fault", ["down", "gives_no_numbers"])
def test_an_encoder_that_fails_or_gives_no_numbers_loses_nothing(
    open_store: Callable[..., MemoryStore], failing: Failing, fault: str
) -> None:
    store = open_store(failing)
    store.save([item("bus", "The bus leaves at noon")])
    setattr(failing, fault, True)
    store.save([item("car", "The automobile needs new tyres")])
    assert find(store, "automobile") == ["car"]
    setattr(failing, fault, False)
    store.save([item("x", "Lunch is at noon")])
    assert ids(store.semantic("semantic", "vehicle", scope=EVERYBODY, k=1)) == ["car"]
    store.close()


def test_a_text_that_the_encoder_never_takes_costs_no_other_its_vector(
    open_store: Callable[..., MemoryStore], failing: Failing
) -> None:
    log = "a log of a thousand pages"
    failing.refused = log
    store = open_store(failing)
    store.save([item("car", "The automobile needs new tyres"), item("log", log)])
    assert ids(store.semantic("semantic", "vehicle", scope=EVERYBODY, k=2)) == ["car"]
    assert find(store, "thousand pages")[0] == "log"
    failing.down = True
    store.save([item("x", "Lunch is at noon")])
    failing.down = False
    store.save([item("y", "Dinner is at eight")])
    found = store.semantic("semantic", "When do we eat?", scope=EVERYBODY, k=5)
    assert {*ids(found)} == {"car", "x", "y"}
    store.close()
    failing.refused = ""
    again = open_store(failing)
    assert {*ids(again.semantic("semantic", "book", scope=EVERYBODY, k=5))} == {
        "car",
        "x",
        "y",
        "log",
    }


def test_what_a_query_that_the_encoder_never_takes_looks_for_is_found_by_words(
    open_store: Callable[..., MemoryStore], failing: Failing
) -> None:
    store = open_store(failing)
    store.save([item("car", "The automobile needs new tyres")])
    failing.refused = "automobile tyres"
    assert find(store, failing.refused) == ["car"]


@pytest.mark.parametrize("saves_first", [False, True])
def test_vectors_of_a_model_that_another_has_taken_the_name_of_are_made_anew(
    open_store: Callable[..., MemoryStore], failing: Failing, saves_first: bool
) -> None:
    store = open_store(failing)
    store.save([item("car", "The automobile needs new tyres"), item("x", "Lunch is at noon")])
    assert ids(store.semantic("semantic", "vehicle", scope=EVERYBODY, k=1)) == ["car"]
    open_too = open_store(failing)
    open_too.prepare_search()
    failing.width = 128
    if saves_first:
        store.save([item("bus", "The bus leaves at noon")])
    assert find(store, "automobile")[0] == "car"
    assert len(store.text_vectors.of(["Lunch is at noon", "What is for lunch?"])[0]) == 128
    for one in (store, open_too, open_store(failing)):
        one.prepare_search()
        found = one.semantic("semantic", "a vehicle with tyres", scope=EVERYBODY, k=5)
        assert ids(found)[0] == "car"
        assert len(found) == 2 + saves_first


def test_several_layers_that_ask_the_same_encode_it_once(
    open_store: Callable[..., MemoryStore], failing: Failing
) -> None:
    store = open_store(failing)
    store.save([item("a", "Redis", layer=layer) for layer in ("semantic", "episodic", "graph")])
    failing.encoded.clear()
    with ThreadPoolExecutor(3) as pool:
        layers = ("semantic", "episodic", "graph")
        found = list(
            pool.map(lambda layer: store.search(layer, "what?", scope=EVERYBODY, k=1), layers)
        )
    assert [len(one) for one in found] == [1, 1, 1]
    assert failing.encoded == ["what?"]
    store.close()


def test_nothing_is_saved_to_a_file_that_was_deleted(
    tmp_path: Path, encoder: BundledEncoder
) -> None:
    store = MemoryStore.open(tmp_path, encoder=encoder, clock=NOW.timestamp)
    store.save([item("nuts", "Hazelnuts make my throat swell.")])
    for file in tmp_path.iterdir():
        file.unlink()
    with pytest.raises(StoreError, match="deleted or replaced while it was in use"):
        store.save([item("shoes", "My shoes are blue.")])
    store.close()
    assert list(tmp_path.iterdir()) == []
