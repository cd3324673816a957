"""``router learn``, ``feedback`` and ``calibrate``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from cli.results import Run, parsed

from router import Settings, SyncSemanticRouter
from router.cli import output
from router.learning import learner

SQUASH = "squash my last three commits into one"


@pytest.fixture
def with_skills(run: Run, skills: Path) -> Run:
    """Runs a command over the five skills."""
    return lambda *arguments: run(*arguments, "--skills", skills)


def lines(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_a_reset_undoes_a_correction_in_the_cache_and_leaves_other_answers_there(
    with_skills: Run, run: Run
) -> None:
    def routed(request: str) -> dict[str, Any]:
        answer: dict[str, Any] = parsed(with_skills("route", request, "--json"))
        return answer

    first = routed(SQUASH)
    noted = with_skills("feedback", first["id"], "--skill", "testing", "--json")
    assert parsed(noted) == {"id": first["id"]}
    other = routed("commit my changes and push them")
    assert run("learn", "reset", "--yes").exit_code == 0
    assert routed(SQUASH)["selected_skills"] == first["selected_skills"]
    assert (other["stage"], routed("commit my changes and push them")["stage"]) == (
        "vector",
        "fuzzy",
    )


def test_feedback_on_an_unknown_answer_is_a_fault_of_the_input(with_skills: Run) -> None:
    done = with_skills("feedback", "nothing", "--right")
    assert (done.exit_code, "no answer 'nothing'" in done.stderr) == (2, True)


def test_feedback_needs_exactly_one_verdict(run: Run) -> None:
    assert run("feedback", "x", "--right", "--none").exit_code == 2
    assert run("feedback", "x").exit_code == 2


def test_what_is_exported_can_be_imported(with_skills: Run, run: Run, tmp_path: Path) -> None:
    rows = ({"request": SQUASH, "skills": ["git"]}, {"request": "sing", "skills": []})
    source = lines(tmp_path / "labels.jsonl", *rows)
    imported = with_skills("learn", "import", source, "--json")
    assert parsed(imported) == {"read": 2, "kept": 2, "not_installed": []}
    exported = [json.loads(line) for line in run("learn", "export").stdout.splitlines()]
    assert [(row["request"], row["skills"]) for row in exported] == [
        (SQUASH, ["git"]),
        ("sing", []),
    ]
    assert parsed(run("learn", "reset", "--yes", "--json")) == {"forgotten": 2}
    assert run("learn", "export").stdout == ""


def test_an_export_is_restored_as_it_was_and_no_file_claims_a_person_s_word(
    with_skills: Run, run: Run, tmp_path: Path
) -> None:
    first = parsed(with_skills("route", SQUASH, "--json"))
    with_skills("feedback", first["id"], "--skill", "testing")
    source = lines(
        tmp_path / "labels.jsonl",
        {"request": "sing", "skills": [], "source": "llm", "learnt": "2026-01-02T03:04:05Z"},
        {
            "request": "hum",
            "skills": ["git"],
            "learnt": "2999-01-01",
            "digests": {"git": "earlier"},
        },
        {"request": "whistle", "wrong": ["git"], "source": "nobody"},
    )
    with_skills("learn", "import", source)
    own = tmp_path / "own.jsonl"
    own.write_text(run("learn", "export").stdout, encoding="utf-8")
    rows = {row["request"]: row for row in map(json.loads, own.read_text().splitlines())}
    assert {request: row["source"] for request, row in rows.items()} == {
        SQUASH: "feedback",
        "sing": "llm",
        "hum": "file",
        "whistle": "file",
    }
    assert rows["sing"]["learnt"] == "2026-01-02T03:04:05+00:00"
    assert rows["hum"]["learnt"] < "2999"
    assert rows["hum"]["digests"] == {"git": "earlier"}

    run("learn", "reset", "--yes")
    done = with_skills("learn", "import", own)
    assert "1 label says that a person gave it, and counts as a file's" in done.stderr
    claimed = own.read_text().replace('"feedback"', '"file"')
    assert run("learn", "export").stdout == claimed
    done = with_skills("learn", "import", own, "--restore")
    assert "4 examples read, 1 of them kept" in done.stderr
    assert run("learn", "export").stdout == own.read_text()
    again = parsed(with_skills("route", SQUASH, "--json"))
    assert again["selected_skills"] == ["testing"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not JSON (Expecting property name"),
        ("save my work", "not JSON (Expecting value"),
        (f'{{"request": "x", "skills": [], "n": {"1" * 5000}}}', "not JSON (Exceeds the limit"),
        ('["a"]', "expected an object, not list"),
        ('{"skills": []}', "'request' must be a string"),
        ('{"request": "x"}', "'skills' must be a list of names"),
        ('{"request": "x", "skills": [1]}', "'skills' must be a list of names"),
        ('{"request": "x", "wrong": []}', "'wrong' must name one skill"),
        ('{"request": " ", "skills": []}', "request: empty"),
        ('{"request": "x", "skills": [], "learnt": "today"}', "'learnt' must be an ISO 8601 time"),
        ('{"request": "x", "skills": [], "digests": {"": 1}}', "'digests' must be an object"),
    ],
)
def test_a_line_that_is_no_label_is_named_and_nothing_is_imported(
    with_skills: Run, run: Run, tmp_path: Path, line: str, reason: str
) -> None:
    source = lines(tmp_path / "labels.jsonl", {"request": SQUASH, "skills": ["git"]})
    source.write_text(source.read_text(encoding="utf-8") + line + "\n", encoding="utf-8")
    done = with_skills("learn", "import", source)
    assert (done.exit_code, f"labels.jsonl:2: {reason}" in " ".join(done.stderr.split())) == (
        2,
        True,
    )
    assert run("learn", "export").stdout == ""


def test_a_label_may_have_an_id_of_any_kind(with_skills: Run, tmp_path: Path) -> None:
    source = lines(tmp_path / "labels.jsonl", {"id": 1.5, "request": SQUASH, "skills": ["git"]})
    assert with_skills("learn", "import", source).exit_code == 0


def test_a_trigger_file_is_imported_for_its_skill(
    with_skills: Run, run: Run, tmp_path: Path
) -> None:
    triggers = tmp_path / "triggers.json"
    triggers.write_text(json.dumps([{"query": SQUASH, "should_trigger": False}]))
    done = with_skills("learn", "import", triggers, "--skill", "testing")
    assert done.exit_code == 0
    assert parsed(run("learn", "export"))["wrong"] == ["testing"]


def test_labels_of_skills_that_are_not_installed_wait(with_skills: Run, tmp_path: Path) -> None:
    source = lines(tmp_path / "labels.jsonl", {"request": "fly me", "skills": ["airline"]})
    done = with_skills("learn", "import", source)
    assert (done.exit_code, "'airline' is not installed" in done.stderr) == (0, True)


def test_status_shows_the_evidence(with_skills: Run, tmp_path: Path) -> None:
    source = lines(tmp_path / "labels.jsonl", {"request": SQUASH, "skills": ["git"]})
    with_skills("learn", "import", source)
    status = parsed(with_skills("learn", "status", "--json"))
    assert status["examples"] == {"llm": 0, "audit": 0, "file": 1, "feedback": 0}
    assert status["bound"]["max_error"] == 0.01
    shown = with_skills("learn", "status").stdout
    assert "examples from file" in shown
    assert "answered without the LLM" in shown


def test_status_says_that_another_process_has_an_account_of_its_own(run: Run, skills: Path) -> None:
    status = ("learn", "status", "--skills", str(skills))
    assert run(*status).stderr == ""
    with SyncSemanticRouter(Settings(), roots=[skills]):
        assert "1 other process is running over these skills" in run(*status).stderr
        told = parsed(run(*status, "--json"))
    assert told["others"] == 1


def test_labelled_requests_calibrate_the_vector_stage(with_skills: Run, tmp_path: Path) -> None:
    rows = [
        {"request": f"{text} {number}", "skills": [skill]}
        for number in range(5)
        for text, skill in (
            (SQUASH, "git"),
            ("write pytest fixtures for the parser", "testing"),
            ("plot the csv as a chart", "data-analysis"),
            ("why does it crash with a traceback", "debugging"),
            ("draft an announcement email", "writer"),
        )
    ]
    source = lines(tmp_path / "rows.jsonl", *rows)
    done = with_skills("calibrate", source, "--json")
    fitted = parsed(done)
    assert (fitted["vector"]["calibrated"], fitted["vector"]["outcomes"]) == (True, 25)
    result = parsed(with_skills("route", "rebase the branch", "--json"))
    assert (result["calibrated"], result["evidence_count"]) == (True, 25)
    again = with_skills("calibrate", source, "--json")
    assert again.stderr == "warning: 25 of 25 rows were counted before\n"
    assert parsed(again)["vector"]["outcomes"] == 25


def test_the_progress_counts_rows_whose_answer_is_not_calibrated(
    with_skills: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[tuple[int, int | None]] = []

    @contextmanager
    def recorded(label: str) -> Iterator[Callable[[int, int | None], None]]:
        yield lambda done, total: shown.append((done, total)) if label == "routing" else None

    monkeypatch.setattr(output, "progress", recorded)
    monkeypatch.setattr(learner, "CALIBRATED", ())
    rows = [{"request": SQUASH, "skills": ["git"]}, {"request": "plot the csv", "skills": []}]
    with_skills("calibrate", lines(tmp_path / "rows.jsonl", *rows))
    assert shown == [(1, 2), (2, 2)]


def test_what_is_trained_serves_the_commands_after_it(with_skills: Run, tmp_path: Path) -> None:
    rows = [
        {"request": f"{verb} the flux capacitor {n}", "skills": [skill]}
        for n in range(110)
        for verb, skill in (("polish", "git"), ("weigh", "testing"), ("paint", "writer"))
    ]
    source = lines(tmp_path / "labels.jsonl", *rows)
    assert with_skills("learn", "import", source).exit_code == 0
    done = with_skills("learn", "train", "--json")
    assert parsed(done)["last_training"]["shipped"]
    again = with_skills("learn", "train")
    assert "the kept model is up to date" in again.stdout
    found = with_skills("route", "weigh the flux capacitor 30", "--json")
    assert parsed(found)["selected_skills"] == ["testing"]


def test_a_model_that_answers_nothing_is_not_said_to_serve(
    with_skills: Run, tmp_path: Path
) -> None:
    rows = [
        {"request": "polish the flux capacitor", "skills": ["git"]},
        {"request": "weigh the flux capacitor", "skills": ["testing"]},
    ]
    source = lines(tmp_path / "labels.jsonl", *rows)
    with_skills("learn", "import", source)
    said = with_skills("learn", "train").stdout
    assert said.startswith("there is a new model: version 1, ")
    assert "it answers no request yet" in said
    status = parsed(with_skills("learn", "status", "--json"))
    assert status["model"]["serves"] is False


def test_with_nothing_to_learn_from_training_says_so(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "bare" / "git"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        "---\nname: git\ndescription: Version control.\n---\n\nUse it.\n"
    )
    done = run("learn", "train", "--skills", tmp_path / "bare")
    assert (done.exit_code, done.stdout) == (0, "")
    assert "nothing to learn from" in done.stderr
