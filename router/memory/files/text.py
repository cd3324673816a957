"""Reads and writes one memory file.

Serena and people read the file, so it has no header. Tags are its last line, after an empty one:
``Tags: auth, login``. Every reader understands that, and it is also read as tags if somebody else
has written it.
"""

from __future__ import annotations

import os
import re
import time
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from router.bounded.files import Unreadable, read_bounded
from router.errors import InvalidRequest
from router.memory.model import MAX_CONTENT_CHARACTERS, MemoryItem
from router.memory.texts.contents import check_tags, readable

LAYER: Final = "files"
MAX_FILE_BYTES: Final = 4 * MAX_CONTENT_CHARACTERS
_STALE_SECONDS: Final = 3600.0
"""A temporary file this old was left by a process that was killed."""

_TAGS: Final = re.compile(r"(?:\n\n|\r\n\r\n)Tags:[ \t]*([^\r\n]+?)[ \t]*(?:\r?\n)*\Z")


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that a scan has found; ``stamp`` begins with its time of change in nanoseconds, and
    differs between two versions of the file."""

    path: Path
    stamp: tuple[int, ...]


def stamp_of(info: os.stat_result) -> tuple[int, ...]:
    # ``st_ctime_ns`` also changes with the permissions, when a file becomes readable.
    return info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino


def read_text(path: Path, *, most: int = MAX_FILE_BYTES) -> str:
    """The text of a file of at most so many bytes, without a mark of its encoding. Raises
    Unreadable if it is no regular file, too large, not UTF-8, or gone."""
    data = read_bounded(path, most=most)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8: byte {error.start + 1}") from error


def to_item(name: str, found: FoundFile, text: str) -> MemoryItem:
    """The memory that a file's text is. Raises Unreadable if it says nothing, or too much."""
    content, tags = _parted(text)
    try:
        return MemoryItem(
            id=name,
            layer=LAYER,
            content=readable(content),
            created=datetime.fromtimestamp(found.stamp[0] / 1e9, UTC),
            tags=tags,
            provenance=(f"file:{name}",),
        )
    except (InvalidRequest, OverflowError, ValueError) as error:  # a time may be out of range
        raise Unreadable(str(error)) from error


def _parted(text: str) -> tuple[str, tuple[str, ...]]:
    line = _TAGS.search(text)
    if line is not None and text[: line.start()].strip():
        with suppress(InvalidRequest):  # a last line that cannot be tags is content
            return text[: line.start()], check_tags([tag.strip() for tag in line[1].split(",")])
    return text, ()


def with_tags(content: str, tags: tuple[str, ...]) -> str:
    return f"{content}\n\nTags: {', '.join(tags)}\n" if tags else content


def write_whole(path: Path, allowed: Sequence[Path], text: str) -> None:
    """Write a file whole or not at all, whatever happens meanwhile; the permissions of one that is
    there stay. Links are followed first: raises InvalidRequest if one leads out of the allowed
    folders, and OSError."""
    _check_inside(path.parent, allowed)
    path.parent.mkdir(parents=True, exist_ok=True)
    _check_inside(path.parent, allowed)  # it may have been made meanwhile, as a link
    _sweep(path.parent)
    temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("x", encoding="utf-8", newline="") as file:
            with suppress(FileNotFoundError):
                temporary.chmod(path.stat().st_mode & 0o777)
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def is_inside(real: Path, allowed: Iterable[Path]) -> bool:
    """Whether a path without links lies in one of the folders, wherever these lead."""
    return any(real.is_relative_to(folder.resolve()) for folder in allowed)


def _check_inside(folder: Path, allowed: Sequence[Path]) -> None:
    if not is_inside(folder.resolve(), allowed):
        raise InvalidRequest(f"{folder} leads out of {allowed[-1]}")


def _sweep(folder: Path) -> None:
    """Delete temporary files that a killed process has left."""
    for left in folder.glob(".*.tmp"):
        with suppress(OSError):
            if time.time() - left.stat().st_mtime > _STALE_SECONDS:
                left.unlink()


def sync_folder(folder: Path) -> None:
    """Make a rename or removal in a folder durable."""
    if os.name == "nt":
        return  # folders cannot be opened there
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
