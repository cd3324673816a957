"""The interface between the LLM stage and the providers' SDKs.

A provider is any object with the methods of ``ChatModel``. It raises only ``LLMUnavailable``,
``LLMRejected`` and ``LLMAnswerError`` of ``router.errors``, and no exception of an SDK, so that the
stage can decide about retries without knowing any SDK. Another exception costs no request, but the
model is then not asked again for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, Protocol

from router.numeric import finite

MAX_ANSWER_TOKENS: Final = 4096
"""The longest answer that a call may allow. Most have some hundred tokens, but what a model thinks
before counts too."""


class OutputMode(StrEnum):
    """How the provider was made to return the required JSON, the strictest way first."""

    JSON_SCHEMA = "json_schema"
    """Decoding is constrained to the schema."""
    JSON_OBJECT = "json_object"
    """The provider returns some JSON object; the prompt describes its fields."""
    PLAIN = "plain"
    """Only the prompt describes the format."""


@dataclass(frozen=True, slots=True)
class OfferedSkill:
    """A skill as the model sees it."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt to a model.

    Attributes:
        system: fixed instructions; it contains no untrusted text.
        user: the untrusted data, as JSON.
        schema: JSON schema of the answer.
    """

    system: str
    user: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Token:
    """One generated token.

    Attributes:
        data: its UTF-8 bytes; a token may be a part of one character.
        probability: the model's probability of it, in [0, 1], given what came before.
    """

    data: bytes
    probability: float

    @classmethod
    def parse(cls, text: object, logprob: object, data: object = None) -> Token | None:
        """The token that a provider describes by text, natural log and, optionally, byte values.

        None when the description is not usable; the answer itself may still be.
        """
        log_probability = -math.inf if logprob == -math.inf else finite(logprob)
        if log_probability is None:
            return None
        if isinstance(data, list) and all(type(b) is int and 0 <= b <= 255 for b in data):
            raw = bytes(data)
        elif isinstance(text, str):
            raw = text.encode("utf-8", "replace")
        else:
            return None
        # Some servers round log 1 to a small positive number.
        return cls(raw, math.exp(min(log_probability, 0.0)))


@dataclass(frozen=True, slots=True)
class Completion:
    """The answer of a model.

    Attributes:
        text: the answer, as generated.
        mode: how the format was enforced.
        tokens: the generated tokens with their probabilities; empty when the provider gives none.
        refused: features of the call that this provider does not support, such as ``"logprobs"``.
        input_tokens: size of the prompt, as the provider counted it; None when it did not say.
        output_tokens: size of the answer, likewise.
    """

    text: str
    mode: OutputMode
    tokens: tuple[Token, ...] = ()
    refused: tuple[str, ...] = ()
    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class Price:
    """What a model costs, in US dollars for a million tokens of prompts and of answers."""

    input: float
    output: float

    def of(self, input_tokens: int, output_tokens: int) -> float:
        """The price of these tokens, in dollars."""
        return (input_tokens * self.input + output_tokens * self.output) / 1e6


class ChatModel(Protocol):
    """One model of one provider. Instances are shared by concurrent requests on one event loop."""

    @property
    def provider(self) -> str:
        """The provider's name, such as ``"openai"``."""

    @property
    def model(self) -> str:
        """The model's name, as the provider knows it."""

    async def complete(self, prompt: Prompt, *, timeout_seconds: float) -> Completion:
        """Call the model once, without retries, for an answer of at most ``MAX_ANSWER_TOKENS``.
        ``timeout_seconds`` is for the whole call.

        Raises:
            LLMUnavailable: no connection, no answer in time, 429 or 5xx.
            LLMRejected: the provider refuses the call itself.
            LLMAnswerError: the answer is malformed, cut off, empty or a refusal.
        """

    async def aclose(self) -> None:
        """Close the connections. The model may be used again afterwards."""
