"""One call of a model, bounded in time, with its circuit breaker told how it went."""

from __future__ import annotations

import asyncio

from router.errors import LLMAnswerError, LLMError, LLMUnavailable
from router.llm.breaker import GuardedCall
from router.llm.protocol import ChatModel, Completion, Prompt


async def guarded_call(
    model: ChatModel, call: GuardedCall, prompt: Prompt, *, seconds: float
) -> Completion:
    """The model's answer.

    Args:
        model: which one to ask.
        call: what its breaker has let through; used up when this returns.
        prompt: what to ask.
        seconds: how long it may take.

    Raises:
        LLMError: there is no answer; ``LLMUnavailable`` also when the time is over.
    """
    with call:
        try:
            # Models bound their calls themselves; this one holds for those that do not.
            async with asyncio.timeout(seconds):
                completion = await model.complete(prompt, timeout_seconds=seconds)
        except TimeoutError:
            call.failed()
            message = f"no answer within {seconds:.3g} s"
            raise LLMUnavailable(model.provider, message) from None
        except LLMAnswerError:
            call.succeeded()  # the provider is up, whatever its model wrote
            raise
        except LLMError:
            call.failed()
            raise
        call.succeeded()
        return completion
