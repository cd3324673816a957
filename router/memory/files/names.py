"""Names of memory files, and the patterns that protect or hide some of them.

A name is the path of its file in the folder of memories, without ``.md``: ``auth/login``. It is
untrusted, so it must not lead out of that folder; and a new one must be valid on every operating
system, because projects are shared. Patterns come with the project, which may be a stranger's, so a
pattern that could take exponential time is refused when it is read.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, TypeAlias

from router.errors import ConfigurationError, InvalidRequest
from router.memory.model import MAX_ID_CHARACTERS
from router.request import check_text
from router.text import composed

SUFFIX: Final = ".md"
GLOBAL: Final = "global"
MAX_SEGMENTS: Final = 8
MAX_SEGMENT_BYTES: Final = 200
"""File systems allow 255; the name of the temporary file needs the rest."""
MAX_PATTERNS: Final = 50
MAX_PATTERN_CHARACTERS: Final = 200
MAX_REPEATS: Final = 3
"""Repeats in a pattern, at most: the time to match grows with the length of a name to this
power."""

NamePatterns: TypeAlias = tuple[re.Pattern[str], ...]

_PREFIX: Final = "mem:"
_NOT_ON_WINDOWS: Final = frozenset('<>:"|?*')
_RESERVED: Final = frozenset(
    ["con", "prn", "aux", "nul", *(f"{port}{n}" for port in ("com", "lpt") for n in range(1, 10))]
)


def parse_name(raw: str) -> str:
    """The name in the form of an id: without ``mem:`` and ``.md``, separated by ``/``, in NFC.

    Raises:
        InvalidRequest: it is empty or over 200 characters, or could lead out of the folder:
            absolute, with an empty segment, or with one that begins with a dot.
    """
    check_text("name", raw, MAX_ID_CHARACTERS + len(_PREFIX) + len(SUFFIX))
    name = composed(raw).replace("\\", "/")
    while name.startswith(_PREFIX):
        name = name.removeprefix(_PREFIX)
    while name.endswith(SUFFIX):
        name = name.removesuffix(SUFFIX)
    if len(name) > MAX_ID_CHARACTERS:
        raise InvalidRequest(f"name: {len(name)} characters; at most {MAX_ID_CHARACTERS}")
    segments = name.split("/")
    for segment in segments:
        if not segment.strip():
            raise InvalidRequest(f"name {raw!r}: a segment is empty, or the path is absolute")
        if segment.startswith("."):
            raise InvalidRequest(f"name {raw!r}: a segment begins with a dot")
        if not segment.isprintable():
            raise InvalidRequest(f"name {raw!r}: a segment holds an unprintable character")
        if len(segment.encode()) > MAX_SEGMENT_BYTES:
            raise InvalidRequest(f"name {raw!r}: a segment is over {MAX_SEGMENT_BYTES} bytes")
    if len(segments) > MAX_SEGMENTS:
        raise InvalidRequest(f"name {raw!r}: {len(segments)} segments; at most {MAX_SEGMENTS}")
    if name == GLOBAL:
        raise InvalidRequest(f"name {raw!r}: name a memory in it, such as global/style")
    return name


def check_new_name(name: str) -> None:
    """Raise InvalidRequest unless a parsed name can be given to a new file on every system."""
    for segment in name.split("/"):
        if not _NOT_ON_WINDOWS.isdisjoint(segment):
            raise InvalidRequest(f"name {name!r}: none of {''.join(sorted(_NOT_ON_WINDOWS))}")
        if segment != segment.strip() or segment.endswith("."):
            raise InvalidRequest(f"name {name!r}: a segment ends in a dot, or has spaces around it")
        if segment.split(".")[0].strip().casefold() in _RESERVED:
            raise InvalidRequest(f"name {name!r}: Windows keeps {segment!r} for a device")


def checked_patterns(setting: str, patterns: Sequence[str]) -> NamePatterns:
    """Regular expressions that match whole names; at most 50, of at most 200 characters each.
    ``setting`` is their name in error messages.

    Raises:
        ConfigurationError: one is malformed, or might take exponential time; the message names it.
    """
    if len(patterns) > MAX_PATTERNS:
        raise ConfigurationError(f"{setting}: {len(patterns)}; at most {MAX_PATTERNS}")
    return tuple(_compiled(setting, pattern) for pattern in dict.fromkeys(patterns))


def matches(patterns: NamePatterns, name: str) -> bool:
    return any(pattern.fullmatch(name) for pattern in patterns)


def _compiled(setting: str, pattern: str) -> re.Pattern[str]:
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        raise ConfigurationError(
            f"{setting}: {pattern[:40]!r}… is over {MAX_PATTERN_CHARACTERS} characters"
        )
    fault = _costly(pattern)
    if fault:
        raise ConfigurationError(f"{setting}: {pattern!r} {fault}")
    try:
        return re.compile(pattern)
    except (re.error, OverflowError) as error:  # a repeat count may not fit
        raise ConfigurationError(f"{setting}: {pattern!r}: {error}") from error


_PARTS: Final = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\(\?[^:)]?|[()|*+?{]|.", re.DOTALL)


def _costly(pattern: str) -> str | None:
    """Why a pattern might need exponential time or too much polynomial time; None if it cannot.

    Exponential time needs a repeated group that can match the same text in two ways, and a group
    can do so only if it contains a repeat or a choice. Without such groups the time is polynomial,
    with the number of repeats as the exponent.
    """
    open_groups = [False]  # for each, whether it contains a repeat or a choice
    closed = False  # whether a group that does has just been closed
    repeats = 0
    previous = ""
    for part in _PARTS.findall(pattern):
        before, previous = previous, part
        if part in ("+", "?") and before in ("*", "+", "?"):
            continue  # lazy or possessive, no further repeat
        if part in ("*", "+", "{", "?"):
            if closed:
                return "repeats a group that holds a repeat or a choice itself"
            repeats += 1
            open_groups[-1] = True
        elif part.startswith("("):
            open_groups.append(False)
        elif part == ")" and len(open_groups) > 1:
            closed = open_groups.pop()
            open_groups[-1] |= closed
            continue
        elif part == "|":
            open_groups[-1] = True
        closed = False
    return f"has {repeats} repeats; at most {MAX_REPEATS}" if repeats > MAX_REPEATS else None
