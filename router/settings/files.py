"""The files that settings are read from, and which of their values count.

``router.toml`` in the user's configuration folder is the user's own word. ``router.toml`` and the
table ``[tool.router]`` of ``pyproject.toml`` in the working directory may be a stranger's: what
needs the user's trust there is left out until the user has run ``router trust``.

The words of the code: a value of a folder's file is *guarded* where only the user may set it. It is
*ignored* where it is guarded and the folder is not trusted with it; all others are *effective*. So
in a cloned folder whose ``router.toml`` sets ``vector.caution = "careful"`` and
``llm.openai.base_url``, the caution counts at once, and the address only after ``router trust``.

No file may hold a key, because files are copied and committed.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel

from router.bounded.files import Unreadable, read_bounded
from router.bounded.toml import load_toml
from router.errors import ConfigurationError
from router.settings.trust import (
    SettingPath,
    TrustedFolders,
    config_folder,
    digest_of,
    leaves,
    needing_trust,
    value_at,
    without,
)

_log: Final = logging.getLogger(__name__)

SETTINGS_FILE: Final = "router.toml"
PROJECT_FILE: Final = "pyproject.toml"
MAX_BYTES: Final = 4 * 2**20
"""The largest settings file. It is read at every start, and it may be a stranger's."""


@dataclass(frozen=True, slots=True)
class FolderSettings:
    """What the files of a folder set.

    Attributes:
        folder: absolute.
        files: by file name, strongest first, all that the file sets.
        guarded: by file name, what of it needs the user's trust.
        trusted: whether the user has trusted the folder with exactly these values.
    """

    folder: Path
    files: Mapping[str, dict[str, Any]]
    guarded: Mapping[str, dict[SettingPath, Any]]
    trusted: bool

    @property
    def digest(self) -> str:
        """Digest of the values that need trust: what the user agrees to."""
        return digest_of(self.guarded)

    @property
    def ignored(self) -> dict[str, dict[SettingPath, Any]]:
        """By file name, the settings that do not count because the folder is not trusted."""
        return {} if self.trusted else {file: dict(v) for file, v in self.guarded.items() if v}

    @property
    def effective(self) -> dict[str, dict[str, Any]]:
        """By file name, strongest first, the values that count."""
        ignored = self.ignored
        return {file: without(values, ignored.get(file, {})) for file, values in self.files.items()}

    def warn_of_ignored(self) -> None:
        """Log one warning for all that is ignored; a process repeats none."""
        ignored = self.ignored
        if ignored:
            named = "; ".join(
                f"{str(self.folder / file)!a}: {', '.join(map('.'.join, found))}"
                for file, found in ignored.items()
            )
            seen = TrustedFolders().knows(self.folder)
            why = "they are not those that you trusted" if seen else "this folder is not trusted"
            warn_once(
                f"settings ignored, because {why}: {named}. "
                "If you trust them, run `router trust` in that folder, or set them yourself: in "
                f"{user_file()} or as ROUTER_* variables"
            )


@lru_cache(maxsize=256)
def warn_once(message: str) -> None:
    """Log a warning; a process repeats none of the last 256."""
    _log.warning("%s", message)


def user_file() -> Path:
    """Where the user's own settings are, if there are any."""
    return config_folder() / SETTINGS_FILE


def way_out(folder: Path) -> str:
    """What errors of a folder's files end with. A fault stops the router, because to go on with
    other values than the project asks for could be what nobody notices; but a stranger's file must
    leave a way to go on without it."""
    return (
        f"Correct the settings files of {str(folder)!a}, or go on without them: set "
        "ROUTER_FOLDER_SETTINGS=false"
    )


def users_skills() -> Path:
    """The user's own folder of skills, where the setting ``skills`` names no other. It may be
    missing."""
    home = os.path.expanduser("~")  # noqa: PTH111 - Path.home() raises where there is no home
    return Path(home) / ".agents" / "skills"


def user_settings(model: type[BaseModel]) -> dict[str, Any]:
    """The user's own settings, as nested tables; none when there is no file. Raises as
    ``folder_settings`` does."""
    name = str(user_file())
    values = _read(user_file(), name)
    _refuse_keys(model, values, name)
    return values


def folder_settings(model: type[BaseModel], folder: Path) -> FolderSettings:
    """The settings of a folder, and whether they count.

    Args:
        model: the settings with their classes of trust.
        folder: absolute, such as the working directory.

    Raises:
        ConfigurationError: a file cannot be read, is not TOML, or holds a key; or the list of
            trusted folders cannot be read.
    """
    files: dict[str, dict[str, Any]] = {}
    try:
        if folder.resolve() != config_folder().resolve():  # there it is the user's own file
            files[SETTINGS_FILE] = _read(folder / SETTINGS_FILE, SETTINGS_FILE)
        files[PROJECT_FILE] = _table(_read(folder / PROJECT_FILE, PROJECT_FILE))
        for name, values in files.items():
            _refuse_keys(model, values, name)
    except ConfigurationError as error:
        raise ConfigurationError(f"{error}. {way_out(folder)}") from error
    users = user_settings(model)
    guarded = {name: needing_trust(model, values, folder, users) for name, values in files.items()}
    trusted = any(guarded.values()) and TrustedFolders().holds(folder, digest_of(guarded))
    return FolderSettings(folder, files, guarded, trusted)


def _read(file: Path, name: str) -> dict[str, Any]:
    """The tables of a TOML file; none when there is no file."""
    try:
        if not file.exists():
            return {}
        content = read_bounded(file, most=MAX_BYTES)
        return load_toml(content.decode("utf-8-sig"))  # editors of Windows write a mark
    except UnicodeDecodeError as error:
        raise ConfigurationError(f"{name}: not UTF-8: byte {error.start}") from error
    except (Unreadable, OSError, ValueError) as error:
        raise ConfigurationError(f"{name}: {error}") from error
    except RecursionError as error:
        raise ConfigurationError(f"{name}: nested too deeply") from error


def _table(project: dict[str, Any]) -> dict[str, Any]:
    """The table ``[tool.router]`` of a ``pyproject.toml``."""
    table = project
    for name in ("tool", "router"):
        inner = table.get(name, {})
        if not isinstance(inner, dict):
            raise ConfigurationError(f"{PROJECT_FILE}: [tool.router] is not a table")
        table = inner
    return table


def _refuse_keys(model: type[BaseModel], values: Mapping[str, Any], name: str) -> None:
    for path, field in leaves(model):
        if "SecretStr" in str(field.annotation) and value_at(values, path)[0]:
            variable = "ROUTER_" + "__".join(path).upper()
            raise ConfigurationError(
                f"{name}: setting {'.'.join(path)}: keys are read from the environment only; "
                f"set {variable}"
            )
