"""The files of a skill as they lie on disk, and the ``skill://`` URIs that name them.

A client names files, so this module decides what it may see: regular files inside the skill's own
folder, with no symbolic link on the way. Hidden files, the folders of tools (``.git``,
``node_modules``) and files whose names say that they hold keys or passwords are no part of a skill:
a skill's folder may be a whole project. Everything is bounded, and the bounds are those of
the Skills extension, which every host of it accepts.
"""

from __future__ import annotations

import itertools
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import quote, unquote

SCHEME: Final = "skill://"
MAX_FILES: Final = 512
"""Files of one skill, ``SKILL.md`` included."""
MAX_BYTES: Final = 16 * 1024 * 1024
"""How large one skill's files may be together, and so each one."""
MAX_URI_CHARACTERS: Final = 4096
MAX_ENTRIES: Final = 5_000
"""Names looked at in one skill's folder, taken or not."""
MAX_DEPTH: Final = 16

_NOT_SKILL: Final = frozenset(("node_modules", "__pycache__"))

MAX_NAME: Final = 255
"""The longest name of a file, in characters; no file system here allows more."""
_SECRET: Final = re.compile(
    r"""
    id_(rsa|dsa|ecdsa|ed25519)(\W.*)?  # keys of SSH
    | .*\.(pem|key|p12|pfx|ppk|jks|keystore|kdbx|asc|gpg|env|tfstate|tfvars|ovpn)(\.(bak|old))?
    | (.*[-_.])?
      (credentials?|secrets?|passwords?|passwd|token|(access|auth|refresh|api)[-_]?tokens?
      |api[-_]?keys?|service[-_]?account|client[-_]secrets?)
      ([-_][^.]*)?
      (\.(json|ya?ml|toml|ini|cfg|conf|txt|csv|xml|db|properties))?(\.(bak|old))?
    | kubeconfig | htpasswd | netrc | _netrc | pgpass | npmrc | pypirc | wallet\.dat
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
"""Names of files that usually hold keys or passwords. A text about them (``secrets.md``) is not
one."""


class NotServed(LookupError):
    """A file, folder or skill is not there, cannot be read, lies behind a link or outside the
    skill's folder, is more than the bounds allow, or is none that a client may see for another
    reason. What takes a path or a URI raises it."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A direct child of a skill's folder, or of a folder below it."""

    name: str
    is_folder: bool


def uri_of(skill: str, path: str = "") -> str:
    """The URI of a skill's folder, or of a path below it (separated by ``/``)."""
    tail = f"/{quote(path)}" if path else ""
    return f"{SCHEME}{quote(skill, safe='')}{tail}"


def parse_uri(uri: str) -> tuple[str, tuple[str, ...]]:
    """The skill's name and the parts of the path below its folder; inverse of ``uri_of``."""
    if not uri.startswith(SCHEME) or len(uri) > MAX_URI_CHARACTERS or "?" in uri or "#" in uri:
        raise NotServed(f"not the URI of a skill's file: {uri[:200]!r}")
    try:
        name, *parts = (
            unquote(part, errors="strict") for part in uri.removeprefix(SCHEME).split("/")
        )
    except UnicodeDecodeError as error:
        raise NotServed(f"not the URI of a skill's file: {uri[:200]!r}") from error
    if not name or not all(_is_served(part) for part in parts):
        raise NotServed(f"not the URI of a skill's file: {uri[:200]!r}")
    return name, tuple(parts)


def list_files(folder: Path) -> tuple[str, ...]:
    """Paths of all files of a skill relative to its folder, separated by ``/``, in order."""
    return tuple(sorted(_walk(folder)))


def read_file(folder: Path, parts: Sequence[str]) -> bytes:
    """The bytes of one regular file."""
    missing = NotServed(f"there is no file {'/'.join(parts)!r}")
    # Not to follow a link in the last place, and not to wait for a pipe's other end.
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        real = _real_path(folder, parts)
        with os.fdopen(os.open(real, flags | getattr(os, "O_BINARY", 0)), "rb") as file:
            status = os.fstat(file.fileno())
            # Looked up again after opening: a folder that turned into a link in between would
            # have led elsewhere.
            if not stat.S_ISREG(status.st_mode) or not os.path.samestat(
                status, os.lstat(_real_path(folder, parts))
            ):
                raise missing
            data = file.read(MAX_BYTES + 1)
    except (OSError, RuntimeError, ValueError) as error:  # gone, no access, a loop of links, a NUL
        raise missing from error
    if len(data) > MAX_BYTES:
        raise NotServed(f"the file {'/'.join(parts)!r} is larger than {MAX_BYTES:,} bytes")
    return data


def list_folder(folder: Path, parts: Sequence[str]) -> tuple[Entry, ...]:
    """The direct children of a folder inside a skill's folder, in the order of their names."""
    try:
        entries = tuple(itertools.islice(_scan(_real_path(folder, parts)), MAX_ENTRIES + 1))
    except (OSError, RuntimeError, ValueError) as error:
        raise NotServed(f"there is no folder {'/'.join(parts)!r}") from error
    if len(entries) > MAX_ENTRIES:
        raise NotServed(f"the folder {'/'.join(parts)!r} has more than {MAX_ENTRIES:,} entries")
    return tuple(sorted(entries, key=lambda entry: entry.name))


def _real_path(folder: Path, parts: Sequence[str]) -> Path:
    """The path without links; NotServed when there was one below the folder, or when a part of it
    is none that a client may see."""
    base = folder.resolve(strict=True)
    wanted = base.joinpath(*parts)
    if (
        not all(map(_is_served, parts))
        or not wanted.is_relative_to(base)
        or wanted.resolve(strict=True) != wanted
    ):
        raise NotServed(f"there is nothing at {'/'.join(parts)!r}")
    return wanted


def _walk(folder: Path) -> Iterator[str]:
    found = seen = 0
    level = [""]
    for _ in range(MAX_DEPTH):
        below: list[str] = []
        for inner in level:
            for entry in list_folder(folder, inner.split("/") if inner else ()):
                path = f"{inner}/{entry.name}" if inner else entry.name
                seen += 1
                found += not entry.is_folder
                if seen > MAX_ENTRIES or found > MAX_FILES:
                    raise NotServed(f"it has more than {MAX_FILES} files")
                if entry.is_folder:
                    below.append(path)
                else:
                    yield path
        if not below:
            return
        level = below
    raise NotServed(f"its folders are nested more than {MAX_DEPTH} deep")


def _scan(folder: Path) -> Iterator[Entry]:
    with os.scandir(folder) as found:
        for entry in found:
            if not _is_served(entry.name):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield Entry(entry.name, is_folder=True)
            elif entry.is_file(follow_symlinks=False):
                yield Entry(entry.name, is_folder=False)


def _is_served(name: str) -> bool:
    """Whether a file or folder of this name can be part of a skill."""
    try:
        name.encode()  # a name that is no UTF-8 has no URI
    except UnicodeEncodeError:
        return False
    return (
        0 < len(name) <= MAX_NAME
        and not name.startswith(".")
        and name not in _NOT_SKILL
        and not _SECRET.fullmatch(name)
        and not any(character in name for character in "/\\\0")
    )
