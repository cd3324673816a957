"""Ollama, through its official SDK.

Ollama constrains decoding to the JSON schema by itself and ignores parameters that its version
does not know, so nothing has to be given up step by step. Two things need care. Its context is
4,096 tokens unless asked otherwise, and a longer prompt silently loses its beginning; and another
context size makes it load the model anew. So the size is asked for in coarse steps. The SDK
translates only refused connections and HTTP statuses; the other exceptions of its HTTP library
and of its parsing come through bare and are mapped here.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Any, Final

from router.bounded.replies import RefusedReply, reply_bounds
from router.errors import LLMAnswerError, LLMError, LLMRejected, LLMUnavailable
from router.llm.protocol import Completion, OutputMode, Prompt, Token
from router.llm.sdk import LoopClient, retry_after
from router.web.loopback import direct, why_no_client

if TYPE_CHECKING:
    from ollama import AsyncClient, ChatResponse

_PROVIDER: Final = "ollama"
_MAX_ANSWER_TOKENS: Final = 2048  # an answer takes 200; what a model thinks before it counts too
_CONTEXT_STEPS: Final = (8_192, 16_384, 32_768, 65_536)
_BYTES_PER_TOKEN: Final = 3  # low for English, about right for other scripts: err on the long side


class OllamaModel:
    """A chat model on an Ollama server.

    Args:
        host: the server's address; None means ``OLLAMA_HOST``, or the SDK's default on loopback.
    """

    def __init__(self, model: str, *, host: str | None = None) -> None:
        self.provider = _PROVIDER
        self.model = model
        self._client = LoopClient("ollama", lambda: _client(host))

    async def complete(self, prompt: Prompt, *, timeout_seconds: float) -> Completion:
        """Ask once; see ``ChatModel``."""
        client = await self._connect()
        import httpx
        import ollama

        arguments: dict[str, Any] = {
            "model": self.model,
            "messages": [
                {"role": "system", "content": prompt.system},
                {"role": "user", "content": prompt.user},
            ],
            "format": dict(prompt.schema),
            "stream": False,
            "options": {
                "temperature": 0,
                "num_predict": _MAX_ANSWER_TOKENS,
                "num_ctx": _context_size(prompt),
            },
            "logprobs": True,
        }
        try:
            async with asyncio.timeout(timeout_seconds):
                response: ChatResponse = await client.chat(**arguments)
        except TimeoutError:
            raise LLMUnavailable(_PROVIDER, f"no answer within {timeout_seconds:.3g} s") from None
        except (
            ollama.ResponseError,
            ollama.RequestError,
            ConnectionError,
            httpx.HTTPError,
            httpx.InvalidURL,
            RefusedReply,
            # The SDK parses bodies with **, .get() and pydantic: these are its malformed bodies.
            ValueError,
            TypeError,
            AttributeError,
        ) as error:
            where = client._client.base_url.netloc.decode()  # the SDK names no address
            raise as_llm_error(error, where) from error
        return _read(response)

    async def aclose(self) -> None:
        await self._client.aclose()

    async def _connect(self) -> AsyncClient:
        """The client. Raises LLMRejected: none can be made with these settings."""
        try:
            return await self._client.get()
        except Exception as error:  # the HTTP library below the SDK has errors of its own
            # The import itself reads OLLAMA_HOST, and raises when that is malformed.
            reason = f"the host cannot be used: {why_no_client(error)}"
            raise LLMRejected(_PROVIDER, reason) from error


def _client(host: str | None) -> AsyncClient:
    import httpx
    from ollama import AsyncClient

    options = direct(httpx.AsyncClient, host or os.environ.get("OLLAMA_HOST", ""))
    return AsyncClient(host, event_hooks=reply_bounds(), **options)


def as_llm_error(error: Exception, where: str) -> LLMError:
    """What an exception of the SDK, or of the HTTP library below it, means for the router.
    ``where`` is the server's address."""
    import httpx
    import ollama

    if isinstance(error, ollama.ResponseError):
        message = f"{error.status_code} {error.error}"
        if error.status_code in (408, 429) or error.status_code >= 500:
            behind = error.__context__  # the SDK's error has no headers
            headers = behind.response.headers if isinstance(behind, httpx.HTTPStatusError) else {}
            return LLMUnavailable(_PROVIDER, message, retry_after(headers))
        return LLMRejected(_PROVIDER, message)
    if isinstance(error, ConnectionError | httpx.TransportError | RefusedReply):
        return LLMUnavailable(_PROVIDER, f"{where}: {str(error) or type(error).__name__}")
    if isinstance(error, ValueError | TypeError | AttributeError):
        return LLMAnswerError(_PROVIDER, f"the response is not a chat response: {error}")
    return LLMRejected(_PROVIDER, str(error))


def _context_size(prompt: Prompt) -> int:
    """The smallest step, in tokens, that holds the prompt and the answer; else the largest."""
    size = len(prompt.system.encode()) + len(prompt.user.encode())
    needed = size // _BYTES_PER_TOKEN + _MAX_ANSWER_TOKENS
    return next((step for step in _CONTEXT_STEPS if step >= needed), _CONTEXT_STEPS[-1])


def _read(response: ChatResponse) -> Completion:
    """Raises LLMAnswerError: the answer is cut off or empty."""
    if response.done_reason == "length":
        raise LLMAnswerError(_PROVIDER, "the answer was cut off at the token limit")
    text = response.message.content
    if not text:
        raise LLMAnswerError(_PROVIDER, "the answer is empty")
    tokens = [Token.parse(item.token, item.logprob) for item in response.logprobs or ()]
    return Completion(
        text=text,
        mode=OutputMode.JSON_SCHEMA,
        tokens=() if None in tokens else tuple(token for token in tokens if token is not None),
        input_tokens=response.prompt_eval_count,
        output_tokens=response.eval_count,
    )
