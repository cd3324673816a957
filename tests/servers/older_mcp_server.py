"""An MCP server of the older generation of the protocol, over HTTP."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from servers.loopback import LoopbackServer, Recorded, Reply
from servers.tool_folders import REFUND


class OlderServer(LoopbackServer):
    """Speaks the protocol of 2025-06-18 and answers with plain JSON."""

    def __init__(self, headers: Mapping[str, str] = {}) -> None:
        """``headers`` are those of its answers."""
        super().__init__()
        self.headers = {"Content-Type": "application/json", **headers}

    def respond(self, request: Recorded) -> Reply:
        if request.method != "POST":
            return Reply.json({}, status=405)
        asked = request.body
        if "id" not in asked:
            return Reply(b"", status=202)
        results: dict[str, Any] = {
            "initialize": {
                "protocolVersion": "2025-06-18",
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "older", "version": "1"},
            },
            "tools/list": {"tools": [REFUND]},
            "tools/call": {"content": [{"type": "text", "text": "given back"}]},
        }
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": asked["id"]}
        if asked["method"] in results:
            answer["result"] = results[asked["method"]]
        else:
            answer["error"] = {"code": -32601, "message": "Method not found"}
        return Reply.json(answer, headers=self.headers)
