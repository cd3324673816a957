"""Items of one content as one item."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from scripted_layers import remembered

from router.memory.model import MemoryItem
from router.memory.texts.contents import content_key, without_copies

TEXTS = ["Auth uses JWT", "Auth  uses\nJWT", " Auth uses JWT ", "auth uses jwt", "C++", "C"]
FOUND = st.tuples(
    st.sampled_from(["session", "graph"]),
    st.sampled_from(TEXTS),
    st.lists(st.sampled_from(["file:a", "file:b"]), max_size=2).map(tuple),
)
ITEMS = st.lists(FOUND, max_size=8).map(
    lambda found: [
        replace(remembered(layer, text, provenance=origins), id=str(place))
        for place, (layer, text, origins) in enumerate(found)
    ]
)


@given(ITEMS)
def test_taking_copies_out_twice_is_taking_them_out_once(items: list[MemoryItem]) -> None:
    once = list(without_copies(items).values())
    assert list(without_copies(once).values()) == once


@given(ITEMS)
def test_the_first_copy_of_each_content_stays_in_order(items: list[MemoryItem]) -> None:
    firsts: dict[str, str] = {}
    for item in items:
        firsts.setdefault(content_key(item.content), item.id)
    assert [item.id for item in without_copies(items).values()] == list(firsts.values())


@given(ITEMS)
def test_no_origin_is_lost(items: list[MemoryItem]) -> None:
    told = {origin for item in without_copies(items).values() for origin in item.provenance}
    assert {origin for item in items for origin in item.provenance} <= told


def test_what_has_no_provenance_is_named_by_its_layer_and_id() -> None:
    (one,) = without_copies(
        [remembered("project", "Auth uses JWT"), remembered("graph", "Auth uses  JWT")]
    ).values()
    assert one.layer == "project"
    assert one.provenance == ("project:Auth uses JWT", "graph:Auth uses  JWT")
