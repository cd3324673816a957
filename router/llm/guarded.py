"""One call of a model: bounded in time, and reported to its circuit breaker and as an event."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping

from router.breaker import GuardedCall
from router.errors import LLMAnswerError, LLMError, LLMUnavailable
from router.events import Events, LLMCalled
from router.llm.protocol import ChatModel, Completion, Price, Prompt


async def guarded_call(
    model: ChatModel,
    call: GuardedCall,
    prompt: Prompt,
    *,
    seconds: float,
    purpose: str = "route",
    events: Events | None = None,
    prices: Mapping[str, Price] | None = None,
) -> Completion:
    """The model's answer.

    Args:
        call: what its breaker has let through; used up when this returns.
        purpose: what the answer is for; see ``LLMCalled``.
        events: get the call when it has ended; None: nothing is reported.
        prices: by provider, where they are known.

    Raises:
        LLMError: there is no answer; ``LLMUnavailable`` also when the time is over.
    """
    began = time.perf_counter()

    def tell(error: str | None, completion: Completion | None = None) -> None:
        if events is None or not events.listening:
            return
        read = written = cost = None
        if completion is not None:
            read, written = completion.input_tokens, completion.output_tokens
        price = (prices or {}).get(model.provider)
        if price is not None and read is not None and written is not None:
            cost = price.of(read, written)
        events.emit(
            LLMCalled(
                provider=model.provider,
                model=model.model,
                purpose=purpose,
                seconds=time.perf_counter() - began,
                error=error,
                input_tokens=read,
                output_tokens=written,
                cost_usd=cost,
            )
        )

    with call:
        try:
            # Models bound their calls themselves; this one holds for those that do not.
            async with asyncio.timeout(seconds):
                completion = await model.complete(prompt, timeout_seconds=seconds)
        except TimeoutError:
            call.failed()
            message = f"no answer within {seconds:.3g} s"
            tell(message)
            raise LLMUnavailable(model.provider, message) from None
        except LLMAnswerError as error:
            call.succeeded()  # the provider is up, whatever its model wrote
            tell(str(error))
            raise
        except LLMError as error:
            call.failed()
            tell(str(error))
            raise
        call.succeeded()
        tell(None, completion)
        return completion
