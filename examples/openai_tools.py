"""Which tools to send to the chat API of OpenAI, turn by turn. Runs without a key."""

from __future__ import annotations

from everyday_tools import TOOLS, TURNS, parameters

from router.adapters.openai import OpenAITools

definitions = [
    {
        "type": "function",
        "function": {
            "name": tool.__name__,
            "description": tool.__doc__,
            "parameters": parameters(tool),
        },
    }
    for tool in TOOLS
]

with OpenAITools(definitions, limit=3) as tools:
    tools.prepare()
    messages: list[dict[str, str]] = []
    for text in TURNS:
        messages.append({"role": "user", "content": text})
        chosen = tools.select(messages)
        # client.chat.completions.create(model=…, messages=messages, tools=chosen)
        print(text)
        print("   ", [tool["function"]["name"] for tool in chosen])
