from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from adapters.toolbox import EXPECTED, TURNS, openai_tools
from openai import AsyncOpenAI, OpenAI
from openai.types.responses import ResponseToolSearchCall
from servers.loopback import LoopbackServer, Recorded, Reply

from router.adapters.openai import OpenAITools


class ChatServer(LoopbackServer):
    """Chat completions that call the first tool whose name is scripted, where it is shown."""

    wanted = ""

    def respond(self, request: Recorded) -> Reply:
        shown = [tool["function"]["name"] for tool in request.body["tools"]]
        if self.wanted not in shown:
            return Reply.json({"error": {"message": "the tool is not shown"}}, status=400)
        call = {
            "id": "call_1",
            "type": "function",
            "function": {"name": self.wanted, "arguments": "{}"},
        }
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
        return Reply.json(
            {
                "id": "1",
                "object": "chat.completion",
                "created": 1,
                "model": "m",
                "choices": [choice],
            }
        )


@pytest.fixture(scope="module")
def tools() -> Iterator[OpenAITools]:
    with OpenAITools(openai_tools(), limit=3, timeout=60) as tools:
        tools.prepare()
        yield tools


@pytest.fixture
def server() -> Iterator[ChatServer]:
    server = ChatServer()
    yield server
    server.close()
    assert server.violations == []


def messages(turns: int) -> list[Any]:
    """A conversation of so many turns of the user."""
    said: list[Any] = []
    for text in TURNS[:turns]:
        said += [{"role": "user", "content": text}, {"role": "assistant", "content": "Done."}]
    return said[:-1]


def test_the_model_calls_the_chosen_tool_on_each_of_three_topics(
    tools: OpenAITools, server: ChatServer
) -> None:
    client = OpenAI(api_key="k", base_url=f"{server.address}/v1", max_retries=0)
    for turn, wanted in enumerate(EXPECTED, start=1):
        server.wanted = wanted
        chosen: Any = tools.select(messages(turn))
        said = client.chat.completions.create(model="m", messages=messages(turn), tools=chosen)
        [call] = said.choices[0].message.tool_calls or []
        assert call.type == "function"
        assert call.function.name == wanted
    client.close()


async def test_asynchronous_code_is_given_the_same(tools: OpenAITools, server: ChatServer) -> None:
    assert await tools.aselect(messages(3)) == tools.select(messages(3))
    server.wanted = EXPECTED[0]
    async with AsyncOpenAI(api_key="k", base_url=f"{server.address}/v1", max_retries=0) as client:
        chosen: Any = await tools.aselect(messages(1))
        said = await client.chat.completions.create(model="m", messages=messages(1), tools=chosen)
    assert said.choices[0].finish_reason == "tool_calls"


def test_the_very_objects_come_back() -> None:
    definitions = openai_tools()
    with OpenAITools(definitions, limit=3, timeout=60) as tools:
        for chosen in tools.select(messages(1)):
            assert any(chosen is definition for definition in definitions)


async def test_a_text_alone_is_a_message_as_in_the_responses_api(tools: OpenAITools) -> None:
    assert tools.select(TURNS[0]) == tools.select(messages(1))
    assert await tools.aselect(TURNS[0]) == tools.select(messages(1))


def test_a_tool_of_the_provider_is_always_shown_first() -> None:
    search = {"type": "web_search"}
    with OpenAITools([*openai_tools(), search], limit=3, timeout=60) as tools:
        assert tools.select(messages(1))[0] is search


async def test_a_search_of_the_responses_api_is_answered_with_definitions() -> None:
    flat = [{"type": "function", **tool["function"]} for tool in openai_tools()]
    with OpenAITools(flat, limit=3, timeout=60) as tools:
        assert tools.search_tool["execution"] == "client"
        call = ResponseToolSearchCall(
            id="ts_1",
            call_id="call_9",
            type="tool_search_call",
            execution="client",
            status="completed",
            arguments={"query": "forecast of rain"},
        )
        [item] = await tools.answer([call, {"type": "message"}])
    assert (item["type"], item["call_id"]) == ("tool_search_output", "call_9")
    assert item["tools"][0]["name"] == "get_weather"


@pytest.mark.parametrize("arguments", ["{", "[]", {"query": 7}, {}, None])
async def test_a_search_that_cannot_be_read_finds_nothing(
    tools: OpenAITools, arguments: object
) -> None:
    call = {
        "type": "tool_search_call",
        "execution": "client",
        "call_id": "c",
        "arguments": arguments,
    }
    [item] = await tools.answer([call])
    assert item["tools"] == []
