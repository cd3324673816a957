"""What YAML makes of a frontmatter: mended where that is safe, else refused; never executed."""

from __future__ import annotations

from pathlib import Path

import pytest
from manifest_texts import GOOD, PATH, codes, lines, read, refusal

from router.skills.manifest import (
    parse_manifest,
)


def test_three_dashes_inside_values_and_body_do_not_end_the_frontmatter() -> None:
    manifest = read(
        "name: git\ndescription: |\n  before --- after\n  ---\n  end\nlicense: a --- b",
        body="one\n---\nname: other\n---\n",
    )
    assert manifest.description == "before --- after\n---\nend"
    assert manifest.license == "a --- b"
    assert manifest.body == "one\n---\nname: other\n---"


def test_blank_lines_before_the_frontmatter_are_reported() -> None:
    manifest = parse_manifest(f"\n\n---\n{GOOD}---\nx".encode(), path=PATH)
    assert lines(manifest) == [(3, "leading-blank-lines")]


def test_an_unquoted_colon_is_read_as_text() -> None:
    manifest = read("name: git\ndescription: Use this: commit, push")
    assert manifest.description == "Use this: commit, push"
    assert lines(manifest) == [(3, "unquoted-value")]


def test_only_the_offending_values_are_quoted() -> None:
    manifest = read("name: git\ndescription: a: b\nlicense: c: d\ncompatibility: 'e: f'")
    assert (manifest.description, manifest.license) == ("a: b", "c: d")
    assert manifest.compatibility == "e: f"
    assert lines(manifest) == [(3, "unquoted-value"), (4, "unquoted-value")]


def test_an_unquoted_colon_in_a_continued_line_is_read_as_text() -> None:
    manifest = read("name: git\ndescription: Works.\n  Use when: asked\n  to: commit\nlicense: MIT")
    assert manifest.description == "Works. Use when: asked to: commit"
    assert manifest.license == "MIT"


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ("@mention it", "@mention it"),
        ("`git` things", "`git` things"),
        ("**bold** claims", "**bold** claims"),
        ("[BETA] commit things", "[BETA] commit things"),
        ("> quoted from mail", "> quoted from mail"),
        ("'it's here'", "it's here"),
        ('"Git" for all', '"Git" for all'),
        ('"C:\\path"', "C:\\path"),
        ('"never closed', '"never closed'),
    ],
)
def test_values_that_yaml_misreads_are_read_as_text(written: str, read_as: str) -> None:
    manifest = read(f"name: git\ndescription: {written}\nlicense: MIT")
    assert (manifest.description, manifest.license) == (read_as, "MIT")
    assert lines(manifest) == [(3, "unquoted-value")]


@pytest.mark.parametrize(
    ("written", "read_as", "reported"),
    [
        ("“commit things”", "commit things", ["typographic-quotes"]),
        ("„commit things“", "commit things", ["typographic-quotes"]),
        ("\u2018commit things\u2019", "commit things", ["typographic-quotes"]),
        ("“two things: commit, push”", "two things: commit, push", ["unquoted-value"]),
        ("“commit” and “push”", "“commit” and “push”", []),
        ('"“commit things”"', "“commit things”", []),
        ("“", "“", []),
    ],
)
def test_quotes_of_a_word_processor_are_no_part_of_the_value(
    written: str, read_as: str, reported: list[str]
) -> None:
    manifest = read(f"name: git\ndescription: {written}\nlicense: MIT")
    assert (manifest.description, manifest.license) == (read_as, "MIT")
    assert [code for _, code in lines(manifest)] == reported


def test_tabs_in_the_indentation_are_read() -> None:
    manifest = read(GOOD + "metadata:\n\tintents: save, undo")
    assert manifest.intents == ("save", "undo")
    assert lines(manifest) == [(5, "tab-indentation")]


def test_yaml_beyond_repair_is_refused_with_the_line_in_the_file() -> None:
    error = refusal(b"---\nname: git\ndescription: ok\nlicense MIT\n---\n")
    assert error.line == 5
    assert error.reason.startswith("the frontmatter cannot be read as YAML:")


def test_a_repeated_key_counts_by_its_last_value() -> None:
    manifest = read("name: git\ndescription: old\ndescription: new")
    assert manifest.description == "new"
    assert lines(manifest) == [(4, "duplicate-key")]


def test_a_second_document_is_reported() -> None:
    assert lines(read(GOOD + "--- x")) == [(4, "second-document")]


def test_an_alias_bomb_is_refused() -> None:
    bomb = "a: &a [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n" + "".join(
        f"{name}: &{name} [{', '.join([f'*{before}'] * 9)}]\n"
        for before, name in zip("abcdefgh", "bcdefghi", strict=True)
    )
    error = refusal(f"---\n{GOOD}{bomb}---\n".encode())
    assert "aliases expand to over" in error.reason


def test_small_aliases_and_merge_keys_are_read() -> None:
    manifest = read("base: &b {description: Shared.}\nname: git\n<<: *b\nlicense: &l MIT\nx: *l")
    assert (manifest.description, manifest.extra["x"]) == ("Shared.", "MIT")


def test_a_value_of_its_own_is_stronger_than_a_merged_one() -> None:
    assert read("<<: {description: merged}\nname: git\ndescription: own").description == "own"


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_deep_nesting_is_refused(opening: str) -> None:
    error = refusal(f"---\n{GOOD}x:\n  {opening * 15_000}\n---\n".encode())
    assert "nested more than 20 levels deep" in error.reason


def test_nesting_by_a_chain_of_aliases_is_refused() -> None:
    chain = "k0: &a0 x\n" + "".join(
        f"k{i}: &a{i} {'[' * 15}*a{i - 1}{']' * 15}\n" for i in range(1, 100)
    )
    error = refusal(f"---\n{GOOD}{chain}---\n".encode())
    assert (error.line, "nested more than 20 levels deep" in error.reason) == (6, True)


def test_tags_construct_nothing(tmp_path: Path) -> None:
    target = tmp_path / "made"
    manifest = read(f"name: git\ndescription: !!python/object/apply:os.mkdir [{target}]")
    assert manifest.description == str(target)
    assert not target.exists()
    assert codes(manifest) == ["yaml-tag", "not-text"]


def test_a_huge_frontmatter_is_refused() -> None:
    error = refusal(f"---\n{GOOD}x: {'y' * 70_000}\n---\n".encode())
    assert error.reason == "the frontmatter is over 65,536 characters"
