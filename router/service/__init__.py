"""The use cases of the router. The command line, MCP and HTTP all call them."""
