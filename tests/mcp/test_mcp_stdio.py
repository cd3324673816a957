"""Standard input and output: what is no message is answered, and nothing else is printed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from greetings import initialize

from router.mcp.lines import MAX_MESSAGE_BYTES


class Server:
    """``router mcp`` in a process of its own."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def ask(self, line: bytes | dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        sent = json.dumps(line).encode() if isinstance(line, dict) else line
        self.process.stdin.write(sent + b"\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def end(self) -> tuple[int, bytes, bytes]:
        """Exit code, what was printed after the last answer, and standard error."""
        output, errors = self.process.communicate(timeout=120)
        return self.process.returncode, output, errors


@pytest.fixture
def process(skills: Path) -> Iterator[Server]:
    server = Server("-m", "router", "mcp", "--skills", str(skills))
    yield server
    server.process.kill()
    server.process.wait()
    for pipe in (server.process.stdin, server.process.stdout, server.process.stderr):
        assert pipe is not None
        pipe.close()


def test_faulty_lines_are_answered_and_the_session_goes_on(process: Server) -> None:
    for line, code in (
        (b'{"jsonrpc": "2.0", "id": 1, "meth', -32700),
        (b"", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 100_000, -32700),
        (b'"' + b"x" * MAX_MESSAGE_BYTES + b'"', -32700),
        (b"[]", -32600),
        (b'{"jsonrpc": "1.0", "id": 1, "method": "ping"}', -32600),
    ):
        answer = process.ask(line)
        assert (answer["id"], answer["error"]["code"]) == (None, code)
    assert process.ask(initialize())["result"]["serverInfo"]["name"] == "cascade-router"
    unknown = {"jsonrpc": "2.0", "id": 2, "method": "no/such/method"}
    assert process.ask(unknown)["error"]["code"] == -32601
    bad = {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": 5}}
    assert process.ask(bad)["error"]["code"] == -32602
    long = {"method": "x", "params": "y" * MAX_MESSAGE_BYTES, "jsonrpc": "2.0", "id": 4}
    answer = process.ask(long)
    assert (answer["id"], answer["error"]["code"]) == (4, -32600)
    assert "4,194,304 bytes" in answer["error"]["message"]
    assert process.end() == (0, b"", b"")  # closing its input ends it


def test_an_interrupt_ends_the_server_while_it_waits_for_input(process: Server) -> None:
    process.ask(initialize())
    process.process.send_signal(signal.SIGINT)
    code, output, errors = process.end()
    assert (code, output) == (130, b"")
    assert b"Traceback" not in errors


def test_a_client_that_has_gone_ends_the_server_without_a_word(process: Server) -> None:
    assert process.ask(b"{")["error"]["code"] == -32700
    assert process.process.stdin is not None
    assert process.process.stdout is not None
    process.process.stdout.close()
    process.process.stdin.write(b"{\n")
    process.process.stdin.close()
    assert process.process.stderr is not None
    assert process.process.stderr.read() == b""
    assert process.process.wait(timeout=60) == 0


def test_what_a_library_prints_does_not_reach_the_client() -> None:
    code = (
        "import asyncio, os\n"
        "from router.mcp.hello import greet\n"
        "from router.mcp.server import SkillServer\n"
        "from router.mcp.stdio import serve_stdio, stdio_streams\n"
        "from router.router import SemanticRouter\n"
        "async def main():\n"
        "    server = SkillServer(SemanticRouter())\n"
        "    async with stdio_streams(greet(memory=False)) as streams:\n"
        "        print('printed', flush=True)\n"
        "        os.write(1, b'written')\n"
        "        await serve_stdio(server, streams)\n"
        "asyncio.run(main())\n"
    )
    server = Server("-c", code)
    assert server.ask(initialize())["id"] == 1
    assert server.end() == (0, b"", b"printed\nwritten")


def test_a_fault_at_the_start_is_one_line_on_standard_error() -> None:
    server = Server("-m", "router", "mcp", "--skills", "no-such-folder")
    code, output, errors = server.end()
    assert (code, output) == (2, b"")
    assert errors.startswith(b"error: the skills folder ")
    assert b"no-such-folder does not exist" in errors
    assert errors.count(b"\n") == 1


@pytest.mark.parametrize("more", [(), ("--http", "--port", "0")], ids=["stdio", "http"])
def test_skills_that_cannot_be_read_are_told_in_one_line(tmp_path: Path, more: tuple[str]) -> None:
    server = Server("-m", "router", "mcp", "--skills", str(tmp_path / "nowhere"), *more)
    asked = {"jsonrpc": "2.0", "id": 1, "method": "ping"}  # a client that hangs up at once
    _, errors = server.process.communicate(json.dumps(asked).encode(), timeout=120)
    *said, last = errors.decode().splitlines()
    assert last.startswith(f"error: the skills folder {tmp_path}/nowhere does not exist")
    assert [line for line in said if not line.startswith("serving MCP at http://")] == []
    assert server.process.returncode == 2
