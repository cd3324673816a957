import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from pickle import dumps, loads
from types import MappingProxyType
from typing import Any

import pytest
from pydantic import BaseModel, ConfigDict, ValidationError

from router.plain_json import MAX_PLACE, PlainJson, ReadOnly, first_fault, plain_json


class Colour(StrEnum):
    RED = "red"


@dataclass(frozen=True, slots=True)
class Point:
    x: int
    y: float


@dataclass(frozen=True, slots=True)
class Shape(PlainJson):
    colour: Colour
    corners: tuple[Point, ...]
    sizes: Mapping[Colour, int]
    made: datetime
    file: Path
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Named(PlainJson):
    shape: Shape

    def to_dict(self) -> dict[str, Any]:
        return PlainJson.to_dict(self) | {"corners": len(self.shape.corners)}


SHAPE = Shape(
    Colour.RED,
    (Point(1, 2.5),),
    MappingProxyType({Colour.RED: 3}),
    datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
    Path("shapes/red"),
)


@pytest.mark.parametrize(
    "change",
    [
        lambda one: one.update(a=2),
        lambda one: one.clear(),
        lambda one: one.pop("a"),
        lambda one: one.popitem(),
        lambda one: one.setdefault("b", 2),
        lambda one: one.__setitem__("a", 2),
        lambda one: one.__delitem__("a"),
        lambda one: one.__ior__({"a": 2}),
    ],
)
def test_what_is_read_only_cannot_be_changed(change: Callable[[Any], object]) -> None:
    given = {"a": 1}
    one = ReadOnly(given)
    given["a"] = 2
    with pytest.raises(TypeError, match="ReadOnly cannot be changed"):
        change(one)
    assert one == {"a": 1}


def _pickled(one: object) -> object:
    return loads(dumps(one))  # noqa: S301 - our own bytes


@pytest.mark.parametrize("twin_of", [copy.copy, copy.deepcopy, _pickled])
def test_what_is_read_only_can_be_copied_and_pickled(twin_of: Callable[[Any], object]) -> None:
    twin = twin_of(ReadOnly(a=(1, 2)))
    assert twin == {"a": (1, 2)}
    assert type(twin) is ReadOnly


def test_fields_become_plain_types_in_their_order() -> None:
    found = SHAPE.to_dict()
    assert list(found) == ["colour", "corners", "sizes", "made", "file", "name"]
    assert found == {
        "colour": "red",
        "corners": [{"x": 1, "y": 2.5}],
        "sizes": {"red": 3},
        "made": "2026-01-02T03:04:00+00:00",
        "file": "shapes/red",
        "name": None,
    }
    assert type(found["colour"]) is str


def test_a_class_with_keys_of_its_own_keeps_them_inside_another_object() -> None:
    assert plain_json([Named(SHAPE)])[0]["corners"] == 1


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")

    x: int = 0


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"x": "secret"}, "x: Input should be a valid integer"),
        ("secret", "Input should be an object"),
        ({"a\nERROR forged": 1}, "a ERROR forged: Extra inputs"),
        ({"k" * 100_000: 1}, f"{'k' * MAX_PLACE}: Extra inputs"),
    ],
)
def test_a_fault_is_told_in_a_short_line_without_the_value(given: object, told: str) -> None:
    with pytest.raises(ValidationError) as raised:
        Closed.model_validate(given)
    said = first_fault(raised.value)
    assert said.startswith(told)
    assert "secret" not in said and "\n" not in said and len(said) < 400
