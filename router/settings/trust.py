"""Who may give which setting, and which folders the user trusts.

A file in the working directory may have come with a cloned repository. It may tune the router, but
it must not decide where requests, keys or files go, or which code is loaded; nor may it raise the
user's costs, make the user wait, or loosen a guard. So each setting has a class of trust, and what
a stranger may not set is left out unless the user has trusted the folder.

Trust is given to a folder together with the values that need it. When one of these values changes,
the folder is not trusted any more until the user has looked again.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias

import platformdirs
from filelock import FileLock
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo

from router.errors import ConfigurationError
from router.storage.private_files import FILE_MODE, private_folder, replace_file

SettingPath: TypeAlias = tuple[str, ...]
"""Where a setting is, such as ``("llm", "openai", "base_url")``."""

LOCK_SECONDS: Final = 10.0


class Trust(Enum):
    """Who may set a setting. Written beside the field: ``Annotated[int, Trust.ANYONE]``."""

    ANYONE = "anyone"
    """Harmless, whatever the value: a cloned folder may set it."""
    HIGHER = "higher"
    """A guard. A cloned folder may set it to what the user has or to more, and not to less."""
    LOWER = "lower"
    """What costs money or opens something. A cloned folder may set it to what the user has or to
    less, and not to more."""
    FOLDER = "folder"
    """One or more paths. A cloned folder may name what lies inside it; the rest is the user's."""
    COST = "cost"
    """Can cost money, time or answers that the user would have had, whether it is raised or
    lowered: the user's."""
    USER = "user"
    """Decides where data, keys or files go, or which code is loaded: the user's."""


_TUNING: Final = (Trust.HIGHER, Trust.LOWER, Trust.COST)
"""Not for a stranger to set, but they lead nowhere."""


@dataclass(frozen=True, slots=True)
class Measure:
    """Written beside a setting of class ``HIGHER`` or ``LOWER`` whose values do not compare as they
    are: gives the number that they compare by."""

    number: Callable[[Any], float]


def config_folder() -> Path:
    """Where the user's own settings and the list of trusted folders are."""
    return platformdirs.user_config_path("cascade-router")


def leaves(model: type[BaseModel]) -> Iterator[tuple[SettingPath, FieldInfo]]:
    """Every single setting of a tree of sections, in the order of the source."""
    for name, field in model.model_fields.items():
        kind = field.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            for path, leaf in leaves(kind):
                yield (name, *path), leaf
        else:
            yield (name,), field


def trust_of(field: FieldInfo) -> Trust | None:
    """The class of trust that is written beside a field."""
    return next((mark for mark in field.metadata if isinstance(mark, Trust)), None)


def value_at(values: object, path: SettingPath) -> tuple[bool, Any]:
    """Whether nested tables give a setting, and its value."""
    for name in path:
        if not isinstance(values, Mapping) or name not in values:
            return False, None
        values = values[name]
    return True, values


def without(values: Mapping[str, Any], paths: Iterable[SettingPath]) -> dict[str, Any]:
    """The same nested tables without some settings."""
    kept = dict(values)
    for name, *rest in paths:
        if rest:
            kept[name] = without(kept[name], [tuple(rest)])
        else:
            del kept[name]
    return kept


def needing_trust(
    model: type[BaseModel],
    values: Mapping[str, Any],
    folder: Path,
    users: Mapping[str, Any] = MappingProxyType({}),
) -> dict[SettingPath, Any]:
    """What a file of a folder sets that only the user may, or that has no class of trust.

    Args:
        model: the settings with their classes of trust.
        values: what the file sets.
        folder: that the file lies in.
        users: what the user's own file sets, with which the folder's values are compared.
    """
    found: dict[SettingPath, Any] = {}
    for path, field in leaves(model):
        given, value = value_at(values, path)
        if not given:
            continue
        trust = trust_of(field)
        if (
            trust is Trust.ANYONE
            or (trust is Trust.FOLDER and _lies_inside(field, value, folder))
            or (
                trust in (Trust.HIGHER, Trust.LOWER)
                and _is_as_careful(
                    field, value, value_at(users, path), raised=trust is Trust.HIGHER
                )
            )
        ):
            continue
        found[path] = value
    return found


def leading_elsewhere(
    model: type[BaseModel], values: Mapping[str, Any], folder: Path
) -> tuple[SettingPath, ...]:
    """Of the settings that nested tables give, those that decide where data, keys or files go, or
    which code is loaded, or have no class of trust. Paths inside the folder are none of them."""
    fields = dict(leaves(model))
    needing = needing_trust(model, values, folder)
    return tuple(path for path in needing if trust_of(fields[path]) not in _TUNING)


def _is_as_careful(
    field: FieldInfo, value: object, users: tuple[bool, object], *, raised: bool
) -> bool:
    """Whether a value is what the user has, or differs from it in the direction that is harmless.
    ``users`` is what ``value_at`` gives for the user's own settings."""
    adapter = TypeAdapter(field.rebuild_annotation())
    number = next((mark.number for mark in field.metadata if isinstance(mark, Measure)), float)
    try:
        given = number(adapter.validate_python(value))
    except ValidationError:
        return True  # it is refused with all other faults, so that its author hears of it
    is_set, own = users
    try:
        least = number(adapter.validate_python(own) if is_set else field.default)
    except ValidationError:
        return False
    return given >= least if raised else given <= least


def _lies_inside(field: FieldInfo, value: object, folder: Path) -> bool:
    """Whether all paths that a value names are inside a folder, links followed."""
    try:
        parsed = TypeAdapter(field.rebuild_annotation()).validate_python(value)
    except ValidationError:
        return False
    named = parsed if isinstance(parsed, tuple) else (parsed,)
    home = Path(os.path.realpath(folder))
    return all(
        isinstance(path, Path)
        and not str(path).startswith("~")
        and Path(os.path.realpath(home / path)).is_relative_to(home)
        for path in named
    )


def digest_of(values: Mapping[str, Mapping[SettingPath, Any]]) -> str:
    """Digest of what the files of a folder set that needs trust: by file name, the settings and
    their values."""
    plain = {
        file: {".".join(path): value for path, value in found.items()}
        for file, found in values.items()
        if found
    }
    text = json.dumps(plain, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()


class TrustedFolders:
    """The list of trusted folders, a JSON file in the user's configuration folder. Whatever reads
    or writes it raises ``ConfigurationError``, which names the file, where that cannot be done."""

    def __init__(self) -> None:
        """Nothing is read yet."""
        self._file = config_folder() / "trusted.json"

    def all(self) -> dict[Path, str]:
        """Every folder, absolute and with links resolved, in the order of the paths, with the
        digest of the values that the user has agreed to; see ``digest_of``."""
        try:
            held = json.loads(self._file.read_text(encoding="utf-8"))
            return {
                Path(folder): str(held["folders"][folder]) for folder in sorted(held["folders"])
            }
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigurationError(
                f"{self._file}: the list of trusted folders cannot be read ({error}); "
                "delete it and trust your folders again"
            ) from error

    def holds(self, folder: Path, digest: str) -> bool:
        """Whether a folder is trusted with exactly these values."""
        return self.all().get(_real(folder)) == digest

    def knows(self, folder: Path) -> bool:
        """Whether a folder was trusted, be it with other values."""
        return _real(folder) in self.all()

    def add(self, folder: Path, digest: str) -> None:
        """Trust a folder with these values, in place of earlier ones."""
        self._change(_real(folder), digest)

    def remove(self, folder: Path) -> bool:
        """Trust a folder no more; whether it was trusted."""
        return self._change(_real(folder), None)

    def _change(self, folder: Path, digest: str | None) -> bool:
        try:
            private_folder(self._file.parent)
            with FileLock(f"{self._file}.lock", timeout=LOCK_SECONDS, mode=FILE_MODE):
                held = {str(path): held_digest for path, held_digest in self.all().items()}
                was_there = held.pop(str(folder), None) is not None
                if digest is not None:
                    held[str(folder)] = digest
                text = json.dumps({"folders": held}, indent=2) + "\n"
                replace_file(self._file, text.encode())
        except OSError as error:  # FileLock's Timeout is one
            raise ConfigurationError(f"{self._file}: cannot be written: {error}") from error
        return was_there


def _real(folder: Path) -> Path:
    return Path(os.path.realpath(folder))
