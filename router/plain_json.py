"""Values as plain JSON types, so that each dataclass need not spell out its own keys."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import is_dataclass
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

K = TypeVar("K")
V = TypeVar("V")


class ReadOnly(dict[K, V]):
    """A mapping that stays what it was made as. Unlike ``MappingProxyType`` it can be copied and
    pickled, and others can write it: ``dataclasses.asdict``, the answers of FastAPI, ``json``."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (dict(self),)

    if not TYPE_CHECKING:  # a dict that cannot be changed is none to type checkers

        def _refused(self, *_given, **_named):
            raise TypeError(f"{type(self).__name__} cannot be changed")

        __setitem__ = __delitem__ = __ior__ = clear = pop = popitem = _refused
        setdefault = update = _refused


class PlainJson:
    """Gives a dataclass ``to_dict``. A class whose JSON has other keys than its fields defines its
    own, which is then used wherever the object is part of another one, too."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The object as plain JSON types, keys in the order of its fields."""
        return _fields_of(self)


MAX_PLACE: Final = 200
"""Characters of the place of a fault that are told."""
_PLAIN_TYPES: Final = frozenset((str, int, float, bool, type(None)))


def plain_json(value: Any) -> Any:
    """The value as JSON can carry it: times in ISO 8601, enumerations by value, paths as text."""
    if type(value) in _PLAIN_TYPES:
        return value
    if isinstance(value, PlainJson):
        return value.to_dict()
    if isinstance(value, (tuple, list, Set)):
        return [plain_json(each) for each in value]
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, Mapping):
        return {plain_json(key): plain_json(each) for key, each in value.items()}
    return _fields_of(value) if is_dataclass(value) else value


def _fields_of(value: Any) -> dict[str, Any]:
    return {name: plain_json(getattr(value, name)) for name in value.__dataclass_fields__}


def first_fault(error: ValidationError) -> str:
    """Where a value is not what its pydantic type says, and why; of several, the first. All is on
    one line."""
    [(place, why)] = faults_in(error, most=1)
    return " ".join(f"{place}: {why}".removeprefix(": ").split())


def faults_in(error: ValidationError, *, most: int) -> list[tuple[str, str]]:
    """Where values are not what their pydantic types say, and why; the first of them. The values
    themselves, which may be secret or endless, are left out; a place, which may hold keys of a
    stranger, has at most ``MAX_PLACE`` characters."""
    found = error.errors(include_input=False, include_url=False, include_context=False)
    return [(".".join(map(str, one["loc"]))[:MAX_PLACE], words_of(one)) for one in found[:most]]


def words_of(fault: ErrorDetails) -> str:
    """What is wrong, in pydantic's words or in those of our own check."""
    if fault["type"] in ("model_type", "dataclass_type"):  # pydantic's words name our class
        return "Input should be an object"
    if fault["type"] == "tuple_type":  # what a caller gives is a list
        return "Input should be a valid list"
    return fault["msg"].removeprefix("Value error, ")
