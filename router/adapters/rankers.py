"""Who ranks the tools of an agent: a router in this process, or a server of ``router serve``.

Both give the same names for the same tools, as far as both have the same settings.
"""

from __future__ import annotations

import json
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import is_
from typing import Any, Final

import httpx

from router.errors import InvalidRequest, RouterError, SourceError
from router.events import Events
from router.sync import SyncSemanticRouter
from router.tools.source import ToolSource
from router.tools.tool import Tool

MAX_ANSWER_BYTES: Final = 8 << 20

Tell = Callable[[SourceError], None]


class Ranker(ABC):
    """Ranks tools, and knows those that it took up as they were given. Safe to share between
    threads.

    Attributes:
        events: where failures are told.
    """

    events: Events

    def __init__(self, read: Callable[[object], Tool], tell: Tell) -> None:
        """No tool is taken up yet.

        Args:
            read: what reads a tool of the caller's.
            tell: told of each that cannot be read.
        """
        self._read = read
        self._tell = tell
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
                    self._tell(error)
            self._taken_up()
            self._objects.update(new)

    def unreadable(self, offered: Mapping[str, object]) -> list[str]:
        """Those of these tools whose definitions could not be read when they were taken up."""
        if offered.keys() <= self._readable:
            return []
        return [name for name in offered if name not in self._readable]

    @abstractmethod
    def rank(
        self,
        request: str,
        offered: Mapping[str, object],
        *,
        limit: int,
        always: Iterable[str] = (),
        history: Sequence[str] = (),
    ) -> tuple[str, ...]:
        """The names of the best of these tools, which were taken up, best first.

        Raises:
            RouterError: they cannot be ranked.
        """

    @abstractmethod
    def close(self) -> None:
        """End connections and threads. Closing twice is fine."""

    @abstractmethod
    def _put(self, tool: Tool) -> None:
        """Keep one tool, in place of an earlier one of its name."""

    def _taken_up(self) -> None:  # noqa: B027 - not every ranker has to do something
        """All tools have been put."""


class LocalRanker(Ranker):
    """A router in this process, over the tools that it was offered."""

    def __init__(self, read: Callable[[object], Tool], tell: Tell) -> None:
        """Nothing is opened yet; see ``Ranker``."""
        super().__init__(read, tell)
        self._source = ToolSource(name="tools")
        self.router: Final = SyncSemanticRouter(sources=[self._source])
        self.events = self.router.events

    def rank(
        self,
        request: str,
        offered: Mapping[str, object],
        *,
        limit: int,
        always: Iterable[str] = (),
        history: Sequence[str] = (),
    ) -> tuple[str, ...]:
        # Naming all tools costs as much as ranking them.
        some = None if offered.keys() == self._objects.keys() else offered
        ranked = self.router.rank(
            request, limit=limit, available=some, always_include=always, history=history
        )
        return tuple(name for name in ranked.names if name in offered)

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

    def __init__(
        self,
        address: str,
        read: Callable[[object], Tool],
        tell: Tell,
        *,
        key: str | None = None,
        timeout: float = 5.0,
    ) -> None:
        """Nothing is sent yet.

        Args:
            address: of the server, such as ``https://router.example.org``.
            read: what reads a tool of the caller's.
            tell: told of each that cannot be read.
            key: the API key; it is sent to this address only, redirects are not followed.
            timeout: seconds for connecting, and for each part of an answer.

        Raises:
            InvalidRequest: the address is none of HTTP.
        """
        super().__init__(read, tell)
        if not address.startswith(("http://", "https://")):
            raise InvalidRequest(f"server: {address!r} is no address of HTTP")
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self.events = Events()
        self._http = httpx.Client(base_url=address, headers=headers, timeout=timeout)
        self._definitions: dict[str, dict[str, Any]] = {}

    def rank(
        self,
        request: str,
        offered: Mapping[str, object],
        *,
        limit: int,
        always: Iterable[str] = (),
        history: Sequence[str] = (),
    ) -> tuple[str, ...]:
        asked = {
            "request": request,
            "limit": limit,
            "tools": [self._definitions[name] for name in offered if name in self._definitions],
            "always_include": list(always),
            "history": [{"role": "user", "text": turn} for turn in history],
        }
        try:
            with self._http.stream("POST", "/v1/rank", json=asked) as response:
                body = bytearray()
                for part in response.iter_bytes():
                    body += part
                    if len(body) > MAX_ANSWER_BYTES:
                        raise RouterError(f"the server's answer is over {MAX_ANSWER_BYTES:,} bytes")
        except httpx.HTTPError as error:
            raise RouterError(f"the server cannot be reached: {error!r}") from error
        if response.status_code != 200:
            said = body[:300].decode("utf-8", "replace")
            raise RouterError(f"the server answered {response.status_code}: {said}")
        try:
            names = [skill["name"] for skill in json.loads(body)["skills"]]
        except (ValueError, KeyError, TypeError) as error:
            raise RouterError(f"the server gave no ranking: {error!r}") from error
        return tuple(name for name in names if isinstance(name, str) and name in offered)

    def close(self) -> None:
        self._http.close()

    def _put(self, tool: Tool) -> None:
        self._definitions[tool.name] = {
            "name": tool.name,
            "title": tool.title,
            "description": tool.description,
            "inputSchema": tool.input_schema,
        }
