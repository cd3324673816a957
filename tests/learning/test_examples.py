"""Examples that come with skills: read strictly, bounded, never at another skill's cost."""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from router.learning.evidence import Example, Source
from router.learning.examples import (
    MAX_TRIGGERS,
    WRITTEN_WEIGHT,
    read_triggers,
    shipped_examples,
    written_examples,
)
from router.skills.enrichment import Enrichment
from router.skills.manifest import SkillManifest


def skill(folder: Path, name: str = "git", examples: tuple[str, ...] = ()) -> SkillManifest:
    home = folder / name
    home.mkdir(exist_ok=True)
    return SkillManifest(
        name=name,
        description="commits",
        body="steps",
        path=home / "SKILL.md",
        digest="d",
        examples=examples,
    )


def triggers(path: Path, *rows: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(rows), encoding="utf-8")
    return path


YES = {"query": "commit my changes", "should_trigger": True}
NO = {"query": "what is git?", "should_trigger": False}


def test_a_manifests_examples_are_labels(tmp_path: Path) -> None:
    assert shipped_examples([skill(tmp_path, examples=("commit it",))]) == [
        Example("commit it", ("git",), True, Source.FILE)
    ]


def test_requests_written_by_an_llm_are_examples_of_less_weight(tmp_path: Path) -> None:
    written = Enrichment(skill="git", requests=("save my work", " "), near_misses=("cook",))
    enriched = replace(skill(tmp_path), enrichment=written)
    assert written_examples([enriched, skill(tmp_path, "tar")]) == [
        Example("save my work", ("git",), True, Source.FILE, WRITTEN_WEIGHT)
    ]


@pytest.mark.parametrize("place", ["triggers.json", "evals/set.json", "tests/trigger-eval.json"])
def test_a_trigger_file_beside_the_skill_is_read(tmp_path: Path, place: str) -> None:
    home = skill(tmp_path)
    triggers(home.path.parent / place, YES, NO)
    assert shipped_examples([home]) == [
        Example("commit my changes", ("git",), True, Source.FILE),
        Example("what is git?", ("git",), False, Source.FILE),
    ]


def test_beside_a_skill_without_a_file_nothing_is_looked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tool = SkillManifest.in_memory("git", "Commits.", examples=("commit it",))
    monkeypatch.chdir(tmp_path)
    triggers(tmp_path / tool.path.parent / "triggers.json", YES)
    assert [example.text for example in shipped_examples([tool])] == ["commit it"]


def test_json_of_another_form_gives_nothing(tmp_path: Path) -> None:
    home = skill(tmp_path)
    triggers(home.path.parent / "evals/evals.json", {"prompt": "x"}, YES)
    assert shipped_examples([home]) == []


@pytest.mark.parametrize(
    "data",
    [
        b"{not json",
        b"[" * 100_000,
        b'"' + b"x" * (1 << 18) + b'"',
        json.dumps([YES] * (MAX_TRIGGERS + 1)).encode(),
        json.dumps([YES, {"query": " ", "should_trigger": True}]).encode(),
    ],
)
def test_a_bad_trigger_file_is_left_out_with_a_warning_and_disturbs_no_other(
    tmp_path: Path, data: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    bad, good = skill(tmp_path, "bad"), skill(tmp_path, "good", examples=("do it",))
    (bad.path.parent / "triggers.json").write_bytes(data)
    with caplog.at_level(logging.WARNING):
        assert [e.text for e in shipped_examples([bad, good])] == ["do it"]
    assert "triggers.json" in caplog.text


def test_a_folder_that_may_not_be_read_disturbs_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing was learnt from anything while one skill's folder could not be read."""
    bad, good = skill(tmp_path, "bad"), skill(tmp_path, "good", examples=("do it",))
    bad = replace(bad, path=tmp_path / ("x" * 300) / "SKILL.md")  # root may read all that there is
    assert [e.text for e in shipped_examples([bad, good])] == ["do it"]
    if sys.version_info < (3, 13):  # where ``glob`` leaves out what cannot be read by itself
        assert "File name too long" in caplog.text


def test_a_link_out_of_the_skills_folder_is_not_followed(tmp_path: Path) -> None:
    secret = triggers(tmp_path / "elsewhere" / "secret.json", YES)
    home = skill(tmp_path)
    (home.path.parent / "triggers.json").symlink_to(secret)
    (home.path.parent / "evals").symlink_to(secret.parent, target_is_directory=True)
    assert shipped_examples([home]) == []


def test_rows_name_the_skill_that_they_are_for(tmp_path: Path) -> None:
    path = triggers(tmp_path / "t.json", YES)
    assert read_triggers(path, "docker")[0].skills == ("docker",)
