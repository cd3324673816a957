"""Questions that a memory answers, in other words than its own.

People ask for a memory in words that it does not hold: "What am I allergic to?" for "Hazelnuts make
my throat swell." What lies between is knowledge, and whoever saves a memory has it. So an item may
bring questions, as its attribute ``questions``. They are found by words and by meaning as its
content is, and of the content and the questions the one that fits best decides what the item is
worth (``recall/relevance.py``). They are never an answer themselves. What replaces an item answers
its questions from then on.
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


def checked_questions(given: object) -> tuple[str, ...]:
    """Questions as they are stored; a text holds one a line, and its empty lines none.

    Raises:
        InvalidRequest: they are no texts, or too many or too long.
    """
    listed: object = given
    if isinstance(given, str):
        listed = [line for line in given.splitlines() if line and not line.isspace()]
    if not isinstance(listed, Sequence):
        raise InvalidRequest(f"questions: expected a list of texts, not {given!r:.100}")
    for question in listed:
        check_text("questions", question, MAX_QUESTION_CHARACTERS)
    questions = tuple(dict.fromkeys(" ".join(question.split()) for question in listed))
    if len(questions) > MAX_QUESTIONS:
        raise InvalidRequest(f"questions: {len(questions)}; at most {MAX_QUESTIONS}")
    return questions


def kept_questions(given: AttributeValue) -> AttributeValue:
    """The attribute as it is stored: as questions if they are some, else as it was given, because
    who wrote it may mean something else by it."""
    try:
        return checked_questions(given)
    except InvalidRequest:
        return given


def questions_of(item: MemoryItem) -> tuple[str, ...]:
    """The questions that an item brings."""
    return texts_of("", item.attributes)[1:]


def inheriting(item: MemoryItem, replaced: Iterable[MemoryItem]) -> MemoryItem:
    """The item with the questions of what it replaces, unless it brings some itself."""
    asked = dict.fromkeys(question for old in replaced for question in questions_of(old))
    if not asked or QUESTIONS in item.attributes:
        return item
    return replace(item, attributes={**item.attributes, QUESTIONS: tuple(asked)[:MAX_QUESTIONS]})


def texts_of(content: str, attributes: Mapping[str, Any]) -> tuple[str, ...]:
    """All texts that an item is found and judged by: its content, then its questions. A layer of
    anyone's may mean something else by the attribute: what is no list of texts is none, and of a
    list count the first ``MAX_QUESTIONS``, where they could be stored as questions."""
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
