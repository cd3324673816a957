"""The source of tools that are kept as files, one JSON file a tool, in namespaces.

    FOLDER/shop/refund.json      the tool ``refund`` of the namespace ``shop``

Every tool is routed to by its namespace and its own name, ``shop__refund``, so that namespaces may
use the same names. A tool is written in one step by a file of its own: several processes may write
at the same time, and each of them sees what the others wrote, because the folder is watched.

In a cluster, what is put and dropped reaches the other machines too. They have it in memory: what
another process says changes no file.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from router.bounded.files import Unreadable, read_bounded
from router.errors import SourceError, StoreError
from router.skills.diagnostics import Diagnostic, Severity
from router.skills.folders import FileState
from router.skills.manifest import SkillManifest
from router.skills.sources import SourceSnapshot, Subscribers
from router.storage.private_files import private_folder, replace_file
from router.tools.sharing import MAX_DEFINITION_BYTES, Share, as_json
from router.tools.tool import manifest_of, read_tool

SEPARATOR: Final = "__"
SKILLS: Final = "skills"
"""The namespace of the skills of folders, for the keys of a server. No tool can be put into it: a
key for the skills would reach that tool, and one for the tool all skills."""
MAX_NAMESPACES: Final = 500
MAX_TOOLS: Final = 10_000
"""Tools of all namespaces together."""

_NAMESPACE: Final = re.compile(r"(?=.{1,64}\Z)[a-z0-9]+(?:-[a-z0-9]+)*")
_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,80}")
_ORIGIN: Final = "tools/"


@dataclass(frozen=True, slots=True, eq=False)
class ToolFolderSnapshot(SourceSnapshot):
    """Attributes:
    files: the tool of each file by its path, with what vouches for the file.
    """

    files: Mapping[Path, tuple[FileState, SkillManifest]] = field(
        default_factory=lambda: MappingProxyType({})
    )


def namespace_of(skill: SkillManifest) -> str | None:
    """The namespace of a tool that is kept in a folder; None for any other skill."""
    if not skill.origin.startswith(_ORIGIN):
        return None
    return skill.origin.removeprefix(_ORIGIN)


def routed_name(namespace: str, name: str) -> str:
    """The name by which a tool of a namespace is routed to."""
    return f"{namespace}{SEPARATOR}{name}"


def check_namespace(namespace: str) -> None:
    """Raises SourceError when a text cannot be the name of a namespace."""
    if _NAMESPACE.fullmatch(namespace) is None:
        reason = "a namespace has lower-case letters, digits and single hyphens, at most 64"
        raise SourceError("namespace", namespace[:100], reason)


class ToolFolder:
    """Tools in the namespaces of one folder. Safe to use from several threads and processes.
    ``SharedTools`` says what ``shared``, ``share`` and ``take`` are.

    Raises:
        SourceError: the namespace, the name or the definition cannot be used.
        StoreError: a file cannot be written or removed.
    """

    name = "tools"
    shared = True

    def __init__(self, folder: Path) -> None:
        """Nothing is read yet; the folder may be missing until a tool is put into it."""
        self._folder = Path(os.path.abspath(folder))  # noqa: PTH100 - links stay as they are
        self.roots = (self._folder,)
        self.share: Share | None = None
        self._subscribers = Subscribers()
        # What other processes have put, by the name that is routed to; None where they dropped it.
        self._taken: dict[str, SkillManifest | None] = {}

    def put(self, namespace: str, name: str, definition: Mapping[str, Any]) -> bool:
        """Keep a tool, in the place of one that has its name; says whether the name is new. Raises
        SourceError also when there are too many tools."""
        text = as_json(definition, source=self.name, name=name)
        _manifest(namespace, name, definition)
        path, routed = self._path(namespace, name), routed_name(namespace, name)
        try:
            new = not self._has(routed, path)
            if new:
                self._check_room(namespace)
            private_folder(path.parent)
            replace_file(path, text.encode())
        except OSError as error:
            raise StoreError(path, error.strerror or str(error)) from error
        self._taken.pop(routed, None)
        if self.share is not None:
            self.share(routed, definition)
        return new

    def delete(self, namespace: str, name: str) -> bool:
        """Drop a tool; says whether there was one."""
        check_namespace(namespace)
        path, routed = self._path(namespace, name), routed_name(namespace, name)
        try:
            found = self._has(routed, path)
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(path, error.strerror or str(error)) from error
        self._taken.pop(routed, None)
        if found and self.share is not None:
            self.share(routed, None)
        return found

    def read(
        self,
        previous: SourceSnapshot | None = None,
        *,
        quick: bool = False,
    ) -> ToolFolderSnapshot:
        """The tools as they are now, by namespace and name. A file that cannot be read or used is
        a failure; with ``quick`` only files that look changed are read."""
        known = previous.files if quick and isinstance(previous, ToolFolderSnapshot) else {}
        failures: list[Diagnostic] = []
        files: dict[Path, tuple[FileState, SkillManifest]] = {}
        for path in self._files():
            try:
                state, found = _state(path), known.get(path)
                files[path] = found if found and found[0] == state else (state, _load(path))
            except (Unreadable, OSError, ValueError, RecursionError) as error:
                if os.path.lexists(path):  # else dropped since the folder was listed
                    failures.append(Diagnostic(path, 0, Severity.ERROR, "not-loaded", str(error)))
        taken = dict(self._taken)
        skills = [skill for _, skill in files.values() if skill.name not in taken]
        skills += [skill for skill in taken.values() if skill is not None]
        return ToolFolderSnapshot(tuple(skills), tuple(failures), files=MappingProxyType(files))

    def take(self, name: str, definition: object) -> None:
        """See ``SharedTools``. No file is touched."""
        namespace, _, own_name = name.partition(SEPARATOR)
        check_namespace(namespace)
        self._path(namespace, own_name)
        skill = None if definition is None else _manifest(namespace, own_name, definition)
        self._taken[name] = skill
        self._subscribers.tell()

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """Call ``changed`` after each change in another process of the cluster. Changes of files
        are seen by watching ``roots``."""
        return self._subscribers.add(changed)

    def _has(self, routed: str, path: Path) -> bool:
        """Whether there is a tool, which may be another process's."""
        return self._taken[routed] is not None if routed in self._taken else path.exists()

    def _files(self) -> list[Path]:
        try:
            folders = (sorted(folder.glob("*.json")) for folder in sorted(self._folder.iterdir()))
            used = [files for files in folders if files]  # one whose tools were dropped stays
            return [file for files in used[:MAX_NAMESPACES] for file in files][:MAX_TOOLS]
        except OSError:  # not made yet, or gone
            return []

    def _check_room(self, namespace: str) -> None:
        files = self._files()
        if len(files) >= MAX_TOOLS:
            raise SourceError(self.name, namespace, f"there are {MAX_TOOLS:,} tools already")
        namespaces = {file.parent.name for file in files}
        if namespace not in namespaces and len(namespaces) >= MAX_NAMESPACES:
            raise SourceError(self.name, namespace, f"there are {MAX_NAMESPACES} namespaces")

    def _path(self, namespace: str, name: str) -> Path:
        if _NAME.fullmatch(name) is None:
            reason = "a name has 1 to 80 letters of ASCII, digits, dots, hyphens and underscores"
            raise SourceError(self.name, name[:100], reason)
        return self._folder / namespace / f"{name}.json"


def _manifest(namespace: str, name: str, definition: object) -> SkillManifest:
    check_namespace(namespace)
    if namespace == SKILLS:
        raise SourceError(
            "namespace",
            namespace,
            "it stands for the skills of folders; no tool can be put into it",
        )
    origin = _ORIGIN + namespace
    tool = read_tool(definition, source=origin, position=1)
    if tool.name != name:
        raise SourceError(origin, name, f"the definition is of another tool, {tool.name[:100]!r}")
    return manifest_of(replace(tool, name=routed_name(namespace, name)), origin=origin)


def _load(path: Path) -> SkillManifest:
    data = read_bounded(path, most=MAX_DEFINITION_BYTES)
    return _manifest(path.parent.name, path.stem, json.loads(data))


def _state(path: Path) -> FileState:
    found = path.lstat()
    if not stat.S_ISREG(found.st_mode):  # a link could lead anywhere, a pipe would block
        raise ValueError("not a regular file")
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
