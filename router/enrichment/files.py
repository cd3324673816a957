"""Writes enrichments to files, and decides which file is for which skill.

A line is appended as soon as there is an answer about a skill, so answers that were paid for
survive Ctrl-C and a crash, and the next run continues after them. When a run is over, lines that a
later line has replaced are deleted. Lines that the router cannot read stay: they may be of another
program. If a file cannot be written, ``StoreError`` is raised.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from router.errors import ConfigurationError, StoreError
from router.skills.catalog import Catalog
from router.skills.enrichment import ENRICHMENT_FILE, Enrichment
from router.skills.manifest import SkillManifest
from router.storage.private_files import FILE_MODE, private_folder, replace_file

_PACKAGE: Final = Path(__file__).resolve().parents[1]


def file_for(skill: SkillManifest, catalog: Catalog, *, named: Path | None) -> Path:
    """Where the enrichment of a skill belongs.

    Args:
        named: the file that the setting ``enrichment`` names; None where it names none.

    Raises:
        ConfigurationError: the skill has no folder that can be written to, or comes with the
            installed package, and no file is named.
    """
    if named is not None:
        return named
    root = catalog.root_of(skill)
    if root is None:
        why = "comes from no folder"
    elif root.is_relative_to(_PACKAGE):
        why = "comes with the package, where the next installation would overwrite the file"
    elif not Path(os.path.realpath(root / ENRICHMENT_FILE)).is_relative_to(root.resolve()):
        why = f"lies in {root}, whose {ENRICHMENT_FILE} is a link out of it"
    elif os.path.lexists(root / ENRICHMENT_FILE) and not (root / ENRICHMENT_FILE).is_file():
        why = f"lies in {root}, whose {ENRICHMENT_FILE} is no regular file"
    elif os.access(root, os.W_OK):
        return root / ENRICHMENT_FILE
    else:
        why = f"lies in {root}, which cannot be written to"
    raise ConfigurationError(
        f"the skill {skill.name!r} {why}: name a file with the setting enrichment "
        "(ROUTER_ENRICHMENT=FILE)"
    )


def file_of(skill: SkillManifest, catalog: Catalog) -> Path:
    """The file that holds a skill's enrichment; the skill's own where there is none."""
    read = catalog.enrichments.items()
    found = (path for path, file in read if file.by_skill.get(skill.name) is skill.enrichment)
    return skill.path if skill.enrichment is None else next(found, skill.path)


def append(path: Path, enrichment: Enrichment) -> None:
    """Add one line, in one write, and have it on the disk."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("ab+", buffering=0) as file:
            line = enrichment.to_line().encode("utf-8", "replace")
            if file.tell():  # begin a new line even if a crash has left an unfinished one
                file.seek(-1, os.SEEK_END)
                line = line if file.read(1) == b"\n" else b"\n" + line
            file.write(line)
            os.fsync(file.fileno())
    except OSError as error:
        raise StoreError(path, f"cannot be written: {error.strerror or error}") from error


def drop_replaced(path: Path) -> None:
    """Delete the lines of skills that have a later line, in one step; the others are not
    changed."""
    try:
        lines = path.read_bytes().splitlines(keepends=True)
        names = [_skill_of(line) for line in lines]
        last = {name: number for number, name in enumerate(names) if name is not None}
        kept = [
            line
            for number, (line, name) in enumerate(zip(lines, names, strict=True))
            if name is None or last[name] == number
        ]
        if len(kept) == len(lines):
            return
        replace_file(path, b"".join(kept), mode=path.stat().st_mode & 0o777)
    except OSError as error:
        raise StoreError(path, f"cannot be written: {error.strerror or error}") from error


def _skill_of(line: bytes) -> str | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    name = value.get("skill") if isinstance(value, dict) else None
    return name if isinstance(name, str) else None


@contextmanager
def one_writer(state_dir: Path) -> Iterator[None]:
    """While the block runs, no other run writes enrichments: two would pay twice for one skill.

    Raises:
        StoreError: another run is under way, or the folder cannot be used.
    """
    path = state_dir / "enrichment.lock"
    try:
        private_folder(state_dir)
        lock = FileLock(path, thread_local=False, mode=FILE_MODE)
        lock.acquire(blocking=False)
    except Timeout:
        raise StoreError(path, "another run writes enrichments; wait until it is over") from None
    except OSError as error:
        raise StoreError(path, f"cannot be used: {error.strerror or error}") from error
    try:
        yield
    finally:
        lock.release()
