"""The source of the tools of MCP servers.

    with McpServers("servers.json") as servers:
        async with SemanticRouter(sources=[servers]) as router:
            ranked = await router.rank("refund the last payment")
            ranked.skills[0].payload  # a RemoteTool: the server and its own definition

Servers are started (stdio) or called (HTTP) in a thread of their own, all at once. The first
reading waits for all of them, or with a ``grace_seconds`` not much longer than for the first one
that is up; the tools of the others join when they answer. A tool is named ``server__tool``. When a
server reports that its list has changed, the list is read again, and the router uses it while it
runs. If a server cannot be reached any more, its last tools are kept and marked as stale, and it is
tried again after pauses that double. If several servers give the same definition (twins), that is
one tool: of the first server in the configuration that is up, with the names of the others.

What servers send is untrusted: definitions are parsed as data, bounded in number and size, and
those that cannot be used are left out and reported. A configuration can start programs, so it must
come from the user.
"""

from __future__ import annotations

import asyncio
import json
import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, Self

from router.concurrency.loop_thread import ClosedByBlock, LoopThread
from router.concurrency.tasks import raise_if_cancelled
from router.errors import SourceError
from router.skills.diagnostics import Diagnostic, Severity
from router.skills.frontmatter import on_one_line
from router.skills.manifest import SkillManifest
from router.skills.sources import SourceSnapshot, Subscribers
from router.tools.connections import (
    FIRST_PAUSE,
    LONGEST_PAUSE,
    SEPARATOR,
    all_tools,
    connected,
    in_words,
    parsed,
)
from router.tools.files import MAX_TOOLS, snapshot_of
from router.tools.tool import Tool

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult
    from mcp.types import Tool as Definition


@dataclass(frozen=True, slots=True)
class RemoteTool:
    """A tool of a server, as it comes back from the router.

    Attributes:
        name: as the router knows it, ``server__tool``.
        server: the server's name in the configuration.
        definition: the SDK's object, untouched; ``definition.name`` is what the server calls it.
        others: the same tool of other servers; parts that are not compared may differ.
    """

    name: str
    server: str
    definition: Definition = field(repr=False)
    others: tuple[RemoteTool, ...] = field(default=(), repr=False)

    @property
    def twins(self) -> tuple[str, ...]:
        """Names of the same tool at other servers."""
        return tuple(other.name for other in self.others)

    def as_tool(self) -> Tool:
        """What is searched of it, with itself as the payload."""
        definition = self.definition
        return Tool(
            self.name,
            definition.description or "",
            definition.input_schema,
            title=definition.title or "",
            payload=self,
        )


TIMEOUT_SECONDS: Final = 10.0
"""How long connecting to a server may take, and each answer of it, where nothing else is said."""
LOOK_SECONDS: Final = 1.0
"""How often it is told, at the start, which servers are waited for."""
CANCEL_AGAIN_SECONDS: Final = 1.0
"""A connection that is still open after this time is cancelled again."""


@dataclass(slots=True)
class _Server:
    """One server, with the state of its connection.

    Attributes:
        config: its part of the configuration.
        tools: the tools that it listed last; None before its first answer.
        fault: why it cannot be reached; empty while it can.
        answered: set when it has answered or failed for the first time.
        client: the connection; None while there is none.
        look_again: set when its list of tools may have changed.
        phase: of the connection; "waiting" means waiting to connect again after a fault.
    """

    name: str
    config: Mapping[str, Any]
    tools: tuple[Definition, ...] | None = None
    fault: str = ""
    answered: asyncio.Event = field(default_factory=asyncio.Event)
    client: Client | None = None
    look_again: asyncio.Event = field(default_factory=asyncio.Event)
    phase: Literal["waiting", "connecting", "open", "ending"] = "connecting"


class McpServers(ClosedByBlock):
    """Tools of MCP servers. Started by ``with``, or when it is first read; ended by ``close``."""

    roots: tuple[Path, ...] = ()

    def __init__(
        self,
        servers: Path | str | Mapping[str, Any],
        *,
        name: str = "mcp",
        timeout_seconds: float = TIMEOUT_SECONDS,
        grace_seconds: float = math.inf,
        waits_for: Callable[[Sequence[str]], None] | None = None,
        first_pause: float = FIRST_PAUSE,
        longest_pause: float = LONGEST_PAUSE,
        rescan_seconds: float = 60.0,
    ) -> None:
        """No server is started yet.

        Args:
            servers: a JSON file, or what it holds: ``{"mcpServers": {NAME: {"command": …, "args":
                […], "env": {…}, "cwd": …} or {"url": …, "headers": {…}}}}``; the inner object
                alone is fine. A server with ``"disabled": true`` is left alone. The order is the
                order of preference among twins.
            name: of the source, for reports.
            timeout_seconds: for connecting to a server, and for each answer of it.
            grace_seconds: how long the first reading waits for further servers once one is up.
            waits_for: called with the names of the servers that the first reading waits for, every
                ``LOOK_SECONDS``; on the thread of the connections.
            first_pause: seconds before a server that is down is tried again; doubled each time.
            longest_pause: the upper bound of that pause.
            rescan_seconds: how often the list of a server is read that reports no changes.

        Raises:
            ConfigurationError: the configuration cannot be used.
        """
        self.name = name
        self._servers = [_Server(name, config) for name, config in parsed(servers).items()]
        self._timeout = timeout_seconds
        self._grace = grace_seconds
        self._waits_for = waits_for
        self._first_pause = first_pause
        self._longest_pause = longest_pause
        self._rescan = rescan_seconds
        self._thread = LoopThread("source of MCP servers")
        self._starting = threading.Lock()
        self._started = False
        self._tasks: dict[asyncio.Task[None], _Server] = {}
        self._changing = threading.Lock()
        self._snapshot: SourceSnapshot | None = None
        self._named: dict[str, RemoteTool] = {}
        self._subscribers = Subscribers()

    def __enter__(self) -> Self:
        self._start()
        return self

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
        answered or its time is up, or the grace is over."""
        self._start()
        with self._changing:
            if self._snapshot is None:
                self._snapshot = self._merged()
            return self._snapshot

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call ``changed``, on the thread of the connections, after each change."""
        return self._subscribers.add(changed)

    @property
    def missing(self) -> dict[str, str]:
        """The servers whose tools are not known, and why not."""
        return {
            server.name: server.fault or "it has not answered yet"
            for server in self._servers
            if server.tools is None
        }

    def find(self, name: str) -> RemoteTool | None:
        """The tool of that name, also one that is offered under the name of a twin."""
        return self._named.get(name)

    async def call(
        self, name: str, arguments: Mapping[str, Any], *, timeout_seconds: float = 60.0
    ) -> CallToolResult:
        """Call exactly the tool of that name, at its own server; on any event loop.

        The answer is the server's own, untouched; it may say that the call failed (``is_error``).

        Raises:
            SourceError: there is no such tool, its server is down, refuses the call, or gives no
                answer in time.
            RuntimeError: this source is closed.
        """
        tool = self.find(name)
        if tool is None:
            raise SourceError(self.name, name, "there is no such tool")
        future = self._thread.submit(self._call(tool, dict(arguments), timeout_seconds))
        return await asyncio.wrap_future(future)

    async def _call(
        self, tool: RemoteTool, arguments: dict[str, Any], seconds: float
    ) -> CallToolResult:
        server = next(server for server in self._servers if server.name == tool.server)
        if server.client is None:
            raise SourceError(self.name, tool.name, f"the server is down: {server.fault}")
        try:
            async with asyncio.timeout(seconds):
                return await server.client.call_tool(
                    tool.definition.name,
                    arguments,
                    read_timeout_seconds=2 * seconds,  # the time above is the one that counts
                )
        except Exception as error:  # the SDK lets through whatever its tasks raise
            server.look_again.set()  # perhaps the connection is gone, or the tool
            reason = f"the call failed: {in_words(error, seconds)}"
            raise SourceError(self.name, tool.name, reason) from error

    def _start(self) -> None:
        with self._starting:
            if not self._started:
                self._thread.wait(self._begin())
                self._started = True

    async def _begin(self) -> None:
        self._tasks = {
            asyncio.create_task(self._follow(server), name=f"mcp {server.name}"): server
            for server in self._servers
        }
        left = {asyncio.create_task(server.answered.wait()) for server in self._servers}
        clock, until = asyncio.get_running_loop().time, math.inf
        try:
            while left and (seconds := min(until - clock(), LOOK_SECONDS)) > 0:
                done, left = await asyncio.wait(
                    left, timeout=seconds, return_when=asyncio.FIRST_COMPLETED
                )
                if until == math.inf and any(server.tools is not None for server in self._servers):
                    until = clock() + self._grace
                if not done and self._waits_for is not None:
                    silent = [one.name for one in self._servers if not one.answered.is_set()]
                    self._waits_for(silent)
        finally:
            for waiting in left:
                waiting.cancel()

    async def _end(self) -> None:
        """Cancel all tasks and wait for them. A task with an open connection is cancelled again if
        it does not end, because anyio swallows a cancellation that comes together with one of its
        own. A task that is ending is never cancelled again, and one that is connecting not after
        the first time: that would leave the server's process running, and the SDK bounds the time
        of both."""
        left, spared = set(self._tasks), {"ending"}
        while left:
            for task in left:
                if self._tasks[task].phase not in spared:
                    task.cancel()
            _, left = await asyncio.wait(left, timeout=CANCEL_AGAIN_SECONDS)
            spared = {"ending", "connecting"}

    async def _follow(self, server: _Server) -> None:
        """Stay connected to a server, and know its tools."""
        pause = self._first_pause
        while True:
            server.phase = "connecting"
            try:
                async with connected(server.config, self._timeout) as (client, changed):
                    server.look_again, server.phase = changed, "open"
                    try:
                        while True:
                            changed.clear()
                            async with asyncio.timeout(self._timeout):
                                tools = await all_tools(client)
                            raise_if_cancelled()
                            server.client = client
                            self._learn(server, tools, "")
                            pause = self._first_pause
                            with suppress(TimeoutError):
                                async with asyncio.timeout(self._rescan):
                                    await changed.wait()
                    finally:
                        server.phase = "ending"
            except Exception as error:  # noqa: BLE001 - the SDK lets through whatever its tasks
                # raise; a server that fails in any way is down, and the others are not.
                server.client = None
                self._learn(server, server.tools, in_words(error, self._timeout))
            server.phase = "waiting"
            await asyncio.sleep(pause)
            pause = min(2 * pause, self._longest_pause)

    def _learn(self, server: _Server, tools: tuple[Definition, ...] | None, fault: str) -> None:
        """Store the tools and the fault of a server, and notify subscribers if they have
        changed."""
        has_changed = (tools, fault) != (server.tools, server.fault)
        with self._changing:
            server.tools, server.fault = tools, fault
            if has_changed:
                self._snapshot = None
        server.answered.set()
        if has_changed:
            self._subscribers.tell()

    def _merged(self) -> SourceSnapshot:
        """The tools of all servers, with twins merged, and those of servers that are down as
        stale."""
        groups: dict[str, list[tuple[_Server, Definition]]] = {}
        for server in sorted(self._servers, key=lambda server: bool(server.fault)):
            for definition in _usable(server.tools or ()):
                groups.setdefault(_twin_key(definition), []).append((server, definition))
        skills: list[SkillManifest] = []
        failures: list[Diagnostic] = []
        notices: list[Diagnostic] = []
        named: dict[str, RemoteTool] = {}
        for server in self._servers:
            place = Path(f"<{self.name}>", server.name)
            if server.fault and server.tools is None:
                message = f"the server cannot be reached: {server.fault}"
                failures.append(Diagnostic(place, 0, Severity.ERROR, "server-down", message))
            own: list[Tool] = []
            for definition in server.tools or ():
                alike = groups.get(_twin_key(definition), [])
                if all(definition is not one for _, one in alike):
                    alike = [(server, definition)]  # it is reported below
                remote = _remote(server, definition, alike)
                named.setdefault(remote.name, remote)
                if alike[0][0] is server:
                    own.append(remote.as_tool())
            found = snapshot_of(own, origin=self.name, path=place)
            skills += found.skills
            failures += found.failures
            notices += found.notices
        down = {server.name: server.fault for server in self._servers if server.fault}
        stale: dict[Path, Diagnostic] = {}
        for remote in named.values():
            if fault := down.get(remote.server):
                path = Path(f"<{self.name}>", remote.name)
                message = f"the server cannot be reached: {fault}; its last tools stay"
                stale[path] = Diagnostic(path, 0, Severity.WARNING, "server-down", message)
        offered = {skill.path for skill in skills}
        of_offered = [notice for path, notice in stale.items() if path in offered]
        notices += {notice.message: notice for notice in of_offered}.values()
        self._named = named
        return SourceSnapshot(
            tuple(skills), tuple(failures), tuple(notices), MappingProxyType(stale)
        )


def _remote(
    server: _Server, definition: Definition, alike: list[tuple[_Server, Definition]]
) -> RemoteTool:
    """The tool under its name in the router, with its twins at other servers."""
    others = [_remote(other, twin, []) for other, twin in alike if other is not server]
    name = on_one_line(f"{server.name}{SEPARATOR}{definition.name}")
    return RemoteTool(name, server.name, definition, tuple(others))


def _usable(tools: Sequence[Definition]) -> Iterable[Definition]:
    """The first tool of each name among the tools that are taken from a server. A second one of the
    same name is left out later, so it must not represent twins at other servers."""
    first: dict[str, Definition] = {}
    for definition in tools[:MAX_TOOLS]:
        first.setdefault(on_one_line(definition.name), definition)
    return first.values()


def _twin_key(definition: Definition) -> str:
    """A text that is equal for tools with the same name, description and schema at any server."""
    return json.dumps(
        [definition.name, definition.description, definition.input_schema],
        sort_keys=True,
        default=str,
    )
