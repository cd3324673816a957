"""Opening SQLite files: made for their owner only, and never taken for what they are not."""

from __future__ import annotations

import hashlib
import importlib
import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path

import pytest
from read_only import read_only

from router.errors import StoreError
from router.storage.database import (
    ReadOnlyFile,
    Schema,
    SharedConnection,
    UnusableFile,
    _plain,
    opened,
    reader,
)

FIRST = """
CREATE TABLE notes (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    text TEXT NOT NULL  -- what was said
);
CREATE INDEX notes_by_text ON notes (text);
"""
SECOND = "CREATE TABLE tags (name TEXT PRIMARY KEY) WITHOUT ROWID;"
V1 = Schema((FIRST,))
V2 = Schema((FIRST, SECOND))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "made" / "notes.sqlite3"


def create(path: Path, schema: Schema = V1) -> None:
    db = opened(path, schema, durable=True)
    db.execute("INSERT INTO notes (text) VALUES ('kept')")
    db.close()


def notes(path: Path, schema: Schema = V1) -> list[str]:
    db = opened(path, schema, durable=False)
    try:
        return [text for (text,) in db.execute("SELECT text FROM notes")]
    finally:
        db.close()


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_written_is_there_again(path: Path) -> None:
    create(path)
    assert notes(path) == ["kept"]


STEPS = {
    "router.cluster.outbox": "08b7f7cd",
    "router.learning.evidence": "5faa8425 1a115f8a b7ecf4bb 09b0bb9d e180cf83",
    "router.memory.contexts.usage_patterns": "da93842f",
    "router.memory.recall.weights": "a2790bea",
    "router.memory.services.outbox": "73790636",
    "router.memory.stores.sqlite_database": "65187fb2 3f507c65 5894b54b dd8ae8bf 48d39709 c5d7cc80",
    "router.retrieval.embedding_file": "c06fba21 529ed8ad",
    "router.stages.fuzzy_store": "0344f52d ff04952f 722fffbd",
}
"""Digests of the steps of every kind of file. A new step is put behind them, here as there."""


@pytest.mark.parametrize("module", STEPS)
def test_the_steps_by_which_files_were_made_stay_as_they_are(module: str) -> None:
    """A file that is there was made by the first so many steps. With another one among them it is
    taken for another program's, and set aside with all that it knows."""
    schema: Schema = importlib.import_module(module)._SCHEMA
    digests = [hashlib.sha256(_plain(step).encode()).hexdigest()[:8] for step in schema.steps]
    assert " ".join(digests) == STEPS[module]


def test_an_earlier_version_is_brought_up_to_this_one(path: Path) -> None:
    create(path)
    assert notes(path, V2) == ["kept"]
    db = opened(path, V2, durable=True)
    assert db.execute("PRAGMA user_version").fetchone() == (2,)
    assert db.execute("SELECT count(*) FROM tags").fetchone() == (0,)
    db.close()


def test_a_later_version_that_dropped_a_table_is_left_to_who_wrote_it(path: Path) -> None:
    # It was set aside, under the hands of the later program.
    create(path, Schema((FIRST, SECOND, "DROP TABLE tags;")))
    with pytest.raises(StoreError, match="later version"):
        opened(path, V2, durable=True, set_aside=pytest.fail)
    assert [file.name for file in path.parent.glob("*.broken*")] == []


def test_a_first_version_without_a_number_is_known(path: Path) -> None:
    path.parent.mkdir()
    db = sqlite3.connect(path)
    db.executescript(FIRST.replace("  -- what was said", "").replace("    ", " "))
    db.close()
    assert notes(path) == []


@pytest.mark.parametrize(
    "intrusion",
    [
        "DROP TABLE notes; CREATE VIEW notes AS SELECT 1 AS id, 'false' AS text",
        "CREATE TRIGGER more AFTER INSERT ON notes BEGIN DELETE FROM notes; END",
        "CREATE VIEW other AS SELECT 1",
        "CREATE TABLE other (a)",
        "DROP INDEX notes_by_text",
        "DROP TABLE notes",
        "ALTER TABLE notes ADD COLUMN x GENERATED ALWAYS AS (text)",
        "PRAGMA user_version = -1",
    ],
)
def test_a_file_that_holds_anything_else_is_refused_and_left_alone(
    path: Path, intrusion: str
) -> None:
    create(path)
    db = sqlite3.connect(path)
    db.executescript(intrusion)
    db.close()
    before = path.read_bytes()
    with pytest.raises(UnusableFile, match=r"notes\.sqlite3"):
        opened(path, V2, durable=True)
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", [b"no database at all, but long enough to be read as one" * 9])
def test_a_damaged_file_is_set_aside_where_the_store_says_so(path: Path, damage: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(damage)
    told: list[str] = []
    db = opened(path, V1, durable=False, set_aside=told.append)
    assert db.execute("SELECT count(*) FROM notes").fetchone() == (0,)
    db.close()
    aside = path.with_name("notes.sqlite3.broken-1")
    assert aside.read_bytes() == damage
    (message,) = told
    assert str(path) in message
    assert str(aside) in message


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_only_the_owner_may_read_what_is_kept(path: Path) -> None:
    db = opened(path, V1, durable=True)
    db.execute("INSERT INTO notes (text) VALUES ('private')")
    files = [path, Path(f"{path}-wal"), Path(f"{path}-shm"), Path(f"{path}.lock")]
    assert {file.name: mode(file) for file in files} == {file.name: 0o600 for file in files}
    assert mode(path.parent) == 0o700
    db.close()


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_wider_permissions_are_mended(path: Path) -> None:
    first = opened(path, V1, durable=True)  # open, so that there are files beside it
    first.execute("INSERT INTO notes (text) VALUES ('private')")
    files = [path, Path(f"{path}-wal"), Path(f"{path}-shm")]
    for file in files:
        file.chmod(0o644)
    path.parent.chmod(0o755)
    opened(path, V1, durable=True).close()
    assert [mode(file) for file in files] == [0o600] * 3
    assert mode(path.parent) == 0o700
    first.close()


def test_one_row_that_is_not_utf_8_does_not_hide_the_others(path: Path) -> None:
    create(path)
    db = sqlite3.connect(path)
    db.execute("INSERT INTO notes (text) VALUES (CAST(x'ff41' AS TEXT))")
    db.commit()
    db.close()
    assert sorted(notes(path)) == ["kept", "\ufffdA"]


def test_a_place_that_cannot_be_used_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match=r"notes\.sqlite3: cannot be opened"):
        opened(tmp_path / "file" / "notes.sqlite3", V1, durable=True)
    (tmp_path / "folder.sqlite3").mkdir()
    with pytest.raises(StoreError, match=r"folder\.sqlite3: cannot be opened: .*Is a directory"):
        opened(tmp_path / "folder.sqlite3", V1, durable=True)


def test_a_file_that_another_process_keeps_is_an_error(path: Path) -> None:
    path.parent.mkdir()
    db = sqlite3.connect(path)
    db.execute("BEGIN EXCLUSIVE")
    with pytest.raises(StoreError, match="locked"):
        opened(path, V1, durable=True, busy_seconds=0.01)
    db.close()


def test_a_transaction_that_fails_leaves_nothing_and_names_the_file(path: Path) -> None:
    shared = SharedConnection(path, V1, durable=True)
    with pytest.raises(StoreError, match=r"notes\.sqlite3"), shared.transaction() as db:
        db.execute("INSERT INTO notes (text) VALUES ('lost')")
        db.execute("INSERT INTO nowhere VALUES (1)")
    with shared.transaction() as db:
        db.execute("INSERT INTO notes (text) VALUES ('kept')")
    shared.close()
    assert notes(path) == ["kept"]


@pytest.mark.parametrize("another", [False, True])
def test_nothing_is_written_to_a_file_that_was_deleted(path: Path, another: bool) -> None:
    """SQLite would write on without an error, and what was confirmed would be lost."""
    shared = SharedConnection(path, V1, durable=True)
    for file in path.parent.iterdir():
        file.unlink()
    if another:
        create(path)
    with pytest.raises(StoreError, match="deleted or replaced"), shared.transaction():
        pass
    shared.close()


def test_a_file_that_cannot_be_written_is_read_as_it_is(path: Path) -> None:
    create(path)
    with read_only(path.parent):
        with pytest.raises(ReadOnlyFile):
            opened(path, V1, durable=True)
        with closing(reader(path, V1)) as db:
            assert db.execute("SELECT text FROM notes").fetchall() == [("kept",)]
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                db.execute("DELETE FROM notes")
        with pytest.raises(UnusableFile):
            reader(path, Schema((SECOND,)))
        with pytest.raises(StoreError, match="earlier version"):
            reader(path, V2)
        with closing(reader(path.with_name("none"), V1)) as db:
            assert db.execute("SELECT text FROM notes").fetchall() == []
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                db.execute("DELETE FROM notes")
    assert notes(path) == ["kept"]


def test_who_waited_for_a_locked_file_in_vain_does_not_wait_so_long_again(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(path)
    monkeypatch.setattr("router.storage.database.BUSY_SECONDS", 0.1)
    monkeypatch.setattr("router.storage.database.STILL_BUSY_SECONDS", 0.01)

    def patience() -> int:
        with file.turn() as db:
            return int(db.execute("PRAGMA busy_timeout").fetchone()[0])

    def written() -> bool:
        try:
            with file.transaction() as db:
                db.execute("INSERT INTO notes (text) VALUES ('new')")
        except StoreError:
            return False
        return True

    file = SharedConnection(path, V1, durable=False)
    with closing(opened(path, V1, durable=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert (written(), patience(), written(), patience()) == (False, 100, False, 10)
        other.execute("ROLLBACK")
        assert (written(), written(), patience()) == (True, True, 100)
    file.close()
    assert notes(path) == ["kept", "new", "new"]
