"""An agent of Google's Agent Development Kit whose model is shown the tools that the conversation
needs. No key: the model is a scripted one that says which tools it was shown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from everyday_tools import TOOLS, TURNS
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm, LlmResponse
from google.adk.runners import InMemoryRunner
from google.genai import types

from router.adapters.adk import RoutedToolset


class ScriptedModel(BaseLlm):
    """Answers with the names of the tools that it is shown."""

    async def generate_content_async(
        self, llm_request: Any, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        shown = [tool.name for tool in llm_request.config.tools[0].function_declarations]
        yield LlmResponse(content=types.Content(role="model", parts=[types.Part(text=str(shown))]))


async def main() -> None:
    toolset = RoutedToolset(TOOLS, limit=3, timeout=60)
    agent = LlmAgent(name="everyday", model=ScriptedModel(model="scripted"), tools=[toolset])
    runner = InMemoryRunner(agent=agent, app_name="everyday")
    session = await runner.session_service.create_session(app_name="everyday", user_id="ada")
    for text in TURNS:
        message = types.Content(role="user", parts=[types.Part(text=text)])
        print(text)
        async for event in runner.run_async(
            user_id="ada", session_id=session.id, new_message=message
        ):
            print("   ", event.content.parts[0].text)
    await runner.close()


asyncio.run(main())
