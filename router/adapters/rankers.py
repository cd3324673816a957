"""Who ranks the tools of an agent: a router in this process, or a server of ``router serve``.

Both give the same names for the same tools, as far as both have the same settings.
"""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import is_
from time import monotonic
from typing import Any, Final

from router.concurrency.breaker import CircuitBreaker
from router.concurrency.loop_thread import ClosedByBlock
from router.errors import InvalidRequest, RouterError, SourceError
from router.events import Events
from router.service.remote import RemoteRouter
from router.sync import SyncSemanticRouter
from router.tools.source import ToolSource
from router.tools.tool import Tool

_log: Final = logging.getLogger(__name__)

FAILURES: Final = 3
"""In a row, after which a server is left alone: turns need not wait for one that hangs."""
LEFT_ALONE_SECONDS: Final = 30.0


class Ranker(ClosedByBlock, ABC):
    """Ranks tools, and knows those that it took up as they were given. Safe to share between
    threads.

    Attributes:
        events: where failures are told.
    """

    events: Events

    def __init__(self, read: Callable[[object], Tool]) -> None:
        """No tool is taken up yet; ``read`` is what reads a tool of the caller's."""
        self._read = read
        self._objects: dict[str, object] = {}
        self._readable: set[str] = set()
        self._taking = threading.Lock()

    def take(self, offered: Mapping[str, object]) -> None:
        """Take up the tools that are new or not what they were.

        Raises:
            RouterError: they cannot be indexed.
        """
        if all(map(is_, map(self._objects.get, offered), offered.values())):
            return
        with self._taking:
            new = {
                name: tool for name, tool in offered.items() if self._objects.get(name) is not tool
            }
            for tool in new.values():
                try:
                    read = self._read(tool)
                    self._put(read)
                    self._readable.add(read.name)
                except SourceError as error:
                    _log.warning("tool selection: %s; it is always shown", error)
            self._taken_up()
            self._objects.update(new)

    def unreadable(self, offered: Mapping[str, object]) -> list[str]:
        """Those of these tools whose definitions could not be read when they were taken up."""
        if offered.keys() <= self._readable:
            return []
        return [name for name in offered if name not in self._readable]

    def rank(
        self,
        request: str,
        offered: Mapping[str, object],
        *,
        limit: int,
        always_include: Sequence[str] = (),
        history: Sequence[str] = (),
    ) -> tuple[str, ...]:
        """The names of the best of these tools, which were taken up, best first.

        Raises:
            RouterError: they cannot be ranked.
        """
        names = self._ranked(
            request, offered, limit=limit, always_include=always_include, history=history
        )
        return tuple(name for name in names if name in offered)

    @abstractmethod
    def _ranked(self, request: str, offered: Mapping[str, object], **options: Any) -> Iterable[str]:
        """The names of the best tools; the options are those of ``SemanticRouter.rank``."""

    @abstractmethod
    def _put(self, tool: Tool) -> None:
        """Keep one tool, in place of an earlier one of its name."""

    def _taken_up(self) -> None:
        """All tools have been put."""


class LocalRanker(Ranker):
    """A router in this process, over the tools that it was offered."""

    def __init__(self, read: Callable[[object], Tool]) -> None:
        super().__init__(read)
        self._source = ToolSource(name="tools")
        self.router: Final = SyncSemanticRouter(sources=[self._source])
        self.events = self.router.events

    def _ranked(self, request: str, offered: Mapping[str, object], **options: Any) -> Iterable[str]:
        # Naming all tools costs as much as ranking them.
        some = None if offered.keys() == self._objects.keys() else offered
        return self.router.rank(request, available=some, **options).names

    def close(self) -> None:
        self.router.close()

    def _put(self, tool: Tool) -> None:
        change = self._source.replace if tool.name in self._source else self._source.add
        change(tool)

    def _taken_up(self) -> None:
        self.router.reload()


class RemoteRanker(Ranker):
    """A server of ``router serve``, which is sent the tools with each request and keeps their
    index for the next one."""

    def __init__(self, server: RemoteRouter, read: Callable[[object], Tool]) -> None:
        super().__init__(read)
        self.events = Events()
        self._server = server
        self._definitions: dict[str, dict[str, Any]] = {}
        self._breaker = CircuitBreaker(
            failures=FAILURES, reset_seconds=LEFT_ALONE_SECONDS, clock=monotonic
        )
        self._counting = threading.Lock()  # a breaker has none

    def _ranked(self, request: str, offered: Mapping[str, object], **options: Any) -> Iterable[str]:
        tools = [self._definitions[name] for name in offered if name in self._definitions]
        with self._counting:
            call = self._breaker.try_call()
        if call is None:
            raise RouterError("the server is left alone for a while after failures in a row")
        with call:
            try:
                names = self._server.rank(request, tools=tools, **options)
            except InvalidRequest:  # it was not asked
                raise
            except RouterError:
                with self._counting:
                    call.failed()
                raise
            with self._counting:
                call.succeeded()
        return names

    def close(self) -> None:
        self._server.close()

    def _put(self, tool: Tool) -> None:
        self._definitions[tool.name] = {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": tool.input_schema,
        }
