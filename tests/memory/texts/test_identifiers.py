"""Codes and numbers that name one thing of a kind."""

from __future__ import annotations

import pytest

from router.memory.texts.identifiers import identifiers_in, possible_identifiers_in


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("What does E-31 on the spindle mean?", {"e-": {"e31"}}),
        ("Does room 15 have a projector?", {"room": {"15"}}),
        ("When was tram 318 built?", {"tram": {"318"}}),
        ("Who paid invoice 2026-077?", {"invoic": {"2026077"}}),
        ("The BMW R-80", {"bmw": {"r80"}, "r-": {"r80"}}),
        ("locker number 31", {"locker": {"31"}}),
        ("Tickets of class B", {"class": {"b"}}),
        ("Does route 13 pass the church?", {"rout": {"13"}}),
        ("Where is lamp H4?", {"lamp": {"h4"}, "h-": {"h4"}}),
        ("Where is lamp H1?", {"lamp": {"h1"}}),
    ],
)
def test_a_thing_is_named_by_a_code_or_a_number_behind_its_kind(
    text: str, kinds: dict[str, set[str]]
) -> None:
    assert identifiers_in(text) == kinds


@pytest.mark.parametrize(
    "text",
    [
        "Does the castration cost 200 euros?",
        "Wheels of 850 mm weigh 40 kilos.",
        "No tram goes 30 km/h or costs 2.40 or $5 or 7 %.",
        "What happened in May 2026, on May 5, in Q3 or at 10:30?",
        "We use Python 3.12, not version 2.",
        "Am I the 3rd?",
        "Does the marquee fit 40 people?",
    ],
)
def test_amounts_dates_and_versions_name_nothing(text: str) -> None:
    assert identifiers_in(text) == {}


def test_a_number_behind_a_noun_is_possible_also_before_what_may_be_a_plural() -> None:
    text = "Bus 7 leaves the mill, which holds 12 screws, at $5."
    assert identifiers_in(text) == {}
    assert possible_identifiers_in(text) == {"bus": {"7"}, "hold": {"12"}}
