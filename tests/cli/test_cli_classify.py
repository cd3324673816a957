"""``router memory classify``: one query, and a stream of them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from cli.results import Run, parsed

Start = Callable[..., "subprocess.Popen[bytes]"]

pytestmark = pytest.mark.usefixtures("patient")


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
        "heavy = {'chromadb', 'openai', 'ollama', 'httpx', 'rich', 'router.settings.settings',"
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
