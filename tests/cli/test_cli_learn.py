"""``router learn``, ``feedback`` and ``calibrate``."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from typer.testing import Result

from router import Settings, SyncSemanticRouter
from router.cli import output
from router.learning import learner

SQUASH = "squash my last three commits into one"


def lines(path: Path, *rows: object) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_feedback_changes_what_the_same_request_gets(
    run: Callable[..., Result], skills: Path
) -> None:
    first = json.loads(run("route", SQUASH, "--skills", str(skills), "--json").stdout)
    done = run("feedback", first["id"], "--skill", "testing", "--skills", str(skills))
    assert done.exit_code == 0
    again = json.loads(run("route", SQUASH, "--skills", str(skills), "--json").stdout)
    assert again["selected_skills"] == ["testing"]


def test_a_reset_undoes_a_correction_in_the_cache_and_leaves_other_answers_there(
    run: Callable[..., Result], skills: Path
) -> None:
    def routed(request: str) -> dict[str, Any]:
        answer = run("route", request, "--skills", str(skills), "--json").stdout
        read: dict[str, Any] = json.loads(answer)
        return read

    first = routed(SQUASH)
    noted = run("feedback", first["id"], "--skill", "testing", "--skills", str(skills), "--json")
    assert json.loads(noted.stdout) == {"id": first["id"]}
    other = routed("commit my changes and push them")
    assert run("learn", "reset", "--yes").exit_code == 0
    assert routed(SQUASH)["selected_skills"] == first["selected_skills"]
    assert (other["stage"], routed("commit my changes and push them")["stage"]) == (
        "vector",
        "fuzzy",
    )


def test_feedback_on_an_unknown_answer_is_a_fault_of_the_input(
    run: Callable[..., Result], skills: Path
) -> None:
    done = run("feedback", "nothing", "--right", "--skills", str(skills))
    assert (done.exit_code, "no answer 'nothing'" in done.stderr) == (2, True)


def test_feedback_needs_exactly_one_verdict(run: Callable[..., Result], skills: Path) -> None:
    assert run("feedback", "x", "--right", "--none").exit_code == 2
    assert run("feedback", "x").exit_code == 2


def test_what_is_exported_can_be_imported(
    run: Callable[..., Result], skills: Path, tmp_path: Path
) -> None:
    rows = ({"request": SQUASH, "skills": ["git"]}, {"request": "sing", "skills": []})
    source = lines(tmp_path / "labels.jsonl", *rows)
    imported = run("learn", "import", str(source), "--skills", str(skills), "--json")
    assert json.loads(imported.stdout) == {"read": 2, "kept": 2, "not_installed": []}
    exported = [json.loads(line) for line in run("learn", "export").stdout.splitlines()]
    assert [(row["request"], row["skills"]) for row in exported] == [
        (SQUASH, ["git"]),
        ("sing", []),
    ]
    assert json.loads(run("learn", "reset", "--yes", "--json").stdout) == {"forgotten": 2}
    assert run("learn", "export").stdout == ""


def test_an_export_is_restored_as_it_was_and_no_file_claims_a_person_s_word(
    run: Callable[..., Result], skills: Path, tmp_path: Path
) -> None:
    first = json.loads(run("route", SQUASH, "--skills", str(skills), "--json").stdout)
    run("feedback", first["id"], "--skill", "testing", "--skills", str(skills))
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
    run("learn", "import", str(source), "--skills", str(skills))
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
    done = run("learn", "import", str(own), "--skills", str(skills))
    assert "1 label says that a person gave it, and counts as a file's" in done.stderr
    claimed = own.read_text().replace('"feedback"', '"file"')
    assert run("learn", "export").stdout == claimed
    done = run("learn", "import", str(own), "--restore", "--skills", str(skills))
    assert "4 examples read, 1 of them kept" in done.stderr
    assert run("learn", "export").stdout == own.read_text()
    again = json.loads(run("route", SQUASH, "--skills", str(skills), "--json").stdout)
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
    run: Callable[..., Result], skills: Path, tmp_path: Path, line: str, reason: str
) -> None:
    source = lines(tmp_path / "labels.jsonl", {"request": SQUASH, "skills": ["git"]})
    source.write_text(source.read_text(encoding="utf-8") + line + "\n", encoding="utf-8")
    done = run("learn", "import", str(source), "--skills", str(skills))
    assert (done.exit_code, f"labels.jsonl:2: {reason}" in " ".join(done.stderr.split())) == (
        2,
        True,
    )
    assert run("learn", "export").stdout == ""


def test_a_label_may_have_an_id_of_any_kind(
    run: Callable[..., Result], skills: Path, tmp_path: Path
) -> None:
    source = lines(tmp_path / "labels.jsonl", {"id": 1.5, "request": SQUASH, "skills": ["git"]})
    assert run("learn", "import", str(source), "--skills", str(skills)).exit_code == 0


def test_a_trigger_file_is_imported_for_its_skill(
    run: Callable[..., Result], skills: Path, tmp_path: Path
) -> None:
    triggers = tmp_path / "triggers.json"
    triggers.write_text(json.dumps([{"query": SQUASH, "should_trigger": False}]))
    done = run("learn", "import", str(triggers), "--skill", "testing", "--skills", str(skills))
    assert done.exit_code == 0
    assert json.loads(run("learn", "export").stdout)["wrong"] == ["testing"]


def test_labels_of_skills_that_are_not_installed_wait(
    run: Callable[..., Result], skills: Path, tmp_path: Path
) -> None:
    source = lines(tmp_path / "labels.jsonl", {"request": "fly me", "skills": ["airline"]})
    done = run("learn", "import", str(source), "--skills", str(skills))
    assert (done.exit_code, "'airline' is not installed" in done.stderr) == (0, True)


def test_status_shows_the_evidence(
    run: Callable[..., Result], skills: Path, tmp_path: Path
) -> None:
    source = lines(tmp_path / "labels.jsonl", {"request": SQUASH, "skills": ["git"]})
    run("learn", "import", str(source), "--skills", str(skills))
    status = json.loads(run("learn", "status", "--skills", str(skills), "--json").stdout)
    assert status["examples"] == {"llm": 0, "audit": 0, "file": 1, "feedback": 0}
    assert status["bound"]["max_error"] == 0.01
    shown = run("learn", "status", "--skills", str(skills)).stdout
    assert "examples from file" in shown
    assert "answered without the LLM" in shown


def test_status_says_that_another_process_has_an_account_of_its_own(
    run: Callable[..., Result], skills: Path
) -> None:
    status = ("learn", "status", "--skills", str(skills))
    assert run(*status).stderr == ""
    with SyncSemanticRouter(Settings(), roots=[skills]):
        assert "1 other process is running over these skills" in run(*status).stderr
        told = json.loads(run(*status, "--json").stdout)
    assert told["others"] == 1


def test_labelled_requests_calibrate_the_vector_stage(
    run: Callable[..., Result], skills: Path, tmp_path: Path
) -> None:
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
    done = run("calibrate", str(source), "--skills", str(skills), "--json")
    fitted = json.loads(done.stdout)
    assert (fitted["vector"]["calibrated"], fitted["vector"]["outcomes"]) == (True, 25)
    result = json.loads(run("route", "rebase the branch", "--skills", str(skills), "--json").stdout)
    assert (result["calibrated"], result["evidence_count"]) == (True, 25)
    again = run("calibrate", str(source), "--skills", str(skills), "--json")
    assert again.stderr == "warning: 25 of 25 rows were counted before\n"
    assert json.loads(again.stdout)["vector"]["outcomes"] == 25


def test_the_progress_counts_rows_whose_answer_is_not_calibrated(
    run: Callable[..., Result], skills: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[tuple[int, int | None]] = []

    @contextmanager
    def recorded(label: str) -> Iterator[Callable[[int, int | None], None]]:
        yield lambda done, total: shown.append((done, total)) if label == "routing" else None

    monkeypatch.setattr(output, "progress", recorded)
    monkeypatch.setattr(learner, "CALIBRATED", ())
    rows = [{"request": SQUASH, "skills": ["git"]}, {"request": "plot the csv", "skills": []}]
    run("calibrate", str(lines(tmp_path / "rows.jsonl", *rows)), "--skills", str(skills))
    assert shown == [(1, 2), (2, 2)]


def test_what_is_trained_serves_the_commands_after_it(
    run: Callable[..., Result], skills: Path, tmp_path: Path
) -> None:
    rows = [
        {"request": f"{verb} the flux capacitor {n}", "skills": [skill]}
        for n in range(110)
        for verb, skill in (("polish", "git"), ("weigh", "testing"), ("paint", "writer"))
    ]
    source = lines(tmp_path / "labels.jsonl", *rows)
    assert run("learn", "import", str(source), "--skills", str(skills)).exit_code == 0
    done = run("learn", "train", "--skills", str(skills), "--json")
    assert json.loads(done.stdout)["last_training"]["shipped"]
    again = run("learn", "train", "--skills", str(skills))
    assert "the kept model is up to date" in again.stdout
    found = run("route", "weigh the flux capacitor 30", "--skills", str(skills), "--json")
    assert json.loads(found.stdout)["selected_skills"] == ["testing"]


def test_a_model_that_answers_nothing_is_not_said_to_serve(
    run: Callable[..., Result], skills: Path, tmp_path: Path
) -> None:
    rows = [
        {"request": "polish the flux capacitor", "skills": ["git"]},
        {"request": "weigh the flux capacitor", "skills": ["testing"]},
    ]
    source = lines(tmp_path / "labels.jsonl", *rows)
    run("learn", "import", str(source), "--skills", str(skills))
    said = run("learn", "train", "--skills", str(skills)).stdout
    assert said.startswith("there is a new model: version 1, ")
    assert "it answers no request yet" in said
    status = json.loads(run("learn", "status", "--skills", str(skills), "--json").stdout)
    assert status["model"]["serves"] is False


def test_with_nothing_to_learn_from_training_says_so(
    run: Callable[..., Result], tmp_path: Path
) -> None:
    folder = tmp_path / "bare" / "git"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        "---\nname: git\ndescription: Version control.\n---\n\nUse it.\n"
    )
    done = run("learn", "train", "--skills", str(tmp_path / "bare"))
    assert (done.exit_code, done.stdout) == (0, "")
    assert "nothing to learn from" in done.stderr
