"""Stage 3: ask a language model which of the offered skills fit.

The providers are asked in fall-back order. One deadline covers everything: what is left of it is
shared evenly by the providers not yet asked, so that a hanging first one leaves time for the
second. A provider that is unavailable is asked again after a pause (exponential, full jitter, at
least what it asked for), an unusable answer once more with a reminder of the form, a refused call
not at all. A circuit breaker per provider keeps one that is down from costing every request.

Trouble with a provider never raises: the trace says what happened, and the cascade goes on. When
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
from router.errors import LLMAnswerError, LLMError, LLMRejected, LLMUnavailable
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
        confidence: the raw, uncalibrated confidence in [0, 1]; 0 without an answer.
        trace: the stage's entry for the result. Its outcome is ANSWERED, FAILED, or SKIPPED when no
            provider was called.
    """

    selection: Selection | None
    confidence: float
    trace: StageTrace


@dataclass(slots=True)
class _Log:
    """What was tried for one request, and the model that was asked last."""

    lines: list[str] = field(default_factory=list)
    asked: ChatModel | None = None

    def note(self, model: ChatModel, what: str) -> None:
        # Providers' messages may be long, and may quote the request over several lines.
        line = " ".join("".join(c if c.isprintable() else " " for c in what).split())
        self.lines.append(f"{model.provider} ({model.model}): {line}"[:_MAX_NOTE_CHARACTERS])


class LLMStage:
    """Asks the configured models; see the module's text.

    Attributes:
        models: in the order in which they are asked.

    Args:
        models: the same; ``choose`` needs at least one.
        clock: monotonic seconds.
        events: get every call, and a report when no model answers.
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
        """Ask which of ``offered`` and ``likeliest`` fit ``request``. The former are put in the
        order of their names. Never raises for trouble with a provider."""
        started = self._clock()
        stable = offerable(offered)
        names = {skill.name for skill in stable}
        more = [s for s in likeliest if s.name not in names and s.name.isprintable()]
        skills = (*stable, *more)
        log = _Log()

        def ended(outcome: Outcome, reason: str) -> LLMAnswer:
            evidence: dict[str, EvidenceValue] = {
                "attempts": tuple(log.lines),
                "skills_offered": len(skills),
            }
            if log.asked is not None:
                evidence |= {"provider": log.asked.provider, "model": log.asked.model}
            elapsed = (self._clock() - started) * 1e6
            return LLMAnswer(None, 0.0, StageTrace(Stage.LLM, outcome, reason, elapsed, evidence))

        if not skills:
            return ended(Outcome.SKIPPED, "there is no skill to offer")
        prompt = build_prompt(request, stable, more)
        deadline = started + self._settings.timeout_seconds
        for position, (model, breaker) in enumerate(self._guarded):
            now = self._clock()
            share = (deadline - now) / (len(self._guarded) - position)
            answered = await self._ask(model, breaker, prompt, skills, now + share, log, purpose)
            if answered is not None:
                self._part.worked()
                elapsed = (self._clock() - started) * 1e6
                return _answer(model, *answered, tuple(log.lines), len(skills), elapsed)
        why = "; ".join(dict.fromkeys(log.lines))
        self._part.failed(why)
        if log.asked is None:
            return ended(Outcome.SKIPPED, "every provider failed lately and is left alone")
        _log.warning("no LLM answered: %s", why)
        return ended(Outcome.FAILED, f"no usable answer; last: {log.lines[-1]}")

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
        log: _Log,
        purpose: str,
    ) -> tuple[Selection, Completion] | None:
        """Ask one provider until it answers, gives up, or its time is over."""
        retries = 0
        asked_again = False
        while (left := deadline - self._clock()) > 0:
            call = breaker.try_call()
            if call is None:
                log.note(model, "left alone after failures in a row")
                return None
            log.asked = model
            try:
                completion = await guarded_call(
                    model,
                    call,
                    prompt,
                    seconds=left,
                    purpose=purpose,
                    events=self._events,
                    price=self._prices.get(model.provider),
                )
                selection = parse_answer(completion.text, offered, provider=model.provider)
            except LLMUnavailable as error:
                why = _message(error)
                if retries == self._settings.max_retries:
                    log.note(model, why)
                    return None
                pause = self._pause(retries, error.retry_after)
                if pause >= (left := deadline - self._clock()):
                    more = f"; no time left to wait {pause:,.1f} s and try again"
                    log.note(model, why + (more if left > 0 else ""))
                    return None
                log.note(model, why)
                retries += 1
                await self._sleep(pause)
            except LLMRejected as error:
                log.note(model, _message(error))
                return None
            except LLMAnswerError as error:
                log.note(model, _message(error))
                if asked_again:
                    return None
                asked_again = True
                prompt = ask_again(prompt)
            else:
                log.note(model, "answered")
                return selection, completion
        log.note(model, "the time is over")
        return None

    def _pause(self, retries: int, retry_after: float | None) -> float:
        """Seconds before the next try: exponential back-off with full jitter."""
        longest = min(_FIRST_PAUSE_SECONDS * 2**retries, _LONGEST_PAUSE_SECONDS)
        return max(self._random.uniform(0, longest), retry_after or 0.0)


def _message(error: LLMError) -> str:
    """The message without the provider's name, which the note begins with."""
    return str(error).removeprefix(f"{error.provider}: ")


def _answer(
    model: ChatModel,
    selection: Selection,
    completion: Completion,
    attempts: tuple[str, ...],
    offered: int,
    microseconds: float,
) -> LLMAnswer:
    probability = selection_probability(completion, selection)
    confidence, source = 0.0, "none"  # the answer is weak then, and kept
    if probability is not None:
        confidence, source = probability, "token_probability"
    elif selection.stated_confidence is not None:  # models overstate it
        confidence, source = selection.stated_confidence, "stated"
    evidence: dict[str, EvidenceValue] = {
        "attempts": attempts,
        "skills_offered": offered,
        "provider": model.provider,
        "model": model.model,
        "output_mode": completion.mode.value,
        "confidence": confidence,
        "confidence_source": source,
    }
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
    return LLMAnswer(
        selection,
        confidence,
        StageTrace(
            Stage.LLM,
            Outcome.ANSWERED,
            f"{model.provider} " + (f"chose {chosen}" if chosen else "says that no skill fits"),
            microseconds,
            evidence,
            tuple(Candidate(name, confidence) for name in selection.skills),
        ),
    )


def prices_of(settings: LLMSettings) -> dict[str, Price]:
    """The prices by provider, where both are set. A model that runs on a machine of one's own costs
    nothing here."""
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
