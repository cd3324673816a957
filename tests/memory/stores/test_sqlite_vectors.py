"""The store in a folder: its matrices, kills, damage, two processes, two encoders."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from memory.remembered import ids, item
from numpy.typing import NDArray

from router.errors import StoreError
from router.memory.model import Scope
from router.memory.stores.lexical import index_terms, indexed
from router.memory.stores.memory_store import MemoryStore
from router.memory.stores.spaces import scope_key
from router.memory.stores.sqlite_database import _SCHEMA
from router.retrieval.bundled_encoder import BundledEncoder
from router.storage.database import Schema, opened

EVERYBODY = Scope()
VERSION_BEFORE_MARKS = 4
MARKED_WITH = ["new", 'the "new" \\ one', "neu\u00e9\U0001f600"]
NUMBERS = "zero one two three four five six seven eight nine".split()


def name_of(n: int) -> str:
    return " ".join(NUMBERS[int(digit)] for digit in str(n))


def fill(store: MemoryStore, numbers: range) -> None:
    store.save([item(f"n{n}", f"the ticket {name_of(n)} was closed") for n in numbers])


def nearest(store: MemoryStore, n: int, k: int = 1) -> list[str]:
    text = f"the ticket {name_of(n)} was closed"
    return ids(store.semantic("semantic", text, scope=EVERYBODY, k=k))


CHILD = """
import sys
from pathlib import Path
from datetime import datetime, UTC
from router.memory.model import MemoryItem
from router.memory.stores.memory_store import MemoryStore
from router.retrieval.bundled_encoder import BundledEncoder

store = MemoryStore.open(Path(sys.argv[1]), encoder=BundledEncoder())
for n in range(int(sys.argv[2]), 100_000):
    now = datetime.now(UTC)
    item = MemoryItem(id=f"n{n}", layer="semantic", content=f"ticket {n}", created=now)
    store.save([item])
    if n % 3 == 2:
        store.delete("semantic", [f"n{n - 2}"], item.scope)
    print(n, flush=True)
"""


def start_saving(folder: Path, first: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder), str(first)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


@pytest.mark.parametrize("lines", [3, 40, 111])
def test_kill_minus_nine_while_saving_loses_nothing_that_was_acknowledged(
    tmp_path: Path, encoder: BundledEncoder, lines: int
) -> None:
    folder = tmp_path / "memory"
    with start_saving(folder, 0) as child:
        assert child.stdout is not None
        for _ in range(lines - 1):
            child.stdout.readline()
        last = int(child.stdout.readline())
        child.send_signal(signal.SIGKILL)
        later = child.stdout.read().splitlines()[:-1]  # the last line may be cut
        last = max([last, *map(int, later)])
    with sqlite3.connect(folder / "memory.db") as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        db.execute("INSERT INTO postings (postings, rank) VALUES ('integrity-check', 1)")
    db.close()
    store = MemoryStore.open(folder, encoder=encoder)
    kept = [n for n in range(last + 1) if n % 3 or n > last - 2]
    found = set(ids(store.newest("semantic", scope=EVERYBODY, k=10_000)))
    assert [n for n in kept if f"n{n}" not in found] == []
    by_words = ids(store.lexical("semantic", "ticket", scope=EVERYBODY, k=10_000))
    by_meaning = ids(store.semantic("semantic", "ticket", scope=EVERYBODY, k=10_000))
    assert set(by_words) == found
    assert set(by_meaning) == found
    store.close()


def test_a_matrix_follows_what_is_written_and_removed(
    open_store: Callable[..., MemoryStore],
) -> None:
    searching, writing = open_store(), open_store()
    fill(writing, range(200))
    assert [nearest(searching, n) for n in (0, 111, 199)] == [["n0"], ["n111"], ["n199"]]
    writing.delete("semantic", ["n50", "n51"], EVERYBODY)
    writing.save([item("n51", "an otter"), item("n120", "the ticket of the harbour")])
    assert set(nearest(searching, 50, k=300)) == {f"n{n}" for n in range(200)} - {"n50"}
    assert ids(searching.semantic("semantic", "otter", scope=EVERYBODY, k=1)) == ["n51"]
    assert nearest(searching, 0) == ["n0"]


def test_a_forgotten_space_leaves_nothing_to_the_one_that_takes_its_place(
    open_store: Callable[..., MemoryStore],
) -> None:
    searching, writing = open_store(), open_store()
    ada, bob = Scope(user="ada"), Scope(user="bob")
    writing.save([item("a", "a blue otter", scope=ada)])
    assert ids(searching.semantic("semantic", "otter", scope=ada, k=1)) == ["a"]
    writing.forget(ada)
    writing.save([item(f"b{n}", f"a red harbour {n}", scope=bob) for n in range(3)])
    found = searching.semantic("semantic", "otter", scope=bob, k=5)
    assert set(ids(found)) == {"b0", "b1", "b2"}


def test_copies_of_vectors_of_an_earlier_version_are_removed(
    open_store: Callable[..., MemoryStore], tmp_path: Path
) -> None:
    copies = tmp_path / "memory" / "vectors" / "chroma"
    copies.mkdir(parents=True)
    (copies / "chroma.sqlite3").write_bytes(b"what somebody has since forgotten")
    open_store()
    assert not copies.exists()


class Reversed:
    """Another encoder: the bundled one with its dimensions in reverse, and half of them."""

    identity = "reversed"
    static = True

    def __init__(self, encoder: BundledEncoder) -> None:
        self._encoder = encoder

    def encode(self, texts: list[str]) -> NDArray[np.float32]:
        vectors = self._encoder.encode(texts)[:, 255:127:-1]
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    def encode_documents(self, documents: object) -> NDArray[np.float32]:
        raise NotImplementedError


def test_vectors_of_another_encoder_are_made_anew(
    open_store: Callable[..., MemoryStore], tmp_path: Path, encoder: BundledEncoder
) -> None:
    store = open_store()
    fill(store, range(100))
    store.close()
    other = MemoryStore.open(
        tmp_path / "memory",
        encoder=Reversed(encoder),  # type: ignore[arg-type]  # a list is a sequence
    )
    assert [nearest(other, n) for n in (3, 60, 99)] == [["n3"], ["n60"], ["n99"]]
    other.close()


def test_another_encoder_in_another_process_takes_meaning_away_but_not_words(
    open_store: Callable[..., MemoryStore], tmp_path: Path, encoder: BundledEncoder
) -> None:
    first = open_store()
    fill(first, range(10))
    other = MemoryStore.open(tmp_path / "memory", encoder=Reversed(encoder))  # type: ignore[arg-type]
    assert nearest(first, 3) == []
    first.save([item("new", "an otter")])
    assert ids(first.search("semantic", "otter", scope=EVERYBODY, k=1)) == ["new"]
    assert nearest(other, 3) == ["n3"]
    other.close()


def test_two_open_stores_see_what_the_other_saves(open_store: Callable[..., MemoryStore]) -> None:
    first, second = open_store(), open_store()
    fill(first, range(100))
    assert [nearest(second, n) for n in (3, 60, 99)] == [["n3"], ["n60"], ["n99"]]
    before = first.generation
    second.save([item("otter", "an otter in the river")])
    second.delete("semantic", ["n60", "n99"], EVERYBODY)
    assert first.generation > before
    assert ids(first.search("semantic", "otter", scope=EVERYBODY, k=1)) == ["otter"]
    assert nearest(first, 99) != ["n99"]
    assert nearest(first, 60) != ["n60"]


def test_another_process_may_save_at_the_same_time(tmp_path: Path, encoder: BundledEncoder) -> None:
    folder = tmp_path / "memory"
    store = MemoryStore.open(folder, encoder=encoder)
    with start_saving(folder, 50_000) as child:
        assert child.stdout is not None
        child.stdout.readline()
        fill(store, range(40))
        for _ in range(20):
            child.stdout.readline()
        child.kill()
        child.stdout.read()
    found = set(ids(store.newest("semantic", scope=EVERYBODY, k=10_000)))
    assert {f"n{n}" for n in range(40)} | {"n50020"} <= found
    assert set(ids(store.semantic("semantic", "ticket", scope=EVERYBODY, k=10_000))) == found
    store.close()


@pytest.mark.parametrize("damage", ["foreign", "header", "page"])
def test_a_database_that_cannot_be_read_is_named_and_left_alone(
    open_store: Callable[..., MemoryStore], tmp_path: Path, damage: str
) -> None:
    store = open_store()
    fill(store, range(300))
    store.close()
    path = tmp_path / "memory" / "memory.db"
    content = bytearray(path.read_bytes())
    if damage == "foreign":
        path.unlink()
        with sqlite3.connect(path) as db:
            db.execute("CREATE TABLE songs (name)")
        db.close()
    else:
        first, last = (0, 100) if damage == "header" else (4_096, len(content))
        content[first:last] = b"\xa5" * (last - first)
        path.write_bytes(content)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"memory\.db"):
        open_store()
    assert path.read_bytes() == before


def test_what_was_prepared_is_not_read_again(tmp_path: Path, encoder: BundledEncoder) -> None:
    store = MemoryStore.open(tmp_path, encoder=encoder)
    fill(store, range(10))
    store.close()
    store = MemoryStore.open(tmp_path, encoder=encoder)
    store.prepare_search()
    with sqlite3.connect(tmp_path / "memory.db") as db:
        db.execute("DELETE FROM vectors")  # behind its back
    db.close()
    assert nearest(store, 7) == ["n7"]
    store.close()


def test_the_vectors_of_an_earlier_version_are_those_of_the_contents(
    tmp_path: Path, encoder: BundledEncoder
) -> None:
    path = tmp_path / "memory.db"
    earlier = opened(path, Schema(_SCHEMA.steps[:3], virtual_tables=True), durable=True)
    earlier.execute("UPDATE memory_store SET encoder = ?", (encoder.identity,))
    earlier.execute(
        "INSERT INTO spaces (id, layer, scope, items, words, written) VALUES (1, ?, ?, 1, 3, 1)",
        ("semantic", scope_key(EVERYBODY)),
    )
    content = "Hazelnuts are dangerous"
    earlier.execute(
        "INSERT INTO items (row, space, id, created, usefulness, type, tags, provenance, "
        "attributes, content, length, words) "
        "VALUES (7, 1, 'nuts', 0, 0.5, 'note', '[]', '[]', '{}', ?, 3, ?)",
        (content, indexed(1, index_terms(content))),
    )
    vector = np.asarray(encoder.encode([content])[0], dtype=np.float32)
    earlier.execute("INSERT INTO vectors VALUES (7, 1, ?)", (vector.tobytes(),))
    earlier.commit()
    earlier.close()
    store = MemoryStore.open(tmp_path, encoder=encoder)
    (found,) = store.semantic("semantic", content, scope=EVERYBODY, k=5)
    assert found.id == "nuts"
    assert found.score == pytest.approx(1.0, abs=1e-5)
    assert store.delete("semantic", ["nuts"], EVERYBODY) == 1
    assert store.left_of(EVERYBODY) == (0, 0)
    store.close()


def test_marks_that_an_earlier_version_stored_are_corrected(
    open_store: Callable[..., MemoryStore], tmp_path: Path
) -> None:
    marked = [item(f"old {name}", "1", attributes={"superseded_by": name}) for name in MARKED_WITH]
    store = open_store()
    no_json = item("no JSON", "3", attributes={"superseded_by": "new", "share": float("nan")})
    store.save([*marked, no_json, *(item(name, "2") for name in MARKED_WITH)])
    store.close()
    with sqlite3.connect(tmp_path / "memory" / "memory.db") as db:
        db.executescript(
            "DROP INDEX items_by_mark; ALTER TABLE items DROP COLUMN superseded_by; "
            f"PRAGMA user_version = {VERSION_BEFORE_MARKS}"
        )
    db.close()
    store = open_store()
    store.delete("semantic", MARKED_WITH, EVERYBODY)
    assert [store.get("semantic", one.id, EVERYBODY).attributes for one in marked] == [{}] * 3


def test_what_a_process_of_an_earlier_version_marks_is_corrected(
    open_store: Callable[..., MemoryStore], tmp_path: Path
) -> None:
    """It had the file open while another one migrated it, and knows no column of marks."""
    store = open_store()
    no_json = item("no JSON", "3", attributes={"share": float("nan"), "superseded_by": "new"})
    store.save([item("old", "1"), item("new", "2"), no_json])
    with sqlite3.connect(tmp_path / "memory" / "memory.db") as db:
        db.execute("""UPDATE items SET attributes = '{"superseded_by": "new"}' WHERE id = 'old'""")
    db.close()
    store.delete("semantic", ["new"], EVERYBODY)
    assert store.get("semantic", "old", EVERYBODY).attributes == {}
    assert store.get("semantic", "no JSON", EVERYBODY).attributes.keys() == {"share"}
