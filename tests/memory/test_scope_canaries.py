"""Nobody is ever given what belongs to another: canaries in every scope of every layer.

300 combinations of scope and query in the suite; ``MEMORY_CANARIES=10000`` asks for more.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory.remembered import NOW, ask, item
from servers.postgres_server import PostgresServer

from router.errors import UnknownMemory
from router.memory.layers import built_in_layers
from router.memory.model import BlockingLayer, MemoryItem, Scope
from router.memory.stores.memory_store import MemoryStore
from router.memory.stores.rows import REQUIRED_SCOPE
from router.retrieval.bundled_encoder import BundledEncoder

COMBINATIONS = int(os.environ.get("MEMORY_CANARIES", "300"))

USERS = (None, "ada", "Ada", "ada\tb", "null")
PROJECTS = (None, "p", "p%", "p' OR '1'='1")
SESSIONS = (None, "s", '["ada", null, null]')
STORED = tuple(Scope(*parts) for parts in itertools.product(USERS, PROJECTS, SESSIONS))
NUMBERS = {scope: number for number, scope in enumerate(STORED)}
LAYERS = tuple(REQUIRED_SCOPE) + tuple(
    "session semantic graph governance episodic procedural prospective planning meta".split()
)


def canary(scope: Scope) -> str:
    return f"canary{NUMBERS[scope]}x"


def canaries(layer: str, scope: Scope) -> list[MemoryItem]:
    """Items that any question finds if it may."""
    needed = REQUIRED_SCOPE.get(layer)
    if needed is not None and getattr(scope, needed) is None:
        return []
    word = canary(scope)
    attributes = {
        "entity": "Beacon",
        "relations": (f"lights -> {word}", "stands by -> Harbour"),
        "actor": "Anna",
        "action": "approved",
        "subject": "the beacon",
        "due": "2024-05-16",
    }
    many = 24 if (layer, scope) == ("semantic", Scope(user="ada")) else 2
    return [
        item(
            f"{word}-{n}",
            f"Deploy the beacon at the harbour, {word}, step {n}",
            layer=layer,
            age=n % 4,
            scope=scope,
            tags=(word,),
            attributes=attributes,
        )
        for n in range(many)
    ]


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MemoryStore]:
    """All layers full of canaries."""
    folder = tmp_path_factory.mktemp("canaries")
    store = MemoryStore.open(folder, encoder=BundledEncoder(), clock=NOW.timestamp)
    store.save([one for layer in LAYERS for scope in STORED for one in canaries(layer, scope)])
    yield store
    store.close()


@pytest.fixture(scope="module")
def expected() -> Mapping[tuple[str, Scope], int]:
    """How many items each layer holds in each scope."""
    return {(layer, scope): len(canaries(layer, scope)) for layer in LAYERS for scope in STORED}


SCOPES = st.builds(
    Scope, *(st.sampled_from([*values, "stranger"]) for values in (USERS, PROJECTS, SESSIONS))
)
WORDS = st.sampled_from(
    [
        *"""deploy the beacon harbour step 0 1 Anna approved who what how do we know about pending
        overdue done tasks last week yesterday today since Monday in May 2024 light""".split(),
        *(canary(scope) for scope in STORED),
        *("ada", "p%", "' OR 1=1 --", '"', "*", "NOT", "space:1", "1:deploy", "部署"),
    ]
)
QUERIES = st.lists(WORDS, min_size=1, max_size=8).map(" ".join) | st.text(
    st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=60
).filter(lambda text: not text.isspace())


def leaks(layer: BlockingLayer, text: str, scope: Scope, k: int) -> list[str]:
    """What an answer holds that it must not."""
    others = [canary(stored) for stored in STORED if not scope.sees(stored)]
    found = []
    for one in layer.search(ask(text), scope=scope, k=k):
        told = f"{one.id} {one.content} {one.tags} {dict(one.attributes)}"
        # What the query itself says may be repeated, as in "nothing is known about …".
        if not scope.sees(one.scope) or any(w in told and w not in text for w in others):
            found.append(f"{layer.spec.name}: {told}")
    return found


@settings(max_examples=COMBINATIONS)
@given(SCOPES, QUERIES, st.integers(1, 60))
def test_no_scope_is_given_what_belongs_to_another(
    guarded: MemoryStore, scope: Scope, text: str, k: int
) -> None:
    for layer in built_in_layers(guarded):
        assert leaks(layer, text, scope, k) == []


@settings(max_examples=min(COMBINATIONS, 100))
@given(SCOPES)
def test_counts_are_of_what_one_sees(
    guarded: MemoryStore, expected: Mapping[tuple[str, Scope], int], scope: Scope
) -> None:
    for words in ("", "beacon"):
        counted = {c.layer: c.items for c in guarded.coverage(words, scope=scope)}
        seen = {
            layer: sum(expected[layer, stored] for stored in STORED if scope.sees(stored))
            for layer in LAYERS
        }
        assert counted == {layer: count for layer, count in seen.items() if count}


def test_threads_that_ask_in_different_names_are_kept_apart(guarded: MemoryStore) -> None:
    layers = built_in_layers(guarded)
    asked = [(layer, scope) for scope in STORED[::3] for layer in layers]
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda one: leaks(one[0], "deploy the beacon", one[1], 20), asked)
        assert [leak for answer in found for leak in answer] == []


def is_given(store: MemoryStore, layer: str, name: str, scope: Scope) -> bool:
    try:
        store.get(layer, name, scope)
    except UnknownMemory:
        return False
    return True


def test_what_is_asked_for_by_its_id_is_given_to_its_own_only(guarded: MemoryStore) -> None:
    for asking, stored in itertools.product(STORED[::2], STORED):
        given_to = is_given(guarded, "session", f"{canary(stored)}-0", asking)
        assert given_to == asking.sees(stored)


def test_the_same_holds_in_postgres(postgres: PostgresServer) -> None:
    with postgres.database() as url:
        store = MemoryStore.connect(url, encoder=BundledEncoder(), clock=NOW.timestamp)
        kept = ("user", "graph", "prospective")
        store.save([one for layer in kept for scope in STORED for one in canaries(layer, scope)])
        layers = [layer for layer in built_in_layers(store) if layer.spec.name in kept]
        for scope in (*STORED[::7], Scope("stranger", "p%", "' OR 1=1 --")):
            text = f"open beacon tasks of {canary(STORED[-1])}"
            assert [leak for layer in layers for leak in leaks(layer, text, scope, 60)] == []
            for stored in STORED[::7]:
                given_to = is_given(store, "graph", f"{canary(stored)}-0", scope)
                assert given_to == scope.sees(stored)
        store.close()
