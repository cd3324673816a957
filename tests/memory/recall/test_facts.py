"""What a memory states beside that which a later one changes."""

from __future__ import annotations

import pytest

from router.memory.recall.facts import kept_words, subjects_of


@pytest.mark.parametrize(
    ("older", "newer", "kept"),
    [
        ("I live in Graz and have a wasp allergy", "I moved to Linz", "wasp"),
        ("Omar is treasurer and keeps the cellar key", "Lena is the new treasurer", "cellar"),
        ("Bus 7 leaves at 8:10 and takes bicycles", "Bus 7 leaves at 8:25 now", "bicycl"),
        (
            "The hall was built by the brothers Krone. The key code of the hall is 4821.",
            "The key code of the hall is now 9034",
            "krone",
        ),
    ],
)
def test_a_second_fact_that_the_later_memory_does_not_touch_is_kept(
    older: str, newer: str, kept: str
) -> None:
    assert any(word.startswith(kept) for word in kept_words(newer, older))


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ("I live in Ulm, third floor", "I moved to Linz"),
        ("The fee is 40 euros, because the roof leaks", "The fee is 60 euros now"),
        ("We have apples and pears", "We have plums now"),
        ("I live in Graz", "I moved to Linz"),
    ],
)
def test_a_memory_of_one_fact_keeps_nothing(older: str, newer: str) -> None:
    assert kept_words(newer, older) == frozenset()


def test_the_subjects_are_what_the_facts_are_about() -> None:
    assert "omar" in subjects_of("Omar is treasurer and keeps the cellar key")
