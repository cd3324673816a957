"""A FastMCP server whose clients find tools by what they do. No key, no network: the client is in
the same process."""

from __future__ import annotations

import asyncio

from everyday_tools import TOOLS, TURNS
from fastmcp import Client, FastMCP

from router.adapters.fastmcp import RoutedSearchTransform

server: FastMCP = FastMCP("everyday")
for tool in TOOLS:
    server.tool(tool)
transform = RoutedSearchTransform(max_results=3, timeout=60)
server.add_transform(transform)


async def main() -> None:
    async with Client(server) as client:
        print([tool.name for tool in await client.list_tools()])
        for text in TURNS:
            found = await client.call_tool("search_tools", {"query": text})
            print(text)
            print("   ", [tool["name"] for tool in found.data])


asyncio.run(main())
transform.selector.close()
