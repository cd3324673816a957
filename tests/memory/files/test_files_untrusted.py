"""The file store among strangers' names, links, files and patterns, and when it is killed."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.errors import ConfigurationError, InvalidRequest, RouterError, UnknownMemory
from router.memory.files.names import check_new_name, checked_patterns, matches, parse_name
from router.memory.files.store import FileStore


@pytest.fixture
def memories(tmp_path: Path) -> Path:
    folder = tmp_path / "project" / ".serena" / "memories"
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def files(tmp_path: Path, memories: Path) -> FileStore:
    return FileStore(tmp_path / "project", serena_home=tmp_path / "home")


_HOSTILE = st.lists(
    st.sampled_from(
        ["..", ".", "", "/", "\\", "mem:", ".md", "~", "a", "global", "C:", "\0", "\n", "é", " "]
    )
    | st.text(max_size=5),
    max_size=8,
).map("".join) | st.lists(st.sampled_from(["..", "a", "global", ""]), max_size=6).map("/".join)


@given(name=_HOSTILE)
@settings(max_examples=200)
def test_no_name_leads_out_of_the_folders(
    tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    top = tmp_path_factory.mktemp("top")
    files = FileStore(top / "in" / "project", serena_home=top / "in" / "home")
    for call in (files.get, files.delete, lambda n: files.save(n, "x"), files.get, files.delete):
        with contextlib.suppress(RouterError):
            call(name)
    assert {path.name for path in top.iterdir()} <= {"in"}
    memories = top / "in" / "project" / ".serena" / "memories"
    inside = (memories, top / "in" / "home")
    files_written = [path for path in top.rglob("*") if not path.is_dir()]
    assert all(any(path.is_relative_to(folder) for folder in inside) for path in files_written)


@given(name=_HOSTILE)
def test_a_parsed_name_parses_to_itself(name: str) -> None:
    try:
        parsed = parse_name(name)
    except InvalidRequest:
        return
    assert parse_name(parsed) == parsed


@pytest.mark.parametrize(
    "name",
    [
        *("../x", "a/../b", "/etc/x", "\\x", "a//b", "a/", "", "global", ".hidden", "a/.b"),
        *("a\0b", "x" * 201, "é" * 101, "/".join("abcdefghi"), " /a"),
    ],
)
def test_names_that_are_no_names_are_refused(files: FileStore, name: str) -> None:
    with pytest.raises(InvalidRequest):
        files.save(name, "x")


@pytest.mark.parametrize("name", ["con", "a/NUL.txt", "a:b", "what?", "a.", "a /b", "com1"])
def test_names_that_windows_cannot_hold_are_not_given(name: str) -> None:
    with pytest.raises(InvalidRequest):
        check_new_name(name)


def test_links_are_followed_within_the_folder_only(
    files: FileStore, memories: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "key.md").write_text("hunter2", encoding="utf-8")
    (memories / "real").mkdir()
    (memories / "real" / "a.md").write_text("alpha", encoding="utf-8")
    (memories / "alias").symlink_to(memories / "real")
    (memories / "out").symlink_to(tmp_path / "secret")
    (memories / "file.md").symlink_to(tmp_path / "secret" / "key.md")
    (memories / "real" / "loop").symlink_to(memories)
    assert files.names() == ("alias/a", "real/a")
    assert files.search("hunter2", k=5) == []
    assert sum("leads out" in problem for problem in files.problems()) == 2
    with pytest.raises(InvalidRequest, match="leads out"):
        files.save("out/new", "x")
    assert sorted(path.name for path in (tmp_path / "secret").iterdir()) == ["key.md"]


@pytest.mark.parametrize("link", [".serena", ".serena/memories"])
def test_the_root_itself_leads_out_of_no_project(tmp_path: Path, link: str) -> None:
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "memories").mkdir(parents=True)
    (elsewhere / "diary.md").write_text("hunter2", encoding="utf-8")
    (elsewhere / "memories" / "diary.md").write_text("hunter2", encoding="utf-8")
    root = tmp_path / "project" / link
    root.parent.mkdir(parents=True)
    root.symlink_to(elsewhere)
    files = FileStore(tmp_path / "project", serena_home=tmp_path / "home")
    assert files.search("hunter2", k=5) == []
    assert files.names() == ()
    assert files.snapshot().whole == frozenset()
    assert "a link that leads out of the project" in files.problems()[0]
    for name in ("new", "diary"):
        with pytest.raises(InvalidRequest, match="leads out"):
            files.save(name, "x")
    with pytest.raises(UnknownMemory):
        files.delete("diary")
    assert len(list(elsewhere.rglob("*.md"))) == 2


def test_the_root_may_be_a_link_inside_the_project(tmp_path: Path) -> None:
    (tmp_path / "project" / "notes").mkdir(parents=True)
    (tmp_path / "project" / ".serena").mkdir()
    (tmp_path / "project" / ".serena" / "memories").symlink_to(tmp_path / "project" / "notes")
    files = FileStore(tmp_path / "project", serena_home=tmp_path / "home")
    files.save("auth/login", "Tokens.")
    assert files.get("auth/login").content == "Tokens."


def test_files_that_cannot_be_read_are_reported_and_the_rest_is_found(
    files: FileStore, memories: Path
) -> None:
    (memories / "good.md").write_text("token", encoding="utf-8")
    (memories / "latin.md").write_bytes(b"caf\xe9")
    (memories / "huge.md").write_bytes(b"x" * 500_000)
    (memories / "long.md").write_bytes(b"x" * 100_001)
    (memories / "empty.md").write_bytes(b"")
    os.mkfifo(memories / "pipe.md")
    (memories / "gone.md").symlink_to(memories / "nothing.md")
    (memories / "x.md.md").write_text("token", encoding="utf-8")
    assert [item.id for item in files.search("token", k=9)] == ["good", "x"]
    reported = sorted(Path(problem.split(": ")[0]).name for problem in files.problems())
    assert reported == ["empty.md", "gone.md", "huge.md", "latin.md", "long.md", "pipe.md"]
    assert files.problems() == files.problems()
    assert files.snapshot().digests["latin"] is None
    with pytest.raises(UnknownMemory):
        files.get("latin")


def test_a_file_that_becomes_readable_is_found(files: FileStore, memories: Path) -> None:
    (memories / "a.md").write_bytes(b"\xff")
    assert len(files.problems()) == 1
    (memories / "a.md").write_bytes(b"token")
    assert files.problems() == ()
    assert files.get("a").content == "token"


def test_control_characters_are_shown_not_hidden(files: FileStore, memories: Path) -> None:
    (memories / "log.md").write_bytes(b"\x1b[31mred\x00")
    assert files.get("log").content == "\ufffd[31mred\ufffd"


def test_a_link_to_nothing_hides_nothing(files: FileStore, memories: Path) -> None:
    (memories / "gone.md").symlink_to(memories / "nothing.md")
    assert files.snapshot().whole == {memories}


def test_a_folder_that_is_away_is_known_not_to_be_seen_in_full(tmp_path: Path) -> None:
    files = FileStore(tmp_path / "project", serena_home=tmp_path / "home")
    assert files.snapshot().whole == frozenset()
    files.save("a", "x")
    assert files.snapshot().whole == {files.roots[0]}


@pytest.mark.parametrize(
    "pattern",
    [
        *("(", "[a", "(a+)+", "(a|a)*", "((a)|b)+", "(?:x*)*", r"(\w+\s?)+", ".*.*.*.*"),
        *("x" * 201, "(a?){9}", "a{99999999999}"),
    ],
)
def test_malformed_and_costly_patterns_are_refused(pattern: str) -> None:
    with pytest.raises(ConfigurationError):
        checked_patterns("ignored_patterns", [pattern])


@pytest.mark.parametrize(
    ("pattern", "name", "expected"),
    [
        ("auth/.*", "auth/login", True),
        ("auth", "auth/login", False),
        (r"(draft|tmp)/.+?\.old", "tmp/x.old", True),
        (r"[^/()*]+", "plain", True),
        (r"\(a\)+", "(a))", True),
    ],
)
def test_patterns_match_whole_names(pattern: str, name: str, expected: bool) -> None:
    assert matches(checked_patterns("ignored_patterns", [pattern]), name) is expected


def test_accepted_patterns_take_no_time_even_on_the_worst_name() -> None:
    patterns = checked_patterns("ignored_patterns", [".*a.*a.*b"])
    started = time.process_time()
    assert not matches(patterns, "a" * 200)
    assert time.process_time() - started < 5


_WRITER = """
    import sys
    from pathlib import Path
    from router.memory.files.store import FileStore
    files = FileStore(Path(sys.argv[1]), serena_home=Path(sys.argv[1]) / "home")
    for number in range(10**9):
        files.save("a", f"{number % 10}" * 50_000)
        if number == 3:
            print("ready", flush=True)
"""


def test_a_writer_that_is_killed_leaves_a_whole_memory(tmp_path: Path) -> None:
    files = FileStore(tmp_path, serena_home=tmp_path / "home")
    for _ in range(3):
        writer = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(_WRITER), str(tmp_path)], stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        writer.stdout.readline()
        writer.send_signal(signal.SIGKILL)
        writer.wait()
        writer.stdout.close()
        content = files.get("a").content
        assert content == content[0] * 50_000
        assert files.names() == ("a",)


def test_what_a_killed_writer_left_is_swept_up_later(files: FileStore, memories: Path) -> None:
    old, new = memories / ".old.tmp", memories / ".new.tmp"
    old.touch()
    new.touch()
    os.utime(old, (0, 0))
    files.save("a", "x")
    assert (old.exists(), new.exists()) == (False, True)


@given(query=st.text(min_size=1, max_size=500).filter(lambda q: q.isprintable() and q.strip()))
@settings(max_examples=100)
def test_any_query_finds_one_file_at_most_where_there_is_one(
    tmp_path_factory: pytest.TempPathFactory, query: str
) -> None:
    root = tmp_path_factory.mktemp("query")
    files = FileStore(root, serena_home=root / "home")
    files.save("a", "Some words: a b c 1 2 3 é 日本.")
    assert len(files.search(query, k=10)) <= 1
