"""One call of a model: with a deadline, an event, and a report to its circuit breaker.

A model may be a program's own object. Whatever it raises or returns against its protocol becomes an
``LLMError`` here, so that no request fails because of it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Final

from router.concurrency.breaker import GuardedCall
from router.errors import LLMAnswerError, LLMError, LLMUnavailable
from router.events import Events, LLMCalled
from router.llm.protocol import ChatModel, Completion, Price, Prompt

_log: Final = logging.getLogger(__name__)


async def timed_call(
    model: ChatModel,
    prompt: Prompt,
    *,
    seconds: float,
    purpose: str,
    events: Events | None = None,
    price: Price | None = None,
) -> Completion:
    """Call a model, and emit an event when the call has ended.

    Args:
        purpose: what the answer is for; see ``LLMCalled``.
        events: where to emit; None for nowhere.
        price: of the model; None where it is not known.

    Raises:
        LLMError: there is no answer. It is ``LLMUnavailable`` when the time is over, and no class
            of its own when the model broke its protocol.
    """
    began = time.perf_counter()

    def emit(error: str | None, completion: Completion | None = None) -> None:
        if events is None or not events.listening:
            return
        input_tokens = output_tokens = cost = None
        if completion is not None:
            input_tokens, output_tokens = completion.input_tokens, completion.output_tokens
        if price is not None and input_tokens is not None and output_tokens is not None:
            cost = price.of(input_tokens, output_tokens)
        events.emit(
            LLMCalled(
                provider=model.provider,
                model=model.model,
                purpose=purpose,
                seconds=time.perf_counter() - began,
                error=error,
                input_tokens=input_tokens,
                output_tokens=output_tokens,
                cost_usd=cost,
            )
        )

    try:
        # Models should keep the deadline themselves. This is for those that do not.
        async with asyncio.timeout(seconds):
            completion = await _complete(model, prompt, seconds)
    except TimeoutError:
        message = f"no answer within {seconds:.3g} s"
        emit(message)
        raise LLMUnavailable(model.provider, message) from None
    except LLMError as error:
        emit(str(error))
        raise
    emit(None, completion)
    return completion


async def _complete(model: ChatModel, prompt: Prompt, seconds: float) -> Completion:
    """The model's answer. Raises LLMError, or TimeoutError when the time is over."""
    try:
        completion: object = await model.complete(prompt, timeout_seconds=seconds)
    except (LLMError, TimeoutError):
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
        _log.warning("%s (%s) raised %s", model.provider, model.model, what, exc_info=True)
        raise LLMError(model.provider, what) from error
    if isinstance(completion, Completion) and isinstance(completion.text, str):
        return completion
    what = f"complete() returned {type(completion).__name__}, not a Completion with a text"
    _log.warning("%s (%s): %s", model.provider, model.model, what)
    raise LLMError(model.provider, what)


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
    """Call a model whose circuit breaker has permitted this ``call``, and report the result to the
    breaker. A ``call`` can be used only once."""
    with call:
        try:
            completion = await timed_call(
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
