"""Typos: which misspellings are forgiven, and which real words must be kept apart."""

from __future__ import annotations

import pytest

from router.stages.typos import is_typo


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("deployment", "deplyoment"),
        ("repository", "repositoory"),
        ("documentation", "documentaion"),
        ("calendar", "calender"),
        ("transfer", "transger"),
        ("address", "adress"),
    ],
)
def test_a_slip_in_a_long_word_is_a_typo(right: str, wrong: str) -> None:
    assert is_typo(right, wrong)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("form", "from"),
        ("import", "export"),
        ("contact", "contract"),
        ("public", "publish"),
        ("affect", "effect"),
        ("compile", "compiler"),
        ("formal", "format"),
        ("project", "protect"),
        ("filing", "filling"),
        ("striped", "stripped"),
        ("message", "massage"),
        ("connect", "reconnect"),
        ("upload", "unload"),
        ("version2", "version3"),
        ("address", "addresss"),
        ("princes", "princess"),
    ],
)
def test_real_words_are_not_typos_of_each_other(one: str, other: str) -> None:
    assert not is_typo(one, other)
