"""The vector store: what it encodes, what it keeps, and what it shares."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from servers.loopback import HANG, LoopbackServer, Recorded, Reply

from router.errors import EncoderError, StoreError
from router.retrieval.documents import SkillDocument
from router.retrieval.embedding_cache import Vectors
from router.retrieval.embedding_chroma import ChromaCache
from router.retrieval.vectors import (
    ENCODING_BATCH,
    FILE,
    WORTH_KEEPING,
    VectorStore,
)
from router.skills.manifest import SkillManifest, parse_manifest

DIMENSIONS = 16


def vector(name: str) -> NDArray[np.float32]:
    """A unit vector that only this name has."""
    drawn = np.random.default_rng(list(name.encode())).normal(size=DIMENSIONS)
    return np.asarray(drawn / np.linalg.norm(drawn), dtype=np.float32)


class Texts:
    """Some texts, each its own key, and which of them were encoded, by batch."""

    def __init__(self, *names: str) -> None:
        self.names = names
        self.batches: list[list[str]] = []

    def encode(self, places: Sequence[int]) -> NDArray[np.float32]:
        self.batches.append([self.names[place] for place in places])
        return np.array([vector(name) for name in self.batches[-1]])

    @property
    def encoded(self) -> list[str]:
        return [name for batch in self.batches for name in batch]


def ask(store: VectorStore, *names: str) -> list[str]:
    """Look names up, check their vectors, and say which were encoded."""
    texts = Texts(*names)
    found, number = store.vectors(names, texts.encode)
    np.testing.assert_allclose(found, [vector(name) for name in names], atol=1e-6)
    assert number == len(texts.encoded)
    return texts.encoded


@pytest.fixture
def store(tmp_path: Path) -> Iterator[VectorStore]:
    store = VectorStore(tmp_path / "embeddings", identity="test")
    yield store
    store.close()


def test_vectors_come_in_the_order_of_the_keys(store: VectorStore) -> None:
    assert ask(store, "b", "a", "c") == ["b", "a", "c"]
    assert ask(store, "c", "b") == []
    assert ask(store, "d", "a", "e", "a") == ["d", "e"]
    assert store.vectors([], Texts().encode)[1] == 0


def test_vectors_have_unit_length(store: VectorStore) -> None:
    found, _ = store.vectors(["a", "0"], lambda _: np.array([[3.0, 4.0], [0.0, 0.0]], np.float32))
    assert found.tolist() == [[pytest.approx(0.6), pytest.approx(0.8)], [0.0, 0.0]]


def test_a_warm_start_encodes_nothing(tmp_path: Path) -> None:
    for expected in (["a", "b"], []):
        store = VectorStore(tmp_path, identity="test")
        assert ask(store, "a", "b") == expected
        store.close()


def test_a_change_of_the_encoder_loses_nothing(tmp_path: Path) -> None:
    for identity, expected in (("one", ["a"]), ("two", ["a"]), ("one", []), ("two", [])):
        store = VectorStore(tmp_path, identity=identity)
        assert ask(store, "a") == expected
        store.close()


def test_progress_is_told_after_each_batch(store: VectorStore) -> None:
    names = [str(number) for number in range(ENCODING_BATCH + 1)]
    told: list[tuple[int, int]] = []
    store.vectors(names, Texts(*names).encode, lambda done, total: told.append((done, total)))
    assert told == [(ENCODING_BATCH, len(names)), (len(names), len(names))]


def test_an_encoder_that_fails_loses_its_batch_and_no_other(store: VectorStore) -> None:
    names = [str(number) for number in range(3 * ENCODING_BATCH)]
    texts = Texts(*names)

    def encode(places: Sequence[int]) -> NDArray[np.float32]:
        if len(texts.batches) == 2:
            raise EncoderError("gone")
        return texts.encode(places)

    with pytest.raises(EncoderError, match="gone"):
        store.vectors(names, encode)
    assert ask(store, *names) == names[2 * ENCODING_BATCH :]


def test_another_dimension_under_the_same_name_is_encoded_again(tmp_path: Path) -> None:
    store = VectorStore(tmp_path, identity="test")
    store.vectors(["a", "b"], lambda places: np.ones((len(places), 3), np.float32))
    store.close()
    store = VectorStore(tmp_path, identity="test")
    found, _ = store.vectors(["a", "c"], Texts("a", "c").encode)
    np.testing.assert_allclose(found, [vector("a"), vector("c")], atol=1e-6)
    assert ask(store, "a", "c") == []
    store.close()


@pytest.mark.parametrize("damage", [b"", b"abc", b"\x00\x00\xc0\x7f" * DIMENSIONS])
def test_a_damaged_row_is_encoded_again(tmp_path: Path, damage: bytes) -> None:
    store = VectorStore(tmp_path, identity="test")
    ask(store, "a", "b")
    store.close()
    db = sqlite3.connect(tmp_path / FILE)
    db.execute("UPDATE vectors SET vector = ? WHERE key = 'a'", (damage,))
    db.commit()
    db.close()
    store = VectorStore(tmp_path, identity="test")
    assert ask(store, "a", "b") == ["a"]
    store.close()


@pytest.mark.parametrize("text", [b"no database" * 1000, b""])
def test_a_damaged_file_is_begun_anew(tmp_path: Path, text: bytes) -> None:
    (tmp_path / FILE).write_bytes(text)
    for expected in (["a"], []):
        store = VectorStore(tmp_path, identity="test")
        assert ask(store, "a") == expected
        store.close()


def test_damage_that_shows_later_is_begun_anew(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    names = [str(number) for number in range(100)]
    store = VectorStore(tmp_path, identity="test")
    ask(store, *names)
    store.close()
    content = bytearray((tmp_path / FILE).read_bytes())
    content[8192:] = b"\xa5" * (len(content) - 8192)
    (tmp_path / FILE).write_bytes(content)
    store = VectorStore(tmp_path, identity="test")
    assert ask(store, *names) == names
    store.close()
    assert "encoding again" in caplog.text
    store = VectorStore(tmp_path, identity="test")
    assert ask(store, *names) == []
    store.close()


def test_where_no_file_can_be_kept_memory_does_and_a_warning_says_so(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    store = VectorStore(tmp_path / "file" / "embeddings", identity="test")
    assert ask(store, "a") == ["a"]
    assert ask(store, "a") == []
    store.close()
    assert "in memory only" in caplog.text


def test_a_full_disk_costs_encoding_again_and_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    store = VectorStore(tmp_path, identity="test")
    store._file._db.execute("PRAGMA max_page_count = 1")  # raised to what the file has already
    names = [f"{number}" for number in range(5 * ENCODING_BATCH)]
    assert ask(store, *names) == names
    assert ask(store, *names) == names  # an index keeps its vectors, the store none
    store.close()
    assert caplog.text.count("disk is full") == 1


CHILD = """
import sys
from pathlib import Path
import numpy as np
from router.retrieval.vectors import VectorStore
store = VectorStore(Path(sys.argv[1]), identity="test")
names = [f"skill-{number}" for number in range(int(sys.argv[2]))]
store.vectors(
    names,
    lambda places: np.ones((len(places), 16), np.float32),
    lambda done, total: print(done, flush=True),
)
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


def test_a_kill_in_the_middle_loses_at_most_a_batch(tmp_path: Path) -> None:
    total = 40 * ENCODING_BATCH
    with child(tmp_path, total) as process:
        assert process.stdout is not None
        told = int(next(process.stdout))
        process.send_signal(signal.SIGKILL)
        told = max([told, *(int(line) for line in process.stdout if line.strip().isdigit())])
    store = VectorStore(tmp_path, identity="test")
    names = [f"skill-{number}" for number in range(total)]
    _, encoded = store.vectors(names, lambda places: np.ones((len(places), 16), np.float32))
    assert encoded <= total - told
    store.close()


def test_a_second_process_has_the_same_vectors(tmp_path: Path) -> None:
    with child(tmp_path, 3) as process:
        assert process.stdout is not None
        while next(process.stdout).strip() != "complete":
            pass
        store = VectorStore(tmp_path, identity="test")  # the other one is open still
        names = [f"skill-{number}" for number in range(4)]
        _, encoded = store.vectors(names, lambda places: np.ones((len(places), 16), np.float32))
        assert encoded == 1
        store.close()
        process.communicate("")


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([[1.0, 0.0], [float("nan"), 1.0]], "not a number"),
        ([[1.0, 0.0]], "1 vectors for 2 texts"),
        ([[1.0, 0.0], [1.0]], "different lengths"),
        ([[], []], "empty"),
    ],
)
def test_what_is_no_vector_is_refused_and_not_kept(
    store: VectorStore, rows: list[list[float]], told: str
) -> None:
    def encode(places: Sequence[int]) -> NDArray[np.float32]:
        return rows  # type: ignore[return-value]  # as an encoder of somebody else may

    with pytest.raises(EncoderError, match=told):
        store.vectors(["a", "b"], encode)
    with pytest.raises(EncoderError, match=told):
        store.table("all", 2, lambda: encode([0, 1]))
    assert ask(store, "a", "b") == ["a", "b"]


# --- tables


def test_a_table_is_made_once_and_again_where_it_is_damaged(tmp_path: Path) -> None:
    made: list[int] = []

    def table() -> NDArray[np.float32]:
        def encode() -> NDArray[np.float32]:
            made.append(1)
            return np.array([[2, 0], [0, 3], [0, 0]], dtype=np.float32)

        store = VectorStore(tmp_path, identity="test")
        found = store.table("all", 3, encode)
        store.close()
        return found

    for _ in range(2):
        assert table().tolist() == [[1, 0], [0, 1], [0, 0]]
    assert len(made) == 1
    for number, damage in enumerate((b"abc", b"\0" * 16, b"\x00\x00\xc0\x7f" * 6), start=2):
        db = sqlite3.connect(tmp_path / FILE)
        db.execute("UPDATE vectors SET vector = ?", (damage,))
        db.commit()
        db.close()
        assert table().tolist() == [[1, 0], [0, 1], [0, 0]]
        assert len(made) == number


def test_a_table_stays_on_this_machine(tmp_path: Path) -> None:
    shared = Shared()
    store = VectorStore(tmp_path, identity="test", shared=shared)
    store.table("all", 3, lambda: np.ones((3, 4), np.float32))
    ask(store, "a")
    store.close()
    assert shared.asked == ["a"]
    assert shared.keys == {"a"}


# --- documents


def skill(number: int) -> SkillManifest:
    text = f"---\nname: s{number}\ndescription: Bakes {number} cakes.\n---\nRun `oven {number}`.\n"
    return parse_manifest(text.encode(), path=Path(f"/s{number}/SKILL.md"))


def test_documents_are_the_same_when_they_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skills = [skill(number) for number in range(2 * WORTH_KEEPING)]
    wanted = [SkillDocument.of(one) for one in skills]
    store = VectorStore(tmp_path, identity="test")
    assert store.documents(skills) == wanted
    store.close()
    db = sqlite3.connect(tmp_path / FILE)
    db.execute("UPDATE analyses SET analysis = x'7b' WHERE rowid = 1")  # one is damaged
    db.commit()
    db.close()
    read: list[str] = []

    def watched(text: str) -> dict[str, int]:
        read.append(text)
        return {}

    monkeypatch.setattr("router.retrieval.documents.indexed_words", watched)
    store = VectorStore(tmp_path, identity="test")
    found = store.documents(skills)
    assert sum(one == other for one, other in zip(found, wanted, strict=True)) == len(skills) - 1
    assert len(read) == 6  # the texts of the damaged one
    assert store.documents(skills[2:3], removed=True) == wanted[2:3]
    assert len(read) == 6
    store.documents(skills[2:3])  # of few, only those that go are likely to be kept
    assert len(read) == 12
    store.close()


# --- sharing


class Shared:
    """A shared cache in memory."""

    name = "shared"

    def __init__(self) -> None:
        self.held: dict[tuple[str, str], NDArray[np.float32]] = {}
        self.is_away = False
        self.is_closed = False
        self.asked: list[str] = []

    def get(self, encoder: str, keys: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        self._check()
        self.asked += keys
        return {key: self.held[encoder, key] for key in keys if (encoder, key) in self.held}

    def put(self, encoder: str, vectors: Vectors) -> None:
        self._check()
        self.held.update({(encoder, key): vector for key, vector in vectors.items()})

    def close(self) -> None:
        self.is_closed = True

    def _check(self) -> None:
        if self.is_away:
            raise StoreError(Path(self.name), "away")

    @property
    def keys(self) -> set[str]:
        return {key for _, key in self.held}


def test_what_others_have_shared_is_not_encoded(tmp_path: Path) -> None:
    shared = Shared()
    one = VectorStore(tmp_path / "one", identity="test", shared=shared)
    assert ask(one, "a") == ["a"]
    one.close()
    assert shared.is_closed
    two = VectorStore(tmp_path / "two", identity="test", shared=shared)
    assert ask(two, "a", "b") == ["b"]
    shared.asked.clear()
    assert ask(two, "a", "b") == []
    assert shared.asked == []
    two.close()
    assert shared.keys == {"a", "b"}


def test_what_could_not_be_shared_is_shared_by_the_next_process(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shared = Shared()
    shared.is_away = True
    store = VectorStore(tmp_path, identity="test", shared=shared)
    assert ask(store, "a") == ["a"]
    store.save()
    store.close()
    assert caplog.text.count("not shared yet") == 2
    shared.is_away = False
    store = VectorStore(tmp_path, identity="test", shared=shared)
    assert ask(store, "a", "b") == ["b"]
    store.save()
    assert shared.keys == {"a", "b"}
    store.close()


def test_two_stores_with_one_embedded_chroma_lose_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def opened() -> VectorStore:
        shared = ChromaCache(tmp_path)
        return VectorStore(tmp_path, identity="test", shared=shared)

    first, second = opened(), opened()
    ask(first, "a")
    first.save()
    assert ask(second, "a", "b") == ["b"]
    second.save()
    assert "another process has it" in caplog.text
    second.close()
    ask(first, "c")
    first.close()
    chroma = ChromaCache(tmp_path)
    assert chroma.get("test", ["a", "b", "c"]).keys() == {"a", "b", "c"}
    chroma.close()


class _StuckChroma(LoopbackServer):
    """Lives, and cannot read its tables."""

    def respond(self, request: Recorded) -> Reply:
        return Reply.json({"nanosecond heartbeat": 1}) if "heartbeat" in request.path else HANG


def test_a_server_of_chroma_that_hangs_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("router.retrieval.embedding_chroma.SERVER_TIMEOUT_SECONDS", 0.5)
    server = _StuckChroma()
    chroma = ChromaCache(server.address)
    try:
        with pytest.raises(StoreError, match=f"^{server.address}: .*timed out"):
            chroma.get("test", ["a"])
    finally:
        chroma.close()
        server.close()


def test_a_chroma_that_panics_over_its_file_is_built_again(tmp_path: Path) -> None:
    first = ChromaCache(tmp_path)
    first.put("test", {"a": vector("a")})
    first.close()
    db = sqlite3.connect(tmp_path / "chroma" / "chroma.sqlite3")
    db.execute("UPDATE migrations SET filename = CAST(x'ff' AS TEXT)")  # no UTF-8
    db.commit()
    db.close()
    again = ChromaCache(tmp_path)
    again.put("test", {"b": vector("b")})
    assert again.get("test", ["a", "b"]).keys() == {"b"}
    again.close()
