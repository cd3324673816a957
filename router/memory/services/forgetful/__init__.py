"""Forgetful, a memory service, over its HTTP API or over MCP."""
