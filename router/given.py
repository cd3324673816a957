"""Checks of what a program gives, so that a wrong argument is told by its name, and at once: not by
the first line of code, deep inside and much later, that cannot use it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeVar

from router.errors import ConfigurationError, RouterError

T = TypeVar("T")


def check_kind(
    part: str,
    given: object,
    *kinds: type,
    error: type[RouterError] = ConfigurationError,
    way_out: str = "",
) -> None:
    """Whether an argument is of one of these classes; ``part`` is what the error calls it, and
    ``way_out`` ends its message."""
    if not isinstance(given, kinds):
        wanted = " or ".join(kind.__name__ for kind in kinds)
        raise error(f"{part}: expected {wanted}, not {type(given).__name__}{way_out}")


def check_part(part: str, given: object, protocol: type[Any], way_out: str = "") -> None:
    """Whether an argument has all attributes of a protocol.

    Raises:
        ConfigurationError: it has not; the message names those that it lacks.
    """
    lacks = [name for name in vars(protocol) if name[0] != "_" and not hasattr(given, name)]
    if lacks:
        kind = type(given).__name__
        raise ConfigurationError(
            f"{part}: {kind} is no {protocol.__name__}; it lacks {', '.join(lacks)}{way_out}"
        )


def check_list(part: str, given: object, way_out: str = "") -> None:
    """Whether an argument is a list, or another iterable that is no single text or path.

    Raises:
        ConfigurationError: it is not.
    """
    if isinstance(given, str | Path) or not isinstance(given, Iterable):
        kind = type(given).__name__
        raise ConfigurationError(f"{part}: expected a list, not one {kind}{way_out}")


def checked_parts(
    part: str, given: Iterable[T], protocol: type[Any], way_out: str = ""
) -> tuple[T, ...]:
    """The objects of a list, each of which has all attributes of a protocol.

    Raises:
        ConfigurationError: this is no list, or one has not.
    """
    check_list(part, given, way_out)
    parts = tuple(given)
    for one in parts:
        check_part(part, one, protocol, way_out)
    return parts
