"""The JSON object that a model answers with: read as strictly as anything from outside."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from router.errors import LLMAnswerError
from router.plain_json import first_fault

MAX_ANSWER_CHARACTERS: Final = 100_000


class AnswerObject(BaseModel):
    """What an answer must hold: its fields and no others."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


def object_schema(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON schema of an object with these fields, as OpenAI's strict mode accepts it: all of
    them required, and no others."""
    return {
        "type": "object",
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


T = TypeVar("T", bound=AnswerObject)


def read_object(shape: type[T], text: str, *, provider: str) -> T:
    """The object in an answer; text around it is passed over, because models put it into a code
    fence when nothing constrains them.

    Raises:
        LLMAnswerError: there is no such object; the error names the provider.
    """
    if len(text) > MAX_ANSWER_CHARACTERS:
        fault = f"over {MAX_ANSWER_CHARACTERS:,} characters"
    elif "{" not in text:
        fault = "no JSON object"
    else:
        try:
            return shape.model_validate_json(text[text.find("{") : text.rfind("}") + 1])
        except ValidationError as error:
            fault = first_fault(error)
    raise LLMAnswerError(provider, f"unusable answer: {fault}")
