"""Connections to MCP servers: connecting, listing tools, and listening for changes of the list.

Both generations of the protocol are supported; the SDK finds out which one a server uses. What
servers send is untrusted, and bounded here in number and size.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from router.concurrency.tasks import raise_if_cancelled
from router.errors import ConfigurationError
from router.given import check_kind
from router.plain_json import first_fault
from router.settings.files import warn_once
from router.tools.files import MAX_TOOLS, read_document

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import Tool as Definition

SEPARATOR: Final = "__"
"""Between a server's name and its name of a tool."""
MAX_PAGES: Final = 1_000
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
"""Seconds before a server that is down is tried again, or a stream of changes that has ended is
opened again; doubled each time, for a stream while none lasts longer than the pause before it."""
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}")


@asynccontextmanager
async def connected(
    config: Mapping[str, Any], timeout_seconds: float
) -> AsyncIterator[tuple[Client, asyncio.Event]]:
    """A connection, and an event that is set when the server reports that its list has changed.
    ``config`` is the server's part of the configuration; connecting, and each answer, may take
    ``timeout_seconds``."""
    from mcp import Client
    from mcp.types import ToolListChangedNotification

    changed = asyncio.Event()

    async def on_message(message: object) -> None:  # the older generation of the protocol
        if isinstance(message, ToolListChangedNotification):
            changed.set()

    async with AsyncExitStack() as stack:
        async with asyncio.timeout(timeout_seconds):
            transport = await _transport(config, stack, timeout_seconds)
            client = await stack.enter_async_context(
                Client(
                    transport,
                    cache=None,
                    message_handler=on_message,
                    read_timeout_seconds=timeout_seconds,
                )
            )
        listening = asyncio.create_task(_listen(client, changed))
        try:
            yield client, changed
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)


async def all_tools(client: Client) -> tuple[Definition, ...]:
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
    """Listen for changes over the newer generation of the protocol; the older one pushes them. A
    stream that ends is opened again: many end after a minute without a message."""
    from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost
    from mcp.shared.exceptions import MCPError

    clock = asyncio.get_running_loop().time
    opened, pause = False, FIRST_PAUSE
    while True:
        began = clock()
        try:
            async with client.listen(tools_list_changed=True) as subscription:
                if opened:
                    changed.set()  # it may have changed between the two streams
                opened = True
                async for _ in subscription:
                    changed.set()
                    raise_if_cancelled()
        except ListenNotSupportedError:
            return
        except (MCPError, SubscriptionLost, TimeoutError) as error:
            if isinstance(error, MCPError) and not opened:  # the server does not offer it
                return
            changed.set()  # reading the list again shows whether the server is still there
        if clock() - began > pause:
            pause = FIRST_PAUSE
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE)


async def _transport(config: Mapping[str, Any], stack: AsyncExitStack, seconds: float) -> Any:
    """The transport for the SDK's client: stdio or HTTP."""
    from mcp import StdioServerParameters

    if "command" in config:
        logging.getLogger("mcp.client.stdio").addFilter(_is_usual)
        return StdioServerParameters(
            command=config["command"],
            args=list(config.get("args", ())),
            env=config.get("env"),
            cwd=config.get("cwd"),
        )
    from mcp.client.streamable_http import streamable_http_client

    from router.tools.http_client import MAX_MESSAGE_BYTES, EndingClient

    http = await stack.enter_async_context(
        EndingClient(config["url"], headers=config.get("headers", {}), seconds=seconds)
    )
    return streamable_http_client(
        config["url"], http_client=http, max_sse_event_size=MAX_MESSAGE_BYTES
    )


def _is_usual(record: logging.LogRecord) -> bool:
    """A filter of the SDK's log. A server may write lines to its output that are no messages, such
    as its log. The SDK ignores each such line and logs a traceback with it; instead there is one
    warning without the line."""
    if record.exc_info is None or not isinstance(record.exc_info[1], ValidationError):
        return True
    warn_once(
        "an MCP server writes to its standard output what is no message of the protocol; such "
        "lines are left out (a log belongs on standard error)"
    )
    return False


def parsed(servers: Path | str | Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """How to reach each server of a configuration, in its order, but for those that are
    ``disabled``, as several clients write it.

    In a file, ``${NAME}`` and ``${NAME:-default}`` stand for a variable of the environment, as in
    other clients, so that keys need not lie in the file. As in a shell, the default also stands in
    for an empty variable. A mapping is taken as it is.

    Raises:
        ConfigurationError: it cannot be read or used; the message names the server.
    """
    place = "McpServers"
    document: Any = servers
    check_kind(place, servers, Mapping, str, Path)
    if not isinstance(servers, Mapping):
        place, document = str(servers), read_document(Path(servers))
    named = document.get("mcpServers", document) if isinstance(document, Mapping) else None
    if not isinstance(named, Mapping) or not named:
        raise ConfigurationError(f'{place}: it names no server under "mcpServers"')
    found: dict[str, Mapping[str, Any]] = {}
    for name, config in named.items():
        kinds = {"command": str, "url": str, "args": list, "env": Mapping, "headers": Mapping}
        if not isinstance(config, Mapping) or ("command" in config) == ("url" in config):
            raise ConfigurationError(f'{place}: server {name!r}: it needs "command" or "url"')
        for key, kind in kinds.items():
            if key in config and not isinstance(config[key], kind):
                raise ConfigurationError(f"{place}: server {name!r}: {key} is no {kind.__name__}")
        if config.get("disabled") is not True:
            try:
                config = config if document is servers else _with_variables(config)
            except KeyError as error:
                fault = f"the variable {error.args[0]} is not set"
                raise ConfigurationError(f"{place}: server {name!r}: {fault}") from None
            for header, value in config.get("headers", {}).items():
                # Checked here because the HTTP library would show the value, which may be a key.
                if isinstance(value, str) and not _can_be_sent(value):
                    fault = f"the header {header!r} cannot be sent"
                    raise ConfigurationError(f"{place}: server {name!r}: {fault}")
            found[str(name)] = config
    for name, other in permutations(found, 2):
        if f"{other}{SEPARATOR}".startswith(f"{name}{SEPARATOR}"):
            fault = f"the tools of {other!r} could be taken for its own; rename one of them"
            raise ConfigurationError(f"{place}: server {name!r}: {fault}")
    return found


def _can_be_sent(value: str) -> bool:
    return value.isascii() and value.isprintable() and value == value.strip()


def _with_variables(value: Any) -> Any:
    """A part of a file with the values of the variables that its texts name.

    Raises:
        KeyError: one of them is not set and has no default; holds its name.
    """
    if isinstance(value, Mapping):
        return {key: _with_variables(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_with_variables(inner) for inner in value]
    if not isinstance(value, str):
        return value
    return _VARIABLE.sub(
        lambda found: (
            os.environ[found[1]] if found[2] is None else os.environ.get(found[1]) or found[2]
        ),
        value,
    )


def in_words(error: BaseException, timeout: float) -> str:
    """The first fault inside, for the SDK raises groups of groups. The value that is at fault may
    be a key, and is left out."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, TimeoutError):
        return f"no answer within {timeout:g} s"
    if isinstance(error, ValidationError):
        return first_fault(error)[:300]
    text = " ".join(str(error).split())[:300]
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
