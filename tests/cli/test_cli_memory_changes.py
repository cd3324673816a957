"""``router memory``, the commands that change what is remembered."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from cli.results import Run, ids, parsed, save, write_file
from scripted_model import Scripted, memories
from servers.forgetful_server import ForgetfulServer

from router.memory.contexts.documents import SAVING_BATCH

Start = Callable[..., "subprocess.Popen[bytes]"]

pytestmark = pytest.mark.usefixtures("patient")


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


def test_what_is_true_of_a_user_in_all_projects_is_saved_for_the_user_alone(memory: Run) -> None:
    item = parsed(memory("save", "I cannot eat nuts", "--layer", "user", "--json"))["item"]
    assert item["scope"] == {"user": "ada"}
    memory("edit", item["id"], "--layer", "user", "--content", "I cannot eat shellfish")
    memory("delete", item["id"], "--layer", "user")
    assert parsed(memory("list", "--json"))["items"] == []


def test_an_item_carries_what_the_command_line_says(memory: Run) -> None:
    saved = parsed(
        memory(
            *("save", "Renew the certificate", "--layer", "prospective", "--type", "task"),
            *("--tag", "ops", "--tag", "tls", "--created", "2026-03-01T00:00Z"),
            *("--attribute", "due=2026-12-01", "--attribute", "status=open"),
            *("--user", "bob", "--session", "s1", "--json"),
        )
    )["item"]
    assert (saved["type"], saved["tags"]) == ("task", ["ops", "tls"])
    assert saved["created"] == "2026-03-01T00:00:00+00:00"
    assert saved["attributes"] == {"due": "2026-12-01", "status": "open"}
    assert saved["scope"] == {"user": "bob", "project": "shop", "session": "s1"}


def test_an_item_is_found_by_the_questions_that_the_command_line_gives(memory: Run) -> None:
    memory(
        *("save", "Hazelnuts make my throat swell.", "--layer", "user"),
        *("--question", "What am I allergic to?", "--question", "Which food is dangerous for me?"),
    )
    assert "Hazelnuts" in memory("recall", "Am I allergic to anything?").stdout


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


def test_standard_input_that_is_too_long_is_not_taken_for_something_else(run: Run) -> None:
    refused = run("memory", "save", "-", stdin=("é" * 300_000).encode())
    assert (refused.exit_code, refused.stderr) == (2, "error: content: over 100,000 characters\n")


def test_no_more_of_a_conversation_is_read_than_is_allowed(run: Run, tmp_path: Path) -> None:
    talk = "user: I like tea\n" * 300_000
    named = tmp_path / "talk.txt"
    named.write_text(talk)
    for conversation, stdin, told in (
        ("-", talk.encode(), "over 1,000,000 characters"),
        (str(named), b"", "larger than 4,000,000 bytes"),
    ):
        refused = run("memory", "extract", conversation, stdin=stdin)
        assert refused.exit_code == 2
        assert told in refused.stderr


def test_what_a_memory_may_replace_is_told_with_its_text(run: Run) -> None:
    """An id alone says nothing to a person who is to decide."""
    where = ("--layer", "user", "--user", "ada")
    old = parsed(run("memory", "save", "Ada's manager is Piotr.", *where, "--json"))
    saved = run("memory", "save", "Ada's manager is now Ewa.", *where)
    assert saved.stderr == (
        f'warning: it may replace {old["name"]}, "Ada\'s manager is Piotr." '
        f"(save it again with --supersede {old['name']} to mark that)\n"
    )


@pytest.mark.parametrize(
    ("unset", "shown"),
    [
        ((), "user ada, project shop"),
        (("USER",), "project shop"),
        (("USER", "PROJECT"), "everybody"),
    ],
)
def test_a_proposal_shows_who_will_see_what_it_changes(
    run: Run, monkeypatch: pytest.MonkeyPatch, unset: tuple[str, ...], shown: str
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    for name in unset:
        monkeypatch.delenv(f"ROUTER_MEMORY__{name}")
    overdue = ("--attribute", "due=2020-01-01")
    run("memory", "save", "Clean the rollers", "--layer", "prospective", *overdue)
    run("memory", "consolidate")
    assert f"  {shown}  " in run("memory", "proposals").stdout
    [proposal] = parsed(run("memory", "proposals", "--json"))
    assert ", ".join(map(" ".join, proposal["scope"].items())) == shown.replace("everybody", "")
    refused = run("memory", "reject", proposal["id"], "nothing", "--json")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert f"warning: done before that: {proposal['id']}" in refused.stderr
    assert parsed(run("memory", "proposals", "--json")) == []


def test_consolidating_again_says_that_proposals_wait(run: Run) -> None:
    run("memory", "save", "Clean", "--layer", "prospective", "--attribute", "due=2020-01-01")
    assert "waiting" not in run("memory", "consolidate").stderr
    again = run("memory", "consolidate")
    assert "nothing is proposed" in again.stderr
    assert "waiting to be accepted or rejected: 1" in again.stderr


def test_a_proposal_shows_what_it_replaces_and_who_said_what_is_quoted(
    run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    model = Scripted([memories((1, "I moved to Bremen", "user", "The user moved to Bremen."))])
    monkeypatch.delenv("ROUTER_MEMORY__PROJECT")
    monkeypatch.setattr("router.stages.llm.models_from_settings", lambda _: [model])
    home = ("--layer", "user", "--name", "home", "--created", "2026-01-02")
    run("memory", "save", "The user lives in Ghent", *home)
    (tmp_path / "talk.txt").write_text("I moved to Bremen last week")
    run("memory", "extract", tmp_path / "talk.txt")
    shown = run("memory", "proposals").stdout
    assert "add, replaces home" in shown
    assert "user: I moved to Bremen" in shown


def test_an_edit_that_names_no_change_is_refused(run: Run) -> None:
    run("memory", "save", "JWT is a signed token", "--layer", "semantic", "--name", "jwt")
    refused = run("memory", "edit", "jwt", "--layer", "semantic")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "name what to change: --content, --tag or --attribute" in refused.stderr


def test_who_has_no_llm_to_extract_with_is_told_how_to_name_one(run: Run, tmp_path: Path) -> None:
    (tmp_path / "talk.txt").write_text("user: I like tea")
    refused = run("memory", "extract", tmp_path / "talk.txt")
    assert refused.exit_code == 2
    assert "set OPENAI_API_KEY, OPENAI_BASE_URL or OLLAMA_HOST" in refused.stderr


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
    assert result.stderr.endswith("bad.txt: left out: not UTF-8: byte 1\n")


def _interrupted(folder: Path, gate: str, *arguments: object) -> tuple[int, str, str]:
    """The exit code and the outputs of a memory command that gets Ctrl-C while it waits at a gate:
    some code that, the first time it calls ``wait_at_gate()``, is about to do its work."""
    os.mkfifo(folder / "gate")
    code = (
        "import sys\n"
        "def wait_at_gate():\n"
        f"    open({str(folder / 'gate')!r}, 'w').close()\n"
        f"    open({str(folder / 'gate')!r}, 'r').close()\n"
        f"{gate}\n"
        "from router.cli import main\n"
        f"sys.argv = {['router', 'memory', *map(str, arguments)]!r}\n"
        "main()\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    (folder / "gate").open("r").close()
    process.send_signal(signal.SIGINT)
    (folder / "gate").open("w").close()
    said, complaints = process.communicate(timeout=120)
    assert "Traceback" not in complaints
    return process.returncode, said, complaints


def test_ctrl_c_during_an_ingestion_keeps_what_is_stored(tmp_path: Path, run: Run) -> None:
    (tmp_path / "docs").mkdir()
    for number in range(4 * SAVING_BATCH):
        (tmp_path / "docs" / f"{number:04}.md").write_text(f"Text {number}.", encoding="utf-8")
    gate = (
        "from router.memory.contexts import documents\n"
        "chunks = documents._chunks\n"
        "def gated(path, *rest):\n"
        f"    if path.name == '{2 * SAVING_BATCH + 1:04}.md':\n"  # it has stored two batches
        "        wait_at_gate()\n"
        "    return chunks(path, *rest)\n"
        "documents._chunks = gated\n"
    )
    code, said, _ = _interrupted(tmp_path, gate, "ingest", tmp_path / "docs")
    assert (code, said) == (130, "")
    report = parsed(run("memory", "ingest", tmp_path / "docs", "--json"))
    assert (report["kept"], report["added"]) == (2 * SAVING_BATCH, 2 * SAVING_BATCH)


def test_ctrl_c_during_an_import_stops_it_and_says_how_many_memories_are_stored(
    memory: Run, tmp_path: Path
) -> None:
    memory("save", "JWT is a signed token", "--layer", "semantic", "--name", "jwt")
    row = json.loads(memory("export", "--user", "ada").stdout)
    memory("forget", "--user", "ada", "--yes")
    lines = (json.dumps({**row, "id": f"jwt{number}"}) for number in range(2_000))
    (tmp_path / "kept.jsonl").write_text("\n".join(lines), encoding="utf-8")
    gate = (
        "from router.memory.stores.memory_store import MemoryStore\n"
        "save, calls = MemoryStore.save, []\n"
        "def gated(self, items, **more):\n"
        "    calls.append(items)\n"
        "    if len(calls) == 2:\n"
        "        wait_at_gate()\n"
        "    return save(self, items, **more)\n"
        "MemoryStore.save = gated\n"
    )
    code, said, complaints = _interrupted(tmp_path, gate, "import", tmp_path / "kept.jsonl")
    assert (code, said) == (130, "")
    assert "warning: stopped: 1,000 memories are stored" in complaints
    assert len(memory("export", "--user", "ada").stdout.splitlines()) == 1_000


def test_ctrl_c_while_memories_are_forgotten_says_that_all_of_them_are_gone(
    memory: Run, tmp_path: Path
) -> None:
    memory("save", "JWT is a signed token", "--layer", "semantic")
    gate = (
        "from router.memory.stores.sqlite_database import SqliteDatabase\n"
        "vacuum = SqliteDatabase.vacuum\n"
        "def gated(self):\n"
        "    wait_at_gate()\n"
        "    vacuum(self)\n"
        "SqliteDatabase.vacuum = gated\n"
    )
    code, said, complaints = _interrupted(tmp_path, gate, "forget", "--user", "ada", "--yes")
    assert (code, said) == (130, "")
    assert "warning: forgetting goes on" in complaints
    assert "warning: forgot 1 item and 0 files; left: 0 items, 0 vectors" in complaints


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


def test_a_relation_without_a_target_is_refused(memory: Run, run: Run) -> None:
    result = run(
        *("memory", "save", "x", "--layer", "graph"),
        *("--attribute", "entity=a", "--attribute", "relations=uses Redis"),
    )
    assert result.exit_code == 2
    assert "write verb -> Target" in result.stderr


def test_an_edit_changes_what_it_names_and_nothing_else(memory: Run) -> None:
    save(memory, "t", "Renew the domain.", "prospective", "--attribute", "due=2026-12-01")
    changed = parsed(
        memory(
            *("edit", "t", "--layer", "prospective", "--tag", "ops", "--json"),
            *("--attribute", "status=complete", "--attribute", "due="),
        )
    )
    assert (changed["content"], changed["tags"]) == ("Renew the domain.", ["ops"])
    assert parsed(memory("get", "t", "--layer", "prospective", "--json"))["attributes"] == {
        "status": "done"
    }


def test_what_is_exported_is_imported_elsewhere(
    memory: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(memory, "diet", "I am allergic to peanuts.", "user")
    save(memory, "port", "Redis listens on port 6380.", "semantic", "--user", "bob")
    lines = memory("export", "--user", "ada").stdout
    assert [json.loads(line)["id"] for line in lines.splitlines()] == ["diet"]
    (tmp_path / "ada.jsonl").write_text(lines, encoding="utf-8")
    monkeypatch.setenv("ROUTER_MEMORY__DIRECTORY", str(tmp_path / "elsewhere"))
    assert memory("import", tmp_path / "ada.jsonl").stdout == "imported 1 memory\n"
    assert ids(parsed(memory("recall", "What can't I eat?", "--json"))) == ["diet"]


def test_what_has_expired_is_not_imported_and_is_named(memory: Run, tmp_path: Path) -> None:
    row: dict[str, object] = {"id": "old", "layer": "semantic", "content": "Tea"}
    row |= {"created": "2020-01-01T00:00:00Z"}
    row |= {"attributes": {"expires_at": "2020-02-01T00:00:00Z"}}
    (tmp_path / "old.jsonl").write_text(json.dumps(row), encoding="utf-8")
    done = memory("import", tmp_path / "old.jsonl")
    assert done.stdout == "imported 0 memories\n"
    assert "1 memory has expired and not been stored; the first is line 1" in done.stderr


@pytest.mark.parametrize("whose", [(), ("--everybody", "--user", "ada")])
def test_an_export_is_of_one_owner_or_of_everybody(
    memory: Run, run: Run, whose: tuple[str, ...]
) -> None:
    save(memory, "diet", "I am allergic to peanuts.", "user")
    refused = run("memory", "export", *whose)
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "--everybody" in refused.stderr


def test_an_export_is_utf_8_in_every_locale_and_a_line_of_it_is_one(
    memory: Run, tmp_path: Path
) -> None:
    said = "日本\u2028a\u2029b"
    save(memory, "odd", said, "semantic")
    done = subprocess.run(
        [sys.executable, "-m", "router", "memory", "export", "--everybody"],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "latin-1"},
    )
    assert json.loads(done.stdout.decode())["content"] == said
    file = tmp_path / "all.jsonl"
    file.write_bytes(done.stdout.replace(b"\n", b"\r\n"))
    assert memory("import", file).stdout == "imported 1 memory\n"
    assert parsed(memory("import", file, "--json")) == {"imported": 1}
    assert parsed(memory("get", "odd", "--layer", "semantic", "--json"))["content"] == said


def test_forgetting_leaves_nothing_and_says_so(memory: Run, run: Run) -> None:
    save(memory, "diet", "I am allergic to peanuts.", "user")
    assert run("memory", "forget", "--user", "ada").exit_code == 2
    report = parsed(memory("forget", "--user", "ada", "-y", "--json"))
    assert (report["items"], report["left"], report["vectors"], report["waiting"]) == (1, 0, 0, 0)
    assert parsed(memory("list", "--json"))["items"] == []
