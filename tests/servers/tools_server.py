"""An MCP server over stdio, written by hand so that it can misbehave: ``tools_server.py FOLDER``.

It speaks the older generation of the protocol. ``FOLDER/tools.json`` holds its tools, and each
change of that file is announced. ``FOLDER/mode`` says how it behaves: ``good``, ``hang`` (no answer
to ``initialize``), ``waits`` (none until the mode is another one), ``garbage`` (lines that are no
JSON in place of answers), ``chatty`` (such lines beside its answers), ``down`` (it ends) or
``stays`` (it goes on when its input has ended). ``FOLDER/pid`` is the process that serves it.

A tool answers with what it was called with. ``slow`` never answers, ``huge`` answers with two
megabytes, and ``fatal`` ends the server.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any

FOLDER = Path(sys.argv[1])
PAGE = 5_000
_writing = threading.Lock()


def mode() -> str:
    return (FOLDER / "mode").read_text()


def send(message: dict[str, Any]) -> None:
    with _writing:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def watch() -> None:
    """Announce changes of the list, and end when told to."""
    known = (FOLDER / "tools.json").read_text()
    while True:
        time.sleep(0.02)
        if mode() == "down":
            os._exit(1)
        now = (FOLDER / "tools.json").read_text()
        if now != known:
            known = now
            send({"method": "notifications/tools/list_changed"})


def answer(request: dict[str, Any]) -> None:
    method = request["method"]
    if method == "initialize":
        threading.Thread(target=watch, daemon=True).start()
        result: dict[str, Any] = {
            "protocolVersion": "2025-06-18",
            "capabilities": {"tools": {"listChanged": True}},
            "serverInfo": {"name": "tools", "version": "1"},
        }
    elif method == "tools/list":
        start = int((request.get("params") or {}).get("cursor") or 0)
        tools = json.loads((FOLDER / "tools.json").read_text())
        result = {"tools": tools[start : start + PAGE]}
        if start + PAGE < len(tools):
            result["nextCursor"] = str(start + PAGE)
    elif method == "tools/call":
        name = request["params"]["name"]
        if name == "fatal":
            os._exit(1)
        if name == "slow":
            return
        said = json.dumps({"server": FOLDER.name, **request["params"]})
        text = "x" * (2 << 20) if name == "huge" else said
        result = {"content": [{"type": "text", "text": text}], "isError": name == "failing"}
    elif method == "ping":
        result = {}
    else:
        error = {"code": -32601, "message": "no such method"}
        send({"id": request["id"], "error": error})
        return
    send({"id": request["id"], "result": result})


if mode() == "down":
    sys.exit(1)
while mode() == "waits":
    time.sleep(0.02)
(FOLDER / "pid").write_text(str(os.getpid()))
for line in sys.stdin:
    request = json.loads(line)
    if "id" not in request:
        continue
    if mode() in ("garbage", "chatty"):
        sys.stdout.write("%%% no JSON %%%\n")
        sys.stdout.flush()
    if mode() not in ("garbage", "hang"):
        answer(request)
if mode() == "stays":
    threading.Event().wait()
