"""The MCP server: routing and skills for any agent that speaks the Model Context Protocol."""
