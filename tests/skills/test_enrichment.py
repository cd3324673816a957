"""The file of enrichments: what is read, what is left out, and whose skills it speaks for."""

from __future__ import annotations

import dataclasses
import json
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from cpu_time import cpu_time_at_most
from hypothesis import given
from hypothesis import strategies as st
from manifest_texts import put

from router.skills import enrichment as enrichment_module
from router.skills.catalog import Catalog, load_catalog
from router.skills.diagnostics import Severity
from router.skills.discovery import shipped_skills_root
from router.skills.enrichment import (
    ENRICHMENT_FILE,
    Enrichment,
    EnrichmentFile,
    read_enrichment,
)
from router.skills.registry import SkillRegistry

GIT = Enrichment(
    skill="git",
    requests=("undo my last commit", "what did I change?"),
    near_misses=("undo my last edit in Word",),
    digest="d1",
    model="some-model",
    written_at=datetime(2026, 11, 22, 9, tzinfo=UTC),
)


def written(path: Path, *rows: Any) -> Path:
    """A file with one row a line: a text as it is, anything else as JSON."""
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def row(skill: str, *requests: str, **more: Any) -> dict[str, Any]:
    return {"skill": skill, "requests": list(requests), **more}


def requests_of(catalog: Catalog, name: str) -> tuple[str, ...]:
    enrichment = catalog.get(name).enrichment
    return () if enrichment is None else enrichment.requests


def test_a_line_survives_being_written_and_read(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_text(GIT.to_line(), encoding="utf-8")
    found = read_enrichment(path)
    assert (found.by_skill["git"], found.diagnostics) == (GIT, ())


def test_what_nobody_said_is_not_written() -> None:
    line = Enrichment(skill="git", requests=("push",)).to_line()
    assert line == '{"skill": "git", "requests": ["push"]}\n'


def test_the_later_of_two_lines_for_a_skill_holds(tmp_path: Path) -> None:
    path = written(tmp_path / "e.jsonl", row("git", "old"), row("git", "new"))
    assert read_enrichment(path).by_skill["git"].requests == ("new",)


def test_texts_are_tidied_and_those_without_a_word_are_left_out(tmp_path: Path) -> None:
    path = written(
        tmp_path / "e.jsonl", row("git", "  undo\n my\x07 commit ", "", "undo my commit")
    )
    assert read_enrichment(path).by_skill["git"].requests == ("undo my commit",)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ("[]", "Input should be an object"),
        ('{"requests": []}', "skill: Field required"),
        ('{"skill": "git"}', "requests: Field required"),
        ('{"skill": 1, "requests": []}', "skill: Input should be a valid string"),
        ('{"skill": "git", "requests": "x"}', "requests: Input should be a valid list"),
        ('{"skill": "git", "requests": [1]}', "requests.0: Input should be a valid string"),
        (
            '{"skill": "git", "requests": [], "near_misses": {}}',
            "near_misses: Input should be",
        ),
        (json.dumps(row(" \u0007 ")), "skill: it is empty"),
        (json.dumps(row("g" * 201)), "skill: String should have at most 200 characters"),
        (json.dumps(row("git", "x" * (1 << 18))), "the line has over 262,144 bytes"),
    ],
)
def test_a_line_that_cannot_be_used_is_left_out_and_named(
    line: str, reason: str, tmp_path: Path
) -> None:
    path = written(tmp_path / "e.jsonl", line, row("testing", "write a test"))
    found = read_enrichment(path)
    assert set(found.by_skill) == {"testing"}
    (fault,) = found.diagnostics
    assert (fault.path, fault.line, fault.severity) == (path, 1, Severity.WARNING)
    assert reason in fault.message


def test_over_long_and_too_many_requests_are_left_out_and_the_others_kept(tmp_path: Path) -> None:
    many = [f"request {number}" for number in range(70)]
    path = written(tmp_path / "e.jsonl", row("git", "x" * 2_001, *many))
    found = read_enrichment(path)
    assert found.by_skill["git"].requests == tuple(many[:64])
    assert [fault.severity for fault in found.diagnostics] == [Severity.WARNING] * 2


def test_an_odd_time_and_unknown_keys_are_noted_and_the_line_is_used(tmp_path: Path) -> None:
    path = written(tmp_path / "e.jsonl", row("git", "push", written_at="yesterday", mood="good"))
    found = read_enrichment(path)
    assert found.by_skill["git"] == Enrichment(skill="git", requests=("push",))
    assert [fault.severity for fault in found.diagnostics] == [Severity.INFO] * 2


def test_a_last_line_that_is_being_written_is_no_fault(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_text(GIT.to_line() + '{"skill": "test', encoding="utf-8")
    found = read_enrichment(path)
    assert set(found.by_skill) == {"git"}
    assert [fault.severity for fault in found.diagnostics] == [Severity.INFO]


def test_a_file_that_cannot_be_read_or_is_too_large_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "cannot be read" in read_enrichment(tmp_path / "gone").diagnostics[0].message
    os.mkfifo(tmp_path / "pipe")
    assert read_enrichment(tmp_path / "pipe").diagnostics[0].message == "not a regular file"
    monkeypatch.setattr(enrichment_module, "MAX_FILE_BYTES", 5)
    path = written(tmp_path / "e.jsonl", row("git", "push"))
    assert read_enrichment(path).diagnostics[0].message == "larger than 5 bytes"


def test_an_unchanged_file_is_the_same_object(tmp_path: Path) -> None:
    path = written(tmp_path / "e.jsonl", row("git", "push"))
    found = read_enrichment(path)
    assert read_enrichment(path, previous=found) is found
    written(path, row("git", "pull"))
    assert read_enrichment(path, previous=found).by_skill["git"].requests == ("pull",)


@given(data=st.binary(max_size=300))
def test_no_bytes_break_the_reader(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("e") / "e.jsonl"
    path.write_bytes(data)
    assert isinstance(read_enrichment(path), EnrichmentFile)


def test_an_enrichment_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        GIT.requests = ()  # type: ignore[misc]


def test_the_file_in_a_root_enriches_the_skills_of_that_root_and_of_no_other(
    tmp_path: Path,
) -> None:
    mine, theirs = tmp_path / "mine", tmp_path / "theirs"
    put(mine / "git")
    put(theirs / "testing")
    written(theirs / ENRICHMENT_FILE, row("git", "read my mail"), row("testing", "write a test"))
    catalog = load_catalog([mine, theirs])
    assert requests_of(catalog, "git") == ()
    assert requests_of(catalog, "testing") == ("write a test",)


def test_the_named_file_speaks_for_every_root_and_before_theirs(tmp_path: Path) -> None:
    put(tmp_path / "skills" / "git")
    put(tmp_path / "skills" / "testing")
    written(tmp_path / "skills" / ENRICHMENT_FILE, row("git", "push"), row("testing", "test it"))
    named = written(tmp_path / "named.jsonl", row("git", "undo"))
    catalog = load_catalog([tmp_path / "skills"], enrichment=named)
    assert requests_of(catalog, "git") == ("undo",)
    assert requests_of(catalog, "testing") == ("test it",)


def test_a_named_file_that_is_not_there_yet_is_no_fault_and_is_found_later(tmp_path: Path) -> None:
    """Opening warned of the file that the docs say to name before the first enrichment."""
    put(tmp_path / "skills" / "git")
    named = tmp_path / "named.jsonl"
    registry = SkillRegistry([tmp_path / "skills"], enrichment=named)
    (notice,) = registry.catalog.notices
    assert (notice.path, notice.code) == (named, "enrichment-file")
    assert (notice.severity, registry.catalog.left_out) == (Severity.INFO, ())
    written(named, row("git", "push"))
    assert registry.reload().changed == ("git",)
    assert (requests_of(registry.catalog, "git"), registry.catalog.notices) == (("push",), ())
    named.unlink()
    assert registry.reload().changed == ("git",)


@pytest.mark.parametrize("name", ["no-folder/named.jsonl", "skills", "dangling"])
def test_a_named_file_that_cannot_be_read_is_a_fault(tmp_path: Path, name: str) -> None:
    put(tmp_path / "skills" / "git")
    (tmp_path / "dangling").symlink_to("nothing")
    [fault] = load_catalog([tmp_path / "skills"], enrichment=tmp_path / name).left_out
    assert (fault.path, fault.code) == (tmp_path / name, "enrichment-file")


def test_a_link_out_of_the_root_is_not_followed(tmp_path: Path) -> None:
    put(tmp_path / "skills" / "git")
    outside = written(tmp_path / "outside.jsonl", row("git", "push"))
    (tmp_path / "skills" / ENRICHMENT_FILE).symlink_to(outside)
    catalog = load_catalog([tmp_path / "skills"])
    assert requests_of(catalog, "git") == ()
    assert [notice.code for notice in catalog.notices] == ["link-leaves-root"]


def test_an_enrichment_changes_the_routing_digest_and_not_the_digest(tmp_path: Path) -> None:
    put(tmp_path / "git")
    plain = load_catalog([tmp_path]).get("git")
    written(tmp_path / ENRICHMENT_FILE, row("git", "push"))
    enriched = load_catalog([tmp_path]).get("git")
    written(tmp_path / ENRICHMENT_FILE, row("git", "push", model="another"))
    another = load_catalog([tmp_path]).get("git")
    assert plain.digest == enriched.digest == plain.routing_digest
    assert enriched.routing_digest != plain.routing_digest
    assert another.routing_digest == enriched.routing_digest


def test_an_enrichment_is_stale_when_the_skill_was_another_one(tmp_path: Path) -> None:
    put(tmp_path / "git")
    digest = load_catalog([tmp_path]).get("git").digest

    def is_stale(**said: str) -> bool:
        written(tmp_path / ENRICHMENT_FILE, row("git", "push", **said))
        return load_catalog([tmp_path]).get("git").enrichment_is_stale

    assert not is_stale(digest=digest)
    assert is_stale(digest="0" * 64)
    assert not is_stale()


@pytest.mark.parametrize("quick", [False, True])
def test_a_changed_and_a_removed_file_is_followed(tmp_path: Path, quick: bool) -> None:
    put(tmp_path / "git")
    written(tmp_path / ENRICHMENT_FILE, row("git", "push"))
    first = load_catalog([tmp_path])
    written(tmp_path / ENRICHMENT_FILE, row("git", "pull"))
    second = load_catalog([tmp_path], previous=first, quick=quick)
    (tmp_path / ENRICHMENT_FILE).unlink()
    third = load_catalog([tmp_path], previous=second, quick=quick)
    assert [requests_of(catalog, "git") for catalog in (first, second, third)] == [
        ("push",),
        ("pull",),
        (),
    ]
    assert len({catalog.version for catalog in (first, second, third)}) == 3


def test_an_unchanged_skill_with_an_unchanged_file_is_the_same_object(tmp_path: Path) -> None:
    put(tmp_path / "git")
    written(tmp_path / ENRICHMENT_FILE, row("git", "push"))
    first = load_catalog([tmp_path])
    assert load_catalog([tmp_path], previous=first).get("git") is first.get("git")


def test_lines_that_speak_for_no_skill_of_their_folder_are_told(tmp_path: Path) -> None:
    """A skill that was renamed loses its requests, and a slip of the pen does nothing at all."""
    put(tmp_path / "git")
    path = written(tmp_path / ENRICHMENT_FILE, row("git", "push"), row("gti", "pull"))
    (told,) = load_catalog([tmp_path]).diagnostics
    assert (told.path, told.severity, told.code) == (path, Severity.INFO, "enrichment-unused")
    assert "1 of the lines, such as 'gti'" in told.message
    put(tmp_path / "gti")
    assert load_catalog([tmp_path]).diagnostics == ()
    put(tmp_path / "broken")
    (tmp_path / "broken" / "SKILL.md").write_text("---\nname: [")
    written(tmp_path / ENRICHMENT_FILE, row("broken", "push"))
    assert [told.code for told in load_catalog([tmp_path]).diagnostics] == ["not-loaded"]


def test_faults_of_the_file_are_told_with_those_of_the_catalog(tmp_path: Path) -> None:
    put(tmp_path / "git")
    path = written(tmp_path / ENRICHMENT_FILE, "nonsense")
    (fault,) = load_catalog([tmp_path]).diagnostics
    assert (fault.path, fault.line, fault.code) == (path, 1, "enrichment-line")


def test_the_shipped_skills_ship_enriched_and_up_to_date() -> None:
    catalog = load_catalog([shipped_skills_root()])
    assert catalog.diagnostics == ()
    for skill in catalog.routable:
        assert skill.enrichment is not None, skill.name
        assert not skill.enrichment_is_stale, f"{skill.name}: ask again: router skills enrich"
        assert len(skill.enrichment.requests) >= 8, skill.name


@pytest.mark.parametrize(
    "line", [b"x\n", b'{"skill":"a","requests":[' + b"1," * 100_000 + b"1]}\n"]
)
def test_lines_that_cannot_be_used_cost_little_however_many_there_are(
    line: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "e.jsonl"
    path.write_bytes(line * (2_000_000 // len(line)) + json.dumps(row("git")).encode())
    with cpu_time_at_most(1.5):
        found = read_enrichment(path)
    assert set(found.by_skill) == {"git"}
