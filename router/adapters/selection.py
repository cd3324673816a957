"""Which tools a model is shown, turn by turn: what all adapters share.

A provider caches the beginning of a prompt, and the tools stand at its very beginning. So within a
conversation tools are only added: those of the first turn stay in front, each later turn appends
what it needs, and nothing is ever taken away. Among the tools of one turn the order is that of the
catalog, because the order of a ranking differs from request to request.

When the router fails or is late, the model is shown every tool, as it would be without a router.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final, TypeVar

from cachetools import LRUCache

from router.adapters.rankers import LocalRanker, Ranker, RemoteRanker
from router.concurrency.loop_thread import ClosedByBlock
from router.errors import InvalidRequest
from router.events import Degraded, Events
from router.given import check_kind
from router.request import MAX_REQUEST_CHARACTERS, check_limit, names_in, turn_of
from router.service.remote import RemoteRouter
from router.stages.reply import says_nothing
from router.tools.tool import Tool, read_tool

T = TypeVar("T")

_log: Final = logging.getLogger(__name__)

REMEMBERED_TURNS: Final = 4_096
"""Turns, of all conversations, whose tools are remembered."""
PART: Final = "tool selection"
"""What the events of a failure name."""


def _as_it_is(tool: object) -> Tool:
    return read_tool(tool, source="tools", position=1)


class ToolSelector(ClosedByBlock):
    """Chooses tools for conversations. Safe to share between threads and event loops.

        with ToolSelector(limit=8) as selector:
            offered = {tool["name"]: tool for tool in tools}
            names = selector.select(["book a table for two"], offered)
            names = selector.select(["book a table for two", "and tell Priya about it"], offered)

    What was shown is remembered by the words of the conversation so far, so no id of a conversation
    is needed, and calling again within a turn gives the same tools.
    """

    def __init__(
        self,
        *,
        limit: int = 10,
        always_include: Iterable[str] = (),
        sticky: bool = True,
        timeout: float = 5.0,
        server: str | None = None,
        key: str | None = None,
        read: Callable[[object], Tool] = _as_it_is,
    ) -> None:
        """A selector that knows no tool yet; it takes up those that it is offered.

        Args:
            limit: how many tools a turn may add, in [1, 1000]. Fewer tools are all shown.
            always_include: names to show in every turn.
            sticky: False shows only what the latest turn needs, which saves tokens and gives up
                the provider's prompt cache.
            timeout: seconds after which every tool is shown. Indexing the tools counts too, unless
                ``prepare`` has done it.
            server: address of a ``router serve`` that ranks the tools; None ranks them here.
            key: an API key of that server.
            read: what reads a tool of the caller's; by default one of the forms of
                ``router.tools.tool``. It raises SourceError for one that it cannot read.

        Raises:
            InvalidRequest: ``limit``, ``always_include``, ``timeout`` or ``server`` cannot be used.
        """
        check_limit(limit)
        check_kind("sticky", sticky, bool, error=InvalidRequest)
        if not isinstance(timeout, int | float) or not 0 < timeout < math.inf:
            raise InvalidRequest(f"timeout: {timeout!r}; expected a number of seconds above 0")
        self._limit = limit
        self._always = tuple(names_in("always_include", always_include))
        self._sticky = sticky
        self._timeout = timeout
        self._ranker: Ranker = (
            LocalRanker(read)
            if server is None
            else RemoteRanker(RemoteRouter(server, key, seconds=timeout), read)
        )
        self._shown: LRUCache[bytes, tuple[str, ...]] = LRUCache(REMEMBERED_TURNS)
        self._remembering = threading.Lock()
        self._threads = ThreadPoolExecutor(4, thread_name_prefix="tool-selection")

    @property
    def events(self) -> Events:
        """Where failures are told."""
        return self._ranker.events

    def close(self) -> None:
        """End the threads and the router. Closing twice is fine."""
        self._threads.shutdown(cancel_futures=True)
        self._ranker.close()

    def prepare(self, offered: Mapping[str, object]) -> None:
        """Index tools before the first turn needs them. Those that change later, or come later,
        are taken up by themselves.

        Raises:
            RouterError: they cannot be indexed.
        """
        self._ranker.take(offered)

    def select(
        self,
        turns: Sequence[str],
        offered: Mapping[str, object],
        *,
        called: Iterable[str] = (),
    ) -> list[str]:
        """The names of the tools to show, in the order in which to show them.

        Args:
            turns: what the user said, oldest first; the last one is the request. Without any,
                every tool is shown.
            offered: the tools of this caller by their names, in catalog order. One whose
                definition cannot be read is always shown.
            called: names of the tools that the conversation has called already; they are shown.
        """
        digests = _digests(turns, offered)
        shown = self._remembered(digests, offered)
        if shown is None:
            future = self._threads.submit(self._extend, tuple(turns), dict(offered), digests)
            try:
                shown = future.result(self._timeout)
            except Exception as error:  # noqa: BLE001 - whatever it is, the agent goes on
                shown = self._everything(digests, offered, error)
        return self._among(self._with_called(shown, digests, offered, called), offered)

    async def aselect(
        self,
        turns: Sequence[str],
        offered: Mapping[str, object],
        *,
        called: Iterable[str] = (),
    ) -> list[str]:
        """``select`` for asynchronous code, on any event loop."""
        digests = _digests(turns, offered)
        shown = self._remembered(digests, offered)
        if shown is None:
            future = self._threads.submit(self._extend, tuple(turns), dict(offered), digests)
            try:
                shown = await self._in_time(future)
            except Exception as error:  # noqa: BLE001 - whatever it is, the agent goes on
                shown = self._everything(digests, offered, error)
        return self._among(self._with_called(shown, digests, offered, called), offered)

    async def asearch(
        self, query: str, offered: Mapping[str, object], *, limit: int | None = None
    ) -> list[str]:
        """The best tools for a query, best first, for a model that searches tools by itself.

        Args:
            query: what the model looks for.
            offered: the tools that may be found, by their names.
            limit: how many; None means the selector's own limit.
        """
        wanted = self._limit if limit is None else limit
        future = self._threads.submit(self._search, query, dict(offered), wanted)
        try:
            return await self._in_time(future)
        except Exception as error:  # noqa: BLE001 - whatever it is, the agent goes on
            self._report(error)
            return list(offered)

    async def _in_time(self, future: Future[T]) -> T:
        async with asyncio.timeout(self._timeout):
            return await asyncio.wrap_future(future)

    def _search(self, query: str, offered: Mapping[str, object], limit: int) -> list[str]:
        self._ranker.take(offered)
        query = query[:MAX_REQUEST_CHARACTERS]
        return list(self._ranker.rank(query, offered, limit=limit))

    def _remembered(
        self, digests: Sequence[bytes], offered: Mapping[str, object]
    ) -> tuple[str, ...] | None:
        if not digests or len(offered) <= self._limit:
            return tuple(offered)
        with self._remembering:
            return self._shown.get(digests[-1])

    def _extend(
        self, turns: Sequence[str], offered: Mapping[str, object], digests: Sequence[bytes]
    ) -> tuple[str, ...]:
        """What is shown after the last of these turns: what was shown before it, and what it adds.

        Turns that are not remembered are ranked one after the other, so that the same conversation
        gets the same tools in another process.
        """
        self._ranker.take(offered)
        shown: tuple[str, ...] = ()
        first = 0 if self._sticky else len(turns) - 1
        with self._remembering:
            for number in range(len(turns), first, -1):
                if digests[number - 1] in self._shown:
                    first, shown = number, self._shown[digests[number - 1]]
                    break
        told = next((turn for turn in reversed(turns[:first]) if not says_nothing(turn)), "")
        told = _text_of(told)
        for number in range(first, len(turns)):
            with self._remembering:
                given_up = self._shown.get(digests[-1])
            if given_up is not None:  # this came too late, and every tool is shown
                return given_up
            turn, kept = _text_of(turns[number]), shown if self._sticky else ()
            silent = says_nothing(turn)
            wanted = frozenset(
                ()
                if kept and silent  # "ok thanks" needs no tool
                else self._ranker.rank(
                    turn[:MAX_REQUEST_CHARACTERS],
                    offered,
                    limit=self._limit,
                    always_include=self._always,
                    history=[told[:MAX_REQUEST_CHARACTERS]] if told else [],
                )
            )
            told = told if silent else turn
            shown = (*kept, *(name for name in offered if name in wanted and name not in kept))
            with self._remembering:
                # A call that came too late may have shown everything meanwhile: that stays.
                shown = self._shown.setdefault(digests[number], shown)
        return shown

    def _everything(
        self, digests: Sequence[bytes], offered: Mapping[str, object], error: Exception
    ) -> tuple[str, ...]:
        """Show every tool, in this turn and, so that none is taken away, in those that follow.
        Those that were shown before stay in front."""
        self._report(error)
        with self._remembering:
            before = next((self._shown[d] for d in reversed(digests) if d in self._shown), ())
            shown = (*before, *(name for name in offered if name not in before))
            self._shown[digests[-1]] = shown
        return shown

    def _with_called(
        self,
        shown: tuple[str, ...],
        digests: Sequence[bytes],
        offered: Mapping[str, object],
        called: Iterable[str],
    ) -> tuple[str, ...]:
        """What is shown, with the tools that were called. Another process, or a turn that nobody
        remembers any more, may have shown others than this one would."""
        wanted = frozenset(called).difference(shown)
        missing = [name for name in offered if name in wanted] if wanted else []
        if not missing:
            return shown
        shown = (*shown, *missing)
        if digests:
            with self._remembering:
                self._shown[digests[-1]] = shown
        return shown

    def _report(self, error: Exception) -> None:
        late = isinstance(error, TimeoutError)
        reason = f"no answer in {self._timeout:g} s" if late else f"{type(error).__name__}: {error}"
        _log.warning("%s: %s; every tool is shown", PART, reason)
        self.events.emit(Degraded(PART, f"{reason}; every tool is shown"))

    def _among(self, shown: Sequence[str], offered: Mapping[str, object]) -> list[str]:
        """The tools to show, in order. Those whose definitions could not be read cannot be ranked,
        so they are shown in every turn, and stand first."""
        if len(shown) == len(offered):
            return list(shown)
        unreadable = self._ranker.unreadable(offered)
        return [*unreadable, *(name for name in shown if name not in unreadable)]


def _text_of(turn: str) -> str:
    """What a turn says, without what would have its request refused, such as half a character."""
    read = turn_of(turn)
    return "" if read is None else read.text


def _digests(turns: Sequence[str], offered: Iterable[str]) -> list[bytes]:
    """A digest for each beginning of a conversation, together with the tools that it may use."""
    state = hashlib.blake2b(digest_size=16)
    _add(state, json.dumps(list(offered)))
    digests = []
    for turn in turns:
        _add(state, turn)
        digests.append(state.copy().digest())
    return digests


def _add(state: hashlib.blake2b, text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    state.update(len(data).to_bytes(8, "big") + data)
