"""Plug-ins that settings name: an LLM, an encoder, or a store that comes from another package.

A plug-in is named ``package.module:Name``, or by an entry point that its package declares. What is
named, a class or a function, is called without arguments and gives the object. The settings that
name plug-ins are the user's own (``Trust.USER``), because a plug-in is code that runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib import import_module
from typing import Any, Final

from router.errors import ConfigurationError
from router.given import check_part

LLMS: Final = "cascade_router.llms"
ENCODERS: Final = "cascade_router.encoders"
EMBEDDING_CACHES: Final = "cascade_router.embedding_caches"
ANSWER_CACHES: Final = "cascade_router.answer_caches"
"""The groups of entry points."""

_NAME: Final = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")


def checked_name(group: str, *built_in: str) -> Callable[[str], str]:
    """A validator for a setting that names something built in or a plug-in of a group."""

    def check(name: str) -> str:
        if name in built_in or is_plugin(group, name):
            return name
        raise ValueError(
            f"{name!r} is not known; expected {', '.join(built_in)}, package.module:Name, or the "
            f"name of an entry point of the group {group}"
        )

    return check


def is_plugin(group: str, name: str) -> bool:
    """Whether a name is of the form ``package.module:Name``, or that of an entry point."""
    return _NAME.fullmatch(name) is not None or name in _entries(group)


def load_plugin(group: str, name: str, kind: type[Any], setting: str) -> Any:
    """The object that a plug-in gives.

    Args:
        group: of entry points, where ``name`` is not of the form ``package.module:Name``.
        name: as the setting has it.
        kind: the protocol that the object must have the attributes of.
        setting: what errors call the setting.

    Raises:
        ConfigurationError: the plug-in cannot be imported, cannot be called, raises, or gives
            something else; the message says which.
    """
    where = f"setting {setting}: plug-in {name!r}"
    target = name if _NAME.fullmatch(name) else _entries(group).get(name)
    if target is None:
        raise ConfigurationError(f"{where}: the group {group} has no entry point of that name")
    module_name, _, attributes = target.partition(":")
    try:
        module = import_module(module_name)
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"{where}: there is no module {error.name!r}; install its package"
        ) from error
    except Exception as error:
        raise ConfigurationError(f"{where}: cannot be imported: {_said(error)}") from error
    make: object = module
    for attribute in attributes.split("."):
        make = getattr(make, attribute, None)
    if not callable(make):
        raise ConfigurationError(f"{where}: {module_name} has no class or function {attributes!r}")
    try:
        made: object = make()
    except Exception as error:
        raise ConfigurationError(f"{where}: cannot be made: {_said(error)}") from error
    check_part(where, made, kind)
    return made


def _entries(group: str) -> dict[str, str]:
    """The entry points of a group: name and target."""
    from importlib.metadata import entry_points  # slow to import, and seldom needed

    return {entry.name: entry.value for entry in entry_points(group=group)}


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"
