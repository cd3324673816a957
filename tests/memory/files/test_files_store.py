"""The file store: Serena's layout, read, written and searched."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.errors import InvalidRequest, ReadOnlyMemory, UnknownMemory
from router.memory.files.store import FileStore
from router.memory.model import ScoreKind
from router.memory.texts.contents import content_key, name_from

Put = Callable[[str, str], Path]


@pytest.fixture
def files(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "project", serena_home=tmp_path / "home")


@pytest.fixture
def put(tmp_path: Path) -> Put:
    """Writes a file as Serena or an editor does; ``global/`` in front means the global folder."""

    def write(name: str, text: str) -> Path:
        if name.startswith("global/"):
            path = tmp_path / "home" / "memories" / name
        else:
            path = tmp_path / "project" / ".serena" / "memories" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", newline="")
        return path

    return write


def found(files: FileStore, query: str, k: int = 10) -> list[str]:
    return [item.id for item in files.search(query, k=k)]


def test_topics_are_folders_and_global_memories_lie_elsewhere(files: FileStore, put: Put) -> None:
    put("style.md", "Tabs.")
    put("auth/login.md", "Tokens.")
    put("global/editor.md", "Vim.")
    assert files.names() == ("auth/login", "global/editor", "style")
    assert files.get("global/editor").content == "Vim."


def test_the_generation_rises_with_every_change(files: FileStore) -> None:
    """Answers kept under an older generation are given no more."""
    seen = [files.generation]
    files.save("style", "Tabs.")
    seen.append(files.generation)
    files.save("style", "Spaces.")
    seen.append(files.generation)
    files.delete("style")
    seen.append(files.generation)
    assert seen == sorted(set(seen))


def test_the_generation_stays_while_nothing_changes(files: FileStore) -> None:
    files.save("style", "Tabs.")
    before = files.generation
    files.names()
    assert files.generation == before


def test_a_memory_says_where_and_from_when_it_is(files: FileStore, put: Put) -> None:
    changed = put("auth/login.md", "Tokens.").stat().st_mtime_ns
    item = files.get("auth/login")
    assert (item.id, item.layer, item.provenance) == ("auth/login", "files", ("file:auth/login",))
    assert item.created == datetime.fromtimestamp(changed / 1e9, UTC)


@pytest.mark.parametrize("spelling", ["mem:auth/login", "auth/login.md", "auth\\login"])
def test_a_name_may_be_spelled_as_models_spell_it(
    files: FileStore, put: Put, spelling: str
) -> None:
    put("auth/login.md", "Tokens.")
    assert files.get(spelling).id == "auth/login"


def test_an_unknown_name_is_answered_with_similar_ones(files: FileStore, put: Put) -> None:
    put("auth/login_flow.md", "Tokens.")
    put("style.md", "Tabs.")
    with pytest.raises(UnknownMemory) as caught:
        files.get("auth/login-flow")
    assert caught.value.suggestions == ("auth/login_flow",)


def test_search_reads_contents_and_not_only_names(files: FileStore, put: Put) -> None:
    put("notes.md", "The gateway refreshes tokens every hour.")
    put("style.md", "Tabs, not spaces.")
    assert found(files, "when are tokens refreshed?") == ["notes"]


def test_search_scores_are_positive_bm25_and_fall(files: FileStore, put: Put) -> None:
    put("a.md", "token token token")
    put("b.md", "A token, and a good many other words that have nothing to do with it.")
    items = files.search("token", k=10)
    assert [item.id for item in items] == ["a", "b"]
    assert [item.score_kind for item in items] == [ScoreKind.BM25] * 2
    assert items[0].score is not None and items[1].score is not None
    assert items[0].score > items[1].score > 0


def test_a_name_helps_but_what_is_said_decides(files: FileStore, put: Put) -> None:
    put("deploy.md", "How releases reach the servers: build, tag, push, wait.")
    put("x.md", "Deploy with the deploy script; deploy twice, deploy slowly, deploy at night.")
    put("y.md", "Lunch is at noon.")
    assert found(files, "deploy") == ["x", "deploy"]


def test_no_more_than_k_are_given(files: FileStore, put: Put) -> None:
    for number in range(5):
        put(f"{number}.md", "token")
    assert len(found(files, "token", k=3)) == 3


@pytest.mark.parametrize(
    "query", ['"quoted" AND (x', "a/b\\c", "日本語の認証", "NOT *", "🦊", "' OR 1=1 --", "?", "the"]
)
def test_any_query_is_taken_as_words(files: FileStore, put: Put, query: str) -> None:
    put("a.md", "Nothing that was asked for.")
    assert found(files, query) == []


def test_scripts_without_spaces_are_found(files: FileStore, put: Put) -> None:
    put("ja.md", "認証トークンは毎時更新される。")
    put("en.md", "Tokens.")
    assert found(files, "トークン更新") == ["ja"]


def test_what_an_editor_does_is_seen_by_the_next_search(files: FileStore, put: Put) -> None:
    path = put("a.md", "alpha")
    assert found(files, "alpha") == ["a"]
    put("a.md", "beta")
    assert (found(files, "alpha"), found(files, "beta")) == ([], ["a"])
    path.unlink()
    assert found(files, "beta") == []


def test_a_saved_memory_is_a_plain_file_where_serena_looks(
    files: FileStore, tmp_path: Path
) -> None:
    item = files.save("auth/login", "Tokens.\r\n")
    path = tmp_path / "project" / ".serena" / "memories" / "auth" / "login.md"
    assert path.read_bytes() == b"Tokens.\r\n"
    assert item == files.get("auth/login")


def test_a_global_memory_is_saved_in_the_global_folder(files: FileStore, tmp_path: Path) -> None:
    files.save("global/editor", "Vim.")
    assert (tmp_path / "home/memories/global/editor.md").read_text(encoding="utf-8") == "Vim."


@pytest.mark.skipif(os.name != "posix", reason="permissions of POSIX")
def test_a_file_that_is_saved_again_keeps_its_permissions(files: FileStore, put: Put) -> None:
    path = put("style.md", "Tabs.")
    path.chmod(0o600)
    files.save("style", "Spaces.")
    assert (path.read_text(), path.stat().st_mode & 0o777) == ("Spaces.", 0o600)


def test_tags_are_the_last_line_and_no_header(files: FileStore, tmp_path: Path) -> None:
    files.save("a", "Tokens.", tags=["auth", "später"])
    text = (tmp_path / "project" / ".serena" / "memories" / "a.md").read_text(encoding="utf-8")
    assert text == "Tokens.\n\nTags: auth, später\n"
    assert files.get("a").tags == ("auth", "später")
    assert files.get("a").content == "Tokens."


def test_front_matter_of_others_is_content(files: FileStore, put: Put) -> None:
    text = "---\ntags: [x]\n---\nBody."
    put("a.md", text)
    assert (files.get("a").content, files.get("a").tags) == (text, ())


def test_a_last_line_that_cannot_be_tags_is_content(files: FileStore, put: Put) -> None:
    text = f"Body.\n\nTags: {'x' * 61}\n"
    put("a.md", text)
    assert (files.get("a").content, files.get("a").tags) == (text, ())


_TEXT = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), include_characters="\n\t\r"), min_size=1
).filter(lambda text: not text.isspace())
_TAG = st.from_regex(r"[\w:+#. -]{1,20}", fullmatch=True).map(str.strip).filter(bool)


@given(content=_TEXT, tags=st.lists(_TAG, unique=True, max_size=5))
@settings(max_examples=60)
def test_what_is_saved_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, content: str, tags: list[str]
) -> None:
    files = FileStore(tmp_path_factory.mktemp("project"), serena_home=Path("/nonexistent"))
    files.save("topic/name", content, tags=tags)
    item = files.get("topic/name")
    assert (item.content, item.tags) == (content, tuple(tags))


def test_threads_that_read_and_write_see_whole_memories(files: FileStore) -> None:
    def work(number: int) -> set[int]:
        files.save(f"n{number % 3}", f"token {number} " * 500)
        return {len(set(item.content.split())) for item in files.search("token", k=10)}

    with ThreadPoolExecutor(8) as pool:
        seen = set().union(*pool.map(work, range(40)))
    assert seen == {2}


def test_a_deleted_memory_is_gone(files: FileStore) -> None:
    files.save("a", "Tokens.")
    files.delete("a")
    assert files.names() == ()
    with pytest.raises(UnknownMemory):
        files.delete("a")


def test_a_read_only_memory_is_read_and_not_written(tmp_path: Path, put: Put) -> None:
    files = FileStore(tmp_path / "project", serena_home=tmp_path / "home", read_only=["adr/.*"])
    put("adr/1.md", "Decided.")
    assert files.get("adr/1").content == "Decided."
    with pytest.raises(ReadOnlyMemory):
        files.save("adr/1", "Undecided.")
    with pytest.raises(ReadOnlyMemory):
        files.delete("adr/1")
    files.save("adr", "The pattern matches whole names only.")


def test_an_ignored_memory_is_not_there(tmp_path: Path, put: Put) -> None:
    files = FileStore(tmp_path / "project", serena_home=tmp_path / "home", ignored=["draft/.*"])
    put("draft/a.md", "Tokens.")
    assert (files.names(), found(files, "tokens")) == ((), [])
    with pytest.raises(UnknownMemory):
        files.get("draft/a")
    with pytest.raises(ReadOnlyMemory):
        files.save("draft/a", "More.")


@pytest.mark.parametrize("tags", ["auth", ["a,b"], ["a\nb"], [""], ["x" * 61], [" a"]])
def test_tags_that_a_file_cannot_give_back_are_refused(
    files: FileStore, tags: str | list[str]
) -> None:
    with pytest.raises(InvalidRequest):
        files.save("a", "Tokens.", tags=tags)


@pytest.mark.parametrize("content", ["", " \n", "x" * 100_001, "bell \a"])
def test_contents_that_are_no_memory_are_refused(files: FileStore, content: str) -> None:
    with pytest.raises(InvalidRequest):
        files.save("a", content)


def test_a_name_is_made_of_the_first_words_that_mean_something() -> None:
    assert name_from("# How the login flow works\n\nTokens.") == "login-flow-works"
    assert name_from("## 認証 token\n") == "認証-token"
    assert name_from("...").startswith("memory-")


def test_contents_are_the_same_but_for_white_space_and_composition() -> None:
    assert content_key("caf\u00e9  x\r\n") == content_key("cafe\u0301 x")
    assert content_key("Set DEBUG") != content_key("set debug")


def test_a_mark_of_the_encoding_is_no_part_of_a_memory(files: FileStore, put: Put) -> None:
    put("auth.md", "\ufeffTokens.")
    assert files.get("auth").content == "Tokens."
