"""Tools for FastMCP servers: a search transform that ranks by meaning instead of by words alone.

    server.add_transform(RoutedSearchTransform(max_results=5))

Clients are shown ``search_tools`` and ``call_tool`` in place of all the tools of the server.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from fastmcp.server.context import Context
from fastmcp.server.transforms.search.base import BaseSearchTransform
from fastmcp.tools.base import Tool as ServerTool

from router.adapters.selection import ToolSelector
from router.tools.tool import Tool


class RoutedSearchTransform(BaseSearchTransform):
    """FastMCP's search transform with the router in it. Takes the options of its base class."""

    def __init__(self, *, timeout: float = 5.0, **options: Any) -> None:
        """The tools are those of the server, taken up at the first search.

        Args:
            timeout: seconds after which a search gives the first tools, whatever it looks for.
            options: those of ``BaseSearchTransform``, such as ``max_results``.
        """
        super().__init__(**options)
        self.selector = ToolSelector(read=_read, timeout=timeout)

    def _make_search_tool(self) -> ServerTool:
        transform = self

        async def search_tools(
            query: Annotated[str, "What the tool should do."],
            ctx: Context | None = None,  # FastMCP puts it in
        ) -> str | list[dict[str, Any]]:
            """Find tools by what they do. The best comes first, in the format of list_tools."""
            visible = await transform._get_visible_tools(ctx)
            found = await transform._search(visible, query)
            result: str | list[dict[str, Any]] = await transform._render_results(found)
            return result

        return ServerTool.from_function(fn=search_tools, name=self._search_tool_name)

    async def _search(self, tools: Sequence[ServerTool], query: str) -> Sequence[ServerTool]:
        offered = {tool.name: tool for tool in tools}
        names = await self.selector.asearch(query, offered, limit=self._max_results)
        return [offered[name] for name in names[: self._max_results]]


def _read(tool: Any) -> Tool:
    return Tool(tool.name, tool.description or "", tool.parameters, title=tool.title or "")
