"""A LangChain agent whose model is shown the tools that the conversation needs. No key: the model
is a scripted one that says which tools it was shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from everyday_tools import TOOLS, TURNS
from langchain.agents import create_agent
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

from router.adapters.langchain import ToolRouterMiddleware


class ScriptedModel(BaseChatModel):
    """Answers with the names of the tools that it is shown."""

    shown: list[str] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        return ScriptedModel(shown=[tool.name for tool in tools])

    def _generate(self, messages: list[BaseMessage], *args: Any, **options: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=AIMessage(str(self.shown)))])


middleware = ToolRouterMiddleware(limit=3, timeout=60)
agent = create_agent(ScriptedModel(), tools=TOOLS, middleware=[middleware])
messages: list[Any] = []
for text in TURNS:
    messages = agent.invoke({"messages": [*messages, {"role": "user", "content": text}]})[
        "messages"
    ]
    print(text)
    print("   ", messages[-1].content)
middleware.selector.close()
