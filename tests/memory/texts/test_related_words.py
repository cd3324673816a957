"""Words of everyday life that belong together."""

from __future__ import annotations

from router.memory.texts.related_words import other_kinds, related_to
from router.text import stem


def test_words_of_one_group_stand_for_each_other() -> None:
    assert stem("allergic") in related_to([stem("eat")])[stem("eat")]
    assert stem("eat") in related_to([stem("allergic")])[stem("allergic")]


def test_two_kinds_of_one_thing_do_not_stand_for_each_other() -> None:
    related = related_to([stem("pet"), stem("dog")])
    assert {stem("cat"), stem("dog")} <= related[stem("pet")]
    assert stem("pet") in related[stem("dog")]
    assert stem("cat") not in related[stem("dog")]


def test_a_kind_knows_the_other_kinds_that_do_not_stand_for_it() -> None:
    others = other_kinds(map(stem, ("wife", "peanuts", "eat", "minutes")))
    assert stem("husband") in others[stem("wife")]
    assert stem("nuts") not in others[stem("peanuts")]
    assert others.keys().isdisjoint({stem("eat"), stem("minutes")})


def test_a_word_of_no_group_has_none_and_none_is_related_to_itself() -> None:
    assert related_to(["zanzibar"]) == {}
    assert all(word not in others for word, others in related_to([stem("eat")]).items())


def test_an_irregular_past_stands_for_its_verb() -> None:
    assert stem("said") in related_to([stem("say")])[stem("say")]
    assert stem("say") in related_to([stem("said")])[stem("said")]
