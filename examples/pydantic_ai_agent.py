"""A Pydantic AI agent whose model is shown the tools that the conversation needs. No key: the model
is a function that says which tools it was shown."""

from __future__ import annotations

from everyday_tools import TOOLS, TURNS
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from router.adapters.pydantic_ai import RoutedTools


def scripted(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Answers with the names of the tools that it is shown."""
    return ModelResponse(parts=[TextPart(str([tool.name for tool in info.function_tools]))])


routed = RoutedTools(limit=3, timeout=60)
agent = Agent(FunctionModel(scripted), tools=TOOLS, capabilities=[routed])
history: list[ModelMessage] = []
for text in TURNS:
    result = agent.run_sync(text, message_history=history)
    history = result.all_messages()
    print(text)
    print("   ", result.output)
routed.selector.close()
