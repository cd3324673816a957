"""The vector index: what it encodes, what it survives, and who may use it."""

from __future__ import annotations

import contextlib
import logging
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from router.errors import EncoderError, StoreError
from router.retrieval.vectors import ENCODING_BATCH, WRITING_BATCH, VectorStore

DIMENSIONS = 16


def vector(name: str) -> NDArray[np.float32]:
    """A unit vector that only this name has."""
    drawn = np.random.default_rng(list(name.encode())).normal(size=DIMENSIONS)
    return np.asarray(drawn / np.linalg.norm(drawn), dtype=np.float32)


class Encode:
    """Encodes names and keeps the batches in which they came."""

    def __init__(self) -> None:
        self.batches: list[list[str]] = []

    def __call__(self, names: Sequence[str]) -> NDArray[np.float32]:
        self.batches.append(list(names))
        return np.array([vector(name) for name in names])

    @property
    def names(self) -> list[str]:
        return [name for batch in self.batches for name in batch]


@pytest.fixture
def encode() -> Encode:
    return Encode()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[VectorStore]:
    store = VectorStore.open(tmp_path / "index", identity="test")
    yield store
    store.close()


def names_in(store: VectorStore) -> set[str]:
    return set(store.digests)


def wanted(*names: str, digest: str = "1") -> dict[str, str]:
    return dict.fromkeys(names, digest)


# --- what is given


def test_vectors_come_in_the_order_of_the_names(store: VectorStore, encode: Encode) -> None:
    store.sync(wanted("a", "b", "c"), encode)
    np.testing.assert_allclose(store.vectors(["c", "a"]), [vector("c"), vector("a")], atol=1e-6)
    assert store.vectors([]).shape == (0, 0)


def test_vectors_have_unit_length(store: VectorStore) -> None:
    store.sync(wanted("a", "b"), lambda names: np.full((len(names), 4), 3, np.float32))
    np.testing.assert_allclose(store.vectors(["a", "b"]), np.full((2, 4), 0.5), atol=1e-6)


def test_zero_vectors_are_like_nothing(tmp_path: Path) -> None:
    for _ in range(2):  # made, and read from the file
        store = VectorStore.open(tmp_path, identity="test")
        store.sync(wanted("a", "b"), lambda names: np.zeros((len(names), DIMENSIONS), np.float32))
        np.testing.assert_array_equal(store.vectors(["a", "b"]), np.zeros((2, DIMENSIONS)))
        store.close()


@pytest.mark.parametrize(
    "name",
    ["日本語", "e\u0301", "\u202egit", "a\nb", "a\x00b", "🦄" * 50, "'; DROP TABLE x; --", ".."],
)
def test_any_name_is_kept_as_it_is(tmp_path: Path, encode: Encode, name: str) -> None:
    for _ in range(2):
        store = VectorStore.open(tmp_path, identity="test")
        store.sync(wanted(name, "é"), encode)
        np.testing.assert_allclose(store.vectors([name]), [vector(name)], atol=1e-6)
        assert names_in(store) == {name, "é"}
        store.close()
    assert sorted(encode.names) == sorted([name, "é"])


# --- what is encoded


def test_only_what_changed_is_encoded_again(store: VectorStore, encode: Encode) -> None:
    assert store.sync(wanted("a", "b", "c"), encode) == 3
    assert store.sync(wanted("a", "b", "c"), encode) == 0
    assert store.sync({"a": "1", "b": "2", "d": "1"}, encode) == 2
    assert encode.batches == [["a", "b", "c"], ["b", "d"]]
    assert names_in(store) == {"a", "b", "d"}


def test_a_warm_start_encodes_nothing(tmp_path: Path, encode: Encode) -> None:
    for _ in range(2):
        store = VectorStore.open(tmp_path, identity="test")
        store.sync(wanted("a", "b"), encode)
        assert names_in(store) == {"a", "b"}
        store.close()
    assert encode.batches == [["a", "b"]]


def test_another_encoder_starts_afresh(tmp_path: Path, encode: Encode) -> None:
    store = VectorStore.open(tmp_path, identity="one")
    store.sync(wanted("a", "b"), encode)
    store.close()
    store = VectorStore.open(tmp_path, identity="other")
    assert names_in(store) == set()
    # Its vectors may have other dimensions.
    store.sync(wanted("a"), lambda names: np.ones((len(names), 3), np.float32))
    assert store.vectors(["a"]).shape == (1, 3)
    store.close()


def test_progress_is_told_after_each_batch(store: VectorStore, encode: Encode) -> None:
    told: list[tuple[int, int]] = []
    total = 2 * ENCODING_BATCH + 1
    names = [f"skill-{number}" for number in range(total)]
    store.sync(wanted(*names), encode, lambda done, of: told.append((done, of)))
    assert told == [(ENCODING_BATCH, total), (2 * ENCODING_BATCH, total), (total, total)]
    assert encode.names == names


def test_an_encoder_that_fails_loses_its_batch_and_no_other(
    store: VectorStore, encode: Encode
) -> None:
    names = [f"skill-{number}" for number in range(ENCODING_BATCH + 5)]

    def failing(batch: Sequence[str]) -> NDArray[np.float32]:
        if encode.batches:
            raise EncoderError("unreachable")
        return encode(batch)

    with pytest.raises(EncoderError, match="unreachable"):
        store.sync(wanted(*names), failing)
    assert names_in(store) == set(names[:ENCODING_BATCH])
    assert store.sync(wanted(*names), encode) == 5


# --- what is written, and when


def held_by_chroma(store: VectorStore) -> set[str]:
    return set(store._collection.get(include=[])["ids"])


def test_less_than_a_batch_waits_for_save(store: VectorStore, encode: Encode) -> None:
    store.sync(wanted("a", "b"), encode)
    assert held_by_chroma(store) == set()
    store.save()
    assert held_by_chroma(store) == {"a", "b"}
    store.sync(wanted("b", "c"), encode)
    assert held_by_chroma(store) == {"a", "b"}
    store.save()
    assert held_by_chroma(store) == {"b", "c"}


def test_what_came_and_went_before_it_was_saved_is_never_written(
    store: VectorStore, encode: Encode
) -> None:
    store.sync(wanted("a", "b"), encode)
    store.sync(wanted("a"), encode)
    store.save()
    assert held_by_chroma(store) == {"a"}


def test_what_cannot_be_saved_is_tried_again(
    store: VectorStore, encode: Encode, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(**_: object) -> None:
        raise OSError("the disk is full")

    store.sync(wanted("a"), encode)
    with monkeypatch.context() as patch:
        patch.setattr(store._collection, "upsert", full)
        with pytest.raises(OSError, match="disk is full"):
            store.save()
    store.sync(wanted("a", "b"), encode)
    store.save()
    assert held_by_chroma(store) == {"a", "b"}


def test_closing_goes_on_when_nothing_can_be_saved(
    tmp_path: Path,
    encode: Encode,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def full(**_: object) -> None:
        raise OSError("the disk is full")

    store = VectorStore.open(tmp_path, identity="test")
    store.sync(wanted("a"), encode)
    monkeypatch.setattr(store._collection, "upsert", full)
    store.close()
    assert "not up to date on disk: the disk is full" in caplog.text
    again = VectorStore.open(tmp_path, identity="test")
    assert again.sync(wanted("a"), encode) == 1
    again.close()


# --- crashes and damage

CHILD = """
import sys
from pathlib import Path
import numpy as np
from router.retrieval.vectors import VectorStore
store = VectorStore.open(Path(sys.argv[1]), identity="test")
names = [f"skill-{number}" for number in range(int(sys.argv[2]))]
store.sync(
    dict.fromkeys(names, "1"),
    lambda names: np.ones((len(names), 16), np.float32),
    lambda done, total: print(done, flush=True),
)
store.save()
print("complete", flush=True)
sys.stdin.read()
"""


def child(folder: Path, rows: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(folder), str(rows)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_kill_in_the_middle_loses_at_most_a_batch(tmp_path: Path, encode: Encode) -> None:
    total = 4 * WRITING_BATCH
    with child(tmp_path, total) as process:
        assert process.stdout is not None
        encoded = next(n for line in process.stdout if (n := int(line)) > WRITING_BATCH)
        process.send_signal(signal.SIGKILL)
        encoded = max([encoded, *map(int, process.stdout)])
    assert encoded < total
    store = VectorStore.open(tmp_path, identity="test")
    names = [f"skill-{number}" for number in range(total)]
    kept = total - store.sync(wanted(*names), encode)
    # The next batch may have been encoded, and all of it written, before that could be told.
    written = encoded // WRITING_BATCH
    assert kept in (
        written * WRITING_BATCH,
        (encoded + ENCODING_BATCH) // WRITING_BATCH * WRITING_BATCH,
    )
    assert encode.names == names[kept:]
    assert names_in(store) == set(names)
    store.close()


def test_a_second_process_works_on_an_index_of_its_own(tmp_path: Path, encode: Encode) -> None:
    with child(tmp_path, 2) as process:
        assert process.stdout is not None
        assert "complete\n" in iter(process.stdout.readline, "")
        store = VectorStore.open(tmp_path, identity="test")
        assert names_in(store) == set()
        store.sync(wanted("mine"), encode)
        assert names_in(store) == {"mine"}
        store.close()
        process.communicate()
    store = VectorStore.open(tmp_path, identity="test")
    assert names_in(store) == {"skill-0", "skill-1"}
    store.close()


def _garbage(database: Path) -> None:
    database.write_bytes(b"\xffgarbage" * 1000)


def _cut(database: Path) -> None:
    database.write_bytes(database.read_bytes()[:5000])


def _overwritten(database: Path) -> None:
    content = database.read_bytes()
    database.write_bytes(content[:8192] + bytes(50_000) + content[58_192:])


def _without_table(table: str) -> Callable[[Path], None]:
    def drop(database: Path) -> None:
        connection = sqlite3.connect(database)
        connection.execute(f"DROP TABLE {table}")
        connection.close()

    return drop


@pytest.mark.parametrize(
    "damage",
    [
        _garbage,
        _cut,
        _overwritten,
        _without_table("collections"),
        _without_table("embeddings_queue"),
        _without_table("embedding_metadata"),
    ],
)
def test_a_damaged_database_is_rebuilt_with_a_warning(
    tmp_path: Path,
    encode: Encode,
    caplog: pytest.LogCaptureFixture,
    damage: Callable[[Path], None],
) -> None:
    store = VectorStore.open(tmp_path, identity="test")
    store.sync(wanted("a", "b"), encode)
    store.close()
    damage(tmp_path / "chroma" / "chroma.sqlite3")
    store = VectorStore.open(tmp_path, identity="test")
    assert [(r.levelno, r.msg) for r in caplog.records if r.name == "router.retrieval.vectors"] == [
        (logging.WARNING, "rebuilding the vector index in %s: %s")
    ]
    assert store.sync(wanted("a", "b"), encode) == 2
    assert names_in(store) == {"a", "b"}
    store.close()
    store = VectorStore.open(tmp_path, identity="test")
    assert names_in(store) == {"a", "b"}
    store.close()


def test_where_nothing_can_be_written_the_index_is_temporary(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    store = VectorStore.open(tmp_path / "file" / "index", identity="test")
    store.sync({"git": "1"}, lambda names: np.eye(len(names), 3, dtype=np.float32))
    assert names_in(store) == {"git"}
    store.close()
    assert "the index is temporary" in caplog.text


def test_an_error_lets_the_folder_go(tmp_path: Path) -> None:
    (tmp_path / "chroma").write_text("a file where the folder belongs")
    with pytest.raises(StoreError, match="cannot create the vector index"):
        VectorStore.open(tmp_path, identity="test")
    (tmp_path / "chroma").unlink()
    store = VectorStore.open(tmp_path, identity="test")
    store.close()
    assert (tmp_path / "chroma").is_dir()


# --- sharing a folder


def test_a_second_store_is_temporary_and_cleaned_up(
    tmp_path: Path, encode: Encode, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    first = VectorStore.open(tmp_path / "index", identity="test")
    first.sync(wanted("a"), encode)
    second = VectorStore.open(tmp_path / "index", identity="test")
    assert len(list(temporary.iterdir())) == 1
    second.sync(wanted("b"), encode)
    assert (names_in(first), names_in(second)) == ({"a"}, {"b"})
    second.close()
    assert list(temporary.iterdir()) == []
    assert names_in(first) == {"a"}
    first.close()


def test_closing_lets_another_store_have_the_folder(tmp_path: Path, encode: Encode) -> None:
    first = VectorStore.open(tmp_path, identity="test")
    first.sync(wanted("a"), encode)
    first.close()
    second = VectorStore.open(tmp_path, identity="test")
    assert names_in(second) == {"a"}
    second.close()


def test_any_thread_may_close_what_another_opened(tmp_path: Path, encode: Encode) -> None:
    with ThreadPoolExecutor(1) as thread:
        first = thread.submit(VectorStore.open, tmp_path, identity="test").result()
    first.sync(wanted("a"), encode)
    first.close()
    second = VectorStore.open(tmp_path, identity="test")
    assert names_in(second) == {"a"}
    second.close()


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs a /proc file system")
def test_closing_releases_the_files(tmp_path: Path, encode: Encode) -> None:
    def open_files() -> list[Path]:
        targets = []
        for place in Path("/proc/self/fd").iterdir():
            with contextlib.suppress(FileNotFoundError):  # the listing's own
                targets.append(place.readlink())
        return [target for target in targets if target.is_relative_to(tmp_path)]

    store = VectorStore.open(tmp_path, identity="test")
    store.sync(wanted("a"), encode)
    assert open_files() != []
    store.close()
    deadline = time.monotonic() + 120  # Chroma closes its files in threads of its own
    while open_files():
        assert time.monotonic() < deadline
        threading.Event().wait(0.01)
