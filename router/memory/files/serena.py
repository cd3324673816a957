"""Reads from Serena's configuration where a project's memories are, and which are protected or
hidden.

Serena's own configuration belongs to the user: ``serena_config.yml`` under ``SERENA_HOME`` or
``~/.serena``. It may place the folders of all projects elsewhere
(``project_serena_folder_location``).
``project.yml`` in a project's folder, and ``project.local.yml`` beside it, belong to the project,
which may be a stranger's: they can protect and hide memories, and nothing else.

A file that cannot be used is reported. It is not known what it would have protected, so nothing is
written until it is corrected.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from router.bounded.files import Unreadable
from router.bounded.yaml import load_yaml
from router.errors import ConfigurationError
from router.memory.files.names import GLOBAL, NamePatterns, checked_patterns
from router.memory.files.text import read_text, stamp_of

MAX_BYTES: Final = 1 << 17
"""Serena's own files, which are mostly comments, have some 15 KB."""
MAX_DEPTH: Final = 20
_FOLDER: Final = ".serena"
_PLACEHOLDER: Final = re.compile(r"\$([A-Za-z_]\w*)")
_READ_ONLY: Final = "read_only_memory_patterns"
_IGNORED: Final = "ignored_memory_patterns"


@dataclass(frozen=True, slots=True)
class SerenaRules:
    """The rules for the memories of a project: patterns of names that are never written, patterns
    of names that are treated as absent, and for each file that cannot be used the reason."""

    read_only: NamePatterns
    ignored: NamePatterns
    problems: Mapping[Path, str]


class Serena:
    """Serena's folders and files for one project. ``home`` is Serena's own folder; None means that
    of ``SERENA_HOME``, else ``~/.serena``."""

    def __init__(self, project: Path, home: Path | None = None) -> None:
        self.project = project.absolute()
        home = (home or _home()).absolute()
        self.global_memories = home / "memories" / GLOBAL
        own = home / "serena_config.yml"
        folder, self._fault = self.project / _FOLDER, ""
        try:
            folder = _folder(_values(own).get("project_serena_folder_location"), self.project)
        except ConfigurationError as error:
            self._fault = str(error)
        self.memories = folder / "memories"
        self._files = (own, folder / "project.yml", folder / "project.local.yml")
        self._stamps: tuple[object, ...] | None = None
        self._rules = SerenaRules((), (), {})

    def rules(self) -> SerenaRules:
        """The rules as they are now; the files are read again only if one has changed."""
        stamps = tuple(_stamp(file) for file in self._files)
        if stamps != self._stamps:
            self._rules, self._stamps = self._read(), stamps
        return self._rules

    def _read(self) -> SerenaRules:
        own, shared, local = self._files
        problems = {own: self._fault} if self._fault else {}
        read: dict[Path, dict[str, Any]] = {}
        for file in self._files:
            try:
                read[file] = _values(file)
            except ConfigurationError as error:
                problems[file] = str(error)
        # A person's own values in project.local.yml replace the shared ones in project.yml.
        project = read.get(shared, {}) | read.get(local, {})
        patterns: dict[str, NamePatterns] = {_READ_ONLY: (), _IGNORED: ()}
        for file, values in ((own, read.get(own, {})), (shared, project)):
            for name in patterns:
                try:
                    patterns[name] += checked_patterns(name, _texts(name, values.get(name)))
                except ConfigurationError as error:
                    problems[file] = str(error)
        return SerenaRules(patterns[_READ_ONLY], patterns[_IGNORED], problems)


def _home() -> Path:
    home = os.environ.get("SERENA_HOME", "").strip()
    return Path(home).expanduser() if home else Path.home() / _FOLDER


def _stamp(file: Path) -> object:
    try:
        return stamp_of(file.stat())
    except OSError:
        return None


def _values(file: Path) -> dict[str, Any]:
    """The top level of a YAML file; empty without the file. Raises ConfigurationError if it cannot
    be read."""
    try:
        text = read_text(file, most=MAX_BYTES) if file.is_file() else ""
        # Serena writes neither aliases nor what is nested deeply.
        values = load_yaml(text, max_depth=MAX_DEPTH, aliases=False)
    except (Unreadable, OSError, ValueError, yaml.YAMLError, RecursionError) as error:
        raise ConfigurationError(" ".join(str(error).split())) from None
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise ConfigurationError("no YAML mapping")
    return values


def _texts(name: str, value: object) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ConfigurationError(f"{name}: expected a list of texts")
    return value


def _folder(location: object, project: Path) -> Path:
    """Serena's folder of a project: the default one if only that exists, else the configured
    one."""
    default = project / _FOLDER
    if location is None:
        return default
    if not isinstance(location, str):
        raise ConfigurationError("project_serena_folder_location: expected a text")
    known = {"projectDir": str(project), "projectFolderName": project.name}
    for name in _PLACEHOLDER.findall(location):
        if name not in known:
            raise ConfigurationError(
                f"project_serena_folder_location: ${name} is none of $projectDir, "
                "$projectFolderName"
            )
    configured = Path(_PLACEHOLDER.sub(lambda m: known[m[1]], location)).absolute()
    return default if not configured.is_dir() and default.is_dir() else configured
