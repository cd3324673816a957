"""Lines of standard input: bounded, and the id of one that is too long is found."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.mcp import lines
from router.mcp.lines import EDGE_BYTES, TOO_LONG_METHOD, bounded_line, request_id

IDS = st.integers(-(2**53), 2**53) | st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), max_size=40
)


@given(known=IDS, order=st.permutations(["jsonrpc", "method", "params", "id"]), dense=st.booleans())
def test_the_id_is_found_wherever_clients_write_it(
    known: str | int, order: list[str], dense: bool
) -> None:
    message = {"jsonrpc": "2.0", "method": "tools/call", "params": {"id": 7, "x": ["y" * 9000]}}
    text = json.dumps(
        {key: {**message, "id": known}[key] for key in order},
        separators=(",", ":") if dense else None,
        ensure_ascii=False,
    ).encode()
    found = request_id(text[:EDGE_BYTES], text[-EDGE_BYTES:])
    assert found is not None
    assert json.loads(found) == known


@pytest.mark.parametrize(
    "text",
    [
        b'{"jsonrpc":"2.0","method":"x","params":{"text":"' + rb",\"id\":5}" + b'"}}',
        b'{"jsonrpc":"2.0","method":"x","params":{"a":1,"id":5}}',
        b'{"params":{"a":1,"id":5},"method":"x"}',
        b'{"jsonrpc":"2.0","method":"x","id":null}',
        b"[1, 2]",
        b"",
    ],
)
def test_an_id_that_is_not_the_message_s_is_not_taken_for_it(text: bytes) -> None:
    assert request_id(text, text) is None


def test_a_line_that_is_too_long_becomes_a_request_with_its_id(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lines, "MAX_MESSAGE_BYTES", 1000)
    long = {"method": "x", "params": "y" * 5000, "jsonrpc": "2.0", "id": "a"}
    rest = b'{"short": 1}\n'
    file = io.BytesIO(json.dumps(long).encode() + b"\n" + rest)
    assert json.loads(bounded_line(file)) == {
        "jsonrpc": "2.0",
        "id": "a",
        "method": TOO_LONG_METHOD,
    }
    assert bounded_line(file) == rest
    assert bounded_line(file) == b""


def test_a_long_line_without_an_id_is_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "MAX_MESSAGE_BYTES", 1000)
    file = io.BytesIO(b"x" * 5000)
    assert bounded_line(file) == b"(a line that is too long)"
    assert bounded_line(file) == b""
