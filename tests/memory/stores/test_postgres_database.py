"""The store in PostgreSQL when many use it, when the server is gone, and when text must be gone.

What it keeps and finds is tested with the other database, in ``test_memory_store``.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import psycopg
import pytest
from memory.remembered import ids, item
from psycopg.conninfo import conninfo_to_dict
from servers.postgres_server import PostgresServer
from servers.stalling_proxy import StallingProxy

from router import Memory, Settings
from router.errors import ConfigurationError, StoreAway, StoreError
from router.memory.model import Scope
from router.memory.stores import postgres_database
from router.memory.stores.memory_store import MemoryStore
from router.memory.stores.postgres_database import MIGRATIONS
from router.retrieval.bundled_encoder import BundledEncoder

EVERYBODY = Scope()
ADA = Scope(user="ada")
Connect = Callable[[], MemoryStore]


@pytest.fixture
def connect(postgres_url: str, encoder: BundledEncoder) -> Iterator[Connect]:
    """Opens the store of this test, each time as another process would."""
    with ExitStack() as opened:

        def connecting() -> MemoryStore:
            store = MemoryStore.connect(postgres_url, encoder=encoder)
            opened.callback(store.close)
            return store

        yield connecting


def found(store: MemoryStore, text: str, scope: Scope = EVERYBODY) -> list[str]:
    return ids(store.search("semantic", text, scope=scope, k=5))


def test_of_many_that_start_at_once_one_makes_the_tables(
    connect: Connect, postgres_url: str
) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute("DROP EXTENSION vector")  # each database of the tests has it from the start
    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(lambda _: connect(), range(4)))
    stores[0].save([item("a", "Redis")])
    assert [found(store, "redis") for store in stores] == [["a"]] * 4
    with psycopg.connect(postgres_url) as db:
        rows = db.execute("SELECT version FROM router_memory.memory_store").fetchall()
    assert rows == [(len(MIGRATIONS),)]


def test_marks_that_an_earlier_version_stored_are_corrected(
    connect: Connect, postgres_url: str
) -> None:
    names = ["new", 'the "new" \\ one', "neu\u00e9\U0001f600"]
    marked = [item(f"old {name}", "1", attributes={"superseded_by": name}) for name in names]
    connect().save([*marked, *(item(name, "2") for name in names)])
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute("ALTER TABLE router_memory.items DROP COLUMN superseded_by")
        db.execute("UPDATE router_memory.memory_store SET version = 2")
    store = connect()
    store.delete("semantic", names, EVERYBODY)
    assert [store.get("semantic", one.id, EVERYBODY).attributes for one in marked] == [{}] * 3


def test_what_a_process_of_an_earlier_version_marks_is_corrected(
    connect: Connect, postgres_url: str
) -> None:
    """It was connected while another one migrated, and knows no column of marks."""
    store = connect()
    store.save([item("old", "1"), item("new", "2")])
    marks = """{"its \\"superseded_by": "x", "superseded_by": "new"}"""
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute("UPDATE router_memory.items SET attributes = %s WHERE id = 'old'", (marks,))
    store.delete("semantic", ["new"], EVERYBODY)
    kept = store.get("semantic", "old", EVERYBODY).attributes
    assert kept == {'its "superseded_by': "x"}


def test_tables_of_a_later_version_are_left_alone(connect: Connect, postgres_url: str) -> None:
    connect().save([item("a", "Redis")])
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute("UPDATE router_memory.memory_store SET version = version + 1")
    with pytest.raises(StoreError, match="a later version"):
        connect()


def test_writers_at_the_same_time_lose_nothing(connect: Connect) -> None:
    stores = [connect() for _ in range(3)]

    def save(worker: int) -> None:
        for n in range(10):
            mine = item(f"{worker}-{n}", f"note {n} of worker {worker}")
            stores[worker].save([mine, item("shared", f"a note of worker {worker}")])
            stores[worker].touch([item("shared", "x"), mine])

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(save, range(3)))
    assert [c.items for c in stores[0].coverage("note", scope=EVERYBODY)] == [31]
    assert [c.items for c in stores[0].coverage("", scope=EVERYBODY)] == [31]
    assert len(stores[1].semantic("semantic", "note", scope=EVERYBODY, k=100)) == 31
    assert stores[2].generation == 30


def test_while_the_server_is_gone_it_says_so_and_afterwards_nothing_is_lost(
    connect: Connect, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("router.memory.stores.postgres_database.WAIT_SECONDS", 0.5)
    store = connect()
    saved: list[str] = []
    failed = threading.Event()

    def keep_saving() -> None:
        for n in range(10_000):
            try:
                store.save([item(f"n{n}", f"ticket {n}")])
            except StoreError:
                failed.set()
                return
            saved.append(f"n{n}")
            if n == 5:
                some.set()

    some = threading.Event()
    worker = threading.Thread(target=keep_saving)
    worker.start()
    some.wait()
    postgres.crash()
    try:
        worker.join()
        assert failed.is_set()
        for _ in range(8):  # four seconds: pauses that double without an end would have three more
            with pytest.raises(StoreError, match="postgresql://"):
                found(store, "ticket")
    finally:
        postgres.start()
    store.save([item("later", "an otter")])
    kept = set(ids(store.newest("semantic", scope=EVERYBODY, k=10_000)))
    assert kept >= {*saved, "later"}
    assert found(store, "otter")[:1] == ["later"]


def found_again(store: MemoryStore, text: str) -> list[str]:
    """What is found once the pool has a connection again."""
    while True:
        try:
            return found(store, text)
        except StoreAway:
            continue


@pytest.fixture
def proxy(postgres_url: str) -> Iterator[StallingProxy]:
    """In front of the server, which it lets hang."""
    parts = conninfo_to_dict(postgres_url)
    proxy = StallingProxy(f"{parts['host']}/.s.PGSQL.5432")
    yield proxy
    proxy.close()


@pytest.fixture
def hanging(
    postgres_url: str,
    proxy: StallingProxy,
    encoder: BundledEncoder,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[MemoryStore]:
    """A store behind the proxy, with a memory in it, that waits for a second at most."""
    parts = conninfo_to_dict(postgres_url)
    url = f"postgresql://postgres@127.0.0.1:{proxy.port}/{parts['dbname']}"
    store = MemoryStore.connect(url, encoder=encoder)
    store.save([item("a", "Redis")])
    for name in ("WAIT_SECONDS", "READ_SECONDS", "WRITE_SECONDS"):
        monkeypatch.setattr(postgres_database, name, 1.0)
    yield store
    proxy.flow()
    store.close()


def test_a_server_that_hangs_is_away_until_it_answers_again(
    hanging: MemoryStore, proxy: StallingProxy
) -> None:
    proxy.stall()
    for _ in range(3):
        with pytest.raises(StoreAway, match=rf"postgresql://127\.0\.0\.1:{proxy.port}/"):
            found(hanging, "redis")
        assert hanging.away
    proxy.flow()
    assert found_again(hanging, "redis") == ["a"]
    assert not hanging.away


@pytest.mark.parametrize("words", [b"", b"pg_tables"])
def test_a_server_that_hangs_at_the_start_is_away(
    postgres_url: str,
    proxy: StallingProxy,
    encoder: BundledEncoder,
    monkeypatch: pytest.MonkeyPatch,
    words: bytes,
) -> None:
    monkeypatch.setattr(postgres_database, "WAIT_SECONDS", 0.5)
    name = conninfo_to_dict(postgres_url)["dbname"]
    url = f"postgresql://postgres@127.0.0.1:{proxy.port}/{name}?connect_timeout=2"
    proxy.stall_at(words, pass_on=False)
    with pytest.raises(StoreAway, match=rf"postgresql://127\.0\.0\.1:{proxy.port}/"):
        MemoryStore.connect(url, encoder=encoder)
    proxy.flow()
    MemoryStore.connect(url, encoder=encoder).close()


@pytest.mark.parametrize("words", [b"BEGIN ISOLATION", b"postings @@"])
def test_a_read_that_gets_no_answer_ends_and_the_next_one_finds_it(
    hanging: MemoryStore, proxy: StallingProxy, words: bytes
) -> None:
    proxy.stall_at(words, pass_on=True)
    with pytest.raises(StoreAway, match="no answer"):
        hanging.lexical("semantic", "redis", scope=EVERYBODY, k=5)
    proxy.flow()
    assert found_again(hanging, "redis") == ["a"]


@pytest.mark.parametrize("stored", [True, False])
def test_a_save_that_is_not_confirmed_may_have_been_stored_and_says_so(
    hanging: MemoryStore, proxy: StallingProxy, *, stored: bool
) -> None:
    proxy.stall_at(b"COMMIT", pass_on=stored, after=b"INSERT INTO items")
    with pytest.raises(StoreAway, match="may have been stored"):
        hanging.save([item("b", "an otter")])
    if not stored:
        proxy.drop()
    proxy.flow()
    found_again(hanging, "otter")
    assert hanging.ids("semantic", EVERYBODY) == ({"a", "b"} if stored else {"a"})


def test_a_save_that_did_not_get_to_its_end_is_not_stored(
    hanging: MemoryStore, proxy: StallingProxy
) -> None:
    proxy.stall_at(b"INSERT INTO items", pass_on=True)
    with pytest.raises(StoreAway) as told:
        hanging.save([item("b", "an otter")])
    assert "may have been stored" not in str(told.value)
    proxy.flow()
    found_again(hanging, "otter")
    assert hanging.ids("semantic", EVERYBODY) == {"a"}


def test_while_one_call_tries_whether_it_answers_again_the_others_wait_for_nothing(
    hanging: MemoryStore, proxy: StallingProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    proxy.stall()
    with pytest.raises(StoreAway):
        found(hanging, "redis")
    monkeypatch.setattr(postgres_database, "TRIAL_SECONDS", 60.0)
    with ThreadPoolExecutor(1) as pool:
        trial = pool.submit(found, hanging, "redis")
        with pytest.raises(StoreAway, match="another call tries"):
            while True:
                found(hanging, "redis")
        assert not trial.done()
        proxy.flow()
        assert trial.result() == ["a"]


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1"])
def test_texts_are_utf_8_whatever_the_database_and_the_environment_say(
    postgres: PostgresServer,
    encoder: BundledEncoder,
    monkeypatch: pytest.MonkeyPatch,
    encoding: str,
) -> None:
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    name = f"in_{encoding.lower()}"
    with psycopg.connect(postgres.url(), autocommit=True) as db:
        db.execute(f"CREATE DATABASE {name} TEMPLATE template0 LOCALE 'C' ENCODING '{encoding}'")
    store = MemoryStore.connect(postgres.url(name), encoder=encoder)
    try:
        store.save([item("a", "the café of Zoë")])
        assert found(store, "café") == ["a"]
        if encoding == "LATIN1":  # which has no owls
            with pytest.raises(StoreError, match="no equivalent in encoding"):
                store.save([item("b", "🦉 is called Ωmega")])
        else:
            store.save([item("b", "🦉 is called Ωmega")])
            assert found(store, "Ωmega") == ["b"]
    finally:
        store.close()


def test_who_cannot_be_reached_is_named_without_the_password(encoder: BundledEncoder) -> None:
    with pytest.raises(StoreError, match=r"postgresql://127\.0\.0\.1:1/memory") as told:
        MemoryStore.connect("postgresql://ada:secret@127.0.0.1:1/memory", encoder=encoder)
    assert "secret" not in str(told.value)
    for url in ("", "ada:secret@nowhere", "postgresql://ada:secret\udcff@127.0.0.1/memory"):
        with pytest.raises(ConfigurationError, match=r"memory\.url") as refused:
            MemoryStore.connect(url, encoder=encoder)
        assert "secret" not in str(refused.value)


def test_an_administrators_help_is_asked_for_where_it_helps_and_only_there(
    postgres: PostgresServer, postgres_url: str, encoder: BundledEncoder
) -> None:
    role = f"role_{secrets.token_hex(8)}"
    url = postgres_url.replace("postgres@", f"{role}@")

    def asked(*statements: str) -> str:
        """What who has no right yet is told, after these."""
        with psycopg.connect(postgres_url, autocommit=True) as db:
            for statement in statements:
                db.execute(statement.encode())
        with pytest.raises(StoreError, match="permission denied") as told:
            MemoryStore.connect(url, encoder=encoder)
        assert not isinstance(told.value, StoreAway)
        return told.value.reason

    try:
        hint = asked("DROP EXTENSION vector", f"CREATE ROLE {role} LOGIN")
        assert "CREATE EXTENSION vector" in hint
        assert hint.endswith("CREATE SCHEMA router_memory AUTHORIZATION for this role")
        with psycopg.connect(postgres_url, autocommit=True) as db:
            db.execute("CREATE EXTENSION vector")
            db.execute(f"CREATE SCHEMA router_memory AUTHORIZATION {role}".encode())
        MemoryStore.connect(url, encoder=encoder).close()
        taken = "ALTER TABLE router_memory.memory_store OWNER TO postgres"
        assert "CREATE" not in asked(taken)
    finally:
        with psycopg.connect(postgres_url, autocommit=True) as db:
            db.execute(f"DROP OWNED BY {role} CASCADE".encode())
            db.execute(f"DROP ROLE {role}".encode())


def test_what_is_forgotten_is_gone_from_the_servers_files(
    connect: Connect, postgres: PostgresServer, postgres_url: str
) -> None:
    store = connect()
    told = "xylophone-4711"
    store.save([item(f"n{n}", f"a {told} {n}", scope=ADA, tags=(told,)) for n in range(50)])
    store.save([item("kept", "an otter")])
    with psycopg.connect(postgres_url, autocommit=True) as db:
        db.execute("ANALYZE")
    assert postgres.files_hold(told)
    assert store.forget(ADA) == 50
    assert store.left_of(ADA) == (0, 0)
    assert not postgres.files_hold(told)
    assert found(store, "otter", ADA) == ["kept"]


def test_forgetting_is_not_called_done_while_somebody_reads_the_old_state(
    connect: Connect, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = connect()
    store.save([item("a", "a secret", scope=ADA)])
    monkeypatch.setattr("router.memory.stores.postgres_database.WAIT_SECONDS", 0.1)
    with psycopg.connect(postgres_url) as reader:
        reader.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        reader.execute("SELECT 1")
        with pytest.raises(StoreError, match="older state"):
            store.forget(ADA)
    assert store.forget(ADA) == 0
    assert store.left_of(ADA) == (0, 0)


async def test_a_memory_keeps_its_layers_there(postgres_url: str, encoder: BundledEncoder) -> None:
    patient = {"layer_deadline_seconds": 60, "deadline_seconds": 60}
    settings = Settings(memory={"url": postgres_url, **patient})
    shop = {"project": "shop"}
    async with Memory(settings, encoder=encoder) as memory:
        await memory.save("We chose Postgres for its JSON support", layer="project", scope=shop)
        exported = await memory.export()
    async with Memory(settings, encoder=encoder) as memory:
        answer = await memory.recall("Why did we choose Postgres?", shop)
        assert [one.item.content for one in answer.items] == [
            "We chose Postgres for its JSON support"
        ]
        assert (await memory.status())["database"] == "PostgreSQL"
        assert (await memory.forget(shop)).items == 1
        assert await memory.import_lines(exported) == 1
    assert not (settings.memory.directory / "memory.db").exists()
