"""The embedded store when things go wrong: kills, damage, two processes, two sides that differ."""

from __future__ import annotations

import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from memory.remembered import NOW, ids, item
from numpy.typing import NDArray

from router.errors import StoreError
from router.memory.model import Scope
from router.memory.stores.memory_store import MemoryStore
from router.memory.stores.vector_collections import VectorCollections
from router.retrieval.encoders import WordLlamaEncoder

SMALL = 8
"""Rows that are searched exactly in these tests, so that Chroma is used for the rest."""
EVERYBODY = Scope()
NUMBERS = "zero one two three four five six seven eight nine".split()


def name_of(n: int) -> str:
    return " ".join(NUMBERS[int(digit)] for digit in str(n))


def fill(store: MemoryStore, numbers: range) -> None:
    store.save([item(f"n{n}", f"the ticket {name_of(n)} was closed") for n in numbers])


def nearest(store: MemoryStore, n: int, k: int = 1) -> list[str]:
    text = f"the ticket {name_of(n)} was closed"
    return ids(store.semantic("semantic", text, scope=EVERYBODY, k=k))


def held(folder: Path) -> tuple[set[int], set[int]]:
    """The rows that the database holds up to Chroma's mark, and those that Chroma holds."""
    with sqlite3.connect(folder / "memory.db") as db:
        (identity,) = db.execute("SELECT encoder || ' ' || id FROM memory_store").fetchone()
        rows = [row for (row,) in db.execute("SELECT row FROM vectors")]
    db.close()
    collections = VectorCollections.open(folder / "vectors", identity=identity)
    assert collections is not None
    (space,) = collections.spaces
    mark = collections.mark(space)
    found = collections.nearest(space, np.ones(256, dtype=np.float32), limit=10_000)
    collections.close()
    assert found is not None
    return {row for row in rows if row <= mark}, set(found)


CHILD = """
import sys
from pathlib import Path
from datetime import datetime, UTC
from router.memory.model import MemoryItem
from router.memory.stores.memory_store import MemoryStore
from router.retrieval.encoders import WordLlamaEncoder

store = MemoryStore.open(Path(sys.argv[1]), encoder=WordLlamaEncoder(), exact_rows=8)
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
    tmp_path: Path, encoder: WordLlamaEncoder, lines: int
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
    store = MemoryStore.open(folder, encoder=encoder, exact_rows=SMALL)
    kept = [n for n in range(last + 1) if n % 3 or n > last - 2]
    found = set(ids(store.newest("semantic", scope=EVERYBODY, k=10_000)))
    assert [n for n in kept if f"n{n}" not in found] == []
    by_words = ids(store.lexical("semantic", "ticket", scope=EVERYBODY, k=10_000))
    by_meaning = ids(store.semantic("semantic", "ticket", scope=EVERYBODY, k=10_000))
    assert set(by_words) == found
    assert set(by_meaning) == found
    store.close()
    if lines == 111:  # by then rows have moved to Chroma
        database, chroma = held(folder)
        assert database == chroma


def test_a_large_scope_is_searched_in_chroma_and_in_the_tail_as_one(
    open_store: Callable[..., MemoryStore], tmp_path: Path
) -> None:
    store = open_store(SMALL)
    fill(store, range(200))
    assert [nearest(store, n) for n in (0, 50, 120, 199)] == [["n0"], ["n50"], ["n120"], ["n199"]]
    assert len(set(nearest(store, 5, k=200))) == 200
    store.delete("semantic", ["n50"], EVERYBODY)
    store.save([item("n51", "an otter")])
    assert nearest(store, 50) != ["n50"]
    assert ids(store.semantic("semantic", "otter", scope=EVERYBODY, k=1)) == ["n51"]
    store.close()
    database, chroma = held(tmp_path / "memory")
    assert database == chroma
    assert len(chroma) > 100


def test_exact_search_and_chroma_agree(tmp_path: Path, encoder: WordLlamaEncoder) -> None:
    found = []
    for exact_rows in (SMALL, 4_096):
        store = MemoryStore.open(tmp_path / str(exact_rows), encoder=encoder, exact_rows=exact_rows)
        fill(store, range(300))
        found.append([nearest(store, n, k=5) for n in range(0, 300, 17)])
        store.close()
    agreeing = sum(len(set(a) & set(b)) for a, b in zip(*found, strict=True))
    assert agreeing >= 0.95 * 5 * len(found[0])  # Chroma's search is approximate


def test_orphaned_and_missing_vectors_are_mended_at_the_start(
    open_store: Callable[..., MemoryStore], tmp_path: Path
) -> None:
    store = open_store(SMALL)
    fill(store, range(100))
    store.close()
    folder = tmp_path / "memory"
    with sqlite3.connect(folder / "memory.db") as db:
        # As after crashes between the two sides: removed here and not in Chroma, and the reverse.
        db.execute("DELETE FROM items WHERE id IN ('n1', 'n2', 'n3')")
        (identity,) = db.execute("SELECT encoder || ' ' || id FROM memory_store").fetchone()
        (missing,) = db.execute("SELECT row FROM items WHERE id = 'n7'").fetchone()
        db.execute("UPDATE spaces SET items = items - 3")
    db.close()
    collections = VectorCollections.open(folder / "vectors", identity=identity)
    assert collections is not None
    collections.remove(collections.spaces[0], [missing])
    collections.close()
    store = open_store(SMALL)
    assert nearest(store, 7) == ["n7"]
    assert nearest(store, 1) != ["n1"]
    store.close()
    database, chroma = held(folder)
    assert database == chroma


def test_a_crash_after_the_commit_and_before_chroma_is_caught_up_with(
    open_store: Callable[..., MemoryStore], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    store = open_store(SMALL)
    fill(store, range(80))

    def crash(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(VectorCollections, "add", crash)
        patched.setattr(VectorCollections, "remove", crash)
        with pytest.raises(KeyboardInterrupt):
            fill(store, range(80, 100))
        with pytest.raises(KeyboardInterrupt):
            store.delete("semantic", ["n0"], EVERYBODY)
    store.close()
    again = open_store(SMALL)
    assert nearest(again, 95) == ["n95"]
    assert nearest(again, 0) != ["n0"]
    again.close()
    database, chroma = held(tmp_path / "memory")
    assert database == chroma


def test_a_damaged_chroma_folder_is_built_anew(
    open_store: Callable[..., MemoryStore], tmp_path: Path
) -> None:
    store = open_store(SMALL)
    fill(store, range(100))
    store.close()
    (tmp_path / "memory" / "vectors" / "chroma" / "chroma.sqlite3").write_bytes(b"not a database")
    store = open_store(SMALL)
    assert [nearest(store, n) for n in (3, 60, 99)] == [["n3"], ["n60"], ["n99"]]
    fill(store, range(100, 140))
    store.close()
    database, chroma = held(tmp_path / "memory")
    assert database == chroma
    assert len(chroma) > 50


def test_a_chroma_folder_that_is_gone_or_of_another_database_is_not_missed(
    open_store: Callable[..., MemoryStore], tmp_path: Path, encoder: WordLlamaEncoder
) -> None:
    store = open_store(SMALL)
    fill(store, range(100))
    store.close()
    other = MemoryStore.open(tmp_path / "other", encoder=encoder, exact_rows=SMALL)
    fill(other, range(900, 1000))
    other.close()
    vectors = tmp_path / "memory" / "vectors"
    shutil.rmtree(vectors)
    shutil.copytree(tmp_path / "other" / "vectors", vectors)
    store = open_store(SMALL)
    assert [nearest(store, n) for n in (3, 60, 99)] == [["n3"], ["n60"], ["n99"]]


class Reversed:
    """Another encoder: the bundled one with its dimensions in reverse, and half of them."""

    identity = "reversed"
    static = True

    def __init__(self, encoder: WordLlamaEncoder) -> None:
        self._encoder = encoder

    def encode(self, texts: list[str]) -> NDArray[np.float32]:
        vectors = self._encoder.encode(texts)[:, 255:127:-1]
        return np.asarray(vectors / np.linalg.norm(vectors, axis=1, keepdims=True))

    def encode_documents(self, documents: object) -> NDArray[np.float32]:
        raise NotImplementedError


def test_vectors_of_another_encoder_are_made_anew(
    open_store: Callable[..., MemoryStore], tmp_path: Path, encoder: WordLlamaEncoder
) -> None:
    store = open_store(SMALL)
    fill(store, range(100))
    store.close()
    other = MemoryStore.open(
        tmp_path / "memory",
        encoder=Reversed(encoder),  # type: ignore[arg-type]  # a list is a sequence
        exact_rows=SMALL,
    )
    assert [nearest(other, n) for n in (3, 60, 99)] == [["n3"], ["n60"], ["n99"]]
    other.close()


def test_another_encoder_in_another_process_takes_meaning_away_but_not_words(
    open_store: Callable[..., MemoryStore], tmp_path: Path, encoder: WordLlamaEncoder
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
    first, second = open_store(SMALL), open_store(SMALL)
    fill(first, range(100))
    assert [nearest(second, n) for n in (3, 60, 99)] == [["n3"], ["n60"], ["n99"]]
    before = first.generation
    second.save([item("otter", "an otter in the river")])
    second.delete("semantic", ["n60", "n99"], EVERYBODY)
    assert first.generation > before
    assert ids(first.search("semantic", "otter", scope=EVERYBODY, k=1)) == ["otter"]
    assert nearest(first, 99) != ["n99"]
    assert nearest(first, 60) != ["n60"]


def test_another_process_may_save_at_the_same_time(
    tmp_path: Path, encoder: WordLlamaEncoder
) -> None:
    folder = tmp_path / "memory"
    store = MemoryStore.open(folder, encoder=encoder, exact_rows=SMALL)
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


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path, encoder: WordLlamaEncoder) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="file"):
        MemoryStore.open(tmp_path / "file" / "memory", encoder=encoder)


def test_closing_leaves_no_file_open(tmp_path: Path, encoder: WordLlamaEncoder) -> None:
    store = MemoryStore.open(tmp_path / "memory", encoder=encoder, clock=NOW.timestamp)
    fill(store, range(5))
    nearest(store, 1)
    store.close()
    fds = Path("/proc/self/fd")
    targets = [str(fd.readlink()) for fd in fds.iterdir() if fd.is_symlink() and fd.exists()]
    assert [target for target in targets if str(tmp_path) in target] == []
