"""The OpenAI client: the real SDK against a loopback server."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import openai
import pytest
from llm.asked import ANSWER, PROMPT, complete
from servers.loopback import Reply
from servers.openai_server import OpenAIServer, completion, error

from router.errors import LLMAnswerError, LLMError, LLMRejected, LLMUnavailable
from router.llm.openai import OpenAIModel, as_llm_error
from router.llm.protocol import OutputMode

KEY = "sk-test-0123456789"


@pytest.fixture
async def model(openai_server: OpenAIServer) -> AsyncIterator[OpenAIModel]:
    model = OpenAIModel("test-model", base_url=openai_server.url, api_key=KEY)
    yield model
    await model.aclose()


async def test_an_answer_comes_with_its_tokens_mode_and_usage(
    openai_server: OpenAIServer, model: OpenAIModel
) -> None:
    openai_server.queue(completion(ANSWER, probabilities={"git": 0.25}))
    answered = await complete(model)
    assert answered.text == ANSWER
    assert answered.mode is OutputMode.JSON_SCHEMA
    assert b"".join(token.data for token in answered.tokens).decode() == ANSWER
    assert [t.probability for t in answered.tokens if t.data == b"git"] == [pytest.approx(0.25)]
    assert (answered.input_tokens, answered.output_tokens) == (120, 40)
    assert answered.refused == ()


async def test_the_request_is_a_strict_schema_call_with_log_probabilities(
    openai_server: OpenAIServer, model: OpenAIModel
) -> None:
    openai_server.queue(completion(ANSWER))
    await complete(model)
    (request,) = openai_server.requests
    assert request.headers["authorization"] == f"Bearer {KEY}"
    body = request.body
    assert body["messages"] == [
        {"role": "system", "content": PROMPT.system},
        {"role": "user", "content": PROMPT.user},
    ]
    assert body["response_format"]["json_schema"]["schema"] == PROMPT.schema
    assert list(PROMPT.schema["properties"]) == [
        "skills",
        "memory_layers",
        "mission_brief",
        "reasoning",
        "confidence",
    ]
    assert (body["temperature"], body["logprobs"]) == (0, True)
    assert body["max_completion_tokens"] == 4096


# --- features that a server does not have

SCHEMA_REFUSED = error(
    400,
    "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
    param="response_format",
)
REFUSALS: list[tuple[dict[str, Reply], tuple[str, ...], OutputMode]] = [
    ({"json_schema": SCHEMA_REFUSED}, ("json_schema",), OutputMode.JSON_OBJECT),
    (
        {"response_format": error(400, "response_format is not supported")},
        ("json_schema", "json_object"),
        OutputMode.PLAIN,
    ),
    (
        {"logprobs": error(403, "You are not allowed to request logprobs from this model")},
        ("logprobs",),
        OutputMode.JSON_SCHEMA,
    ),
    (
        {
            "temperature": error(
                400,
                "Unsupported value: 'temperature' does not support 0 with this model.",
                param="temperature",
                code="unsupported_value",
            ),
            "logprobs": error(400, "logprobs are not supported", param="logprobs"),
        },
        ("temperature", "logprobs"),
        OutputMode.JSON_SCHEMA,
    ),
    (
        {
            "max_completion_tokens": error(
                422, "Extra inputs are not permitted: max_completion_tokens"
            )
        },
        ("max_completion_tokens",),
        OutputMode.JSON_SCHEMA,
    ),
    (
        {
            "maxItems": error(
                400,
                "Invalid schema for response_format 'route': In context=('properties', 'skills'), "
                "'maxItems' is not permitted.",
                param="response_format",
            )
        },
        ("maxItems",),
        OutputMode.JSON_SCHEMA,
    ),
    (
        {"response_format": Reply(b"Bad Request", 400, {"Content-Type": "text/plain"})},
        ("maxItems", "json_schema", "json_object"),
        OutputMode.PLAIN,
    ),
    (
        {"json_schema": error(501, "grammar is not implemented")},
        ("json_schema",),
        OutputMode.JSON_OBJECT,
    ),
]


@pytest.mark.parametrize(("refuses", "refused", "mode"), REFUSALS)
async def test_what_a_server_refuses_is_given_up_step_by_step_and_only_once(
    openai_server: OpenAIServer,
    model: OpenAIModel,
    refuses: dict[str, Reply],
    refused: tuple[str, ...],
    mode: OutputMode,
) -> None:
    for feature, reply in refuses.items():
        openai_server.refuse(feature, reply)
    openai_server.always = completion(ANSWER)
    first = await complete(model)
    assert (first.text, first.mode) == (ANSWER, mode)
    assert sorted(first.refused) == sorted(refused)
    assert len(openai_server.requests) == len(refused) + 1
    second = await complete(model)
    assert second.refused == first.refused
    assert len(openai_server.requests) == len(refused) + 2


async def test_the_price_of_a_refusal_is_not_paid_for_another_fault(
    openai_server: OpenAIServer, model: OpenAIModel
) -> None:
    openai_server.queue(error(400, "too long", code="context_length_exceeded"))
    with pytest.raises(LLMRejected, match=r"openai: 400 too long"):
        await complete(model)
    assert len(openai_server.requests) == 1


async def test_a_fault_that_no_concession_mends_changes_nothing_for_later_calls(
    openai_server: OpenAIServer, model: OpenAIModel
) -> None:
    openai_server.always = error(400, "no")
    with pytest.raises(LLMRejected, match=r"openai: 400 no"):
        await complete(model)
    assert len(openai_server.requests) == 7
    openai_server.always = completion(ANSWER)
    assert (await complete(model)).refused == ()


# --- errors


@pytest.mark.parametrize("status", [401, 403, 404, 413])
async def test_a_refused_call_is_rejected(
    openai_server: OpenAIServer, model: OpenAIModel, status: int
) -> None:
    openai_server.queue(error(status, "Incorrect API key or model."))
    with pytest.raises(LLMRejected, match=f"openai: {status} Incorrect API key or model"):
        await complete(model)
    assert len(openai_server.requests) == 1


async def test_a_key_that_a_server_echoes_is_masked(
    openai_server: OpenAIServer, model: OpenAIModel
) -> None:
    openai_server.queue(error(401, f"Incorrect API key provided: {KEY}."))
    with pytest.raises(LLMRejected) as caught:
        await complete(model)
    assert KEY not in str(caught.value)
    assert "***" in str(caught.value)


async def test_a_key_of_one_letter_garbles_no_words(openai_server: OpenAIServer) -> None:
    model = OpenAIModel("test-model", base_url=openai_server.url, api_key="x")
    openai_server.queue(error(401, "No extra text: the key x is not expected."))
    with pytest.raises(LLMRejected, match=r"No extra text: the key \*\*\* is not expected"):
        await complete(model)
    await model.aclose()


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
async def test_a_passing_fault_is_unavailability_and_the_sdk_does_not_retry(
    openai_server: OpenAIServer, model: OpenAIModel, status: int
) -> None:
    openai_server.queue(error(status, "overloaded"))
    with pytest.raises(LLMUnavailable, match=f"openai: {status} overloaded") as caught:
        await complete(model)
    assert caught.value.retry_after is None
    assert len(openai_server.requests) == 1


async def test_an_exhausted_quota_is_a_rejection(
    openai_server: OpenAIServer, model: OpenAIModel
) -> None:
    openai_server.queue(error(429, "You exceeded your quota", code="insufficient_quota"))
    with pytest.raises(LLMRejected):
        await complete(model)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "1.5"}, 1.5),
        ({"Retry-After-Ms": "250", "Retry-After": "1"}, 0.25),
        (
            {
                "Date": "Sat, 21 Nov 2026 10:00:00 GMT",
                "Retry-After": "Sat, 21 Nov 2026 10:00:09 GMT",
            },
            9.0,
        ),
        ({"Retry-After": "soon"}, None),
        ({"Retry-After": "-3"}, None),
        ({"Retry-After": "nan"}, None),
        ({"Retry-After": "inf"}, None),
    ],
)
async def test_the_wait_that_a_server_asks_for_is_passed_on(
    openai_server: OpenAIServer, model: OpenAIModel, headers: dict[str, str], seconds: float | None
) -> None:
    openai_server.queue(error(429, "slow down", headers=headers))
    with pytest.raises(LLMUnavailable) as caught:
        await complete(model)
    assert caught.value.retry_after == seconds


def message(**fields: Any) -> Reply:
    return Reply.json({"choices": [{"message": fields, "finish_reason": "stop"}]})


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(b'{"choices": [{"mess'), "the response is not JSON"),
        (Reply(b"<html>", headers={"Content-Type": "text/html"}), "the response is not JSON"),
        (Reply(b"\xff\xfe"), "the response is not JSON"),
        (Reply(b""), "the response is not JSON"),
        (Reply(b"[1]"), "the response holds no choice"),
        (Reply.json({"choices": []}), "the response holds no choice"),
        (Reply.json({"choices": None}), "the response holds no choice"),
        (Reply.json({"choices": ["text"]}), "the response holds no choice"),
        (Reply.json({"choices": [{"message": None}]}), "the response holds no choice"),
        (Reply.json({"error": {"message": "overloaded"}}), "the response holds no choice"),
        (message(), "the answer is empty"),
        (message(content=""), "the answer is empty"),
        (message(content=[{"type": "text"}]), "the answer is empty"),
        (completion(None, refusal="I cannot do that."), r"the model refused: I cannot do that\."),
        (completion(ANSWER[:20], finish_reason="length"), "the answer was cut off"),
        (completion("", finish_reason="content_filter"), "the provider's content filter"),
    ],
)
async def test_a_response_without_a_usable_answer_is_an_answer_error(
    openai_server: OpenAIServer, model: OpenAIModel, reply: Reply, reason: str
) -> None:
    openai_server.queue(reply)
    with pytest.raises(LLMAnswerError, match=f"openai: {reason}"):
        await complete(model)


@pytest.mark.parametrize(
    "logprobs",
    [
        {"content": None},
        {"content": ["git"]},
        {"content": [{"token": "git", "logprob": None}]},
        [],
        "yes",
    ],
)
async def test_log_probabilities_that_cannot_be_read_do_not_spoil_the_answer(
    openai_server: OpenAIServer, model: OpenAIModel, logprobs: object
) -> None:
    choice = {"message": {"content": ANSWER}, "logprobs": logprobs}
    openai_server.queue(Reply.json({"choices": [choice], "usage": {"prompt_tokens": "many"}}))
    answered = await complete(model)
    assert (answered.text, answered.tokens, answered.input_tokens) == (ANSWER, (), None)


async def test_without_key_and_address_the_call_is_rejected_before_it_is_made() -> None:
    with pytest.raises(LLMRejected, match="OPENAI_API_KEY"):
        await complete(OpenAIModel("test-model"))


@pytest.mark.parametrize(
    "address",
    ["ftp://127.0.0.1", "127.0.0.1:80/v1", "http://127.0.0.1:99999/v1", "http://[::", "h\0", ""],
)
async def test_an_address_that_cannot_be_used_is_rejected(address: str) -> None:
    with pytest.raises(LLMRejected, match="openai: the settings cannot be used"):
        await complete(OpenAIModel("test-model", base_url=address))


async def test_a_key_that_no_header_can_hold_is_rejected(openai_server: OpenAIServer) -> None:
    model = OpenAIModel("test-model", base_url=openai_server.url, api_key="schlüssel")
    with pytest.raises(LLMRejected, match="openai: 'ascii' codec"):
        await complete(model)
    await model.aclose()


# --- every public exception of the SDK

COMPLETION = openai.types.chat.ChatCompletion(
    id="1", choices=[], created=0, model="test-model", object="chat.completion"
)
REQUEST = httpx2.Request("POST", "http://127.0.0.1/v1/chat/completions")
STATUSES = {
    "BadRequestError": 400,
    "AuthenticationError": 401,
    "OAuthError": 401,
    "PermissionDeniedError": 403,
    "NotFoundError": 404,
    "ConflictError": 409,
    "UnprocessableEntityError": 422,
    "RateLimitError": 429,
    "InternalServerError": 500,
    "APIStatusError": 418,
    "APIResponseValidationError": 200,
}
MEANINGS: dict[str, type[LLMError]] = {
    "OpenAIError": LLMRejected,
    "APIError": LLMRejected,
    "APIConnectionError": LLMUnavailable,
    "APITimeoutError": LLMUnavailable,
    "APIResponseValidationError": LLMAnswerError,
    "APIStatusError": LLMRejected,
    "BadRequestError": LLMRejected,
    "AuthenticationError": LLMRejected,
    "OAuthError": LLMRejected,
    "PermissionDeniedError": LLMRejected,
    "NotFoundError": LLMRejected,
    "ConflictError": LLMUnavailable,
    "UnprocessableEntityError": LLMRejected,
    "RateLimitError": LLMUnavailable,
    "InternalServerError": LLMUnavailable,
    "LengthFinishReasonError": LLMAnswerError,
    "ContentFilterFinishReasonError": LLMAnswerError,
    "InvalidWebhookSignatureError": LLMRejected,
    "WebSocketConnectionClosedError": LLMRejected,
    "WebSocketQueueFullError": LLMRejected,
}
PUBLIC = sorted(
    name
    for name in openai.__all__
    if inspect.isclass(getattr(openai, name)) and issubclass(getattr(openai, name), Exception)
)


def raised(name: str) -> Exception:
    """An instance of the SDK's exception ``name``, as the SDK makes it."""
    kind: Any = getattr(openai, name)
    values: dict[str, Any] = {
        "message": "fault",
        "request": REQUEST,
        "body": None,
        "unsent_messages": [],
        "response": httpx2.Response(STATUSES.get(name, 500), request=REQUEST),
        "completion": COMPLETION,
    }
    if kind.__init__ is Exception.__init__ or kind.__init__ is ValueError.__init__:
        made = kind("fault")
    else:
        made = kind(**{p: values[p] for p in inspect.signature(kind).parameters if p in values})
    assert isinstance(made, Exception)
    return made


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_exception_of_the_sdk_has_a_meaning(name: str) -> None:
    mapped = as_llm_error(raised(name))
    assert type(mapped) is MEANINGS.get(name, LLMRejected)
    assert mapped.provider == "openai"
