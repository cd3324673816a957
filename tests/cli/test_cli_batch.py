"""``router route --batch``: line by line, in order, lazily, and past whatever goes wrong."""

from __future__ import annotations

import io
import json
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from cli.results import Run
from hypothesis import given
from hypothesis import strategies as st

from router.cli.batch import MAX_LINE_BYTES, Line, parse_line, read_lines, route_arguments
from router.errors import InvalidRequest
from router.request import Request, Turn

Start = Callable[..., "subprocess.Popen[bytes]"]


def answers(output: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


# ---------------------------------------------------------------- lines


@given(st.lists(st.binary(max_size=20).filter(lambda line: b"\n" not in line)))
def test_lines_come_in_order_with_their_numbers_and_ends(lines: list[bytes]) -> None:
    data = b"".join(line + b"\n" for line in lines)
    found = list(read_lines(io.BytesIO(data)))
    assert [(line.number, line.data) for line in found] == [
        (number, line + b"\n") for number, line in enumerate(lines, 1) if line.strip()
    ]
    assert all(data[: line.end].count(b"\n") == line.number for line in found)


def test_a_line_that_is_too_long_is_marked_and_the_next_one_is_whole() -> None:
    data = b"x" * (2 * MAX_LINE_BYTES + 5) + b"\nnext\n"
    found = list(read_lines(io.BytesIO(data)))
    assert [(line.number, line.data) for line in found] == [(1, None), (2, b"next\n")]
    assert found[-1].end == len(data)


def parse(text: str | bytes) -> dict[str, Any]:
    data = text.encode() if isinstance(text, str) else text
    return route_arguments(parse_line(Line(1, data, len(data))))


def test_a_plain_line_is_the_request() -> None:
    assert parse("  fix the bug \r\n") == {"request": "fix the bug"}


def test_an_object_gives_request_available_scope_and_history() -> None:
    line = {
        "request": "fix it",
        "id": 7,
        "available": ["git"],
        "scope": "ann",
        "history": ["hello", {"role": "assistant", "text": "hi"}],
    }
    assert parse(json.dumps(line)) == {
        "request": "fix it",
        "available_skills": ["git"],
        "scope": "ann",
        "history": (Turn("user", "hello"), Turn("assistant", "hi")),
    }


def test_what_an_object_leaves_out_is_left_to_the_command_line() -> None:
    assert parse('{"request": "fix it", "scope": null}') == {"request": "fix it"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{name} is not filled in", 'write a plain request as {"request": ...}'),
        ('{"id": 1}', "the key 'request' is missing"),
        ('{"request": "x", "avaliable": []}', "unknown key 'avaliable'"),
        ('{"request": "x", "id": 1.5}', "id: expected a string or a whole number"),
        ('{"request": "x", "id": true}', "id: expected a string or a whole number"),
        ('{"request": "x", "available": "git"}', "available: expected a list"),
        ('{"request": "x", "available": [["git"]]}', "available: every name must be a string"),
        ('{"request": "x", "history": {}}', "history: expected a list"),
        ('{"request": "x", "history": [{"role": "user"}]}', "history.0: a turn is"),
        ('{"a":' * 100_000, "not JSON"),
        (b"caf\xe9", "not UTF-8: byte 4"),
    ],
)
def test_a_bad_line_says_what_is_wrong(line: str | bytes, reason: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        parse(line)
    assert reason in str(caught.value)


@given(st.binary(max_size=60))
def test_no_line_raises_anything_but_its_own_error(line: bytes) -> None:
    try:
        asked = parse(line)
    except InvalidRequest:
        return
    assert isinstance(asked["request"], str)


json_values = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)


@given(
    st.fixed_dictionaries(
        {}, optional=dict.fromkeys(("request", "id", "available", "scope", "history"), json_values)
    )
)
def test_what_an_object_gives_is_taken_or_refused_by_the_router(line: dict[str, Any]) -> None:
    try:
        asked = parse(json.dumps(line))
        request = Request.parse(
            asked["request"],
            available=asked.get("available_skills"),
            history=asked.get("history", ()),
            scope=asked.get("scope"),
        )
    except InvalidRequest:
        return
    assert request.text == line["request"]


# ---------------------------------------------------------------- whole batches


def test_answers_come_in_order_and_bad_lines_do_not_stop_the_others(
    run: Run, skills: Path, tmp_path: Path
) -> None:
    lines = [
        "commit my changes and push them",
        "",
        '{"request": "commit my changes and push them", "id": "a", "available": ["writer"]}',
        '{"request": 5, "id": "b"}',
        '{"request": "commit", "history": [{"role": "nobody", "text": "x"}]}',
        "{broken",
        '{"request": "plot a chart of this csv file"}',
    ]
    file = tmp_path / "requests.jsonl"
    file.write_text("\n".join(lines), encoding="utf-8")
    result = run("route", "--batch", file, "--skills", skills)
    found = answers(result.stdout)
    assert result.exit_code == 1
    assert [(a["line"], a.get("id"), "error" in a) for a in found] == [
        (1, None, False),
        (3, "a", False),
        (4, "b", True),
        (5, None, True),
        (6, None, True),
        (7, None, False),
    ]
    assert [a["result"]["selected_skills"] for a in found if "result" in a] == [
        ["git"],
        [],
        ["data-analysis"],
    ]


def test_a_batch_without_bad_lines_succeeds(run: Run, skills: Path, tmp_path: Path) -> None:
    file = tmp_path / "requests.txt"
    file.write_text("commit my changes\n" * 40, encoding="utf-8")
    result = run("route", "--batch", file, "--skills", skills)
    assert result.exit_code == 0
    assert [a["line"] for a in answers(result.stdout)] == list(range(1, 41))


def test_an_empty_batch_prints_nothing(run: Run, skills: Path, tmp_path: Path) -> None:
    file = tmp_path / "empty"
    file.touch()
    result = run("route", "--batch", file, "--skills", skills)
    assert (result.exit_code, result.output) == (0, "")


def test_each_line_is_answered_while_the_sender_waits_and_ctrl_c_loses_none(
    start: Start, skills: Path
) -> None:
    process = start("route", "--batch", "-", "--skills", skills)
    assert process.stdin and process.stdout
    for text in (b"commit my changes\n", b"plot a chart of this csv file\n"):
        process.stdin.write(text)
        process.stdin.flush()
        answer = json.loads(process.stdout.readline())
        assert answer["request"] == text.decode().strip()
    process.send_signal(signal.SIGINT)
    rest, complaints = process.communicate(timeout=120)
    assert (process.returncode, rest) == (130, b"")
    assert b"Traceback" not in complaints
    assert b"Fatal" not in complaints


def test_an_endless_input_is_read_lazily_and_a_closed_pipe_ends_it_quietly(
    start: Start, skills: Path
) -> None:
    process = start("route", "--batch", "-", "--skills", skills)
    assert process.stdin and process.stdout and process.stderr

    def send() -> None:
        assert process.stdin
        with suppress(BrokenPipeError):
            while True:
                process.stdin.write(b"commit my changes\n")

    sender = threading.Thread(target=send)
    sender.start()
    assert json.loads(process.stdout.readline())["line"] == 1
    process.stdout.close()  # as `head -1` does
    assert process.stderr.read() == b""
    assert process.wait(timeout=120) == 1
    sender.join(timeout=120)
    process.stderr.close()
    with suppress(BrokenPipeError):
        process.stdin.close()
