"""The LLM stage: both real SDKs against loopback servers, with sleeps recorded and not slept."""

from __future__ import annotations

import asyncio
import random
import re
from collections.abc import AsyncIterator, Iterator
from typing import Any

import httpx
import pytest
from llm.asked import answer
from pydantic import SecretStr
from servers.loopback import HANG
from servers.ollama_server import OllamaServer, chat
from servers.ollama_server import error as ollama_error
from servers.openai_server import OpenAIServer, completion
from servers.openai_server import error as openai_error

from router.events import Degraded, Event, Events, LLMCalled, Recovered
from router.llm.ollama import OllamaModel
from router.llm.openai import OpenAIModel
from router.llm.protocol import ChatModel, Completion, OfferedSkill, OutputMode, Prompt
from router.request import Request
from router.result import Outcome, Stage
from router.settings.settings import LLMSettings, OllamaSettings, OpenAISettings
from router.stages.llm import LLMAnswer, LLMStage, models_from_settings

GIT = OfferedSkill("git", "Work with version control.")
TESTING = OfferedSkill("testing", "Write and run tests.")
OFFERED = (TESTING, GIT)
REQUEST = Request.parse("commit it")
SEED = 7


def attempts(answered: LLMAnswer) -> tuple[str, ...]:
    """One line for each call, and for each provider left alone."""
    found = answered.trace.evidence["attempts"]
    assert isinstance(found, tuple)
    return found


class Time:
    """A clock that moves only when something sleeps, and the list of those sleeps."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.slept: list[float] = []

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def openai_model(openai_server: OpenAIServer) -> OpenAIModel:
    return OpenAIModel("gpt-test", base_url=openai_server.url, api_key="sk-test")


@pytest.fixture
def ollama_model(ollama_server: OllamaServer) -> OllamaModel:
    return OllamaModel("llama-test", host=ollama_server.url)


class Stages:
    """Makes stages and closes them."""

    def __init__(self, time: Time) -> None:
        self._time = time
        self.events = Events()
        self.made: list[LLMStage] = []

    def __call__(self, *models: ChatModel, **settings: Any) -> LLMStage:
        stage = LLMStage(
            models,
            settings=LLMSettings(**settings),
            clock=self._time.clock,
            sleep=self._time.sleep,
            events=self.events,
            seed=SEED,
        )
        self.made.append(stage)
        return stage


@pytest.fixture
async def stages(time: Time) -> AsyncIterator[Stages]:
    stages = Stages(time)
    yield stages
    for stage in stages.made:
        await stage.aclose()


@pytest.fixture(autouse=True)
def _imported_sdks() -> Iterator[None]:
    """Importing an SDK takes longer than the deadlines of some tests."""
    import ollama  # noqa: F401
    import openai  # noqa: F401

    yield


# --- answers


async def test_a_choice_is_answered_with_the_probability_of_its_tokens(
    openai_server: OpenAIServer, openai_model: OpenAIModel, stages: Stages
) -> None:
    openai_server.queue(completion(answer(), probabilities={"git": 0.7}))
    answered = await stages(openai_model).choose(REQUEST, OFFERED)
    assert answered.trace.outcome is Outcome.ANSWERED
    assert answered.trace.reason == "openai chose git"
    assert answered.selection is not None
    assert answered.selection.skills == ("git",)
    assert answered.selection.memory_layers == ("project",)
    assert answered.confidence == pytest.approx(0.7)
    assert answered.trace.evidence["confidence_source"] == "token_probability"


async def test_without_tokens_the_stated_confidence_counts(
    ollama_server: OllamaServer, ollama_model: OllamaModel, stages: Stages
) -> None:
    ollama_server.queue(chat(answer(confidence=0.0)))
    answered = await stages(ollama_model).choose(REQUEST, OFFERED)
    assert answered.trace.evidence["confidence_source"] == "stated"
    assert answered.confidence == 0.0


async def test_a_choice_without_any_confidence_is_kept_and_its_confidence_unknown(
    ollama_server: OllamaServer, ollama_model: OllamaModel, stages: Stages
) -> None:
    ollama_server.queue(chat(answer(confidence="high")))
    answered = await stages(ollama_model).choose(REQUEST, OFFERED)
    assert answered.trace.outcome is Outcome.ANSWERED
    assert answered.confidence is None
    assert answered.trace.reason == "ollama chose git, and states no confidence"
    assert "confidence" not in answered.trace.evidence
    assert answered.trace.evidence["confidence_source"] == "none"
    assert answered.trace.evidence["problems"] == ("confidence is not a number but a string",)


async def test_that_no_skill_fits_is_an_answer(
    ollama_server: OllamaServer, ollama_model: OllamaModel, stages: Stages
) -> None:
    ollama_server.queue(chat(answer(skills=["none"]), probabilities={"none": 0.8}))
    answered = await stages(ollama_model).choose(REQUEST, OFFERED)
    assert answered.trace.reason == "ollama says that no skill fits"
    assert answered.selection is not None
    assert answered.selection.skills == ()
    assert answered.confidence == pytest.approx(0.8)
    assert answered.trace.candidates == ()


async def test_the_trace_says_who_answered_how_and_on_what_evidence(
    openai_server: OpenAIServer, openai_model: OpenAIModel, stages: Stages
) -> None:
    openai_server.refuse("logprobs", openai_error(403, "You may not request logprobs"))
    openai_server.queue(completion(answer(skills=["git", "lost"])))
    entry = (await stages(openai_model).choose(REQUEST, OFFERED)).trace
    assert (entry.stage, entry.outcome) == (Stage.LLM, Outcome.ANSWERED)
    assert [(c.name, c.score) for c in entry.candidates] == [("git", 0.9)]
    assert dict(entry.evidence) == {
        "attempts": ("openai (gpt-test): answered",),
        "skills_offered": 2,
        "provider": "openai",
        "model": "gpt-test",
        "output_mode": "json_schema",
        "confidence": 0.9,
        "confidence_source": "stated",
        "stated_confidence": 0.9,
        "refused_features": ("logprobs",),
        "problems": ("1 unknown skill dropped",),
        "input_tokens": 120,
        "output_tokens": 40,
    }


async def test_the_skills_reach_the_model_sorted_whatever_order_they_are_offered_in(
    openai_server: OpenAIServer, openai_model: OpenAIModel, stages: Stages
) -> None:
    openai_server.always = completion(answer())
    stage = stages(openai_model)
    await stage.choose(REQUEST, (TESTING, GIT))
    await stage.choose(REQUEST, (GIT, TESTING))
    first, second = openai_server.requests
    assert first.body == second.body


# --- retries


async def test_an_unavailable_provider_is_asked_again(
    openai_server: OpenAIServer, openai_model: OpenAIModel, stages: Stages
) -> None:
    openai_server.queue(openai_error(500, "oops"), openai_error(503, "oops"), completion(answer()))
    answered = await stages(openai_model).choose(REQUEST, OFFERED)
    assert answered.trace.outcome is Outcome.ANSWERED
    assert attempts(answered) == (
        "openai (gpt-test): 500 oops",
        "openai (gpt-test): 503 oops",
        "openai (gpt-test): answered",
    )


async def test_the_pauses_are_jittered_and_their_bound_doubles_up_to_four_seconds(
    openai_server: OpenAIServer, openai_model: OpenAIModel, stages: Stages, time: Time
) -> None:
    openai_server.always = openai_error(500, "oops")
    await stages(openai_model, max_retries=6, breaker_failures=10, timeout_seconds=100).choose(
        REQUEST, OFFERED
    )
    jitter = random.Random(SEED)
    assert time.slept == [jitter.uniform(0, bound) for bound in (0.25, 0.5, 1, 2, 4, 4)]


async def test_the_wait_that_a_provider_asks_for_is_kept(
    openai_server: OpenAIServer, openai_model: OpenAIModel, stages: Stages, time: Time
) -> None:
    openai_server.queue(
        openai_error(429, "slow down", headers={"Retry-After": "7"}), completion(answer())
    )
    answered = await stages(openai_model).choose(REQUEST, OFFERED)
    assert answered.trace.outcome is Outcome.ANSWERED
    assert time.slept == [7.0]


async def test_a_wait_beyond_the_deadline_is_not_waited_for(
    openai_server: OpenAIServer, openai_model: OpenAIModel, stages: Stages, time: Time
) -> None:
    openai_server.queue(openai_error(429, "slow down", headers={"Retry-After": "60"}))
    answered = await stages(openai_model).choose(REQUEST, OFFERED)
    assert answered.trace.outcome is Outcome.FAILED
    assert time.slept == []
    why = "openai (gpt-test): 429 slow down; no time left to wait 60.0 s and try again"
    assert attempts(answered) == (why,)
    assert answered.trace.reason == f"no usable answer; last: {why}"


async def test_retries_come_to_an_end(
    openai_server: OpenAIServer, openai_model: OpenAIModel, stages: Stages
) -> None:
    openai_server.always = openai_error(500, "oops")
    answered = await stages(openai_model, max_retries=1).choose(REQUEST, OFFERED)
    assert answered.trace.outcome is Outcome.FAILED
    assert answered.selection is None
    assert answered.confidence is None
    assert len(openai_server.requests) == 2


async def test_a_failure_is_told_and_so_is_the_next_answer(
    openai_server: OpenAIServer, openai_model: OpenAIModel, stages: Stages
) -> None:
    told: list[Event] = []
    stages.events.subscribe(told.append)
    openai_server.queue(openai_error(401, "Incorrect API key"))
    openai_server.always = completion(answer())
    stage = stages(openai_model)
    for _ in range(3):
        await stage.choose(REQUEST, OFFERED)
    parts = [type(event) for event in told if not isinstance(event, LLMCalled)]
    assert parts == [Degraded, Recovered]


async def test_a_refused_call_is_not_made_again(
    openai_server: OpenAIServer, openai_model: OpenAIModel, stages: Stages
) -> None:
    openai_server.queue(openai_error(401, "Incorrect API key"))
    answered = await stages(openai_model).choose(REQUEST, OFFERED)
    assert answered.trace.outcome is Outcome.FAILED
    assert "Incorrect API key" in answered.trace.reason
    assert len(openai_server.requests) == 1


@pytest.mark.parametrize(
    "useless",
    [
        completion("I would say git."),
        completion(answer()[:30]),
        completion(answer(skills=["lost"])),
        completion(answer(), finish_reason="length"),
        completion(None, refusal="No."),
    ],
)
async def test_a_useless_answer_is_asked_for_once_more_with_a_reminder(
    openai_server: OpenAIServer, openai_model: OpenAIModel, stages: Stages, useless: Any
) -> None:
    openai_server.queue(useless, completion(answer()))
    answered = await stages(openai_model, max_retries=0).choose(REQUEST, OFFERED)
    assert answered.trace.outcome is Outcome.ANSWERED
    first, second = (request.body["messages"][1]["content"] for request in openai_server.requests)
    assert second.startswith(first)
    assert "could not be used" in second[len(first) :]


async def test_two_useless_answers_are_the_end(
    ollama_server: OllamaServer, ollama_model: OllamaModel, stages: Stages
) -> None:
    ollama_server.always = chat("no idea")
    answered = await stages(ollama_model).choose(REQUEST, OFFERED)
    assert answered.trace.outcome is Outcome.FAILED
    assert answered.trace.reason == (
        "no usable answer; last: ollama (llama-test): the answer holds no complete JSON object"
    )
    assert len(ollama_server.requests) == 2


# --- fall-back order and deadline


async def test_the_second_provider_answers_when_the_first_does_not(
    openai_server: OpenAIServer,
    ollama_server: OllamaServer,
    openai_model: OpenAIModel,
    ollama_model: OllamaModel,
    stages: Stages,
) -> None:
    openai_server.queue(openai_error(401, "no key"))
    ollama_server.queue(chat(answer()))
    answered = await stages(openai_model, ollama_model).choose(REQUEST, OFFERED)
    assert answered.trace.outcome is Outcome.ANSWERED
    assert [answered.trace.evidence[key] for key in ("provider", "model")] == [
        "ollama",
        "llama-test",
    ]
    assert len(attempts(answered)) == 2


async def test_a_hanging_first_provider_leaves_time_for_the_second(
    openai_server: OpenAIServer,
    ollama_server: OllamaServer,
    openai_model: OpenAIModel,
    ollama_model: OllamaModel,
) -> None:
    openai_server.queue(HANG)
    ollama_server.queue(chat(answer()))
    stage = LLMStage([openai_model, ollama_model], settings=LLMSettings(timeout_seconds=3.0))
    answered = await stage.choose(REQUEST, OFFERED)
    await stage.aclose()
    assert answered.trace.outcome is Outcome.ANSWERED
    assert answered.trace.reason == "ollama chose git"
    assert "no answer within" in attempts(answered)[0]


async def test_the_deadline_ends_a_hanging_call(
    openai_server: OpenAIServer, openai_model: OpenAIModel
) -> None:
    openai_server.always = HANG
    stage = LLMStage([openai_model], settings=LLMSettings(timeout_seconds=0.2))
    answered = await stage.choose(REQUEST, OFFERED)
    await stage.aclose()
    assert answered.trace.outcome is Outcome.FAILED
    (attempt,) = attempts(answered)
    # What is left of the 0.2 s when the call is made; a busy machine may have used some.
    assert re.fullmatch(r"openai \(gpt-test\): no answer within 0\.[12]\d* s", attempt)


async def test_cancelling_the_caller_leaves_nothing_running(
    openai_server: OpenAIServer, openai_model: OpenAIModel, stages: Stages
) -> None:
    openai_server.queue(HANG)
    before = asyncio.all_tasks()
    call = asyncio.create_task(stages(openai_model).choose(REQUEST, OFFERED))
    await asyncio.to_thread(openai_server.arrived.wait)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert asyncio.all_tasks() == before


# --- models of a program's own


class OwnModel:
    """A program's own model, whose calls end as they please."""

    provider = "own"
    model = "own-1"

    def __init__(self, ends: Any) -> None:
        self._ends = ends
        self.calls = 0

    async def complete(self, prompt: Prompt, *, timeout_seconds: float) -> Completion:
        self.calls += 1
        if isinstance(self._ends, BaseException):
            raise self._ends
        answered: Completion = self._ends
        return answered

    async def aclose(self) -> None:
        """There is nothing to close."""


ODD_ENDS: dict[str, tuple[Any, str]] = {
    "an HTTP error": (httpx.ConnectError("refused"), "ConnectError: refused"),
    "an error of the system": (ConnectionRefusedError(111, "no"), "ConnectionRefusedError: [Errno"),
    "an error of its own": (ValueError("odd"), "ValueError: odd"),
    "an error without words": (KeyError(), "KeyError"),
    "nothing": (None, "complete() returned NoneType, not a Completion with a text"),
    "a text": (answer(), "complete() returned str, not a Completion with a text"),
    "no text": (
        Completion(None, OutputMode.PLAIN),  # type: ignore[arg-type]
        "complete() returned Completion, not a Completion with a text",
    ),
}


@pytest.mark.parametrize(("ends", "said"), ODD_ENDS.values(), ids=ODD_ENDS.keys())
async def test_after_an_error_that_no_protocol_knows_the_next_model_is_asked(
    ollama_server: OllamaServer,
    ollama_model: OllamaModel,
    stages: Stages,
    caplog: pytest.LogCaptureFixture,
    ends: Any,
    said: str,
) -> None:
    told: list[Event] = []
    stages.events.subscribe(told.append)
    ollama_server.queue(chat(answer()))
    own = OwnModel(ends)
    answered = await stages(own, ollama_model).choose(REQUEST, OFFERED)
    assert answered.trace.reason == "ollama chose git"
    assert own.calls == 1
    assert attempts(answered)[0].startswith(f"own (own-1): {said}")
    assert said in caplog.text
    calls = [event for event in told if isinstance(event, LLMCalled)]
    assert [(call.provider, call.error is None) for call in calls] == [
        ("own", False),
        ("ollama", True),
    ]


async def test_errors_that_no_protocol_knows_open_the_breaker(stages: Stages) -> None:
    own = OwnModel(ValueError("odd"))
    stage = stages(own, breaker_failures=2)
    found = [(await stage.choose(REQUEST, OFFERED)).trace.outcome for _ in range(3)]
    assert found == [Outcome.FAILED, Outcome.FAILED, Outcome.SKIPPED]
    assert own.calls == 2


async def test_what_is_no_exception_of_a_program_is_raised_on(stages: Stages) -> None:
    with pytest.raises(GeneratorExit):
        await stages(OwnModel(GeneratorExit())).choose(REQUEST, OFFERED)


# --- when no provider is asked


async def test_without_a_skill_to_offer_the_stage_is_skipped(
    openai_server: OpenAIServer, openai_model: OpenAIModel, stages: Stages
) -> None:
    answered = await stages(openai_model).choose(REQUEST, ())
    assert (answered.trace.outcome, answered.trace.reason) == (
        Outcome.SKIPPED,
        "there is no skill to offer",
    )
    assert openai_server.requests == []


async def test_a_provider_that_keeps_failing_is_left_alone_and_later_tried_once(
    openai_server: OpenAIServer,
    openai_model: OpenAIModel,
    stages: Stages,
    time: Time,
    caplog: pytest.LogCaptureFixture,
) -> None:
    openai_server.queue(*[openai_error(500, "oops")] * 3)
    stage = stages(openai_model, max_retries=5, breaker_failures=3, breaker_reset_seconds=30)
    failed = await stage.choose(REQUEST, OFFERED)
    assert failed.trace.outcome is Outcome.FAILED
    assert attempts(failed)[-1] == "openai (gpt-test): left alone after failures in a row"
    assert len(openai_server.requests) == 3
    assert len(caplog.records) == 1

    skipped = await stage.choose(REQUEST, OFFERED)
    assert skipped.trace.outcome is Outcome.SKIPPED
    assert skipped.trace.reason == "every provider failed lately and is left alone"
    assert len(caplog.records) == 1  # the log is not filled while nothing new is known
    assert len(openai_server.requests) == 3

    time.now += 30
    openai_server.queue(openai_error(500, "oops"))
    assert (await stage.choose(REQUEST, OFFERED)).trace.outcome is Outcome.FAILED
    assert len(openai_server.requests) == 4

    time.now += 30
    openai_server.always = completion(answer())
    assert (await stage.choose(REQUEST, OFFERED)).trace.outcome is Outcome.ANSWERED
    assert (await stage.choose(REQUEST, OFFERED)).trace.outcome is Outcome.ANSWERED


async def test_useless_answers_do_not_open_the_breaker(
    ollama_server: OllamaServer, ollama_model: OllamaModel, stages: Stages
) -> None:
    cut_off = chat(answer(), done_reason="length")
    ollama_server.queue(chat("?"), cut_off, cut_off, chat("?"), chat(answer()))
    stage = stages(ollama_model, breaker_failures=1)
    await stage.choose(REQUEST, OFFERED)
    await stage.choose(REQUEST, OFFERED)
    assert (await stage.choose(REQUEST, OFFERED)).trace.outcome is Outcome.ANSWERED


async def test_a_cancelled_trial_call_does_not_leave_the_breaker_stuck(
    ollama_server: OllamaServer, ollama_model: OllamaModel, stages: Stages, time: Time
) -> None:
    ollama_server.queue(ollama_error(500, "oops"))
    stage = stages(ollama_model, max_retries=0, breaker_failures=1, breaker_reset_seconds=30)
    await stage.choose(REQUEST, OFFERED)
    time.now += 30
    ollama_server.arrived.clear()
    ollama_server.queue(HANG)
    trial = asyncio.create_task(stage.choose(REQUEST, OFFERED))
    await asyncio.to_thread(ollama_server.arrived.wait)
    assert (await stage.choose(REQUEST, OFFERED)).trace.outcome is Outcome.SKIPPED
    trial.cancel()
    with pytest.raises(asyncio.CancelledError):
        await trial
    ollama_server.queue(chat(answer()))
    assert (await stage.choose(REQUEST, OFFERED)).trace.outcome is Outcome.ANSWERED


async def test_a_providers_message_is_one_bounded_line_in_the_trace(
    ollama_server: OllamaServer, ollama_model: OllamaModel, stages: Stages
) -> None:
    ollama_server.queue(ollama_error(404, "no\n\x1b[31msuch\tmodel " + "x" * 5000))
    answered = await stages(ollama_model).choose(REQUEST, OFFERED)
    (line,) = attempts(answered)
    assert line.startswith("ollama (llama-test): 404 no [31msuch model xxx")
    assert line.isprintable()
    assert len(line) == 300


# --- which models are configured


def names(settings: LLMSettings, **environ: str) -> list[tuple[str, str]]:
    models = models_from_settings(settings, environ=environ)
    return [(model.provider, model.model) for model in models]


OPENAI, OLLAMA = ("openai", "gpt-4.1-mini"), ("ollama", "llama3.2")


def test_without_a_list_the_environment_decides() -> None:
    settings = LLMSettings()
    assert names(settings) == []
    assert names(settings, OPENAI_API_KEY="k") == [OPENAI]
    assert names(settings, OPENAI_BASE_URL="http://127.0.0.1:1/v1") == [OPENAI]
    assert names(settings, OLLAMA_HOST="127.0.0.1") == [OLLAMA]
    assert names(settings, OLLAMA_HOST="127.0.0.1", OPENAI_API_KEY="k") == [OPENAI, OLLAMA]
    assert names(settings, OPENAI_API_KEY="", OPENAI_BASE_URL="", OLLAMA_HOST="") == []


def test_without_a_list_the_settings_decide_too() -> None:
    assert names(LLMSettings(openai=OpenAISettings(api_key=SecretStr("k"), model="m"))) == [
        ("openai", "m")
    ]
    assert names(LLMSettings(openai=OpenAISettings(base_url="http://127.0.0.1:1/v1"))) == [OPENAI]
    assert names(LLMSettings(ollama=OllamaSettings(host="h", model="m"))) == [("ollama", "m")]


def test_a_list_is_taken_in_its_order_and_an_empty_one_means_none() -> None:
    assert names(LLMSettings(providers=("ollama", "openai"))) == [OLLAMA, OPENAI]
    assert names(LLMSettings(providers=()), OPENAI_API_KEY="k") == []


def test_a_disabled_stage_has_no_models() -> None:
    assert names(LLMSettings(enabled=False, providers=("openai",)), OPENAI_API_KEY="k") == []


async def test_the_configured_key_and_address_are_used(
    openai_server: OpenAIServer, stages: Stages
) -> None:
    openai_server.queue(completion(answer()))
    settings = LLMSettings(
        openai=OpenAISettings(
            base_url=openai_server.url, api_key=SecretStr("from-settings"), model="m"
        )
    )
    (model,) = models_from_settings(settings, environ={"OPENAI_API_KEY": "from-environment"})
    stage = LLMStage([model], settings=settings)
    assert (await stage.choose(REQUEST, OFFERED)).trace.outcome is Outcome.ANSWERED
    await stage.aclose()
    assert openai_server.requests[0].headers["authorization"] == "Bearer from-settings"
