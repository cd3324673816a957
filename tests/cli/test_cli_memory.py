"""``router memory``: what people see, what programs read, and what ends with which code."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from cli.results import Run, ids, parsed, save, write_file

TOKEN = "fg-something-secret"  # noqa: S105 - not a real one
ESCAPE = "\x1b]0;owned\x07"

pytestmark = pytest.mark.usefixtures("patient")


def test_scopes_keep_memories_apart(memory: Run, run: Run) -> None:
    memory("save", "JWT is a signed token", "--layer", "semantic", "--name", "jwt")
    query = ("recall", "What is JWT?", "--json")
    for asked in (query, ("search", "JWT", "--json")):
        assert parsed(memory(*asked, "--user", "bob"))["items"] == []
    assert len(parsed(memory(*query, "--session", "s1"))["items"]) == 1
    assert run("memory", "get", "jwt", "--layer", "semantic", "--user", "bob").exit_code == 2
    assert memory("get", "jwt", "--layer", "semantic").stdout == "JWT is a signed token\n"


def test_an_empty_list_says_what_may_have_hidden_it(memory: Run) -> None:
    """What was saved with a project is not seen by its user alone, unlike in an export."""
    memory(
        "save", "JWT is a signed token", "--layer", "semantic", "--user", "ada", "--project", "x"
    )
    for command in ("list", "profile"):
        empty = memory(command, "--user", "ada")
        assert (empty.stdout, "--project or --session" in empty.stderr) == ("", True)
    assert "--project" not in memory("list", "--user", "ada", "--project", "x").stderr


def test_nothing_relevant_is_said_and_is_no_error(memory: Run) -> None:
    shown = memory("recall", "What is JWT?", "--limit", "1").stdout
    assert "confidence 0.00" in shown
    assert "Nothing relevant was found" in " ".join(shown.split())


@pytest.mark.parametrize("command", ["recall", "search", "context", "classify"])
def test_a_dash_reads_the_query_from_standard_input(memory: Run, run: Run, command: str) -> None:
    memory("save", "JWT is a signed token", "--layer", "semantic")
    asked = memory(command, "-", "--json", stdin="What is JWT?\n")
    assert "JWT" in asked.stdout
    for wrong, fault in ((b"caf\xe9", "error: query: not UTF-8"), (b"x" * 500_000, "query: ")):
        refused = run("memory", command, "-", stdin=wrong)
        assert (refused.exit_code, fault in refused.stderr) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["save", " "], 2),
        (["save", "\udcff", "--layer", "semantic"], 2),
        (["get", "\udcff", "--layer", "semantic"], 2),
        (["save", "x", "--layer", "semantic", "--attribute", "due"], 2),
        (["save", "x", "--name", "adr/1"], 2),
        (["recall", "x", "-k", "0"], 2),
        (["context", "x", "--strategy", "all"], 2),
        (["search", "x", "--strategy", "all"], 2),
        (["get", "nothing"], 2),
        (["delete", "nothing"], 2),
        (["ingest", "no-such-folder"], 2),
        (["feedback", "semantic", "--query", "What is JWT?"], 2),
        (["sync"], 1),
    ],
)
def test_faults_have_a_code_and_no_trace(
    run: Run, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int
) -> None:
    monkeypatch.setenv("ROUTER_MEMORY__READ_ONLY_PATTERNS", "adr/.*")
    result = run("memory", *arguments)
    assert result.exit_code == code
    assert ("warning" if code == 1 else "error") in result.stderr.lower()
    assert isinstance(result.exception, SystemExit)


def test_a_context_is_text_on_standard_output_and_figures_beside_it(memory: Run) -> None:
    memory("save", "Postgres was chosen for JSON", "--layer", "project")
    result = memory("context", "Postgres", "--budget", "200")
    assert result.stdout.startswith("[memory:project, 20")
    assert result.stdout.endswith("]\nPostgres was chosen for JSON\n")
    assert "pieces: 1; left out: 0; tokens: " in result.stderr
    found = parsed(memory("context", "Postgres", "--strategy", "rag", "--json"))
    assert (found["requested"], found["strategy"]) == ("rag", "hybrid")
    assert "there are no documents" in memory("context", "Postgres", "--strategy", "rag").stderr


def test_the_status_shows_layers_files_problems_and_what_feedback_changed(memory: Run) -> None:
    write_file("good", "Fine.")
    Path(".serena/memories/bad.md").write_bytes(b"\xff\xfe")
    memory("feedback", "semantic", "--query", "What is JWT?", "--useful")
    result = memory("status")
    assert "prospective" in result.stdout
    assert "memory files: 1; service: off" in result.stdout
    assert "by feedback, factual queries weigh semantic x1.1" in result.stdout
    assert "bad.md" in result.stderr
    memory("feedback", "--reset")
    status = parsed(memory("status", "--json"))
    assert status["weight_factors"] == {}
    assert status["unified"]["files"] == 1


def test_contents_of_strangers_cannot_drive_the_terminal(memory: Run) -> None:
    write_file("odd", f"tokens {ESCAPE} and \u202etokens")
    for command in (("search", "tokens"), ("recall", "Which tokens do we use here?")):
        output = memory(*command).output
        assert "\x1b" not in output
        assert "\u202e" not in output


def test_a_content_goes_unchanged_to_a_pipe_and_harmless_to_a_terminal(memory: Run) -> None:
    text = "tab\there, \u202eright to left,\n  ünïcode 👩‍💻, no\u00a0break"
    memory("save", text, "--layer", "semantic", "--name", "odd")
    assert memory("get", "odd", "--layer", "semantic").stdout == f"{text}\n"
    shown = on_a_terminal("memory", "get", "odd", "--layer", "semantic")
    assert shown == "tab\there, \\u202eright to left,\n  ünïcode 👩‍💻, no break\n"
    shown = on_a_terminal("memory", "context", "right to left break")
    assert "\u202e" not in shown
    assert "\\u202eright" in shown


def on_a_terminal(*arguments: str) -> str:
    """What a command writes to a terminal, with the line ends that a pipe would get."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "router", *arguments], stdout=slave, stderr=subprocess.DEVNULL
    )
    os.close(slave)
    data = b""
    with suppress(OSError):  # how the end of a terminal shows on Linux
        while piece := os.read(master, 65_536):
            data += piece
    os.close(master)
    assert process.wait(timeout=120) == 0
    return data.decode().replace("\r\n", "\n")


def test_a_service_that_cannot_be_reached_is_named_by_its_address(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROUTER_MEMORY__SERVICE__URL", "http://127.0.0.1:9")
    result = run("memory", "search", "x", "--semantic-only")
    assert "the memory service at 127.0.0.1:9 cannot be reached" in result.stderr


def test_a_folder_of_memories_that_cannot_be_made_is_named_by_its_setting(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.write_text("", encoding="utf-8")
    monkeypatch.setenv("ROUTER_MEMORY__DIRECTORY", str(file))
    result = run("memory", "recall", "What is JWT?")
    assert result.exit_code == 1
    assert result.stderr.startswith(f"error: {file}: the folder of memories cannot be used: ")
    assert "(setting memory.directory)" in result.stderr


def test_a_layer_that_works_is_called_ok(memory: Run) -> None:
    rows = [line.split() for line in memory("status").stdout.splitlines()]
    assert ["session", "ok"] in [row[:2] for row in rows]


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (("recall",), "QUERY"),
        (("save",), "TEXT"),
        (("get",), "NAME"),
        (("ingest",), "PATH"),
    ],
)
def test_usage_names_arguments_as_the_documents_do(
    run: Run, arguments: tuple[str, ...], shown: str
) -> None:
    usage = run("memory", *arguments, "--help").stdout.splitlines()[0]
    assert usage.split()[-1].strip("{}[]") == shown


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("memory.db", "; it is left as it is: restore it, or move it away to begin anew"),
        ("weights.sqlite3", "; layer weights hold feedback only, and may be deleted"),
    ],
)
def test_a_damaged_file_is_named_with_what_can_be_done_about_it(
    run: Run, tmp_path: Path, file: str, said: str
) -> None:
    damaged = tmp_path / "memory" / file
    damaged.parent.mkdir()
    damaged.write_bytes(b"no database, but long enough for one " * 100)
    result = run("memory", "recall", "What is JWT?")
    assert (result.exit_code, result.stdout, result.stderr.count("\n")) == (1, "", 1)
    assert result.stderr.startswith("error: ")
    assert result.stderr.endswith(f"{damaged}: damaged: file is not a database{said}\n")


def test_one_search_covers_layers_and_files(memory: Run) -> None:
    save(memory, "port", "Redis listens on port 6380.", "semantic")
    memory("save", "Redis is restarted with make redis.", "--name", "ops/redis")
    found = parsed(memory("search", "redis", "--json"))
    assert sorted(ids(found)) == ["ops/redis", "port"]
    assert (found["layers"]["status"], found["files"]["status"]) == ("ok", "ok")
    assert ids(parsed(memory("search", "redis", "--lexical-only", "--json"))) == ["ops/redis"]
    assert "port" in memory("search", "redis").stdout


def test_a_count_is_no_row_of_an_answer(memory: Run) -> None:
    save(memory, "posters", "We print 300 posters on Thursdays.", "project")
    found = parsed(memory("recall", "How many posters do we print?", "--json"))
    assert [item["layer"] for item in found["items"]] == ["project", "meta"]
    lines = memory("recall", "How many posters do we print?").stdout.splitlines()
    below = next(n for n, line in enumerate(lines) if line.startswith("counted in project: 1 item"))
    assert lines[below + 1].startswith("confidence ")
    assert not any(" meta " in line for line in lines[:below])
    alone = memory("recall", "How many memories do you have?").stdout
    assert alone.startswith("counted in project: 1 item")


def test_a_recall_shows_the_passage_of_a_long_file_that_answers(memory: Run) -> None:
    sections = [f"## Step {n}\n\n" + "It is done in the usual way. " * 20 for n in range(15)]
    write_file("guide", "\n\n".join([*sections, "## Rota\n\nAlarm code 9082 wakes Vendula."]))
    shown = " ".join(memory("recall", "Which alarm code wakes Vendula?").stdout.split())
    assert "… Alarm code 9082 wakes Vendula." in shown
    assert "usual way" not in shown


def test_what_a_thing_depends_on_is_told_with_the_second_hop(memory: Run) -> None:
    for entity, relations, text in (
        ("checkout", "depends on -> payment; uses -> cart", "Checkout calls payment and cart."),
        ("payment", "depends on -> ledger", "Payments are booked in the ledger."),
        ("search", "uses -> elastic", "Search asks Elasticsearch."),
    ):
        given = ("--attribute", f"entity={entity}", "--attribute", f"relations={relations}")
        save(memory, entity, text, "graph", *given)
    found = parsed(memory("recall", "What does checkout depend on?", "--json"))
    assert ids(found)[:2] == ["checkout", "payment"]
    assert "search" not in ids(found)
    shown = memory("recall", "What does payment depend on?").stdout
    assert "(payment depends on ledger)" in " ".join(shown.split())


def test_yesterday_is_a_day_where_the_asker_is(memory: Run, run: Run) -> None:
    memory("recall", "What did I do yesterday?", "--time-zone", "Asia/Tokyo")
    memory("context", "What did I do yesterday?", "--time-zone", "Asia/Tokyo")
    result = run("memory", "recall", "What?", "--time-zone", "Atlantis")
    assert (result.exit_code, "time_zone: 'Atlantis'" in result.stderr) == (2, True)


def test_pages_are_listed_newest_first_and_go_on(memory: Run) -> None:
    for day in ("2026-01-01", "2026-01-03", "2026-01-02"):
        save(memory, day, f"What happened on {day}.", "episodic", "--created", day)
    first = parsed(memory("list", "--limit", "2", "--json"))
    assert ids(first) == ["2026-01-03", "2026-01-02"]
    rest = parsed(memory("list", "--limit", "2", "--after", first["next"], "--json"))
    assert (ids(rest), rest["next"]) == (["2026-01-01"], None)
    shown = memory("list", "--limit", "2", "--layer", "episodic")
    assert "2026-01-03" in shown.stdout
    assert "--after" in shown.stderr


def test_a_list_marks_what_was_replaced(memory: Run) -> None:
    save(memory, "old", "I live in Graz.", "user", "--created", "2026-01-01")
    assert "replaced by" not in memory("list").stdout
    save(memory, "new", "I live in Linz now.", "user", "--supersede", "old")
    rows = [line.split() for line in memory("list").stdout.splitlines()]
    assert [row[3] for row in rows if row[:1] == ["old"]] == ["new"]


def test_a_profile_is_what_holds_now(memory: Run) -> None:
    save(memory, "diet", "I am allergic to peanuts.", "user", "--created", "2026-01-01")
    save(memory, "old", "I live in Graz.", "user", "--created", "2026-01-01")
    new = ("--supersede", "old", "--created", "2026-03-01")
    save(memory, "new", "I live in Linz now.", "user", *new)
    assert {*ids(parsed(memory("profile", "--json")))} == {"diet", "new"}
    assert "--after" in memory("profile", "--limit", "1").stderr
