"""What can be understood without the turns before it."""

from __future__ import annotations

import pytest

from router.stages.standing_alone import adds_a_detail, is_whole_question


@pytest.mark.parametrize(
    "request_", ["for Anna too", "10 copies", "what about German?", "and without the last page"]
)
def test_a_few_words_may_only_add_a_detail(request_: str) -> None:
    assert adds_a_detail(request_)


@pytest.mark.parametrize("request_", ["and a pizza recipe?", "open my email", "now write a poem"])
def test_a_request_with_a_task_of_its_own_adds_more_than_a_detail(request_: str) -> None:
    assert not adds_a_detail(request_)


@pytest.mark.parametrize(
    "request_",
    ["how do I make pancakes?", "When is Easter?", "is there a beach near Lisbon?", "who wrote it"],
)
def test_a_whole_question_points_to_nothing_said_before(request_: str) -> None:
    assert is_whole_question(request_) == (not request_.endswith("it"))


@pytest.mark.parametrize(
    "request_",
    [
        "which gate?",
        "why is that?",
        "what if I cycle?",
        "can you cut the logo?",
        "10 copies",
        "red",
    ],
)
def test_a_fragment_a_pointing_question_and_a_wish_are_no_whole_questions(request_: str) -> None:
    assert not is_whole_question(request_)
