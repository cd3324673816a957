"""The first messages of MCP clients, of both generations of the protocol."""

from __future__ import annotations

from typing import Any

from router.mcp.hello import STATELESS_VERSION


def initialize(version: str = "2025-11-25") -> dict[str, Any]:
    """What a client of the older protocol begins with."""
    client = {"name": "test", "version": "1", "title": "Test"}
    capabilities = {"roots": {"listChanged": True}, "sampling": {}}
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": version, "capabilities": capabilities, "clientInfo": client},
    }


DISCOVER: dict[str, Any] = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "server/discover",
    "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": STATELESS_VERSION,
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        }
    },
}
"""What one of the newer protocol begins with, as far as it begins at all."""
