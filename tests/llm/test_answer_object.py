"""The JSON object of an answer: found in text around it, and read strictly."""

from __future__ import annotations

import pytest

from router.errors import LLMAnswerError
from router.llm.answer_object import MAX_ANSWER_CHARACTERS, AnswerObject, read_object


class Colour(AnswerObject):
    name: str


def test_text_around_the_object_is_passed_over() -> None:
    text = 'Here it is:\n```json\n{"name": "blue"}\n```'
    assert read_object(Colour, text, provider="x") == Colour(name="blue")


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("blue", "no JSON object"),
        ('{"name": 7}', "name"),
        ('{"name": "blue", "size": 3}', "size"),
        ('{"name": "blue"', "unusable answer"),
        ("x" * (MAX_ANSWER_CHARACTERS + 1), "over 100,000 characters"),
    ],
)
def test_anything_else_is_refused_with_the_provider_and_the_fault(text: str, fault: str) -> None:
    with pytest.raises(LLMAnswerError) as caught:
        read_object(Colour, text, provider="openai")
    assert caught.value.provider == "openai"
    assert fault in str(caught.value)
