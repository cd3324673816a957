"""The MCP server over one router and a memory, for any transport and both generations of the
protocol.

Built on the SDK's low-level server: the lists are read from the catalog's snapshot on every call,
so there is nothing to keep in step with it. A client may connect before the skills are indexed,
which can take half a minute for the first time: the list of tools is there at once, and every tool
waits for the index.

``SkillServer`` is an observer of the catalog: ``on_catalog_change`` tells the clients. A client of
protocol 2026-07-28 hears of it on the stream that it opened with ``subscriptions/listen``, which
``bus`` feeds; a client of an older one gets a notification on its session. Neither kind gets what
is meant for the other.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final, Protocol
from weakref import WeakSet

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel.server import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    ResourcesListChanged,
    ResourceUpdated,
    SubscriptionBus,
    ToolsListChanged,
)

from router.mcp.hello import CACHE_SCOPE, NAME, TITLE, instructions
from router.mcp.skills_extension import FRESH_MS, SkillResources
from router.mcp.tools import Tools, named_skills
from router.memory.memory import Memory
from router.router import SemanticRouter
from router.service.service import Service
from router.skills.changes import CatalogChange
from router.skills.discovery import SKILL_FILE
from router.skills.files import uri_of
from router.version import package_version

NOTIFY_SECONDS: Final = 5.0
"""How long a notification waits for a client to read. After that the client misses it, and the
others do not wait."""


class Servable(Protocol):
    """What a transport needs of a server."""

    @property
    def protocol(self) -> Server[Any]:
        """The SDK's server."""
        ...

    def close(self) -> None:
        """End the streams that would not end by themselves."""
        ...


class SkillServer:
    """Serves a router, and observes its catalog.

    Attributes:
        name: as an observer.
        protocol: the SDK's server; a transport runs it.
        bus: where changes are published for clients of the newer protocol.
    """

    name: Final = "mcp"

    def __init__(
        self,
        router: SemanticRouter,
        *,
        memory: Memory | None = None,
        bus: SubscriptionBus | None = None,
    ) -> None:
        """A server that has no clients yet.

        Args:
            router: may still be closed: what a client asks waits until it is open. It must stay
                open for as long as the server runs.
            memory: opened by the first call that needs it; the caller closes it after the server.
                None: there are no tools of memory.
            bus: None means one inside this process; replicas share one on a broker.
        """
        self.bus: SubscriptionBus = InMemorySubscriptionBus() if bus is None else bus
        self._older: WeakSet[Connection] = WeakSet()
        self._listeners = ListenHandler(self.bus)
        tools = Tools(Service(router), memory)
        resources = SkillResources(router)
        fresh = CacheHint(FRESH_MS, CACHE_SCOPE)
        self.protocol: Server[Any] = _AnnouncingServer(
            NAME,
            version=package_version(),
            title=TITLE,
            instructions=instructions(memory=memory is not None),
            cache_hints={"tools/list": fresh, "resources/list": fresh},
            get_tool_input_schema=lambda _name: None,  # no argument of ours travels as a header
            on_list_tools=tools.list_tools,
            on_call_tool=tools.call_tool,
            on_list_resources=resources.list_resources,
            on_list_resource_templates=resources.list_templates,
            on_read_resource=resources.read_resource,
            on_subscriptions_listen=self._listeners,
        )
        resources.register(self.protocol)
        self.protocol.add_notification_handler(
            "notifications/initialized", types.NotificationParams, self._greet
        )

    async def on_catalog_change(self, change: CatalogChange) -> None:
        """Tell every client. They read the lists again at once, so the router must be serving
        ``change.after`` by now. A client that is gone or does not read is no error."""
        if not change.names:
            return
        await self._announce(tools=named_skills(change.before) != named_skills(change.after))
        for name in change.changed:
            await self.bus.publish(ResourceUpdated(uri_of(name, SKILL_FILE)))

    async def on_open(self) -> None:
        """Tell every client that the skills are there: until now the tools were listed without
        their names."""
        await self._announce(tools=True)

    async def _announce(self, *, tools: bool) -> None:
        if tools:
            await self.bus.publish(ToolsListChanged())
        await self.bus.publish(ResourcesListChanged())
        async with asyncio.TaskGroup() as group:
            for connection in tuple(self._older):
                group.create_task(_notify(connection, tools=tools))

    def close(self) -> None:
        """End the streams on which clients listen for changes; they would not end by themselves."""
        self._listeners.close()

    async def _greet(
        self, context: ServerRequestContext[Any], _params: types.NotificationParams
    ) -> None:
        """Remember a session of the older protocol. The SDK offers handlers no other way to the
        connection, which outlives the request; it is forgotten with it."""
        self._older.add(context.session._connection)


class _AnnouncingServer(Server[Any]):
    """Promises clients of the older protocol notifications, which the SDK's default does not."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        return super().create_initialization_options(
            notification_options or NotificationOptions(tools_changed=True, resources_changed=True),
            experimental_capabilities,
            extensions,
        )


async def _notify(connection: Connection, *, tools: bool) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(NOTIFY_SECONDS):
            if tools:
                await connection.send_tool_list_changed()
            await connection.send_resource_list_changed()
