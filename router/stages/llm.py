"""Stage 3: ask a language model which of the offered skills fit.

The providers are asked in fall-back order. One deadline covers all of them: the time that is left
is divided evenly among the providers not yet asked, so that a first one that hangs leaves time for
the second. A provider that is unavailable is asked again after a pause (exponential back-off with
full jitter, and at least the pause that the provider itself demands). After an answer that cannot
be used it is asked once more, with a reminder of the format. After a rejected call, or an error
that its protocol does not know, it is not asked again. A circuit breaker for each provider keeps
requests from waiting for one that is down.

A failure of a provider never raises: the trace says what happened, and the cascade continues. When
the caller is cancelled, the call under way is cancelled with it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Final

from router.concurrency.breaker import BreakerState, CircuitBreaker
from router.errors import LLMAnswerError, LLMError, LLMUnavailable
from router.events import Events, OptionalPart
from router.llm.calls import guarded_call
from router.llm.ollama import OllamaModel
from router.llm.openai import OpenAIModel
from router.llm.prompt import (
    Selection,
    ask_again,
    build_prompt,
    offerable,
    parse_answer,
    selection_probability,
)
from router.llm.protocol import ChatModel, Completion, OfferedSkill, Price, Prompt
from router.request import Request
from router.result import Candidate, EvidenceValue, Outcome, Stage, StageTrace
from router.settings.plugins import LLMS, load_plugin
from router.settings.settings import LLMSettings

_log: Final = logging.getLogger(__name__)

_FIRST_PAUSE_SECONDS: Final = 0.25
_LONGEST_PAUSE_SECONDS: Final = 4.0
_MAX_NOTE_CHARACTERS: Final = 300


@dataclass(frozen=True, slots=True)
class LLMAnswer:
    """How the stage ended.

    Attributes:
        selection: what a model chose; None when there is no usable answer.
        confidence: the raw, uncalibrated confidence in [0, 1]; None without an answer, and where
            the model stated none that can be read.
        trace: the stage's entry for the result. Its outcome is ANSWERED, FAILED, or SKIPPED when no
            provider was called.
    """

    selection: Selection | None
    confidence: float | None
    trace: StageTrace


@dataclass(slots=True)
class _Attempts:
    """The attempts for one request, one line each, and the model that was called last."""

    lines: list[str] = field(default_factory=list)
    last_model: ChatModel | None = None

    def note(self, model: ChatModel, what: str) -> None:
        # Providers' messages may be long, and may quote the request over several lines.
        line = " ".join("".join(c if c.isprintable() else " " for c in what).split())
        self.lines.append(f"{model.provider} ({model.model}): {line}"[:_MAX_NOTE_CHARACTERS])


class LLMStage:
    """Asks the configured models; see the module's docstring.

    Attributes:
        models: in the order in which they are asked.

    Args:
        models: the same; ``choose`` needs at least one.
        clock: monotonic seconds.
        events: every call emits an event, and so does the state that no model answers.
        seed: seed of the jitter; None takes one from the system.
    """

    def __init__(
        self,
        models: Sequence[ChatModel],
        *,
        settings: LLMSettings,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        events: Events | None = None,
        seed: int | None = None,
    ) -> None:
        self.models = tuple(models)
        self._events = Events() if events is None else events
        self._part = OptionalPart("llm", self._events)
        self._prices = prices_of(settings)
        self._settings = settings
        self._clock = clock
        self._sleep = sleep
        self._random = random.Random(seed)  # noqa: S311 - jitter, not a secret
        self._guarded = [
            (
                model,
                CircuitBreaker(
                    failures=settings.breaker_failures,
                    reset_seconds=settings.breaker_reset_seconds,
                    clock=clock,
                ),
            )
            for model in models
        ]

    @property
    def breakers(self) -> tuple[tuple[ChatModel, BreakerState], ...]:
        """The models in the order in which they are asked, and whether each may be asked now."""
        return tuple((model, breaker.state) for model, breaker in self._guarded)

    async def choose(
        self,
        request: Request,
        offered: Sequence[OfferedSkill],
        *,
        likeliest: Sequence[OfferedSkill] = (),
        purpose: str = "route",
    ) -> LLMAnswer:
        """Ask which of ``offered`` and ``likeliest`` fit the request. ``offered`` is sorted by
        name. A failure of a provider never raises."""
        began = self._clock()
        sorted_offered = offerable(offered)
        names = {skill.name for skill in sorted_offered}
        also_offered = [s for s in likeliest if s.name not in names and s.name.isprintable()]
        skills = (*sorted_offered, *also_offered)
        attempts = _Attempts()

        def ended(outcome: Outcome, reason: str) -> LLMAnswer:
            evidence: dict[str, EvidenceValue] = {
                "attempts": tuple(attempts.lines),
                "skills_offered": len(skills),
            }
            if attempts.last_model is not None:
                evidence |= {
                    "provider": attempts.last_model.provider,
                    "model": attempts.last_model.model,
                }
            elapsed = (self._clock() - began) * 1e6
            return LLMAnswer(None, None, StageTrace(Stage.LLM, outcome, reason, elapsed, evidence))

        if not skills:
            return ended(Outcome.SKIPPED, "there is no skill to offer")
        prompt = build_prompt(request, sorted_offered, also_offered)
        deadline = began + self._settings.timeout_seconds
        for position, (model, breaker) in enumerate(self._guarded):
            now = self._clock()
            share = (deadline - now) / (len(self._guarded) - position)
            answered = await self._ask(
                model, breaker, prompt, skills, now + share, attempts, purpose
            )
            if answered is not None:
                self._part.worked()
                elapsed = (self._clock() - began) * 1e6
                return _answer(model, *answered, tuple(attempts.lines), len(skills), elapsed)
        why = "; ".join(dict.fromkeys(attempts.lines))
        self._part.failed(why)
        if attempts.last_model is None:
            return ended(Outcome.SKIPPED, "every provider failed lately and is left alone")
        _log.warning("no LLM answered: %s", why)
        return ended(Outcome.FAILED, f"no usable answer; last: {attempts.lines[-1]}")

    async def aclose(self) -> None:
        """Close the models' connections."""
        async with AsyncExitStack() as closing:
            for model in self.models:
                closing.push_async_callback(model.aclose)

    async def _ask(
        self,
        model: ChatModel,
        breaker: CircuitBreaker,
        prompt: Prompt,
        offered: Sequence[OfferedSkill],
        deadline: float,
        attempts: _Attempts,
        purpose: str,
    ) -> tuple[Selection, Completion] | None:
        """Ask one provider until it answers, fails for good, or its time is over."""
        retries = 0
        reminded = False
        while (time_left := deadline - self._clock()) > 0:
            call = breaker.try_call()
            if call is None:
                attempts.note(model, "left alone after failures in a row")
                return None
            attempts.last_model = model
            try:
                completion = await guarded_call(
                    model,
                    call,
                    prompt,
                    seconds=time_left,
                    purpose=purpose,
                    events=self._events,
                    price=self._prices.get(model.provider),
                )
                selection = parse_answer(completion.text, offered, provider=model.provider)
            except LLMUnavailable as error:
                why = _message(error)
                if retries == self._settings.max_retries:
                    attempts.note(model, why)
                    return None
                pause = self._pause(retries, error.retry_after)
                if pause >= (time_left := deadline - self._clock()):
                    no_time = f"; no time left to wait {pause:,.1f} s and try again"
                    attempts.note(model, why + (no_time if time_left > 0 else ""))
                    return None
                attempts.note(model, why)
                retries += 1
                await self._sleep(pause)
            except LLMAnswerError as error:
                attempts.note(model, _message(error))
                if reminded:
                    return None
                reminded = True
                prompt = ask_again(prompt)
            except LLMError as error:  # rejected, or the model broke its protocol
                attempts.note(model, _message(error))
                return None
            else:
                attempts.note(model, "answered")
                return selection, completion
        attempts.note(model, "the time is over")
        return None

    def _pause(self, retries: int, retry_after: float | None) -> float:
        """Seconds before the next try: exponential back-off with full jitter."""
        longest = min(_FIRST_PAUSE_SECONDS * 2**retries, _LONGEST_PAUSE_SECONDS)
        return max(self._random.uniform(0, longest), retry_after or 0.0)


def _message(error: LLMError) -> str:
    """The message without the provider's name, because the line of the attempt begins with it."""
    return str(error).removeprefix(f"{error.provider}: ")


def _answer(
    model: ChatModel,
    selection: Selection,
    completion: Completion,
    attempts: tuple[str, ...],
    offered: int,
    microseconds: float,
) -> LLMAnswer:
    confidence, source = selection_probability(completion, selection), "token_probability"
    if confidence is None:  # models overstate what they state
        confidence, source = selection.stated_confidence, "stated"
    evidence: dict[str, EvidenceValue] = {
        "attempts": attempts,
        "skills_offered": offered,
        "provider": model.provider,
        "model": model.model,
        "output_mode": completion.mode.value,
        "confidence_source": "none" if confidence is None else source,
    }
    if confidence is not None:
        evidence["confidence"] = confidence
    if selection.stated_confidence is not None:
        evidence["stated_confidence"] = selection.stated_confidence
    if completion.refused:
        evidence["refused_features"] = completion.refused
    if selection.problems:
        evidence["problems"] = selection.problems
    if completion.input_tokens is not None:
        evidence["input_tokens"] = completion.input_tokens
    if completion.output_tokens is not None:
        evidence["output_tokens"] = completion.output_tokens
    chosen = ", ".join(selection.skills)
    said = f"chose {chosen}" if chosen else "says that no skill fits"
    unsaid = ", and states no confidence" if confidence is None else ""
    return LLMAnswer(
        selection,
        confidence,
        StageTrace(
            Stage.LLM,
            Outcome.ANSWERED,
            f"{model.provider} {said}{unsaid}",
            microseconds,
            evidence,
            tuple(Candidate(name, confidence or 0.0) for name in selection.skills),
        ),
    )


def prices_of(settings: LLMSettings) -> dict[str, Price]:
    """The price of each provider whose prices are known. Ollama, which runs locally, costs
    nothing."""
    openai = settings.openai
    found = {"ollama": Price(0.0, 0.0)}
    if openai.input_price is not None and openai.output_price is not None:
        found["openai"] = Price(openai.input_price, openai.output_price)
    return found


def models_from_settings(
    settings: LLMSettings, *, environ: Mapping[str, str] = os.environ
) -> tuple[ChatModel, ...]:
    """The configured models in fall-back order; empty when there are none, or none is wanted.

    Without a list of providers: openai when a key or a base URL is set, then ollama when a host is
    set. Nothing is contacted here, and no SDK is imported.

    Raises:
        ConfigurationError: a plug-in cannot be used.
    """
    if not settings.enabled:
        return ()
    key = settings.openai.api_key
    api_key = key.get_secret_value() if key else environ.get("OPENAI_API_KEY")
    base_url = settings.openai.base_url or environ.get("OPENAI_BASE_URL")
    host = settings.ollama.host or environ.get("OLLAMA_HOST")
    names: Sequence[str]
    if settings.providers is not None:
        names = settings.providers
    else:
        found = (("openai", api_key or base_url), ("ollama", host))
        names = [name for name, configured in found if configured]
    openai = OpenAIModel(settings.openai.model, base_url=base_url or None, api_key=api_key or None)
    ollama = OllamaModel(settings.ollama.model, host=host or None)
    built_in: dict[str, ChatModel] = {"openai": openai, "ollama": ollama}
    return tuple(
        built_in.get(name) or load_plugin(LLMS, name, ChatModel, "llm.providers") for name in names
    )
