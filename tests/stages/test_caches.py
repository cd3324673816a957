"""Stages 1 and 2 together: what is given again, what is refused, and what is told of it."""

from __future__ import annotations

from itertools import repeat
from pathlib import Path

import pytest
from cascade import bundled_encoder, some_skills

from router.events import CacheLookup, CacheOutcome, Event, Events
from router.request import Request
from router.result import Outcome, Stage
from router.retrieval.index import SkillIndex
from router.retrieval.vectors import VectorStore
from router.skills.registry import SkillRegistry
from router.stages.answers import LocalAnswers
from router.stages.caches import CacheStages, PreparedRequest
from router.stages.conformance import kept_answer
from router.stages.validation import Basis, DecidedBy

ASKED = Request.parse("squash the last four commits on this branch")
OTHER_WORDS = Request.parse("Please squash the last four commits on this branch!")


@pytest.fixture
def index(tmp_path: Path) -> SkillIndex:
    """Over two shipped skills."""
    catalog = SkillRegistry([some_skills(tmp_path / "skills", "git", "testing")]).catalog
    encoder = bundled_encoder()
    store = VectorStore(tmp_path / "embeddings", identity=encoder.identity)
    return SkillIndex.build(catalog, encoder=encoder, store=store)


async def test_what_was_kept_is_given_again_with_a_trace_and_an_id_of_its_own(
    index: SkillIndex,
) -> None:
    events, told = Events(), list[Event]()
    events.subscribe(told.append)
    caches = CacheStages(LocalAnswers(), events, repeat("new"))
    result = kept_answer("git").result
    basis = Basis.of(DecidedBy.ROUTER, ["git"], index.catalog)
    await caches.keep(ASKED.text, "c", result, basis, index.catalog, use_fuzzy=True)
    for asked, stage in ((ASKED, Stage.EXACT), (OTHER_WORDS, Stage.FUZZY)):
        again, trace = await caches.answer(PreparedRequest(asked, "c", index, "", True))
        assert again is not None
        assert (again.stage, again.id, again.from_cache) == (stage, "new", True)
        assert again.trace[:2] == trace
        assert again.catalog_version == index.catalog.version
    assert [(event.stage, event.outcome) for event in told if isinstance(event, CacheLookup)] == [
        (Stage.EXACT, CacheOutcome.HIT),
        (Stage.EXACT, CacheOutcome.MISS),
        (Stage.FUZZY, CacheOutcome.HIT),
    ]


async def test_an_answer_of_other_evidence_is_refused_and_the_trace_says_why(
    index: SkillIndex,
) -> None:
    events, told = Events(), list[Event]()
    events.subscribe(told.append)
    caches = CacheStages(LocalAnswers(), events, repeat("new"))
    basis = Basis.of(DecidedBy.ROUTER, ["git"], index.catalog, "evidence")
    result = kept_answer("git").result
    await caches.keep(ASKED.text, "c", result, basis, index.catalog, use_fuzzy=True)
    again, (_, exact) = await caches.answer(PreparedRequest(ASKED, "c", index, "more", True))
    assert again is None
    assert exact.outcome is Outcome.DECLINED
    assert exact.reason == "not given again: the skills or the examples have changed since"
    assert [event.outcome for event in told if isinstance(event, CacheLookup)] == [
        CacheOutcome.REFUSED
    ]


async def test_a_look_that_answers_nobody_is_not_told_of(index: SkillIndex) -> None:
    events, told = Events(), list[Event]()
    events.subscribe(told.append)
    caches = CacheStages(LocalAnswers(), events, repeat("new"))
    again, _ = await caches.answer(PreparedRequest(ASKED, "c", index, "", True), emit_events=False)
    assert (again, told) == (None, [])


async def test_the_trace_says_which_cache_answered_and_why_one_did_not(index: SkillIndex) -> None:
    caches = CacheStages(LocalAnswers(), Events(), repeat("new"))
    basis = Basis.of(DecidedBy.ROUTER, ["git"], index.catalog)
    result = kept_answer("git").result
    await caches.keep(ASKED.text, "c", result, basis, index.catalog, use_fuzzy=True)
    mail = Request.parse("write an email")
    outcomes, evidence = [], []
    for asked, similar in ((ASKED, True), (OTHER_WORDS, True), (mail, True), (mail, False)):
        _, trace = await caches.answer(PreparedRequest(asked, "c", index, "", similar))
        outcomes.append([entry.outcome for entry in trace])
        evidence.append(trace[0].evidence)
    assert outcomes == [
        [Outcome.SKIPPED, Outcome.ANSWERED],
        [Outcome.ANSWERED, Outcome.DECLINED],
        [Outcome.DECLINED, Outcome.DECLINED],
        [Outcome.SKIPPED, Outcome.DECLINED],
    ]
    assert evidence[1]["matched"] == ASKED.text


async def test_the_trace_of_a_miss_names_the_nearest_request_and_what_keeps_it_back(
    index: SkillIndex,
) -> None:
    caches = CacheStages(LocalAnswers(), Events(), repeat("new"))
    basis = Basis.of(DecidedBy.ROUTER, ["git"], index.catalog)
    result = kept_answer("git").result
    await caches.keep("summarise issue 12", "c", result, basis, index.catalog, use_fuzzy=True)
    asked = PreparedRequest(Request.parse("summarise issue 21"), "c", index, "", True)
    _, (fuzzy, _) = await caches.answer(asked)
    assert fuzzy.reason == "the nearest request differs: number differs: 21 against 12"
    assert fuzzy.evidence["nearest"] == "summarise issue 12"
