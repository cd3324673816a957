"""The source of the tools of MCP servers.

    with McpServers("servers.json") as servers:
        async with SemanticRouter(sources=[servers]) as router:
            ranked = await router.rank("refund the last payment")
            ranked.skills[0].payload  # a RemoteTool: the server and its own definition

Servers are started (stdio) or called (HTTP) in a thread of their own, all at once. A tool is named
``server__tool``. When a server says that its list has changed, the list is read again, and the
router takes it up while it runs. A server that goes away keeps its last tools, marked as stale, and
is tried again after pauses that double. Tools that several servers give alike are one tool: that of
the first server in the configuration that is up, with the others' names beside it.

What servers send is untrusted: definitions are parsed as data, bounded in number and size, and
those that cannot be used are left out and reported. Whoever may name servers may run programs: a
configuration must come from the user.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import TYPE_CHECKING, Any, Final, Self

from router.errors import ConfigurationError
from router.loop_thread import LoopThread
from router.skills.diagnostics import Diagnostic, Severity
from router.skills.manifest import SkillManifest
from router.skills.sources import SourceSnapshot
from router.tools.files import MAX_TOOLS, read_document, snapshot_of
from router.tools.tool import Tool

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import Tool as Definition

SEPARATOR: Final = "__"
MAX_PAGES: Final = 1_000
MAX_EVENT_BYTES: Final = 16 << 20
"""Of one message that a server sends over HTTP as an event."""


@dataclass(frozen=True, slots=True)
class RemoteTool:
    """A tool of a server, as it comes back from the router.

    Attributes:
        name: as the router knows it, ``server__tool``.
        server: the server's name in the configuration.
        definition: the SDK's object, untouched; ``definition.name`` is what the server calls it.
        twins: names of the same tool at other servers.
    """

    name: str
    server: str
    definition: Definition = field(repr=False)
    twins: tuple[str, ...] = ()


@dataclass(slots=True)
class _Server:
    """One server: how to reach it, and what is known of it."""

    name: str
    how: Mapping[str, Any]
    tools: tuple[Definition, ...] | None = None
    fault: str = ""
    answered: asyncio.Event = field(default_factory=asyncio.Event)


class McpServers:
    """Tools of MCP servers. Started by ``with``, or when it is first read; ended by ``close``."""

    roots: tuple[Path, ...] = ()

    def __init__(
        self,
        servers: Path | str | Mapping[str, Any],
        *,
        name: str = "mcp",
        timeout_seconds: float = 10.0,
        first_pause: float = 1.0,
        longest_pause: float = 60.0,
        rescan_seconds: float = 60.0,
    ) -> None:
        """No server is started yet.

        Args:
            servers: a JSON file, or what it holds: ``{"mcpServers": {NAME: {"command": …, "args":
                […], "env": {…}, "cwd": …} or {"url": …, "headers": {…}}}}``; the inner object
                alone is fine. The order is the order of preference among twins.
            name: of the source, for reports.
            timeout_seconds: for connecting to a server, and for each answer of it.
            first_pause: seconds before a server that is down is tried again, doubled each time ...
            longest_pause: ... up to this.
            rescan_seconds: between two looks at a server that says nothing.

        Raises:
            ConfigurationError: the configuration cannot be used.
        """
        self.name = name
        self._servers = _parsed(servers)
        self._timeout = timeout_seconds
        self._first_pause = first_pause
        self._longest_pause = longest_pause
        self._rescan = rescan_seconds
        self._thread = LoopThread("source of MCP servers")
        self._starting = threading.Lock()
        self._started = False
        self._tasks: list[asyncio.Task[None]] = []
        self._changing = threading.Lock()
        self._snapshot: SourceSnapshot | None = None
        self._subscribers: dict[object, Callable[[], None]] = {}

    def __enter__(self) -> Self:
        self._start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the servers that were started, and every connection. Closing twice is fine."""
        self._thread.close(self._end)

    def read(
        self,
        previous: SourceSnapshot | None = None,  # noqa: ARG002 - what is known stays known
        *,
        quick: bool = False,  # noqa: ARG002 - it never asks a server
    ) -> SourceSnapshot:
        """The tools as they are known now. The first time, it waits until every server has
        answered or its time is up."""
        self._start()
        with self._changing:
            if self._snapshot is None:
                self._snapshot = self._merged()
            return self._snapshot

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call ``changed``, on the thread of the connections, after each change."""
        key = object()
        self._subscribers[key] = changed

        def end() -> None:
            self._subscribers.pop(key, None)

        return end

    def _start(self) -> None:
        with self._starting:
            if not self._started:
                self._thread.wait(self._begin())
                self._started = True

    async def _begin(self) -> None:
        self._tasks = [
            asyncio.create_task(self._follow(server), name=f"mcp {server.name}")
            for server in self._servers
        ]
        await asyncio.gather(*(server.answered.wait() for server in self._servers))

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _follow(self, server: _Server) -> None:
        """Stay connected to a server, and know its tools."""
        pause = self._first_pause
        while True:
            try:
                async with self._connected(server) as (client, changed):
                    while True:
                        changed.clear()
                        async with asyncio.timeout(self._timeout):
                            tools = await _all_tools(client)
                        self._learn(server, tools, "")
                        pause = self._first_pause
                        with suppress(TimeoutError):
                            await asyncio.wait_for(changed.wait(), self._rescan)
            except Exception as error:  # noqa: BLE001 - the SDK lets through whatever its tasks
                # raise; a server that fails in any way is down, and the others are not.
                self._learn(server, server.tools, _in_words(error, self._timeout))
            await asyncio.sleep(pause)
            pause = min(2 * pause, self._longest_pause)

    @asynccontextmanager
    async def _connected(self, server: _Server) -> AsyncIterator[tuple[Client, asyncio.Event]]:
        """A connection, and what is set when the server says that its list has changed."""
        from mcp import Client
        from mcp.types import ToolListChangedNotification

        changed = asyncio.Event()

        async def hear(message: object) -> None:  # the older generation of the protocol
            if isinstance(message, ToolListChangedNotification):
                changed.set()

        async with AsyncExitStack() as stack:
            async with asyncio.timeout(self._timeout):
                transport = await _transport(server.how, stack, self._timeout)
                client = await stack.enter_async_context(
                    Client(
                        transport,
                        cache=None,
                        message_handler=hear,
                        read_timeout_seconds=self._timeout,
                    )
                )
            listening = asyncio.create_task(_listen(client, changed))
            try:
                yield client, changed
            finally:
                listening.cancel()
                await asyncio.gather(listening, return_exceptions=True)

    def _learn(self, server: _Server, tools: tuple[Definition, ...] | None, fault: str) -> None:
        """Note what is known of a server now, and tell when it is something else."""
        news = (tools, fault) != (server.tools, server.fault)
        with self._changing:
            server.tools, server.fault = tools, fault
            if news:
                self._snapshot = None
        server.answered.set()
        if news:
            for changed in tuple(self._subscribers.values()):
                changed()

    def _merged(self) -> SourceSnapshot:
        """The tools of all servers, twins taken together, those of servers that are down marked."""
        groups: dict[str, list[tuple[_Server, Definition]]] = {}
        for server in sorted(self._servers, key=lambda server: bool(server.fault)):
            for definition in server.tools or ():
                groups.setdefault(_likeness(definition), []).append((server, definition))
        skills: list[SkillManifest] = []
        failures: list[Diagnostic] = []
        notices: list[Diagnostic] = []
        for server in self._servers:
            place = Path(f"<{self.name}>", server.name)
            if server.fault and server.tools is None:
                message = f"the server cannot be reached: {server.fault}"
                failures.append(Diagnostic(place, 0, Severity.ERROR, "server-down", message))
            own = [
                _remote(server, definition, groups[_likeness(definition)])
                for definition in server.tools or ()
                if groups[_likeness(definition)][0][0] is server
            ]
            found = snapshot_of(own, origin=self.name, path=place)
            skills += found.skills
            failures += found.failures
            notices += found.notices
        down = {server.name: server.fault for server in self._servers if server.fault}
        stale = {
            skill.path: Diagnostic(
                skill.path,
                0,
                Severity.WARNING,
                "server-down",
                f"the server cannot be reached: {down[skill.payload.server]}; its last tools stay",
            )
            for skill in skills
            if isinstance(skill.payload, RemoteTool) and skill.payload.server in down
        }
        notices += {notice.message: notice for notice in stale.values()}.values()
        return SourceSnapshot(
            tuple(skills), tuple(failures), tuple(notices), MappingProxyType(stale)
        )


def _remote(
    server: _Server, definition: Definition, alike: list[tuple[_Server, Definition]]
) -> Tool:
    """The tool under its name in the router, with its twins at other servers."""
    others = [f"{other.name}{SEPARATOR}{twin.name}" for other, twin in alike if other is not server]
    name = f"{server.name}{SEPARATOR}{definition.name}"
    payload = RemoteTool(name, server.name, definition, tuple(others))
    return Tool(
        name,
        definition.description or "",
        definition.input_schema,
        title=definition.title or "",
        payload=payload,
    )


def _likeness(definition: Definition) -> str:
    """Equal for tools that say the same of themselves, whatever the server."""
    return json.dumps(
        [definition.name, definition.description, definition.input_schema],
        sort_keys=True,
        default=str,
    )


async def _all_tools(client: Client) -> tuple[Definition, ...]:
    """Every page of a server's list; a list without an end is cut."""
    found: list[Definition] = []
    cursor: str | None = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        found += page.tools
        cursor = page.next_cursor
        if cursor is None or len(found) > MAX_TOOLS:
            break
    return tuple(found[: MAX_TOOLS + 1])  # one more than are taken, so that the cut is reported


async def _listen(client: Client, changed: asyncio.Event) -> None:
    """Hear of changes over the newer generation of the protocol; the older one pushes them."""
    from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
    from mcp.shared.exceptions import MCPError

    try:
        async with client.listen(tools_list_changed=True) as subscription:
            async for _ in subscription:
                changed.set()
    except (ListenNotSupportedError, MCPError):
        return
    except (SubscriptionLost, TimeoutError):
        pass
    changed.set()  # nothing is heard any more: look again, which finds out why


async def _transport(how: Mapping[str, Any], stack: AsyncExitStack, seconds: float) -> Any:
    """What the SDK's client is to talk over."""
    from mcp import StdioServerParameters

    if "command" in how:
        return StdioServerParameters(
            command=how["command"],
            args=list(how.get("args", ())),
            env=how.get("env"),
            cwd=how.get("cwd"),
        )
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    http = await stack.enter_async_context(
        httpx2.AsyncClient(headers=dict(how.get("headers", {})), timeout=seconds)
    )
    return streamable_http_client(how["url"], http_client=http, max_sse_event_size=MAX_EVENT_BYTES)


def _parsed(servers: Path | str | Mapping[str, Any]) -> list[_Server]:
    """The servers of a configuration, in its order.

    Raises:
        ConfigurationError: it cannot be read or used; the message names the server.
    """
    place = "McpServers"
    document: Any = servers
    if not isinstance(servers, Mapping):
        place, document = str(servers), read_document(Path(servers))
    named = document.get("mcpServers", document) if isinstance(document, Mapping) else None
    if not isinstance(named, Mapping) or not named:
        raise ConfigurationError(f'{place}: it names no server under "mcpServers"')
    found = []
    for name, how in named.items():
        kinds = {"command": str, "url": str, "args": list, "env": Mapping, "headers": Mapping}
        if not isinstance(how, Mapping) or ("command" in how) == ("url" in how):
            raise ConfigurationError(f'{place}: server {name!r}: it needs "command" or "url"')
        for key, kind in kinds.items():
            if key in how and not isinstance(how[key], kind):
                raise ConfigurationError(f"{place}: server {name!r}: {key} is no {kind.__name__}")
        found.append(_Server(str(name), how))
    return found


def _in_words(error: BaseException, timeout: float) -> str:
    """The first fault inside, for the SDK raises groups of groups."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return f"no answer within {timeout:g} s"
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
