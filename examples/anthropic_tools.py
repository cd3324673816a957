"""Which deferred tools to announce to a model of Anthropic, turn by turn. Runs without a key."""

from __future__ import annotations

import asyncio

from everyday_tools import TOOLS, TURNS, parameters

from router.adapters.anthropic import AnthropicTools

definitions = [
    {"name": tool.__name__, "description": tool.__doc__, "input_schema": parameters(tool)}
    for tool in TOOLS
]


async def main() -> None:
    with AnthropicTools(definitions, limit=3) as tools:
        tools.prepare()
        messages: list[dict[str, object]] = []
        for text in TURNS:
            messages.append({"role": "user", "content": text})
            additions = await tools.additions(messages)
            messages += additions
            # client.beta.messages.create(…, tools=tools.deferred, betas=[MID_CONVERSATION_TOOLS])
            print(text)
            for message in additions:
                print("    adds", [block["tool"]["name"] for block in message["content"]])


asyncio.run(main())
