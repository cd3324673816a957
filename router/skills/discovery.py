"""Finding skills: which folders are searched, and what is found in them.

Every file named exactly ``SKILL.md`` is a skill. A skill's folder is searched on, because bundles
of skills exist in the wild, but not its ``scripts``, ``references`` and ``assets``: what lies there
is the skill's own material, often templates of other skills.

A symbolic link to a folder is never followed. When its target lies inside the root, the target is
searched in its own place, so nothing is lost and no loop can arise; when it lies outside, the link
is reported: a skills folder may come from strangers and must not reach the rest of the disk.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from router.errors import ConfigurationError
from router.skills.diagnostics import Diagnostic, Severity

if TYPE_CHECKING:
    from router.settings import Settings

SKILL_FILE: Final = "SKILL.md"
MAX_DEPTH: Final = 6
"""Folders below the root, at most; the root itself is at depth 0."""
MAX_FOLDERS: Final = 2000
"""Folders searched per root, at most."""

SKIPPED: Final = frozenset((".git", "node_modules", "__pycache__", ".venv"))
_OWN_MATERIAL: Final = frozenset(("scripts", "references", "assets"))


@dataclass(frozen=True, slots=True)
class RootScan:
    """What a search of one root found.

    Attributes:
        root: the root, as an absolute path.
        files: the ``SKILL.md`` files, in the order of their paths.
        diagnostics: what was not searched or not taken, and why.
    """

    root: Path
    files: tuple[Path, ...]
    diagnostics: tuple[Diagnostic, ...]


def default_roots() -> tuple[Path, ...]:
    """The project's folders of skills, then the user's, strongest first. Any may be missing."""
    here = Path.cwd()
    places = [here / "skills", here / ".agents" / "skills", here / ".claude" / "skills"]
    home = os.path.expanduser("~")  # noqa: PTH111 - Path.home() raises where there is no home
    places.append(Path(home) / ".agents" / "skills")
    return tuple(places)


def shipped_skills_root() -> Path:
    """The folder of the skills that come with the package.

    Raises:
        ConfigurationError: the installation lacks them.
    """
    package = Path(__file__).resolve().parents[1]
    installed = package / "_shipped_skills"
    if installed.is_dir():
        return installed
    # A source checkout. Its pyproject.toml tells it from site-packages, where any other
    # distribution may have put a folder of that name.
    checkout = package.parent / "skills"
    if checkout.is_dir() and (package.parent / "pyproject.toml").is_file():
        return checkout
    raise ConfigurationError(
        f"the shipped skills are missing at {installed}: reinstall cascade-router, "
        "or set shipped_skills to false"
    )


def configured_roots(settings: Settings, *, later_ones: bool = False) -> tuple[Path, ...]:
    """The roots that the settings name, or the default ones; the shipped skills come last.

    Args:
        settings: what was configured.
        later_ones: give the default ones that are missing too, for those who follow the disk.

    Raises:
        ConfigurationError: shipped skills are wanted and missing.
    """
    chosen = settings.skills
    if chosen is None:
        chosen = tuple(root for root in default_roots() if later_ones or _is_folder(root))
    return (*chosen, shipped_skills_root()) if settings.shipped_skills else chosen


def scan_root(root: Path) -> RootScan:
    """Search one root, which may be a folder of skills or the folder of one skill.

    Raises:
        ConfigurationError: the root is not a folder; the message names the way out.
    """
    top = existing_root(root)
    files: list[str] = []
    diagnostics: list[Diagnostic] = []
    real_top = top.resolve()
    level = [str(top)]
    folders = 0
    # Level by level, so that what the folder bound cuts off is the deepest part. In texts, because
    # paths would cost as much as all the rest.
    for _ in range(MAX_DEPTH + 1):
        below: list[str] = []
        for position, folder in enumerate(level):
            if folders == MAX_FOLDERS:
                left = len(level) - position + len(below)
                message = f"{MAX_FOLDERS:,} folders searched; {left:,} or more others were not"
                diagnostics.append(_warning(top, "too-many-folders", message))
                return RootScan(top, _in_order(files), tuple(diagnostics))
            folders += 1
            below += _search(folder, real_top, files, diagnostics)
        level = below
    if level:
        message = f"deeper than {MAX_DEPTH} folders, like {len(level):,} in all; not searched"
        diagnostics.append(_warning(Path(level[0]), "too-deep", message))
    return RootScan(top, _in_order(files), tuple(diagnostics))


def existing_root(root: Path) -> Path:
    """The absolute path of a root, so that it means the same after a change of directory.

    Raises:
        ConfigurationError: the root is not a folder; the message names the way out.
    """
    try:
        top = root.expanduser().absolute()
        if top.is_dir():
            return top
        what = "is a file, not a folder" if top.exists() else "does not exist"
    except (OSError, RuntimeError, ValueError) as error:  # no such user, no access, a NUL in it
        what = f"cannot be used: {error}"
    raise ConfigurationError(
        f"the skills folder {root} {what}: create it, or correct or remove it where it is "
        "configured (setting skills, option --skills)"
    )


def _search(
    folder: str, real_top: Path, files: list[str], diagnostics: list[Diagnostic]
) -> Iterator[str]:
    """Take the folder's skill, report what is odd in it, and give the folders to search next."""
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        message = f"cannot be searched: {error.strerror or error}"
        diagnostics.append(_warning(Path(folder), "unreadable-folder", message))
        return
    is_skill = any(entry.name == SKILL_FILE for entry in entries)
    for entry in entries:
        if entry.name in SKIPPED or (is_skill and entry.name in _OWN_MATERIAL):
            continue
        if entry.is_symlink() and (fault := link_fault(Path(entry.path), real_top)) is not None:
            # Links to other files are none of our business.
            if entry.name == SKILL_FILE or fault.code == "broken-link" or _is_folder(entry.path):
                diagnostics.append(fault)
        elif entry.name == SKILL_FILE:
            files.append(entry.path)
        elif entry.is_dir(follow_symlinks=False):
            yield entry.path
        elif entry.name.lower() == SKILL_FILE.lower():
            message = f"not read: the file's name must be exactly {SKILL_FILE}"
            diagnostics.append(_warning(Path(entry.path), "misnamed-file", message))


def link_fault(link: Path, real_top: Path) -> Diagnostic | None:
    """Why a link is not taken; None when its target lies inside the root."""
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError):  # dangling, or a loop (RuntimeError before Python 3.13)
        return _warning(link, "broken-link", "the link leads nowhere that can be read")
    if target.is_relative_to(real_top):
        return None
    return _warning(link, "link-leaves-root", "the link leaves its root; not followed")


def _is_folder(path: str | Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises below an unreadable folder


def _warning(path: Path, code: str, message: str) -> Diagnostic:
    return Diagnostic(path, 0, Severity.WARNING, code, message)


def _in_order(files: list[str]) -> tuple[Path, ...]:
    return tuple(map(Path, sorted(files, key=lambda file: file.split(os.sep))))  # noqa: PTH206
