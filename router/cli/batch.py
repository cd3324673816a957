"""``router route --batch``: a stream of requests in, a stream of JSON lines out, in the same order.

Lines are read as they come and answered side by side; at most ``window`` of them are held at any
time, read but not yet printed, so a file of any length runs in the same memory and a slow sender
gets each answer at once. A line is a plain request or, when it starts with ``{``, an object with
``request`` and optionally ``id``, ``available``, ``scope`` and ``history``. Whatever is wrong with
a line is that line's answer; the others go on.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from router.cli import output
from router.errors import InvalidRequest, RouterError
from router.request import kept_turns

if TYPE_CHECKING:
    from router.result import RoutingResult

MAX_LINE_BYTES: Final = 2 << 20
"""The longest line. The limits on request and history leave no valid line that is longer, even with
escapes."""

_KEYS: Final = frozenset(("request", "id", "available", "scope", "history"))


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the input.

    Attributes:
        number: 1-based; blank lines count.
        data: its bytes; None when it was longer than ``MAX_LINE_BYTES``.
        end: bytes of input up to its end.
    """

    number: int
    data: bytes | None
    end: int


def read_lines(source: BinaryIO) -> Iterator[Line]:
    """The input's lines as they come, blank ones left out, none longer than the limit in memory."""
    number = end = 0
    while piece := source.readline(MAX_LINE_BYTES + 1):
        number, end = number + 1, end + len(piece)
        if len(piece) > MAX_LINE_BYTES:
            while not piece.endswith(b"\n") and (piece := source.readline(MAX_LINE_BYTES)):
                end += len(piece)
            yield Line(number, None, end)
        elif piece.strip():
            yield Line(number, piece, end)


def text_of(line: Line) -> str:
    """What a line says, without the white space around it. Raises InvalidRequest if it is too long,
    or is not UTF-8."""
    if line.data is None:
        raise InvalidRequest(f"longer than {MAX_LINE_BYTES:,} bytes")
    return output.decoded(line.data, "the line").strip()


def parse_line(line: Line, key: str = "request") -> Mapping[str, Any]:
    """The object that a line is, with a sound ``id`` if any; a plain text is under ``key``.

    Raises:
        InvalidRequest: the line is neither an object nor a plain text.
    """
    text = text_of(line)
    if not text.startswith("{"):
        return {key: text}
    try:
        raw: dict[str, Any] = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(
            f'starts with {{ but is not JSON ({error}); write a plain {key} as {{"{key}": ...}}'
        ) from error
    label = raw.get("id")
    if isinstance(label, bool) or not isinstance(label, str | int | None):
        raise InvalidRequest("id: expected a string or a whole number")
    return raw


def route_arguments(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of ``SemanticRouter.route`` in a line's object; ``route`` checks the texts.

    Raises:
        InvalidRequest: a key is not known, or has a value of the wrong form.
    """
    if unknown := sorted(raw.keys() - _KEYS):
        raise InvalidRequest(f"unknown key {unknown[0]!r}; known are {', '.join(sorted(_KEYS))}")
    if "request" not in raw:
        raise InvalidRequest("the key 'request' is missing")
    arguments: dict[str, Any] = {"request": raw["request"]}
    if raw.get("scope") is not None:
        arguments["scope"] = raw["scope"]
    if raw.get("available") is not None:
        names = _read_list(raw["available"], "available")
        if not all(isinstance(name, str) for name in names):
            raise InvalidRequest("available: every name must be a string")
        arguments["available_skills"] = names
    if raw.get("history") is not None:
        arguments["history"] = kept_turns(_read_list(raw["history"], "history"))
    return arguments


def _read_list(value: object, key: str) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidRequest(f"{key}: expected a list, not {type(value).__name__}")
    return value


async def route_batch(
    route: Callable[..., Awaitable[RoutingResult]],
    source: BinaryIO,
    *,
    options: Mapping[str, Any],
    window: int,
    emit: Callable[[dict[str, Any]], None],
    advance: Callable[[int], None],
) -> int:
    """Answer every line of the input in order; returns how many could not be answered.

    Args:
        route: answers one; that of an open router, or of a server.
        source: the input. A thread reads it, because reading may block for ever, and closes it
            at its end.
        options: arguments of ``route`` for lines that do not say otherwise.
        window: lines in work, or waiting for a slower one before them, at a time.
        emit: prints one answer.
        advance: told the bytes of input answered so far.

    Raises:
        OSError: the input cannot be read any further, or the output has gone.
    """
    loop = asyncio.get_running_loop()
    slots = threading.Semaphore(window)
    started: asyncio.Queue[tuple[Line, asyncio.Task[dict[str, Any]]] | OSError | None]
    started = asyncio.Queue()
    running: set[asyncio.Task[dict[str, Any]]] = set()

    def start(line: Line) -> None:
        task = loop.create_task(_answer(route, line, options))
        running.add(task)
        started.put_nowait((line, task))

    def read() -> None:
        end: OSError | None = None
        try:
            try:
                with source:
                    for line in read_lines(source):
                        slots.acquire()
                        loop.call_soon_threadsafe(start, line)
            except OSError as error:
                end = error
            loop.call_soon_threadsafe(started.put_nowait, end)
        except RuntimeError:  # the loop is closed: interrupted, nobody waits for more lines
            return

    # A daemon, because a thread that waits for a silent pipe cannot be told to stop.
    threading.Thread(target=read, name="router-batch-input", daemon=True).start()
    faults = 0
    try:
        while (item := await started.get()) is not None:
            if isinstance(item, OSError):
                raise item
            line, task = item
            answer = await task
            running.discard(task)
            faults += "error" in answer
            emit(answer)
            advance(line.end)
            slots.release()
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    return faults


async def _answer(
    route: Callable[..., Awaitable[RoutingResult]], line: Line, options: Mapping[str, Any]
) -> dict[str, Any]:
    answer: dict[str, Any] = {"line": line.number}
    try:
        raw = parse_line(line)
        if raw.get("id") is not None:
            answer["id"] = raw["id"]
        arguments = route_arguments(raw)
        result = await route(**{**options, **arguments})
    except RouterError as error:
        return {**answer, "error": str(error)}
    return {**answer, "request": arguments["request"], "result": result.to_dict()}
