"""What of a skill's folder a client may see, and under which URI."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.skills import files as skill_files
from router.skills.files import (
    Entry,
    NotServed,
    list_files,
    list_folder,
    parse_uri,
    read_file,
    uri_of,
)

SEGMENTS = st.text(min_size=1, max_size=20).filter(
    lambda text: text.isprintable() and not text.startswith(".") and not set(text) & set("/\\")
)
PARTS = st.lists(SEGMENTS.filter(lambda s: s not in ("node_modules", "__pycache__")), max_size=4)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "skill"
    for path in ("SKILL.md", "scripts/run.sh", "references/a/b.md", ".env", ".git/config"):
        (made / path).parent.mkdir(parents=True, exist_ok=True)
        (made / path).write_text(path, encoding="utf-8")
    (tmp_path / "outside.txt").write_text("private", encoding="utf-8")
    return made


@given(name=st.text(min_size=1, max_size=50).filter(str.isprintable), parts=PARTS)
def test_a_uri_leads_back_to_what_it_was_made_of(name: str, parts: list[str]) -> None:
    assert parse_uri(uri_of(name, "/".join(parts))) == (name, tuple(parts))


@given(st.text(max_size=60))
def test_any_text_is_a_uri_of_safe_parts_or_refused(text: str) -> None:
    try:
        _, parts = parse_uri(f"skill://{text}")
    except NotServed:
        return
    assert all(part not in ("", ".", "..") and not set(part) & set("/\\\0") for part in parts)


@pytest.mark.parametrize(
    "uri",
    [
        "skill://",
        "skill:///SKILL.md",
        "file:///etc/passwd",
        "SKILL://git/SKILL.md",
        "skill://git/",
        "skill://git//SKILL.md",
        "skill://git/../testing/SKILL.md",
        "skill://git/%2e%2e/testing/SKILL.md",
        "skill://git/..%2f..%2fetc/passwd",
        "skill://git/a%5c..%5cb",
        "skill://git/a%00b",
        "skill://git/.env",
        "skill://git/node_modules/x.js",
        "skill://git/SKILL.md?a=b",
        "skill://git/SKILL.md#top",
        "skill://git/%ff/x",
        f"skill://git/{'a' * 5000}",
    ],
)
def test_a_uri_that_names_no_served_file_is_refused(uri: str) -> None:
    with pytest.raises(NotServed):
        parse_uri(uri)


def test_the_files_are_listed_without_hidden_ones(folder: Path) -> None:
    assert list_files(folder) == ("SKILL.md", "references/a/b.md", "scripts/run.sh")


def test_a_folder_is_listed_without_what_lies_deeper(folder: Path) -> None:
    assert list_folder(folder, ()) == (
        Entry("SKILL.md", is_folder=False),
        Entry("references", is_folder=True),
        Entry("scripts", is_folder=True),
    )


def test_a_file_is_no_folder(folder: Path) -> None:
    with pytest.raises(NotServed):
        list_folder(folder, ("SKILL.md",))


def test_a_file_is_read(folder: Path) -> None:
    assert read_file(folder, ("references", "a", "b.md")) == b"references/a/b.md"


@pytest.mark.parametrize(
    "parts",
    [(), ("scripts",), ("nothing",), ("..", "outside.txt"), ("/etc/passwd",), ("a\0b",)],
    ids=str,
)
def test_what_is_no_file_inside_the_folder_is_not_read(
    folder: Path, parts: tuple[str, ...]
) -> None:
    with pytest.raises(NotServed):
        read_file(folder, parts)


@pytest.mark.parametrize("target", ["../outside.txt", "SKILL.md"])
def test_a_link_to_a_file_is_neither_listed_nor_read(folder: Path, target: str) -> None:
    (folder / "link.txt").symlink_to(target)
    assert "link.txt" not in list_files(folder)
    with pytest.raises(NotServed):
        read_file(folder, ("link.txt",))


@pytest.mark.parametrize("target", ["..", "references"])
def test_a_link_to_a_folder_is_neither_listed_nor_passed(folder: Path, target: str) -> None:
    (folder / "link").symlink_to(target)
    (folder.parent / "a").mkdir()
    (folder.parent / "a" / "b.md").write_text("private", encoding="utf-8")
    assert not any(path.startswith("link") for path in list_files(folder))
    for parts in (("link", "outside.txt"), ("link", "a", "b.md")):
        with pytest.raises(NotServed):
            read_file(folder, parts)
    with pytest.raises(NotServed):
        list_folder(folder, ("link",))


def test_a_skill_may_be_reached_through_a_link_to_its_folder(folder: Path) -> None:
    link = folder.parent / "linked"
    link.symlink_to(folder)
    assert read_file(link, ("SKILL.md",)) == b"SKILL.md"


def test_a_pipe_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    assert "pipe" not in list_files(folder)
    with pytest.raises(NotServed):
        read_file(folder, ("pipe",))


def test_a_name_that_is_not_utf_8_is_left_out(folder: Path) -> None:
    Path(os.fsdecode(os.fsencode(folder) + b"/bad\xff.md")).write_text("x", encoding="utf-8")
    assert len(list_files(folder)) == 3


def test_a_file_of_the_largest_size_is_read_and_a_larger_one_is_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(skill_files, "MAX_BYTES", 10)
    (folder / "fits").write_bytes(b"x" * 10)
    (folder / "large").write_bytes(b"x" * 11)
    assert len(read_file(folder, ("fits",))) == 10
    with pytest.raises(NotServed, match="larger than 10 bytes"):
        read_file(folder, ("large",))


def test_too_many_files_are_refused(folder: Path) -> None:
    for number in range(skill_files.MAX_FILES - 3):
        (folder / f"{number}.txt").touch()
    assert len(list_files(folder)) == skill_files.MAX_FILES
    (folder / "one-more.txt").touch()
    with pytest.raises(NotServed, match="more than 512 files"):
        list_files(folder)


def test_folders_that_are_too_deep_are_refused(folder: Path) -> None:
    deep = folder.joinpath(*["d"] * (skill_files.MAX_DEPTH + 1))
    deep.mkdir(parents=True)
    with pytest.raises(NotServed, match="nested more than 16 deep"):
        list_files(folder)


@pytest.mark.parametrize(
    "name",
    [
        "id_rsa",
        "id_ed25519.pub",
        "credentials.json",
        "aws-credentials",
        "client_secret.json",
        "client_secret_123.json",
        "service-account.json",
        "secrets.yaml",
        "token.txt",
        "access_token",
        "api-key.txt",
        "server.pem",
        "private.KEY",
        "store.p12",
        "prod.env",
        "terraform.tfstate",
        "kubeconfig",
        "passwords.csv",
    ],
)
def test_a_file_that_looks_secret_is_neither_listed_nor_served(folder: Path, name: str) -> None:
    (folder / name).write_text("private", encoding="utf-8")
    (folder / "references" / name).write_text("private", encoding="utf-8")
    assert name not in {Path(path).name for path in list_files(folder)}
    assert name not in {entry.name for entry in list_folder(folder, ())}
    for parts in ((name,), ("references", name)):
        with pytest.raises(NotServed):
            read_file(folder, parts)
    with pytest.raises(NotServed):
        parse_uri(uri_of("skill", name))


@pytest.mark.parametrize(
    "name",
    [
        "secrets.md",
        "tokens.json",
        "design-tokens.json",
        "token_counter.py",
        "keys.md",
        "passwd.py",
        "environment.yml",
        "credential_store.py",
        "tokenizer.json",
        "keyboard.txt",
    ],
)
def test_a_file_that_is_about_secrets_is_served(folder: Path, name: str) -> None:
    (folder / name).write_text("public", encoding="utf-8")
    assert read_file(folder, (name,)) == b"public"
