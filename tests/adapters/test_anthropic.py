from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from adapters.toolbox import EXPECTED, TURNS, anthropic_tools
from anthropic import Anthropic
from servers.loopback import LoopbackServer, Recorded, Reply

from router.adapters.anthropic import MID_CONVERSATION_TOOLS, SEARCH, AnthropicTools


class MessagesServer(LoopbackServer):
    """A model that searches first, then calls the first tool that it was referred to."""

    def respond(self, request: Recorded) -> Reply:
        last = request.body["messages"][-1]["content"]
        referred = [
            reference["tool_name"]
            for block in last
            if isinstance(block, dict) and block.get("type") == "tool_result"
            for reference in block["content"]
        ]
        name = referred[0] if referred else SEARCH
        known = {tool["name"] for tool in request.body["tools"]}
        if name not in known:
            return Reply.json({"error": {"message": f"no tool {name}"}}, status=400)
        use = {
            "type": "tool_use",
            "id": "toolu_1",
            "name": name,
            "input": {"query": "reserve a table at a restaurant"} if name == SEARCH else {},
        }
        return Reply.json(
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "m",
                "content": [use],
                "stop_reason": "tool_use",
                "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }
        )


@pytest.fixture(scope="module")
def tools() -> Iterator[AnthropicTools]:
    with AnthropicTools(anthropic_tools(), limit=3, timeout=60) as tools:
        tools.prepare()
        yield tools


async def test_a_model_that_searches_is_referred_to_the_tool_and_calls_it(
    tools: AnthropicTools,
) -> None:
    server = MessagesServer()
    client = Anthropic(api_key="k", base_url=server.address, max_retries=0)
    messages: list[Any] = [{"role": "user", "content": TURNS[1]}]
    given: Any = tools.definitions
    first = client.messages.create(model="m", max_tokens=9, messages=messages, tools=given)
    results = await tools.answer(first.content)
    messages += [
        {"role": "assistant", "content": [block.model_dump() for block in first.content]},
        {"role": "user", "content": results},
    ]
    second = client.messages.create(model="m", max_tokens=9, messages=messages, tools=given)
    [use] = second.content
    assert use.type == "tool_use"
    assert use.name == EXPECTED[1]
    client.close()
    server.close()
    assert server.violations == []


def test_all_tools_but_the_search_are_deferred(tools: AnthropicTools) -> None:
    search, *others = tools.definitions
    assert search["name"] == SEARCH
    assert all(tool["defer_loading"] for tool in others)
    assert len(others) == len(anthropic_tools())


async def test_a_turn_adds_only_what_no_earlier_turn_added(tools: AnthropicTools) -> None:
    messages: list[Any] = []
    added: list[str] = []
    for text, wanted in zip(TURNS, EXPECTED, strict=True):
        messages.append({"role": "user", "content": text})
        [system] = await tools.additions(messages)
        names = [block["tool"]["name"] for block in system["content"]]
        assert {block["type"] for block in system["content"]} == {"tool_addition"}
        assert not set(names) & set(added)
        added += names
        assert wanted in added
        messages.append(system)
    assert MID_CONVERSATION_TOOLS.startswith("mid-conversation-tool-changes")


async def test_where_there_is_nothing_to_add_no_message_is_added(tools: AnthropicTools) -> None:
    assert await tools.additions([{"role": "assistant", "content": "Hello."}]) == []
    twice: list[Any] = [{"role": "user", "content": TURNS[0]}] * 2
    assert await tools.additions(twice) == []


async def test_a_search_without_a_query_is_told_so(tools: AnthropicTools) -> None:
    block = {"type": "tool_use", "id": "t", "name": SEARCH, "input": {}}
    [result] = await tools.answer([block, {"type": "text", "text": "hi"}])
    assert result["content"][0]["type"] == "text"


def test_a_tool_with_the_name_of_the_search_is_refused() -> None:
    with pytest.raises(ValueError, match="search_tools"):
        AnthropicTools([{"name": SEARCH, "input_schema": {"type": "object"}}])


def test_a_tool_of_the_provider_is_never_deferred() -> None:
    web = {"type": "web_search_20250305", "name": "web_search"}
    with AnthropicTools([web, *anthropic_tools()]) as tools:
        assert tools.deferred[0] == web
