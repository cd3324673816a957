"""What a model answers about memories: read as strictly as anything from outside."""

from __future__ import annotations

import json
import re
from typing import Any, Final

from router.errors import LLMAnswerError

CALL_SECONDS: Final = 60.0
MAX_ANSWER_CHARACTERS: Final = 100_000
_NUMBER: Final = re.compile(r"\d+")


def answered(text: str, provider: str) -> dict[str, Any]:
    """The JSON object in an answer, text around it apart.

    Raises:
        LLMAnswerError: there is none.
    """
    if len(text) > MAX_ANSWER_CHARACTERS:
        raise LLMAnswerError(provider, f"an answer of over {MAX_ANSWER_CHARACTERS:,} characters")
    try:
        value = json.loads(text[text.find("{") : text.rfind("}") + 1])
    except (ValueError, RecursionError):
        raise LLMAnswerError(provider, "the answer holds no JSON object") from None
    if not isinstance(value, dict):
        raise LLMAnswerError(provider, "the answer holds no JSON object")
    return value


def numbers_in(text: str) -> set[str]:
    """The numbers of a text."""
    return set(_NUMBER.findall(text))
