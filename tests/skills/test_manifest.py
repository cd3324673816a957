"""One SKILL.md: what is read, how oddities are understood and reported, and what is refused."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from manifest_texts import GOOD, PATH, codes, lines, read, refusal

from router.bounded import yaml as bounded_yaml
from router.errors import ManifestError
from router.skills.diagnostics import MAX_DIAGNOSTICS, Severity
from router.skills.manifest import (
    MAX_KEPT_CHARACTERS,
    MAX_MANIFEST_BYTES,
    SkillManifest,
    parse_manifest,
    read_manifest_bytes,
)

# What a well-formed manifest gives


def test_a_well_formed_manifest_is_read_whole_and_without_a_word() -> None:
    manifest = read(
        "name: git\n"
        "description: Commit, branch and merge.\n"
        "license: MIT\n"
        "compatibility: Needs git 2.40\n"
        "allowed-tools: Read Bash(git add:*)\n"
        "metadata:\n"
        '  routing-keywords: "commit, merge conflict"\n'
        '  intents: "save work, undo a commit"\n'
        "  examples: |\n"
        "    squash my last three commits\n"
        "    who changed this line?\n"
        '  generic: "true"\n'
        '  author: "A. Writer"',
        body="\n# Git\n\nUse it.\n\n",
    )
    assert manifest.name == "git"
    assert manifest.description == "Commit, branch and merge."
    assert manifest.license == "MIT"
    assert manifest.compatibility == "Needs git 2.40"
    assert manifest.allowed_tools == ("Read", "Bash(git add:*)")
    assert manifest.routing_keywords == ("commit", "merge conflict")
    assert manifest.intents == ("save work", "undo a commit")
    assert manifest.examples == ("squash my last three commits", "who changed this line?")
    assert manifest.generic is True
    assert manifest.disable_model_invocation is False
    assert manifest.metadata["author"] == "A. Writer"
    assert manifest.body == "# Git\n\nUse it."
    assert manifest.path == PATH
    assert manifest.diagnostics == ()


def test_the_digest_is_that_of_the_bytes() -> None:
    data = f"---\n{GOOD}---\nbody".encode()
    assert parse_manifest(data, path=PATH).digest == hashlib.sha256(data).hexdigest()


def test_a_manifest_is_a_value() -> None:
    assert {read(GOOD), read(GOOD)} == {read(GOOD)}


def test_metadata_cannot_be_changed() -> None:
    with pytest.raises(TypeError):
        read(GOOD + "metadata: {a: b}").metadata["a"] = "c"  # type: ignore[index]


def test_a_skill_can_be_kept_from_routing() -> None:
    assert read(GOOD + "disable-model-invocation: true").disable_model_invocation is True


# Bytes and line ends


def test_crlf_and_a_byte_order_mark_change_nothing() -> None:
    data = f"\ufeff---\n{GOOD}---\none\ntwo\n".replace("\n", "\r\n").encode()
    manifest = parse_manifest(data, path=PATH)
    assert (manifest.name, manifest.body) == ("git", "one\ntwo")
    assert lines(manifest) == [(0, "line-endings"), (1, "byte-order-mark")]


def test_lone_carriage_returns_end_lines() -> None:
    data = f"---\n{GOOD}---\none\ntwo".replace("\n", "\r").encode()
    assert parse_manifest(data, path=PATH).body == "one\ntwo"


def test_bytes_that_are_not_utf8_are_replaced_and_reported_with_their_line() -> None:
    manifest = parse_manifest(
        "---\nname: git\ndescription: café\n---\nx".encode("latin-1"), path=PATH
    )
    assert manifest.description == "caf\ufffd"
    assert lines(manifest) == [(3, "not-utf-8")]


def test_utf16_with_its_mark_is_read() -> None:
    manifest = parse_manifest(f"---\n{GOOD}---\nx".encode("utf-16"), path=PATH)
    assert manifest.description == "Work with Git."
    assert codes(manifest) == ["not-utf-8"]


def test_control_characters_are_taken_out() -> None:
    manifest = read("name: g\0it\ndescription: Red\x1b[31m text", body="a\0b")
    assert (manifest.name, manifest.description, manifest.body) == ("git", "Red[31m text", "ab")
    assert lines(manifest) == [(2, "control-characters")]


def test_control_characters_that_yaml_escapes_bring_in_are_taken_out() -> None:
    assert read('name: git\ndescription: "a\\0b\\x1b"').description == "ab"


def test_text_in_any_script_is_kept() -> None:
    manifest = read("name: git\ndescription: 版本控制 и ветки 🌿", body="Ünïcode")
    assert (manifest.description, manifest.body) == ("版本控制 и ветки 🌿", "Ünïcode")
    assert manifest.diagnostics == ()


# What is refused

NO_KEYS = "the frontmatter is not a list of keys, such as 'name: git' with its space"
NO_TEXT = "no description: nothing to route by; there are the keys "


@pytest.mark.parametrize(
    ("data", "line", "reason"),
    [
        (b"", 0, "the file is empty"),
        (b" \n\n", 0, "the file is empty"),
        (b"# Git\n", 1, "no frontmatter: the file must start with a line ---"),
        (b"---\nname: git\n", 1, "the frontmatter has no closing line ---"),
        (b"---\n- a\n- b\n---\n", 2, NO_KEYS),
        (b"---\nname:git\n---\n", 2, NO_KEYS),
        (b"---\nname: git\nDescripton: x\n---\n", 0, f"{NO_TEXT}'name', 'Descripton'"),
        (b"---\nname: git\n\tdescription: x\n---\n", 0, f"{NO_TEXT}'name'"),
        (b"---\n---\nbody", 0, "no description: nothing to route by"),
        (b"---\nname: git\ndescription:\n---\n", 3, "no description: nothing to route by"),
        (b"---\nname: git\ndescription: ' '\n---\n", 3, "no description: nothing to route by"),
    ],
)
def test_what_cannot_be_loaded_is_refused_by_line_and_reason(
    data: bytes, line: int, reason: str
) -> None:
    error = refusal(data)
    assert (error.path, error.line, error.reason) == (PATH, line, reason)


def test_a_file_over_the_limit_is_refused() -> None:
    assert refusal(b"\0\xff" * 5_000_000).reason == "larger than 1,048,576 bytes"


def test_a_file_is_read_no_further_than_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "SKILL.md"
    with path.open("wb") as file:
        file.truncate(1 << 40)  # sparse: reading it all would take for ever
    with pytest.raises(ManifestError, match="larger than"):
        read_manifest_bytes(path)


def test_a_file_at_the_limit_is_read(tmp_path: Path) -> None:
    path = tmp_path / "SKILL.md"
    path.write_bytes(b"x" * MAX_MANIFEST_BYTES)
    assert len(read_manifest_bytes(path)) == MAX_MANIFEST_BYTES


def test_a_missing_file_is_refused_with_the_systems_reason(tmp_path: Path) -> None:
    with pytest.raises(ManifestError, match="cannot be read: No such file"):
        read_manifest_bytes(tmp_path / "SKILL.md")


def test_the_number_of_diagnostics_is_bounded() -> None:
    manifest = read(GOOD + "\n".join(f"key{i}: x" for i in range(3000)))
    assert len(manifest.diagnostics) == MAX_DIAGNOSTICS
    assert manifest.diagnostics[-1].code == "more-oddities"
    assert len(manifest.extra) == 3000


# Names and descriptions


def test_a_missing_name_is_the_folders() -> None:
    manifest = read("description: x")
    assert manifest.name == "git"
    assert codes(manifest) == ["missing-name"]


def test_without_a_name_and_a_folder_the_skill_is_refused() -> None:
    with pytest.raises(ManifestError, match="no folder to take it from"):
        parse_manifest(b"---\ndescription: x\n---\ny", path=Path("SKILL.md"))


def test_a_folder_name_that_is_no_text_gives_a_name_that_is() -> None:
    path = Path("a\udcff\n b") / "SKILL.md"
    assert parse_manifest(b"---\ndescription: x\n---\ny", path=path).name == "a b"


def test_a_name_other_than_the_folders_is_kept() -> None:
    manifest = read("name: subversion\ndescription: x")
    assert manifest.name == "subversion"
    assert lines(manifest) == [(2, "name-not-folder")]


@pytest.mark.parametrize("name", ["Git", "my_git", "git--hub", "-git", "git-", "g" * 65, "分支"])
def test_a_name_against_the_rule_is_kept_and_reported(name: str) -> None:
    manifest = parse_manifest(
        f"---\nname: {name}\ndescription: x\n---\ny".encode(), path=Path(name) / "SKILL.md"
    )
    assert manifest.name == name
    assert codes(manifest) == ["name-rule"]


def test_an_endless_name_is_cut() -> None:
    assert read(f"name: {'g' * 500}\ndescription: x").name == "g" * 200


def test_a_description_over_the_limit_of_the_format_is_kept() -> None:
    manifest = read(f"name: git\ndescription: {'d' * 1025}")
    assert len(manifest.description) == 1025
    assert lines(manifest) == [(3, "too-long")]


def test_an_endless_description_is_cut() -> None:
    manifest = read(f"name: git\ndescription: {'d' * 9000}")
    assert len(manifest.description) == MAX_KEPT_CHARACTERS
    assert "cut at 4,096" in manifest.diagnostics[0].message


def test_an_empty_body_is_reported() -> None:
    manifest = read(GOOD.rstrip(), body=" \n\n")
    assert manifest.body == ""
    assert lines(manifest) == [(4, "empty-body")]


# Values of other types


def test_scalars_are_the_text_that_was_written() -> None:
    manifest = read(
        GOOD + "metadata: {version: 1.10, day: 2024-01-01, flag: Yes, none: null, big: "
        f"{'9' * 5000}, quoted: '1.0'}}"
    )
    assert dict(manifest.metadata) == {
        "version": "1.10",
        "day": "2024-01-01",
        "flag": "Yes",
        "none": "",
        "big": "9" * 5000,
        "quoted": "1.0",
    }
    assert codes(manifest) == ["metadata-not-text"] * 5


def test_a_name_that_yaml_takes_for_a_truth_value_is_a_text() -> None:
    manifest = read("name: on\ndescription: x")
    assert manifest.name == "on"
    assert lines(manifest) == [(2, "not-text"), (2, "name-not-folder")]


def test_lists_where_a_text_is_due_are_joined() -> None:
    manifest = read("name: git\ndescription: [Commit, branch]\nmetadata:\n  tools: [a, b]")
    assert manifest.description == "Commit, branch"
    assert manifest.metadata["tools"] == "a, b"
    assert lines(manifest) == [(3, "not-text"), (5, "metadata-not-text")]


def test_nested_metadata_is_kept_as_json() -> None:
    manifest = read(GOOD + "metadata:\n  host: {emoji: x, needs: [git]}")
    assert json.loads(manifest.metadata["host"]) == {"emoji": "x", "needs": ["git"]}


def test_metadata_that_is_no_mapping_is_left_out() -> None:
    manifest = read(GOOD + "metadata: [a, b]")
    assert dict(manifest.metadata) == {}
    assert lines(manifest) == [(4, "metadata-not-keys")]


@pytest.mark.parametrize(
    "tools", ["Read, Bash(git add:*, x)", "Read Bash(git add:*, x)", "[Read, 'Bash(git add:*, x)']"]
)
def test_tools_are_read_in_every_usual_spelling(tools: str) -> None:
    assert read(f"{GOOD}allowed-tools: {tools}").allowed_tools == ("Read", "Bash(git add:*, x)")


def test_unknown_keys_are_kept_as_text_and_reported() -> None:
    manifest = read(GOOD + "version: 2.0\nhomepage: here")
    assert dict(manifest.extra) == {"version": "2.0", "homepage": "here"}
    assert lines(manifest) == [(4, "unknown-key"), (5, "unknown-key")]


def test_known_keys_are_recognised_in_other_spellings() -> None:
    manifest = read("Name: git\nDESCRIPTION: x\nallowed_tools: Read")
    assert (manifest.name, manifest.description) == ("git", "x")
    assert manifest.allowed_tools == ("Read",)
    assert codes(manifest) == ["key-spelling"] * 3


# Routing hints


@pytest.mark.parametrize("key", ["routing-keywords", "routing_keywords", "keywords", "tags"])
@pytest.mark.parametrize("value", ["commit, merge conflict", "[commit, merge conflict]"])
def test_top_level_keywords_are_read_and_sent_to_metadata(key: str, value: str) -> None:
    manifest = read(f"{GOOD}{key}: {value}")
    assert manifest.routing_keywords == ("commit", "merge conflict")
    [diagnostic] = manifest.diagnostics
    assert (diagnostic.line, diagnostic.severity) == (4, Severity.INFO)
    assert diagnostic.message == (f"the hint {key!r} belongs under metadata, as routing-keywords")


def test_hints_under_metadata_are_read_with_underscores_and_as_lists() -> None:
    manifest = read(GOOD + "metadata:\n  routing_keywords:\n    - a, b\n    - c\n  intents: [d]")
    assert manifest.routing_keywords == ("a, b", "c")
    assert manifest.intents == ("d",)
    assert lines(manifest) == [
        (5, "metadata-not-text"),
        (5, "hint-spelling"),
        (8, "metadata-not-text"),
    ]


def test_a_hint_in_the_singular_is_read() -> None:
    """It was taken for a key of somebody else, and did nothing without a word."""
    one = read(
        GOOD + "metadata:\n  example: commit this\n  intent: save\n  keyword: git\n  tag: vcs"
    )
    assert (one.examples, one.intents) == (("commit this",), ("save",))
    assert one.routing_keywords == ("git", "vcs")
    assert codes(one) == ["hint-spelling"] * 4


def test_hints_from_several_places_are_united_with_metadata_first() -> None:
    manifest = read(GOOD + "tags: [b, c]\nmetadata:\n  routing-keywords: a, b")
    assert manifest.routing_keywords == ("a", "b", "c")


def test_examples_may_be_a_list_with_bullets_or_colons() -> None:
    assert read(GOOD + "examples: |\n  - one\n  - two").examples == ("one", "two")
    assert read(GOOD + "examples:\n  - release: tag it").examples == ("release: tag it",)


def test_nested_items_of_a_hint_are_left_out() -> None:
    manifest = read(GOOD + "triggers:\n  - commit\n  - {a: b, c: d}")
    assert manifest.routing_keywords == ("commit",)
    assert codes(manifest) == ["misplaced-hint", "nested-items"]


def test_a_flag_that_is_neither_true_nor_false_is_false() -> None:
    manifest = read(GOOD + 'metadata:\n  generic: "maybe"')
    assert manifest.generic is False
    assert lines(manifest) == [(5, "not-a-flag")]


# Whatever the bytes

_FRAGMENTS = st.sampled_from(
    (
        *(b"---\n", b"\n", b": ", b"- ", b"\t", b"&a ", b"*a ", b"<<: ", b"[", b"]", b"{", b"}"),
        *(b"name: ", b"description: d\n", b"metadata:\n  ", b"examples: ", b"|\n", b"'", b'"'),
        *(b"!!python/name:os ", b"\\U0011FFFF", b"\\ud800", b"%YAML 1.1\n", b"\xff", b"\0", b"\r"),
    )
)
_BYTES = st.one_of(
    st.binary(max_size=200),
    st.lists(st.one_of(_FRAGMENTS, st.binary(max_size=3)), max_size=40).map(
        lambda parts: b"---\n" + b"".join(parts) + b"\n---\nbody"
    ),
)


def _only_manifest_errors(data: bytes) -> None:
    try:
        manifest = parse_manifest(data, path=PATH)
    except ManifestError as error:
        assert error.path == PATH
        return
    assert manifest.name
    assert manifest.description
    assert "\0" not in manifest.description + manifest.body


@given(_BYTES)
@settings(max_examples=200, deadline=None)
def test_nothing_but_a_manifest_error_is_raised(data: bytes) -> None:
    _only_manifest_errors(data)


@given(_BYTES)
@settings(max_examples=100, deadline=None)
def test_nothing_but_a_manifest_error_is_raised_without_libyaml(data: bytes) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bounded_yaml, "_LOADER", yaml.SafeLoader)
        _only_manifest_errors(data)


_LINE = (
    st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), min_size=1)
    .map(lambda text: " ".join(text.split()))
    .filter(lambda text: text != "" and not text.startswith("- "))
)
_ITEM = _LINE.map(lambda text: " ".join(text.replace(",", "").split())).filter(
    lambda text: text != "" and not text.startswith("- ")
)


@given(
    name=st.from_regex(r"[a-z0-9]+(-[a-z0-9]+)*", fullmatch=True).filter(lambda n: len(n) <= 64),
    description=_LINE,
    keywords=st.lists(_ITEM, unique=True),
    examples=st.lists(_LINE, unique=True),
    generic=st.booleans(),
    body=st.lists(_LINE, min_size=1).map("\n".join),
)
@settings(max_examples=150, deadline=None)
def test_well_formed_fields_come_back_as_they_were(
    name: str,
    description: str,
    keywords: list[str],
    examples: list[str],
    generic: bool,
    body: str,
) -> None:
    quoted = partial(json.dumps, ensure_ascii=False)  # YAML has no escaped surrogates
    text = (
        f"---\nname: '{name}'\ndescription: {quoted(description)}\nmetadata:\n"
        f"  routing-keywords: {quoted(', '.join(keywords))}\n"
        f"  examples: {quoted(chr(10).join(examples))}\n"
        f"  generic: '{str(generic).lower()}'\n---\n\n{body}\n"
    )
    manifest = parse_manifest(text.encode(), path=Path(name) / "SKILL.md")
    assert manifest == SkillManifest(
        name=name,
        description=description,
        metadata={
            "routing-keywords": ", ".join(keywords),
            "examples": "\n".join(examples),
            "generic": str(generic).lower(),
        },
        routing_keywords=tuple(keywords),
        examples=tuple(examples),
        generic=generic,
        body=body,
        path=Path(name) / "SKILL.md",
        digest=hashlib.sha256(text.encode()).hexdigest(),
    )
