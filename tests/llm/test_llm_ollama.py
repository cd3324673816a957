"""The Ollama client: the real SDK against a loopback server."""

from __future__ import annotations

import inspect
import json
from collections.abc import AsyncIterator

import httpx
import ollama
import pytest
from llm.asked import ANSWER, PROMPT, SKILL, complete
from servers.loopback import Reply
from servers.ollama_server import OllamaServer, chat, error

from router.errors import LLMAnswerError, LLMError, LLMRejected, LLMUnavailable
from router.llm.ollama import OllamaModel, as_llm_error
from router.llm.prompt import build_prompt
from router.llm.protocol import OfferedSkill, OutputMode
from router.request import Request


@pytest.fixture
async def model(ollama_server: OllamaServer) -> AsyncIterator[OllamaModel]:
    model = OllamaModel("test-model", host=ollama_server.url)
    yield model
    await model.aclose()


async def test_an_answer_comes_with_its_tokens_and_usage(
    ollama_server: OllamaServer, model: OllamaModel
) -> None:
    ollama_server.queue(chat(ANSWER, probabilities={"git": 0.25}))
    answered = await complete(model)
    assert answered.text == ANSWER
    assert answered.mode is OutputMode.JSON_SCHEMA
    assert b"".join(token.data for token in answered.tokens).decode() == ANSWER
    assert [t.probability for t in answered.tokens if t.data == b"git"] == [pytest.approx(0.25)]
    assert (answered.input_tokens, answered.output_tokens) == (130, 45)


async def test_the_request_holds_the_schema_and_asks_for_log_probabilities(
    ollama_server: OllamaServer, model: OllamaModel
) -> None:
    ollama_server.queue(chat(ANSWER))
    assert (await complete(model)).tokens == ()
    (request,) = ollama_server.requests
    assert request.body["messages"] == [
        {"role": "system", "content": PROMPT.system},
        {"role": "user", "content": PROMPT.user},
    ]
    assert request.body["format"] == PROMPT.schema
    # The grammar follows the order of the properties, and the choice must come first.
    assert next(iter(request.body["format"]["properties"])) == "skills"
    assert request.body["logprobs"] is True
    assert request.body["options"] == {"temperature": 0, "num_predict": 2048, "num_ctx": 8192}


@pytest.mark.parametrize(("characters", "context"), [(100, 8192), (20_000, 16_384)])
async def test_the_context_grows_in_steps_with_the_prompt(
    ollama_server: OllamaServer, model: OllamaModel, characters: int, context: int
) -> None:
    ollama_server.queue(chat(ANSWER))
    prompt = build_prompt(Request.parse("x" * characters), [SKILL])
    await model.complete(prompt, timeout_seconds=30)
    assert ollama_server.requests[0].body["options"]["num_ctx"] == context


async def test_the_largest_context_is_the_limit(
    ollama_server: OllamaServer, model: OllamaModel
) -> None:
    ollama_server.queue(chat(ANSWER))
    skills = [OfferedSkill(f"skill-{number:03}", "語" * 300) for number in range(500)]
    await model.complete(build_prompt(Request.parse("x"), skills), timeout_seconds=30)
    assert ollama_server.requests[0].body["options"]["num_ctx"] == 65_536


# --- errors


@pytest.mark.parametrize("status", [400, 401, 404])
async def test_a_refused_call_is_rejected(
    ollama_server: OllamaServer, model: OllamaModel, status: int
) -> None:
    ollama_server.queue(error(status, "model 'test-model' not found"))
    with pytest.raises(LLMRejected, match=f"ollama: {status} model 'test-model' not found"):
        await complete(model)


@pytest.mark.parametrize("status", [408, 429, 500, 503])
async def test_a_passing_fault_is_unavailability(
    ollama_server: OllamaServer, model: OllamaModel, status: int
) -> None:
    ollama_server.queue(error(status, "server busy"))
    with pytest.raises(LLMUnavailable, match=f"ollama: {status} server busy") as caught:
        await complete(model)
    assert caught.value.retry_after is None


async def test_the_wait_that_a_server_asks_for_is_passed_on(
    ollama_server: OllamaServer, model: OllamaModel
) -> None:
    ollama_server.queue(error(429, "slow down", headers={"Retry-After": "100"}))
    with pytest.raises(LLMUnavailable) as caught:
        await complete(model)
    assert caught.value.retry_after == 100.0


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        (Reply(b'{"message": {"role"'), "the response is not a chat response"),
        (Reply(b"<html>"), "the response is not a chat response"),
        (Reply(b"\xff\xfe"), "the response is not a chat response"),
        (Reply(b"[1]"), "the response is not a chat response"),
        (Reply.json({"done": True}), "the response is not a chat response"),
        (Reply.json({"message": {"role": "assistant", "content": 7}}), "the response is not a"),
        (Reply(b'"busy"', status=503), "the response is not a chat response"),
        (chat(""), "the answer is empty"),
        (chat(ANSWER[:20], done_reason="length"), "the answer was cut off at the token limit"),
    ],
)
async def test_a_response_without_a_usable_answer_is_an_answer_error(
    ollama_server: OllamaServer, model: OllamaModel, reply: Reply, reason: str
) -> None:
    ollama_server.queue(reply)
    with pytest.raises(LLMAnswerError, match=f"ollama: {reason}"):
        await complete(model)


async def test_an_address_that_is_none_is_rejected() -> None:
    with pytest.raises(LLMRejected, match="ollama: the host cannot be used"):
        await complete(OllamaModel("test-model", host="http://[bad"))


# --- every public exception of the SDK, and those of the HTTP library that it lets through

MEANINGS: list[tuple[Exception, type[LLMError]]] = [
    (ollama.RequestError("fault"), LLMRejected),
    (ollama.ResponseError("fault"), LLMRejected),
    (ollama.ResponseError("fault", 404), LLMRejected),
    (ollama.ResponseError("fault", 502), LLMUnavailable),
    (ConnectionError("fault"), LLMUnavailable),
    (httpx.ReadTimeout("fault"), LLMUnavailable),
    (httpx.RemoteProtocolError("fault"), LLMUnavailable),
    (httpx.UnsupportedProtocol("fault"), LLMUnavailable),
    (httpx.DecodingError("fault"), LLMRejected),
    (httpx.TooManyRedirects("fault"), LLMRejected),
    (httpx.InvalidURL("fault"), LLMRejected),
    (json.JSONDecodeError("fault", "", 0), LLMAnswerError),
    (TypeError("fault"), LLMAnswerError),
    (AttributeError("fault"), LLMAnswerError),
]


@pytest.mark.parametrize(("raised", "meaning"), MEANINGS)
def test_every_exception_has_a_meaning(raised: Exception, meaning: type[LLMError]) -> None:
    mapped = as_llm_error(raised, "127.0.0.1:11434")
    assert type(mapped) is meaning
    assert mapped.provider == "ollama"


def test_no_public_exception_of_the_sdk_is_left_out() -> None:
    public = {
        value
        for value in vars(ollama).values()
        if inspect.isclass(value) and issubclass(value, Exception)
    }
    assert public <= {type(raised) for raised, _ in MEANINGS}
