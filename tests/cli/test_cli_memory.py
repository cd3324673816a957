"""``router memory``: what people see, what programs read, and what ends with which code."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from servers.forgetful_server import ForgetfulServer
from typer.testing import CliRunner, Result

from router.cli.app import app
from router.memory.contexts.documents import SAVING_BATCH

Run = Callable[..., Result]
Start = Callable[..., "subprocess.Popen[bytes]"]

COMMANDS = (
    "classify search recall context save get delete status sync ingest feedback".split()  # in order
)
TOKEN = "fg-something-secret"  # noqa: S105 - not a real one
ESCAPE = "\x1b]0;owned\x07"


pytestmark = pytest.mark.usefixtures("patient")


def parsed(result: Result) -> Any:
    return json.loads(result.stdout)


def write_file(name: str, text: str) -> None:
    """A memory file of the project that somebody else has written."""
    file = Path(".serena", "memories", f"{name}.md")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_documents_itself_and_the_exit_codes(run: Run, command: str) -> None:
    result = run("memory", command, "--help")
    assert result.exit_code == 0
    assert "Exit codes: 0" in result.stdout


# ---------------------------------------------------------------- classify


def test_classify_shows_types_layers_and_reasons(memory: Run) -> None:
    shown = memory("classify", "What is JWT?").stdout
    assert shown.startswith("factual (confidence ")
    assert "semantic" in shown
    assert "read" in shown
    assert "if those give too little" in shown
    assert "\n- " in shown


def test_classify_says_when_no_memory_is_needed(memory: Run) -> None:
    shown = memory("classify", "Thanks, that is all!").stdout
    assert shown.startswith("nothing that memory could hold")
    assert parsed(memory("classify", "Thanks, that is all!", "--json"))["layers"] == []


def test_classify_prints_json(memory: Run) -> None:
    found = parsed(memory("classify", "What is JWT?", "--json"))
    assert (found["query"], found["types"], found["layers"]) == (
        "What is JWT?",
        ["factual"],
        ["semantic"],
    )
    assert found["weights"] == {"semantic": 1.0}
    assert 0 <= found["confidence"] <= 1


def test_a_batch_is_one_object_a_line_in_order_with_the_layers_primary_first(
    memory: Run, tmp_path: Path
) -> None:
    queries = ["What is JWT?", "What did we do last week?", "Thanks!"]
    rows = [json.dumps({"query": text, "layers": ["a label"]}) for text in queries]
    file = tmp_path / "queries.jsonl"
    file.write_text("\n".join(rows), encoding="utf-8")
    for result in (
        memory("classify", "--batch", file),
        memory("classify", "--batch", "-", stdin="\n".join(rows)),
    ):
        found = [json.loads(line) for line in result.stdout.splitlines()]
        assert [one["query"] for one in found] == queries
        assert [one["layers"][:1] for one in found] == [["semantic"], ["episodic"], []]


def test_bad_lines_are_reported_in_their_place_and_do_not_stop_the_others(
    run: Run, tmp_path: Path
) -> None:
    lines = [
        b'{"query": "What is JWT?", "id": 7}',
        b"",
        b"{broken",
        b'{"question": "?"}',
        b'{"query": 5}',
        b'{"query": ""}',
        b'{"query": "a\\u0000b", "id": "x"}',
        b'{"query": "\\ud800"}',
        b'{"query": "x", "id": NaN}',
        b"caf\xe9",
        b'{"query": "' + b"x" * 2_001 + b'"}',
        b"What is JWT?",
    ]
    file = tmp_path / "queries.jsonl"
    file.write_bytes(b"\n".join(lines))
    result = run("memory", "classify", "--batch", file)
    found = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.exit_code == 1
    assert [one.get("line") for one in found] == [None, *range(3, 12), None]
    assert all(one["error"] for one in found[1:-1])
    assert (found[0]["id"], found[5]["id"]) == (7, "x")
    assert [one["layers"] for one in (found[0], found[-1])] == [["semantic"]] * 2


@pytest.mark.parametrize(
    "arguments", [[], ["What is JWT?", "--batch", "-"], ["--batch", "no-such-file"], [""], ["a\0b"]]
)
def test_classify_wants_a_query_or_a_batch(run: Run, arguments: list[str]) -> None:
    assert run("memory", "classify", *arguments).exit_code == 2


def test_classify_opens_no_store_and_imports_no_database() -> None:
    code = (
        "import sys\n"
        "from router.cli import main\n"
        "sys.argv = ['router', 'memory', 'classify', 'What is JWT?', '--json']\n"
        "try:\n    main()\nexcept SystemExit as end:\n    print('exit', end.code)\n"
        "heavy = {'chromadb', 'openai', 'ollama', 'httpx', 'rich', 'router.settings',"
        " 'router.memory.stores.memory_store'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("exit 0\n[]\n")
    assert not Path(os.environ["ROUTER_MEMORY__DIRECTORY"]).exists()


def test_a_batch_is_answered_line_by_line_and_ctrl_c_ends_it(start: Start) -> None:
    process = start("memory", "classify", "--batch", "-")
    assert process.stdin and process.stdout
    for query in (b"What is JWT?\n", b"What did we do last week?\n"):
        process.stdin.write(query)
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["query"] == query.decode().strip()
    process.send_signal(signal.SIGINT)
    rest, complaints = process.communicate(timeout=120)
    assert (process.returncode, rest) == (130, b"")
    assert b"Traceback" not in complaints


def test_a_closed_pipe_ends_a_batch_quietly(start: Start, tmp_path: Path) -> None:
    file = tmp_path / "queries.txt"
    file.write_text("What is JWT?\n" * 50_000, encoding="utf-8")
    process = start("memory", "classify", "--batch", file)
    assert process.stdout and process.stderr and process.stdin
    assert json.loads(process.stdout.readline())["layers"] == ["semantic"]
    process.stdout.close()  # as `head -1` does
    assert process.stderr.read() == b""
    assert process.wait(timeout=120) == 1
    process.stderr.close()
    process.stdin.close()


# ---------------------------------------------------------------- saving, recalling, contexts


def test_what_is_saved_to_a_layer_is_recalled(memory: Run) -> None:
    said = memory("save", "JWT is a signed token", "--layer", "semantic", "--name", "jwt").stdout
    assert said == "saved jwt to semantic\n"
    shown = memory("recall", "What is JWT?").stdout
    assert "JWT is a signed token" in shown
    assert "semantic" in shown
    assert "confidence 0.9" in shown
    found = parsed(memory("recall", "What is JWT?", "--json"))
    assert [item["id"] for item in found["items"]] == ["jwt"]
    assert found["items"][0]["scope"] == {"user": "ada", "project": "shop"}
    assert found["reasoning"]


def test_an_item_carries_what_the_command_line_says(memory: Run) -> None:
    saved = parsed(
        memory(
            *("save", "Renew the certificate", "--layer", "prospective", "--type", "task"),
            *("--tag", "ops", "--tag", "tls", "--created", "2026-03-01"),
            *("--attribute", "due=2026-12-01", "--attribute", "status=open"),
            *("--user", "bob", "--session", "s1", "--json"),
        )
    )["item"]
    assert (saved["type"], saved["tags"]) == ("task", ["ops", "tls"])
    assert saved["created"] == "2026-03-01T00:00:00+00:00"
    assert saved["attributes"] == {"due": "2026-12-01", "status": "open"}
    assert saved["scope"] == {"user": "bob", "project": "shop", "session": "s1"}


def test_scopes_keep_memories_apart(memory: Run, run: Run) -> None:
    memory("save", "JWT is a signed token", "--layer", "semantic", "--name", "jwt")
    query = ("recall", "What is JWT?", "--json")
    assert parsed(memory(*query, "--user", "bob"))["items"] == []
    assert len(parsed(memory(*query, "--session", "s1"))["items"]) == 1
    assert run("memory", "get", "jwt", "--layer", "semantic", "--user", "bob").exit_code == 2
    assert memory("get", "jwt", "--layer", "semantic").stdout == "JWT is a signed token\n"


def test_nothing_relevant_is_said_and_is_no_error(memory: Run) -> None:
    shown = memory("recall", "What is JWT?").stdout
    assert "confidence 0.00" in shown
    assert "Nothing relevant is stored" in " ".join(shown.split())


def test_a_file_is_saved_searched_printed_and_deleted(memory: Run, run: Run) -> None:
    assert memory("save", "-", "--name", "ops/deploy", stdin="Run make\nrelease.\n").stdout == (
        "saved ops/deploy\n"
    )
    result = memory("search", "release")
    assert "ops/deploy" in result.stdout
    assert result.stderr == ""
    assert parsed(memory("search", "release", "--json"))["items"][0]["id"] == "ops/deploy"
    assert memory("get", "ops/deploy").stdout == "Run make\nrelease.\n"
    assert parsed(memory("get", "ops/deploy", "--json"))["provenance"] == ["file:ops/deploy"]
    assert memory("delete", "ops/deploy").stderr == "deleted ops/deploy\n"
    assert memory("search", "release").stderr == "nothing found\n"
    result = run("memory", "get", "ops/deploi")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "error: no memory named 'ops/deploi'\n"


def test_a_similar_name_is_suggested(memory: Run, run: Run) -> None:
    memory("save", "Run make release.", "--name", "ops/deploy")
    assert "did you mean ops/deploy?" in run("memory", "get", "ops/deploi").stderr


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["save", " "], 2),
        (["save", "x", "--name", "../x"], 2),
        (["save", "x", "--layer", "meta"], 2),
        (["save", "x", "--type", "fact"], 2),
        (["save", "x", "--user", "bob"], 2),
        (["save", "x", "--layer", "semantic", "--created", "soon"], 2),
        (["save", "x", "--layer", "semantic", "--attribute", "due"], 2),
        (["save", "x", "--name", "adr/1"], 2),
        (["recall", "x", "-k", "0"], 2),
        (["recall", "x", "--user", ""], 2),
        (["context", "x", "--strategy", "all"], 2),
        (["context", "x", "--weights", "all"], 2),
        (["search", "x" * 501], 2),
        (["search", "x", "--strategy", "all"], 2),
        (["search", "x", "--lexical-only", "--semantic-only"], 2),
        (["get", "nothing"], 2),
        (["delete", "nothing"], 2),
        (["ingest", "no-such-folder"], 2),
        (["feedback", "semantic", "--query", "What is JWT?"], 2),
        (["feedback", "nowhere", "--query", "What is JWT?", "--useful"], 2),
        (["feedback", "semantic", "--query", "Thanks!", "--useful"], 2),
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


def test_standard_input_that_is_no_text_is_refused(run: Run) -> None:
    result = run("memory", "save", "-", stdin=b"caf\xe9")
    assert (result.exit_code, result.stderr) == (2, "error: content: not UTF-8: byte 4\n")


def test_a_content_that_is_too_long_is_refused_before_it_is_read_whole(start: Start) -> None:
    process = start("memory", "save", "-")
    assert process.stdin and process.stderr
    with suppress(BrokenPipeError):
        for _ in range(200):
            process.stdin.write(b"x" * 100_000)
    with suppress(BrokenPipeError):
        process.stdin.close()
    complaint = process.stderr.read()
    assert process.wait(timeout=120) == 2
    assert complaint.startswith(b"error: content: ")
    process.stderr.close()
    assert process.stdout
    process.stdout.close()


def test_a_context_is_text_on_standard_output_and_figures_beside_it(memory: Run) -> None:
    memory("save", "Postgres was chosen for JSON", "--layer", "project")
    result = memory("context", "Postgres", "--budget", "200")
    assert result.stdout.startswith("[memory:project, 20")
    assert result.stdout.endswith("]\nPostgres was chosen for JSON\n")
    assert "pieces: 1; left out: 0; tokens: " in result.stderr
    found = parsed(memory("context", "Postgres", "--strategy", "rag", "--json"))
    assert (found["requested"], found["strategy"]) == ("rag", "hybrid")
    assert "there are no documents" in memory("context", "Postgres", "--strategy", "rag").stderr


def test_documents_are_ingested_and_become_part_of_contexts(
    memory: Run, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "db.md").write_text("# Backups\nThey run at two.", encoding="utf-8")
    said = memory("ingest", tmp_path / "docs").stdout
    assert said == "files: 1; chunks: 1 added, 0 kept, 0 removed\n"
    assert parsed(memory("ingest", tmp_path / "docs", "--json"))["kept"] == 1
    context = memory("context", "When do backups run?", "--strategy", "rag").stdout
    assert context.startswith("[db.md, 20")
    assert (
        "db.md"
        not in memory(
            "context", "When do backups run?", "--strategy", "rag", "--user", "bob"
        ).stdout
    )
    (tmp_path / "docs" / "bad.txt").write_bytes(b"\xff")
    result = run("memory", "ingest", tmp_path / "docs")
    assert result.exit_code == 1
    assert "bad.txt: left out" in result.stderr


def test_ctrl_c_during_an_ingestion_keeps_what_is_stored(
    start: Start, tmp_path: Path, run: Run
) -> None:
    (tmp_path / "docs").mkdir()
    for number in range(4 * SAVING_BATCH):
        (tmp_path / "docs" / f"{number:04}.md").write_text(f"Text {number}.", encoding="utf-8")
    os.mkfifo(tmp_path / "gate")
    code = (
        "import sys\n"
        "from router.memory.contexts import documents\n"
        "chunks = documents._chunks\n"
        "def gated(path, *rest):\n"
        f"    if path.name == '{2 * SAVING_BATCH + 1:04}.md':\n"
        f"        open({str(tmp_path / 'gate')!r}, 'w').close()\n"
        f"        open({str(tmp_path / 'gate')!r}, 'r').close()\n"
        "    return chunks(path, *rest)\n"
        "documents._chunks = gated\n"
        "from router.cli import main\n"
        f"sys.argv = ['router', 'memory', 'ingest', {str(tmp_path / 'docs')!r}]\n"
        "main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    (tmp_path / "gate").open("r").close()  # it has stored two batches and reads on
    process.send_signal(signal.SIGINT)
    (tmp_path / "gate").open("w").close()
    output, complaints = process.communicate(timeout=120)
    assert (process.returncode, output) == (130, b"")
    assert b"Traceback" not in complaints
    report = parsed(run("memory", "ingest", tmp_path / "docs", "--json"))
    assert (report["kept"], report["added"]) == (2 * SAVING_BATCH, 2 * SAVING_BATCH)


# ---------------------------------------------------------------- status, feedback, service


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


def test_the_service_is_told_searched_and_synced(
    memory: Run, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ForgetfulServer()
    try:
        monkeypatch.setenv("ROUTER_MEMORY__SERVICE__URL", server.url)
        assert memory("save", "Tokens live an hour.", "--name", "auth").stdout == (
            "saved auth; service: delivered\n"
        )
        server.add("The gateway checks tokens.")
        # Beside the files an answer of the service is not waited for long; alone it is.
        found = parsed(memory("search", "tokens", "--semantic-only", "--json"))["items"]
        assert "The gateway checks tokens." in [item["content"] for item in found]
        write_file("late", "Tokens are rotated.")
        assert "1 sent" in memory("sync", "--dry-run").stdout
        assert "1 sent" in memory("sync").stdout
        assert "service: up" in memory("status").stdout
    finally:
        server.close()
    assert server.violations == []
    result = memory("search", "tokens")
    assert "auth" in result.stdout
    assert result.stderr.startswith("warning: the service gave nothing: ")
    assert memory("search", "tokens", "--lexical-only").stderr == ""
    assert run("memory", "sync").exit_code == 1


def test_a_service_that_is_asked_for_and_not_set_is_named(memory: Run) -> None:
    result = memory("search", "tokens", "--semantic-only")
    assert "no memory service is set" in result.stderr


def test_a_damaged_store_is_one_line_on_standard_error(run: Run) -> None:
    folder = Path(os.environ["ROUTER_MEMORY__DIRECTORY"])
    folder.mkdir(parents=True)
    (folder / "memory.db").write_bytes(b"no database at all" * 1000)
    result = run("memory", "recall", "What is JWT?")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("error: ")
    assert "memory.db" in result.stderr
    assert result.stderr.count("\n") == 1


def test_the_configuration_shows_memory_without_the_token(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ROUTER_MEMORY__SERVICE__URL", f"https://{TOKEN}@memory.example")
    monkeypatch.setenv("ROUTER_MEMORY__SERVICE__TOKEN", TOKEN)
    for options in ((), ("--json",)):
        result = run("config", *options)
        assert result.exit_code == 0
        assert "ROUTER_MEMORY__SERVICE__TOKEN" in result.stdout
        assert TOKEN not in result.output
    shown = parsed(run("config", "--json"))
    assert shown["memory.service.token"]["value"] == "********"
    assert shown["memory.service.url"]["value"] == "https://********@memory.example"
    assert shown["memory.user"] == {"value": "ada", "source": "ROUTER_MEMORY__USER"}


# ---------------------------------------------------------------- strangers' text


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


def test_a_locale_without_the_characters_gets_utf_8_all_the_same(memory: Run) -> None:
    memory("save", "naïve tokens", "--name", "odd")
    done = subprocess.run(
        [sys.executable, "-m", "router", "memory", "get", "odd"],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert done.stdout.decode() == "naïve tokens\n"


def test_help_of_the_group_names_its_commands() -> None:
    shown = CliRunner().invoke(app, ["memory", "--help"]).stdout
    assert [command for command in COMMANDS if f"  {command} " not in shown] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("get", "x", "--layer", "cellar"), "layer: 'cellar' is none of session, project, user"),
        (("delete", "x", "--layer", "cellar"), "layer: 'cellar' is none of session, project, user"),
        (("feedback", "cellar", "--useful", "--query", "What is JWT?"), "layer: no layer is named"),
        (("search", "x", "--strategy", "best"), "strategy: 'best' is none of primary_first, union"),
        (
            ("save", "x", "--layer", "session", "--created", "yesterday"),
            "--created yesterday: write a date",
        ),
        (
            ("save", "x", "--layer", "prospective", "--attribute", "due=tomorrow"),
            "attributes.due: 'tomorrow' is not an ISO date, such as 2026-12-01",
        ),
    ],
)
def test_a_wrong_value_is_named_with_what_may_stand_in_its_place(
    run: Run, arguments: tuple[str, ...], said: str
) -> None:
    result = run("memory", *arguments)
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.split())


def test_who_lacks_a_user_is_told_how_to_give_one(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ROUTER_MEMORY__USER")
    result = run("memory", "save", "x", "--layer", "user")
    assert result.exit_code == 2
    assert (
        "needs scope.user: name one; commands and MCP take it from the setting memory.user"
        in result.stderr
    )


def test_a_service_that_is_not_set_is_named_by_its_setting(run: Run) -> None:
    assert "no memory service is set (setting memory.service.url)" in run("memory", "sync").stderr


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


def test_a_document_that_is_no_text_is_named_with_the_first_wrong_byte(
    run: Run, tmp_path: Path
) -> None:
    folder = tmp_path / "documents"
    folder.mkdir()
    (folder / "picture.md").write_bytes(b"ab\xff")
    result = run("memory", "ingest", folder)
    assert result.exit_code == 1
    assert result.stderr.endswith("picture.md: left out: not UTF-8: byte 3\n")


def test_a_layer_that_works_is_called_ok(memory: Callable[..., Result]) -> None:
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
    assert result.exit_code == 1
    assert result.stderr.endswith(f"{damaged}: damaged: file is not a database{said}\n")
