"""Finding skills: which folders are searched, and what is found in them.

Every file named exactly ``SKILL.md`` is a skill. A skill's folder is searched on, because bundles
of skills exist in the wild, but not its ``scripts``, ``references`` and ``assets``: what lies there
is the skill's own material, often templates of other skills.

People share skills by symbolic links, and a folder of skills may come from strangers. So a link to
a folder is followed only when its target is safe to read: it lies in another root that was named,
or in the project or the home of the user and belongs to the user. Every other link is reported and
left out; the same holds for a default root of the project that is a link. A target inside the same
root is searched in its own place, so nothing is found twice. A link inside a skill's folder is
never followed out of the root: a skill's files stay within it.

What is plenty is no danger. The depth of folders is bounded, and the number of skills by the
setting ``max_skills``; whatever is left out is reported.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from router.errors import ConfigurationError
from router.settings.files import users_skills, warn_once
from router.skills.diagnostics import Diagnostic, Severity

if TYPE_CHECKING:
    from router.settings.settings import Settings

SKILL_FILE: Final = "SKILL.md"
MAX_DEPTH: Final = 6
"""Folders below the root, at most; the root itself is at depth 0."""
MAX_SKILLS: Final = 100_000
"""Skills taken from all roots together, unless the setting ``max_skills`` says otherwise."""
FOLDERS_PER_SKILL: Final = 10
"""Folders searched below one root, at most, for each skill that is allowed."""

SKIPPED: Final = frozenset((".git", "node_modules", "__pycache__", ".venv"))
_EDITORS_LOCK: Final = ".#"
"""The beginning of a broken link that Emacs makes beside a file with unsaved changes."""
_OWN_MATERIAL: Final = frozenset(("scripts", "references", "assets"))


@dataclass(frozen=True, slots=True)
class RootScan:
    """What a search of one root found.

    Attributes:
        root: the root, as an absolute path.
        files: the paths of the ``SKILL.md`` files, in order. They are texts, because to make a
            ``Path`` of each would take as long as everything else.
        places: for each file, its path with the links on the way to its folder resolved. Two files
            with the same place are the same file.
        folders: the folders that were searched, with links resolved.
        unreadable: the folders that exist but could not be searched.
        diagnostics: what was not searched or not used, and why.
    """

    root: Path
    files: tuple[str, ...]
    places: tuple[str, ...]
    folders: tuple[str, ...]
    unreadable: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...]


def default_roots() -> tuple[Path, ...]:
    """The user's folder of skills, then the project's, strongest first. Any may be missing.

    The project may be a stranger's, and the agent that loads a skill does what it says. So no skill
    of a project takes the name of one that the user has installed.
    """
    here = Path.cwd()
    projects = (here / "skills", here / ".agents" / "skills", here / ".claude" / "skills")
    return (users_skills(), *projects)


def shipped_skills_root() -> Path:
    """The folder of the skills that come with the package.

    Raises:
        ConfigurationError: the installation lacks them.
    """
    package = Path(__file__).resolve().parents[1]
    installed = package / "_shipped_skills"
    if installed.is_dir():
        return installed
    # A source checkout has a pyproject.toml. Without one this is site-packages, where any other
    # distribution may have put a folder of that name.
    checkout = package.parent / "skills"
    if checkout.is_dir() and (package.parent / "pyproject.toml").is_file():
        return checkout
    raise ConfigurationError(
        f"the shipped skills are missing at {installed}: reinstall cascade-router, "
        "or set shipped_skills to false"
    )


def configured_roots(settings: Settings, *, later_ones: bool = False) -> tuple[Path, ...]:
    """The roots that the settings name, or the default ones; the shipped skills come last. With
    ``later_ones`` default roots that do not exist are included, because they may appear later.

    Raises:
        ConfigurationError: shipped skills are wanted and missing.
    """
    chosen = settings.skills
    if chosen is None:
        chosen = tuple(
            root for root in default_roots() if (later_ones or _is_folder(root)) and is_own(root)
        )
    return (*chosen, shipped_skills_root()) if settings.shipped_skills else chosen


def is_own(root: Path) -> bool:
    """Whether a default root may be searched: it does not exist, or it is no link, or the link
    leads to a place that links may lead to. Otherwise there is a warning. A project may be a
    stranger's, and nobody has configured its default root: a link to ``/`` would make the router
    search the disk."""
    real, here = _resolved(root), _resolved(Path.cwd())
    if real is None or here is None or not root.is_relative_to(Path.cwd()):
        return True
    fault = None if real.is_relative_to(here) else _Links(here, ()).fault(real)
    if fault is not None:
        warn_once(f"{str(root)!a}: the link to {str(real)!a} is not followed: {fault}")
    return fault is None


def scan_root(
    root: Path,
    *,
    trusted: Sequence[Path] = (),
    max_skills: int = MAX_SKILLS,
    may_be_away: bool = False,
) -> RootScan:
    """Search one root, which may be a folder of skills or the folder of one skill.

    Args:
        root: the folder.
        trusted: other roots; links that lead into them are followed.
        max_skills: how many skills to take, at least 0.
        may_be_away: if it cannot be decided now whether the root exists, for example on a network
            disk, report only that it could not be searched.

    Raises:
        ConfigurationError: the root is not a folder; the message names the way out.
    """
    if may_be_away:
        try:
            root.stat()
        except (OSError, ValueError) as error:
            if _is_away(error):
                return RootScan(root, (), (), (), (str(root),), (_unsearched(str(root), error),))
    return _Search(existing_root(root), trusted, max_skills).run()


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


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder to search.

    Attributes:
        path: the path by which it was found, which may contain a link.
        place: the path with links resolved.
        inside: the root, or the target of a link, that contains it, with links resolved.
        in_skill: whether it is inside the folder of a skill.
    """

    path: str
    place: str
    inside: str
    in_skill: bool


class _Search:
    def __init__(self, top: Path, trusted: Sequence[Path], max_skills: int) -> None:
        self._top = top
        self._links = _Links(top, trusted)
        self._max_skills = max_skills
        self._files: list[tuple[str, str]] = []
        self._left_out = 0
        self._searched: dict[str, None] = {}
        self._unreadable: list[str] = []
        self._diagnostics: list[Diagnostic] = []

    def run(self) -> RootScan:
        place = self._links.root
        level = [_Folder(str(self._top), place, place, in_skill=False)]
        most = FOLDERS_PER_SKILL * max(self._max_skills, 1)
        # Level by level, so that the bound on the number of folders leaves out the deepest ones.
        for _ in range(MAX_DEPTH + 1):
            below: list[_Folder] = []
            for position, folder in enumerate(level):
                if len(self._searched) == most:
                    left = len(level) - position + len(below)
                    message = f"{most:,} folders searched; {left:,} or more others were not"
                    self._warn(str(self._top), "too-many-folders", message)
                    return self._outcome()
                if folder.place not in self._searched:  # two links may lead to one folder
                    self._searched[folder.place] = None
                    self._search(folder, below)
            level = below
        if level:
            message = f"deeper than {MAX_DEPTH} folders, like {len(level):,} in all; not searched"
            self._warn(level[0].path, "too-deep", message)
        return self._outcome()

    def _outcome(self) -> RootScan:
        if self._left_out:
            message = (
                f"{self._left_out:,} skills are left out: there are more than the setting "
                "max_skills allows"
            )
            self._warn(str(self._top), "too-many-skills", message)
        files = sorted(self._files, key=lambda file: file[0].split(os.sep))  # noqa: PTH206
        return RootScan(
            self._top,
            tuple(path for path, _ in files),
            tuple(place for _, place in files),
            tuple(self._searched),
            tuple(self._unreadable),
            tuple(self._diagnostics),
        )

    def _search(self, folder: _Folder, below: list[_Folder]) -> None:
        """Add the folder's skill, report oddities, and collect the folders to search next."""
        try:
            with os.scandir(folder.path) as found:
                entries = sorted(found, key=lambda entry: entry.name)
        except OSError as error:
            self._diagnostics.append(_unsearched(folder.path, error))
            del self._searched[folder.place]
            if _is_away(error):
                self._unreadable.append(folder.path)
            return
        is_skill = SKILL_FILE in [entry.name for entry in entries]
        in_skill = folder.in_skill or is_skill
        above = f"{folder.place.rstrip(os.sep)}{os.sep}"
        for entry in entries:
            if entry.name in SKIPPED or (is_skill and entry.name in _OWN_MATERIAL):
                continue
            place = above + entry.name
            if entry.is_symlink():
                self._take_link(entry, folder, place, below, in_skill=in_skill)
            elif entry.name == SKILL_FILE:
                self._take(entry.path, place)
            elif entry.is_dir(follow_symlinks=False):
                below.append(_Folder(entry.path, place, folder.inside, in_skill))
            elif entry.name.lower() == SKILL_FILE.lower():
                message = f"not read: the file's name must be exactly {SKILL_FILE}"
                self._warn(entry.path, "misnamed-file", message)

    def _take_link(
        self,
        entry: os.DirEntry[str],
        folder: _Folder,
        place: str,
        below: list[_Folder],
        *,
        in_skill: bool,
    ) -> None:
        try:
            target = Path(entry.path).resolve(strict=True)
        except (OSError, RuntimeError) as error:  # dangling, or a loop (so before Python 3.13)
            if _is_away(error):
                self._unreadable.append(entry.path)
            if entry.name.startswith(_EDITORS_LOCK):
                return
            message = "the link leads nowhere that can be read"
            self._warn(entry.path, "broken-link", message)
            return
        if entry.name == SKILL_FILE:
            if target.is_relative_to(folder.inside):
                self._take(entry.path, place)
            else:
                self._warn(entry.path, "link-leaves-root", "the link leaves its root; not followed")
        # A target inside the root is searched at its own place; links to other files do not matter.
        elif not target.is_relative_to(folder.inside) and _is_folder(target):
            fault = "it is inside a skill" if in_skill else self._links.fault(target)
            if fault is not None:
                message = f"the link to {target} is not followed: {fault}"
                self._warn(entry.path, "link-leaves-root", message)
            elif not target.is_relative_to(self._links.root):
                below.append(_Folder(entry.path, str(target), str(target), in_skill=False))

    def _take(self, path: str, place: str) -> None:
        if len(self._files) < self._max_skills:
            self._files.append((path, place))
        else:
            self._left_out += 1

    def _warn(self, path: str, code: str, message: str) -> None:
        self._diagnostics.append(Diagnostic(Path(path), 0, Severity.WARNING, code, message))


class _Links:
    """Decides where links in one root may lead.

    Attributes:
        root: the root with links resolved, as a text.
    """

    def __init__(self, top: Path, trusted: Sequence[Path]) -> None:
        self._top = top
        self._real_top = top.resolve()
        self.root = str(self._real_top)
        self._trusted = [place for root in trusted if (place := _resolved(root)) is not None]

    def fault(self, target: Path) -> str | None:
        """Why a link to this folder is not followed; None when it is."""
        if any(target.is_relative_to(root) for root in self._trusted):
            return None
        # Following a link to a folder around the root would search everything beside it.
        if self._real_top.is_relative_to(target):
            return "its target holds this folder of skills"
        if not any(area in target.parents for area in self._own_areas()):
            return (
                "its target lies outside the project and the home folder; name it in the setting "
                "skills"
            )
        if not _belongs_to_user(target):
            return "its target belongs to another user; name it in the setting skills"
        return None

    def _own_areas(self) -> list[Path]:
        """The project that the root lies in, and the home of the user."""
        repository = next(
            (folder for folder in self._real_top.parents if os.path.lexists(folder / ".git")), None
        )
        here = _resolved(Path.cwd())
        if repository is None and here is not None and self._real_top.is_relative_to(here):
            repository = here
        home = _resolved(Path(os.path.expanduser("~")))  # noqa: PTH111 - Path.home() may raise
        return [
            area for area in (repository, home) if area is not None and area != Path(area.anchor)
        ]


def _resolved(path: Path) -> Path | None:
    """The absolute path with links resolved; None if it cannot be resolved."""
    try:
        return path.expanduser().resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        return None


def _is_away(error: Exception) -> bool:
    """Whether a folder may exist in spite of an error, and only cannot be reached now."""
    gone = isinstance(error, FileNotFoundError | NotADirectoryError)
    return isinstance(error, OSError) and not gone and error.errno != errno.ELOOP


def _unsearched(folder: str, error: Exception) -> Diagnostic:
    message = f"cannot be searched: {getattr(error, 'strerror', None) or error}"
    return Diagnostic(Path(folder), 0, Severity.WARNING, "unreadable-folder", message)


def _belongs_to_user(folder: Path) -> bool:
    if not hasattr(os, "geteuid"):  # Windows: the home folder has no other owner
        return True
    return folder.stat().st_uid == os.geteuid()


def _is_folder(path: str | Path) -> bool:
    return os.path.isdir(path)  # noqa: PTH112 - Path.is_dir raises below an unreadable folder
