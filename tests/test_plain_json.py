from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

from router.plain_json import PlainJson, plain_json


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
