"""Saved questions: questions that a memory answers, in other words than its own.

People ask for a memory in words that it does not contain: "What am I allergic to?" for "Hazelnuts
make my throat swell." To connect the two takes knowledge, which whoever saves the memory has. So an
item may have questions, in its attribute ``questions``. The item is found by them, by words and by
meaning, as by its content; the best of content and questions decides how relevant it is
(``recall/relevance.py``). They are never shown as an answer. An item that replaces another one
inherits its questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from router.errors import InvalidRequest
from router.memory.model import AttributeValue, MemoryItem
from router.request import check_text

QUESTIONS: Final = "questions"
MAX_QUESTIONS: Final = 5
MAX_QUESTION_CHARACTERS: Final = 300


def checked_questions(value: object) -> tuple[str, ...]:
    """Questions as they are stored. A text is split into lines, and empty lines are left out.

    Raises:
        InvalidRequest: they are no texts, or too many or too long.
    """
    listed: object = value
    if isinstance(value, str):
        listed = [line for line in value.splitlines() if line and not line.isspace()]
    if not isinstance(listed, Sequence):
        raise InvalidRequest(f"questions: expected a list of texts, not {value!r:.100}")
    for question in listed:
        check_text("questions", question, MAX_QUESTION_CHARACTERS)
    questions = tuple(dict.fromkeys(" ".join(question.split()) for question in listed))
    if len(questions) > MAX_QUESTIONS:
        raise InvalidRequest(f"questions: {len(questions)}; at most {MAX_QUESTIONS}")
    return questions


def kept_questions(value: AttributeValue) -> AttributeValue:
    """The attribute ``questions`` as it is stored. A value that cannot be questions is kept as it
    is, because its writer may mean something else by this name."""
    try:
        return checked_questions(value)
    except InvalidRequest:
        return value


def questions_of(item: MemoryItem) -> tuple[str, ...]:
    """The saved questions of an item."""
    return texts_of("", item.attributes)[1:]


def inheriting(item: MemoryItem, replaced: Iterable[MemoryItem]) -> MemoryItem:
    """The item with the questions of the items that it replaces, unless it has some itself."""
    inherited = dict.fromkeys(question for old in replaced for question in questions_of(old))
    if not inherited or QUESTIONS in item.attributes:
        return item
    questions = tuple(inherited)[:MAX_QUESTIONS]
    return replace(item, attributes={**item.attributes, QUESTIONS: questions})


def texts_of(content: str, attributes: Mapping[str, Any]) -> tuple[str, ...]:
    """All texts by which an item is found and judged: its content, then its questions. A layer that
    somebody added may use the attribute for something else. So a value that is not a list is
    ignored, and of a list only valid questions among the first ``MAX_QUESTIONS`` count."""
    questions = attributes.get(QUESTIONS, ())
    if not isinstance(questions, tuple | list):
        return (content,)
    return (content, *filter(_is_question, questions[:MAX_QUESTIONS]))


def _is_question(text: object) -> bool:
    try:
        check_text("questions", text, MAX_QUESTION_CHARACTERS)
    except InvalidRequest:
        return False
    return True
