"""One memory file: what its text says, and writing it whole.

Tags are kept as Serena keeps what belongs to a memory: in the front matter that it marks as its
own. Without tags no front matter is written, and what else stands in it is left as it is. Front
matter that somebody else has put there is content, as it is to Serena.
"""

from __future__ import annotations

import json
import os
import re
import stat
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from router.errors import InvalidRequest
from router.memory.files.names import parse_name
from router.memory.model import MAX_CONTENT_CHARACTERS, MemoryItem
from router.memory.texts.contents import check_tags, readable

LAYER: Final = "files"
MAX_FILE_BYTES: Final = 4 * MAX_CONTENT_CHARACTERS
_STALE_SECONDS: Final = 3600.0
"""A temporary file this old was left by a process that was killed."""

_REFERENCE: Final = re.compile(r"(?<![\w/-])mem:([\w./-]*[\w-])")
_FRONT_MATTER: Final = re.compile(
    r"---\r?\n(?:[ \t]*\r?\n)*serena_frontmatter_version:[ \t]*1[ \t]*\r?\n(.*?)^---(?:\r?\n|\Z)",
    re.DOTALL | re.MULTILINE,
)
_TAGS: Final = re.compile(r"^tags:[ \t]*(.*?)[ \t]*\r?\n", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Found:
    """A file as the folder shows it; ``stamp`` begins with its time of change in nanoseconds."""

    path: Path
    stamp: tuple[int, ...]


class Unreadable(Exception):
    """A file's content cannot be taken; the message says why."""


def stamp_of(info: os.stat_result) -> tuple[int, ...]:
    # The time of the last change of the entry tells when a file has become readable.
    return info.st_mtime_ns, info.st_ctime_ns, info.st_size, info.st_ino


def read_text(found: Found) -> str:
    """The text of a file.

    Raises:
        Unreadable: it is no regular file, too large, not UTF-8, or gone.
    """
    try:
        # Opening a pipe would wait for its writer without end.
        handle = os.open(found.path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(handle, "rb") as file:
            if not stat.S_ISREG(os.fstat(handle).st_mode):
                raise Unreadable("not a regular file")
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from error
    if len(data) > MAX_FILE_BYTES:
        raise Unreadable(f"over {MAX_FILE_BYTES:,} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise Unreadable(f"not UTF-8: byte {error.start}") from error


def to_item(name: str, found: Found, text: str) -> MemoryItem:
    """The memory that a file's text is.

    Raises:
        Unreadable: it says nothing, or too much.
    """
    head = _FRONT_MATTER.match(text)
    content = readable(text[head.end() :] if head else text)
    try:
        return MemoryItem(
            id=name,
            layer=LAYER,
            content=content,
            created=datetime.fromtimestamp(found.stamp[0] / 1e9, UTC),
            tags=_tags(head[1]) if head else (),
            provenance=(f"file:{name}",),
        )
    except (InvalidRequest, OverflowError, ValueError) as error:  # a time may be out of range
        raise Unreadable(str(error)) from error


def _tags(head: str) -> tuple[str, ...]:
    """The tags in front matter; none where the line is not as we write it."""
    line = _TAGS.search(head)
    if line is None:
        return ()
    try:
        value = json.loads(line[1])
        return check_tags([part.strip() for part in value.split(",") if part.strip()])
    except (ValueError, AttributeError):
        return ()


def with_tags(content: str, tags: tuple[str, ...], old: str) -> str:
    """The text of a file: the content under its own front matter or else the old text's, with these
    tags in it.

    Raises:
        InvalidRequest: the content is front matter only.
    """
    own = _FRONT_MATTER.match(content)
    if own and not content[own.end() :].strip():
        raise InvalidRequest("content: nothing but front matter")
    if own and not tags:
        return content
    head = own or _FRONT_MATTER.match(old)
    content = content[own.end() :] if own else content
    fields = _TAGS.sub("", head[1]) if head else ('type: "Serena Memory"\n' if tags else "")
    if tags:
        fields += f"tags: {json.dumps(', '.join(tags), ensure_ascii=False)}\n"
    if not fields:
        return content
    return f"---\nserena_frontmatter_version: 1\n{fields}---\n{content}"


def references_in(name: str, content: str) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for match in _REFERENCE.finditer(content):
        with suppress(InvalidRequest):
            names[parse_name(match[1])] = None
    names.pop(name, None)
    return tuple(names)


def write_whole(path: Path, root: Path, text: str) -> None:
    """Write a file whole or not at all, whatever happens meanwhile.

    Raises:
        InvalidRequest: a link on the way leads out of the root.
        OSError: it cannot be written.
    """
    check_inside(path.parent, root)
    path.parent.mkdir(parents=True, exist_ok=True)
    check_inside(path.parent, root)  # it may have been made meanwhile, as a link
    _sweep(path.parent)
    temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("x", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def check_inside(folder: Path, root: Path) -> None:
    if not folder.resolve().is_relative_to(root.resolve()):
        raise InvalidRequest(f"{folder} leads out of {root}")


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
