"""Lines of standard input: bounded, and what is answered to one that is too long.

A client waits for the answer to its request by the request's ``id``. So the id of a message that is
too long to be read is looked for in its beginning and its end, where every client writes it.
"""

from __future__ import annotations

import re
from typing import BinaryIO, Final

MAX_MESSAGE_BYTES: Final = 4 * 1024 * 1024
"""The longest message of a client, on any transport."""
EDGE_BYTES: Final = 4096
"""How much of the beginning and of the end of a message that is too long is searched for its id."""
TOO_LONG: Final = f"a message may have at most {MAX_MESSAGE_BYTES:,} bytes"
TOO_LONG_METHOD: Final = "cascade-router/message-too-long"
"""Method of the request that takes the place of a line that was too long."""

_NO_MESSAGE: Final = b"(a line that is too long)"  # no JSON, so it is answered like other faults

_ID: Final = rb'"id"\s*:\s*(-?\d{1,18}|"(?:[^"\\\x00-\x1f]|\\.){0,256}")\s*'
_TEXT: Final = rb'"(?:jsonrpc|method)"\s*:\s*"[^"\\]{0,100}"\s*'
_AT_START: Final = re.compile(rb"\s*\{\s*(?:" + _TEXT + rb",\s*){0,2}" + _ID + rb"[,}]")
# Inside a JSON text every quote follows a backslash, so what matches here is no part of one, and
# the last brace closes the message itself.
_AT_END: Final = re.compile(rb",\s*" + _ID + rb"(?:,\s*" + _TEXT + rb"){0,2}\}\s*$")


def request_id(start: bytes, end: bytes) -> str | None:
    """The ``id`` of a message as JSON, from its first and its last bytes; None: not found there."""
    found = _AT_START.match(start) or _AT_END.search(end)
    return None if found is None else found[1].decode("utf-8", "replace")


def bounded_line(file: BinaryIO) -> bytes:
    """The next line, empty at the end of the file.

    A line over the bound is read past. In its place comes a request with its id and the method
    ``TOO_LONG_METHOD``, or, where no id was found, something that is no message.
    """
    line = file.readline(MAX_MESSAGE_BYTES)
    if len(line) < MAX_MESSAGE_BYTES or line.endswith(b"\n"):
        return line
    start, end = line[:EDGE_BYTES], line[-EDGE_BYTES:]
    while rest := file.readline(MAX_MESSAGE_BYTES):
        end = (end + rest)[-EDGE_BYTES:]
        if rest.endswith(b"\n"):
            break
    found = request_id(start, end)
    if found is None:
        return _NO_MESSAGE
    return f'{{"jsonrpc":"2.0","id":{found},"method":"{TOO_LONG_METHOD}"}}'.encode()
