"""The MCP server: routing, skills and memory for agents that speak the Model Context Protocol."""
