"""What every provider's client makes of faults of the network, of cancelled callers, and of being
closed and used again."""

from __future__ import annotations

import asyncio
import gc
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
from llm.asked import ANSWER, PROMPT, complete
from servers.loopback import HANG, LoopbackServer, QueuedServer, Reply
from servers.ollama_server import OllamaServer, chat
from servers.openai_server import OpenAIServer, completion

from router.errors import LLMRejected, LLMUnavailable
from router.llm.ollama import OllamaModel
from router.llm.openai import OpenAIModel
from router.llm.protocol import ChatModel


@dataclass(frozen=True)
class Provider:
    """One provider: a server, how to make a client of it, and the server's good answer."""

    name: str
    server: LoopbackServer
    make: Callable[[], ChatModel]
    good: Reply
    cut: str
    """What the client says of a body that ends too early."""
    absent: str
    """What it says when nobody listens."""


@pytest.fixture(params=["openai", "ollama"])
def provider(
    request: pytest.FixtureRequest, openai_server: OpenAIServer, ollama_server: OllamaServer
) -> Provider:
    if request.param == "openai":
        return Provider(
            "openai",
            openai_server,
            lambda: OpenAIModel("test-model", base_url=openai_server.url, api_key="sk-test"),
            completion(ANSWER),
            cut=r"127\.0\.0\.1:\d+: Connection error",
            absent=r"127\.0\.0\.1:\d+: Connection error",
        )
    return Provider(
        "ollama",
        ollama_server,
        lambda: OllamaModel("test-model", host=ollama_server.url),
        chat(ANSWER),
        cut=r"127\.0\.0\.1:\d+: peer closed connection",
        absent=r"127\.0\.0\.1:\d+: Failed to connect",
    )


async def test_a_connection_cut_mid_body_is_unavailability(provider: Provider) -> None:
    provider.server.queue(replace(provider.good, cut=True))
    model = provider.make()
    with pytest.raises(LLMUnavailable, match=f"{provider.name}: {provider.cut}"):
        await complete(model)
    await model.aclose()


async def test_no_proxy_has_a_part_in_what_stays_on_this_machine(
    provider: Provider, proxy: QueuedServer
) -> None:
    provider.server.queue(provider.good)
    model = provider.make()
    assert (await complete(model)).text == ANSWER
    await model.aclose()
    assert proxy.requests == []


@pytest.mark.parametrize("name", ["openai", "ollama"])
async def test_a_proxy_that_no_client_can_use_is_a_refusal(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "odd://proxy")
    url = "https://models.example/v1"
    model = (
        OpenAIModel("m", base_url=url, api_key="k")
        if name == "openai"
        else OllamaModel("m", host=url)
    )
    with pytest.raises(LLMRejected, match=f"{name}: the .* cannot be used: .*odd"):
        await complete(model)


async def test_a_server_that_is_not_there_is_unavailability(provider: Provider) -> None:
    provider.server.close()
    model = provider.make()
    with pytest.raises(LLMUnavailable, match=f"{provider.name}: {provider.absent}"):
        await complete(model)
    await model.aclose()


async def test_a_hanging_server_is_unavailability_after_the_timeout(provider: Provider) -> None:
    provider.server.queue(HANG)
    model = provider.make()
    with pytest.raises(LLMUnavailable, match=rf"{provider.name}: no answer within 0\.2 s"):
        await model.complete(PROMPT, timeout_seconds=0.2)
    await model.aclose()


async def test_cancelling_the_caller_cancels_the_call(provider: Provider) -> None:
    provider.server.queue(HANG, provider.good)
    model = provider.make()
    call = asyncio.create_task(complete(model))
    await asyncio.to_thread(provider.server.arrived.wait)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert (await complete(model)).text == ANSWER
    await model.aclose()


async def test_a_closed_model_can_be_used_again(provider: Provider) -> None:
    provider.server.always = provider.good
    model = provider.make()
    await complete(model)
    await model.aclose()
    await model.aclose()
    assert (await complete(model)).text == ANSWER
    await model.aclose()


def test_a_model_can_be_used_on_one_event_loop_after_another(provider: Provider) -> None:
    provider.server.always = replace(provider.good, headers={"Connection": "keep-alive"})
    model = provider.make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)  # the first loop leaves its connection
        for _ in range(2):
            assert asyncio.run(complete(model)).text == ANSWER
        asyncio.run(model.aclose())
        gc.collect()
