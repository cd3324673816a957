"""One call of a model: bounded in time, and told as an event and to its circuit breaker."""

from __future__ import annotations

import asyncio
import time

from router.concurrency.breaker import GuardedCall
from router.errors import LLMAnswerError, LLMError, LLMUnavailable
from router.events import Events, LLMCalled
from router.llm.protocol import ChatModel, Completion, Price, Prompt


async def told_call(
    model: ChatModel,
    prompt: Prompt,
    *,
    seconds: float,
    purpose: str,
    events: Events | None = None,
    price: Price | None = None,
) -> Completion:
    """The model's answer.

    Args:
        purpose: what the answer is for; see ``LLMCalled``.
        events: get the call when it has ended; None: nothing is told.
        price: of the model, where it is known.

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

    try:
        # Models bound their calls themselves; this one holds for those that do not.
        async with asyncio.timeout(seconds):
            completion = await model.complete(prompt, timeout_seconds=seconds)
    except TimeoutError:
        message = f"no answer within {seconds:.3g} s"
        tell(message)
        raise LLMUnavailable(model.provider, message) from None
    except LLMError as error:
        tell(str(error))
        raise
    tell(None, completion)
    return completion


async def guarded_call(
    model: ChatModel,
    call: GuardedCall,
    prompt: Prompt,
    *,
    seconds: float,
    purpose: str = "route",
    events: Events | None = None,
    price: Price | None = None,
) -> Completion:
    """The same, for a ``call`` that the model's breaker has let through; it is used up then."""
    with call:
        try:
            completion = await told_call(
                model, prompt, seconds=seconds, purpose=purpose, events=events, price=price
            )
        except LLMAnswerError:
            call.succeeded()  # the provider is up, whatever its model wrote
            raise
        except LLMError:
            call.failed()
            raise
        call.succeeded()
        return completion
