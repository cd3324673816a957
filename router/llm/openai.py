"""OpenAI-compatible chat completions, through the official SDK.

Many servers speak this protocol, few speak all of it. The first call asks for everything: a strict
JSON schema, token probabilities, temperature 0, the newer name of the token limit. When a server
refuses the call and names one of these (or gives a bare 400), that feature is given up and the
call is made again; what finally worked is remembered for this client, so that the price is paid
once, and every completion says what was refused. Reasoning models refuse temperature and log
probabilities, Azure and fine-tuned models refuse array bounds, older servers refuse schemas.

The response is taken raw and read here: the SDK builds its typed objects without checking them.
Its own retries are off, because the stage owns the deadline.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from router.bounded.replies import RefusedReply, refusal_in, reply_bounds
from router.errors import LLMAnswerError, LLMError, LLMRejected, LLMUnavailable
from router.llm.protocol import MAX_ANSWER_TOKENS, Completion, OutputMode, Prompt, Token
from router.llm.sdk import LoopClient, retry_after
from router.web.loopback import direct, why_no_client

if TYPE_CHECKING:
    from openai import APIStatusError, AsyncOpenAI

_PROVIDER: Final = "openai"
_SECRET_CHARACTERS: Final = 8
"""A key of as many characters is no word that happens to stand in a message."""

# What may be given up, in this order when a server does not say what it minds, with the words by
# which servers name it. ``json_object`` is asked for only once ``json_schema`` was refused.
_FEATURES: Final[Mapping[str, tuple[str, ...]]] = {
    "maxItems": ("maxitems", "minitems"),
    "json_schema": ("response_format", "json_schema", "grammar"),
    "json_object": ("response_format", "json_object"),
    "logprobs": ("logprobs",),
    "temperature": ("temperature",),
    "max_completion_tokens": ("max_completion_tokens", "max_tokens"),
}
# A 400 with one of these codes is not about a feature.
_OTHER_FAULTS: Final = frozenset(
    {"context_length_exceeded", "model_not_found", "content_filter", "content_policy_violation"}
)


class OpenAIModel:
    """A chat model behind an OpenAI-compatible API.

    Args:
        base_url: the API's root; None means ``OPENAI_BASE_URL``, or OpenAI itself.
        api_key: None means ``OPENAI_API_KEY``; where there is a ``base_url`` and no key at all,
            none is needed (local servers).
    """

    def __init__(
        self, model: str, *, base_url: str | None = None, api_key: str | None = None
    ) -> None:
        self.provider = _PROVIDER
        self.model = model
        self._client = LoopClient("openai", lambda: _client(base_url, api_key))
        self._refused: tuple[str, ...] = ()

    async def complete(self, prompt: Prompt, *, timeout_seconds: float) -> Completion:
        """Ask once; see ``ChatModel``. A refused feature costs one more round trip, once."""
        client = await self._client.get()
        import openai

        known = refused = self._refused
        try:
            async with asyncio.timeout(timeout_seconds):
                while True:
                    try:
                        response = await client.chat.completions.with_raw_response.create(
                            **_arguments(self.model, prompt, refused)
                        )
                        break
                    except openai.APIStatusError as error:
                        feature = _refused_feature(error, refused)
                        if feature is None:
                            raise
                        refused = (*refused, feature)
        except TimeoutError:
            raise LLMUnavailable(_PROVIDER, f"no answer within {timeout_seconds:.3g} s") from None
        except (openai.OpenAIError, RefusedReply, ValueError) as error:
            raise _without_key(as_llm_error(error), client.api_key) from error
        if refused != known:
            self._refused = tuple(dict.fromkeys((*self._refused, *refused)))
        return _read(response.content, refused)

    async def aclose(self) -> None:
        await self._client.aclose()


def _client(base_url: str | None, api_key: str | None) -> AsyncOpenAI:
    """Raises LLMRejected: no call can be made with these settings."""
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    if api_key is None and base_url is not None:
        api_key = "not-needed"  # the SDK insists on one
    try:
        address = base_url or os.environ.get("OPENAI_BASE_URL")
        options = direct(DefaultAsyncHttpxClient, address)
        bounded = DefaultAsyncHttpxClient(event_hooks=reply_bounds(), **options)
        client = AsyncOpenAI(base_url=base_url, api_key=api_key, max_retries=0, http_client=bounded)
        parts = urlsplit(str(client.base_url))
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError("the base URL is not an http address")
        _ = parts.port  # raises when it is out of range; the SDK would, much later
    except Exception as error:  # the HTTP library below the SDK has errors of its own
        reason = f"the settings cannot be used: {why_no_client(error)}"
        raise LLMRejected(_PROVIDER, reason) from error
    return client


def _without_key(error: LLMError, key: str) -> LLMError:
    """The same error without the key, which some servers repeat when they refuse it. A key of a few
    letters, as servers without keys are given, is taken out where it is a word of its own."""
    if key:
        text = re.escape(key)
        pattern = text if len(key) >= _SECRET_CHARACTERS else rf"(?<!\w){text}(?!\w)"
        error.args = tuple(re.sub(pattern, "***", str(part)) for part in error.args)
    return error


def as_llm_error(error: Exception) -> LLMError:
    """What an exception of the SDK means for the router. Every one of them means something.

    A bare ValueError is about the call that was to be sent, such as a key that is not ASCII; the
    response is parsed here, not by the SDK.
    """
    import openai

    if isinstance(error, openai.APIStatusError):
        body = error.body
        said = body.get("message") if isinstance(body, dict) else None
        message = f"{error.status_code} {said}" if said else error.message
        # An exhausted quota comes as 429 too, but waiting does not refill it.
        if error.code == "insufficient_quota":
            return LLMRejected(_PROVIDER, message)
        if error.status_code in (408, 409, 425, 429) or error.status_code >= 500:
            return LLMUnavailable(_PROVIDER, message, retry_after(error.response.headers))
        return LLMRejected(_PROVIDER, message)
    if (refusal := refusal_in(error)) is not None:  # some versions of the SDK wrap it
        return LLMUnavailable(_PROVIDER, str(refusal))
    if isinstance(error, openai.APIConnectionError):
        cause = error.__cause__
        detail = f" ({cause})" if cause is not None and str(cause) else ""
        where = error.request.url.netloc.decode()  # the address without what else is in the URL
        return LLMUnavailable(_PROVIDER, f"{where}: {error.message}{detail}")
    if isinstance(
        error,
        openai.APIResponseValidationError
        | openai.LengthFinishReasonError
        | openai.ContentFilterFinishReasonError,
    ):
        return LLMAnswerError(_PROVIDER, str(error))
    return LLMRejected(_PROVIDER, str(error))


def _arguments(model: str, prompt: Prompt, refused: tuple[str, ...]) -> dict[str, Any]:
    limit = "max_tokens" if "max_completion_tokens" in refused else "max_completion_tokens"
    arguments: dict[str, Any] = {
        "model": model,
        "messages": [
            {"role": "system", "content": prompt.system},
            {"role": "user", "content": prompt.user},
        ],
        limit: MAX_ANSWER_TOKENS,
    }
    if "temperature" not in refused:
        arguments["temperature"] = 0
    if "logprobs" not in refused:
        arguments["logprobs"] = True
    mode = _mode(refused)
    if mode is OutputMode.JSON_SCHEMA:
        schema = _without_bounds(prompt.schema) if "maxItems" in refused else prompt.schema
        arguments["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "route", "strict": True, "schema": schema},
        }
    elif mode is OutputMode.JSON_OBJECT:
        arguments["response_format"] = {"type": "json_object"}
    return arguments


def _mode(refused: tuple[str, ...]) -> OutputMode:
    if "json_schema" not in refused:
        return OutputMode.JSON_SCHEMA
    return OutputMode.PLAIN if "json_object" in refused else OutputMode.JSON_OBJECT


def _without_bounds(schema: Mapping[str, Any]) -> dict[str, Any]:
    properties = {
        name: {key: value for key, value in part.items() if key not in ("minItems", "maxItems")}
        for name, part in schema["properties"].items()
    }
    return {**schema, "properties": properties}


def _refused_feature(error: APIStatusError, refused: tuple[str, ...]) -> str | None:
    """The feature that the server refused with ``error``; None when it is about no feature."""
    if error.status_code not in (400, 403, 422, 501) or error.code in _OTHER_FAULTS:
        return None
    left = [feature for feature in _FEATURES if feature not in refused]
    text = f"{error.param} {error.message} {error.body}".lower()
    for feature in left:
        if any(word in text for word in _FEATURES[feature]):
            return feature
    # A 403 that names nothing is about the key. A bare 400 may be about anything.
    return left[0] if left and error.status_code != 403 else None


def _read(body: bytes, refused: tuple[str, ...]) -> Completion:
    """Read a chat completion.

    Raises:
        LLMAnswerError: the body is not one, or the answer is cut off, empty or a refusal.
    """

    def unusable(reason: str) -> LLMAnswerError:
        return LLMAnswerError(_PROVIDER, reason)

    try:
        raw = json.loads(body)
    except (ValueError, RecursionError):
        raise unusable("the response is not JSON") from None
    choices = raw.get("choices") if isinstance(raw, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(choice, dict) or not isinstance(message, dict):
        raise unusable("the response holds no choice")
    refusal = message.get("refusal")
    if isinstance(refusal, str) and refusal:
        raise unusable(f"the model refused: {refusal}")
    if choice.get("finish_reason") == "content_filter":
        raise unusable("the provider's content filter withheld the answer")
    if choice.get("finish_reason") == "length":
        raise unusable("the answer was cut off at the token limit")
    text = message.get("content")
    if not isinstance(text, str) or not text:
        raise unusable("the answer is empty")

    usage = raw.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    return Completion(
        text=text,
        mode=_mode(refused),
        tokens=_tokens(choice.get("logprobs")),
        refused=refused,
        input_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
    )


def _tokens(logprobs: object) -> tuple[Token, ...]:
    """The tokens, or none at all when one of them cannot be read."""
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    if not isinstance(content, list):
        return ()
    tokens: list[Token] = []
    for item in content:
        if not isinstance(item, dict):
            return ()
        token = Token.parse(item.get("token"), item.get("logprob"), item.get("bytes"))
        if token is None:
            return ()
        tokens.append(token)
    return tuple(tokens)


def _count(value: object) -> int | None:
    return value if type(value) is int and value >= 0 else None
