"""Whatever a model, a cache file or a caller writes in place of an answer is refused, or made good,
and never an error that nobody has announced."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest
from cached import answer as kept_answer
from cascade import SQUASH, SQUASH_PARAPHRASED, answer, outcomes, shipped_router
from hypothesis import example, given
from hypothesis import strategies as st
from kept_memory import settings_in
from servers.loopback import Reply
from servers.ollama_server import OllamaServer, chat
from servers.openai_server import OpenAIServer, completion

from router import Memory, Outcome, RoutingResult
from router.errors import InvalidRequest, LLMAnswerError
from router.evaluation import read_rows
from router.llm.prompt import parse_answer
from router.llm.protocol import OfferedSkill, Token
from router.numeric import finite

HUGE: Final = "1" + "0" * 400
"""An integer that JSON allows and no float can hold."""
LONGEST: Final = "1" + "0" * 5_000
"""An integer of more digits than Python reads."""
OFFERED: Final = [OfferedSkill("git", "Commits."), OfferedSkill("writer", "Writes.")]

NUMBERS: Final = st.sampled_from(
    [HUGE, "-" + HUGE, LONGEST, "NaN", "Infinity", "-Infinity", "1e400", "-0.0", "true", "null"]
)
VALUES: Final = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(),
        st.floats(),
        st.text(max_size=8),
        st.sampled_from(["git", "none", "writer"]),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)
FIELDS: Final = ("skills", "memory_layers", "mission_brief", "reasoning", "confidence")


@pytest.mark.parametrize("number", [HUGE, LONGEST, "NaN", "-Infinity", "1e400"])
def test_a_confidence_that_is_no_number_costs_the_choice_nothing_or_the_answer_everything(
    number: str,
) -> None:
    text = answer("git").replace("0.9", number)
    if number == LONGEST:  # Python's parser refuses the whole object
        with pytest.raises(LLMAnswerError):
            parse_answer(text, OFFERED, provider="p")
        return
    selection = parse_answer(text, OFFERED, provider="p")
    assert (selection.skills, selection.stated_confidence) == (("git",), None)
    assert [problem for problem in selection.problems if "confidence" in problem] != []


@example({"skills": ["git"], "confidence": 10**400}, "{}", 0)
@given(st.dictionaries(st.sampled_from(FIELDS), VALUES), st.text(max_size=20), st.integers(0, 400))
def test_any_answer_is_a_choice_or_an_answer_error(
    fields: dict[str, Any], around: str, cut: int
) -> None:
    text = around + json.dumps(fields) + around
    for written in (text, text[:cut], around):
        try:
            selection = parse_answer(written, OFFERED, provider="p")
        except LLMAnswerError:
            continue
        assert set(selection.skills) <= {"git", "writer"}
        assert 0 <= (selection.stated_confidence or 0) <= 1  # None where it states none


@given(VALUES, st.one_of(VALUES, st.integers(), st.just(10**400), st.just(-(10**400))), VALUES)
def test_any_description_of_a_token_is_a_token_or_none(
    text: object, log_probability: object, data: object
) -> None:
    token = Token.parse(text, log_probability, data)
    assert 0 <= (0 if token is None else token.probability) <= 1


async def test_a_log_probability_that_no_float_can_hold_costs_the_calibration_alone(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    good = completion(answer("git"), probabilities={"git": 0.5})
    log_probability = b'"logprob": -0.6931471805599453'
    assert log_probability in good.body
    openai_server.queue(Reply(good.body.replace(log_probability, b'"logprob": ' + HUGE.encode())))
    async with shipped_router(tmp_path, openai_server) as router:
        result = await router.route(SQUASH)
    assert result.selected_skills == ("git",)


async def test_a_reply_that_overflows_in_the_sdk_is_no_error_of_the_caller(
    tmp_path: Path, openai_server: OpenAIServer
) -> None:
    openai_server.always = Reply(b'{"choices": ' + b"[" * 100_000)
    async with shipped_router(tmp_path, openai_server) as router:
        result = await router.route(SQUASH)
    assert outcomes(result)[2] is Outcome.FAILED
    assert result.selected_skills == ("git",)


@pytest.mark.parametrize("field", ["prompt_eval_count", "eval_count", "logprob"])
async def test_huge_numbers_of_ollama_are_no_error_of_the_caller(
    ollama_server: OllamaServer, field: str
) -> None:
    from llm.asked import ANSWER, complete

    from router.llm.ollama import OllamaModel

    good = json.loads(chat(ANSWER, probabilities={"git": 0.5}).body)
    if field == "logprob":
        good["logprobs"][0]["logprob"] = 0
    else:
        good[field] = 0
    text = json.dumps(good).replace(f'"{field}": 0', f'"{field}": {HUGE}', 1)
    ollama_server.queue(Reply(text.encode()))
    model = OllamaModel("m", host=ollama_server.url)
    try:
        assert (await complete(model)).text == ANSWER
    except LLMAnswerError as error:
        assert "not a chat response" in str(error)
    await model.aclose()


@given(st.recursive(NUMBERS, lambda inner: st.lists(inner, max_size=2).map(str), max_leaves=3))
def test_a_number_anywhere_in_a_kept_result_is_finite(number: str) -> None:
    result = kept_answer("git")
    text = result.to_json()
    for field in ("confidence", "evidence_count"):
        value = json.dumps(getattr(result, field))
        changed = text.replace(f'"{field}": {value}', f'"{field}": {number}')
        assert changed != text
        try:
            read = RoutingResult.from_json(changed)
        except ValueError:
            continue
        assert finite(getattr(read, field)) is not None
        read.to_json()


@pytest.mark.parametrize("number", [HUGE, "NaN", "Infinity", "-Infinity"])
def test_evidence_that_is_not_finite_is_refused_by_name(number: str) -> None:
    raw = json.loads(kept_answer("git").to_json())
    entry = {"stage": "vector", "outcome": "answered", "reason": "", "microseconds": 1.0}
    raw["trace"] = [entry | {"evidence": {"cosine": 0.5}, "candidates": []}]
    RoutingResult.from_dict(raw)
    text = json.dumps(raw).replace('"cosine": 0.5', f'"cosine": {number}')
    with pytest.raises(ValueError, match=r"evidence\.cosine"):
        RoutingResult.from_json(text)


def _overstate_confidences(folder: Path) -> None:
    """Put a huge number into every row of the cache that lies in a folder."""
    changed = 0
    for path in folder.rglob("*.sqlite3"):
        with closing(sqlite3.connect(path)) as db:
            tables = [row[0] for row in db.execute("SELECT name FROM sqlite_master")]
            if "entries" not in tables:
                continue
            for number, text in db.execute("SELECT id, result FROM entries").fetchall():
                stated = f'"confidence": {json.dumps(json.loads(text)["confidence"])}'
                worse = text.replace(stated, f'"confidence": {HUGE}')
                db.execute("UPDATE entries SET result = ? WHERE id = ?", (worse, number))
                changed += worse != text
            db.commit()
    assert changed > 0


async def test_a_row_of_the_cache_with_a_huge_number_is_a_miss(tmp_path: Path) -> None:
    async with shipped_router(tmp_path) as router:
        first = await router.route(SQUASH)
        assert (await router.route(SQUASH_PARAPHRASED)).from_cache
    _overstate_confidences(tmp_path)
    async with shipped_router(tmp_path) as router:
        again = await router.route(SQUASH_PARAPHRASED)
    assert (again.selected_skills, again.from_cache) == (first.selected_skills, False)


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_a_labelled_row_is_json_so_that_what_is_written_of_it_is_too(number: str) -> None:
    line = f'{{"request": "commit", "skills": ["git"], "weight": {number}}}'.encode()
    with pytest.raises(Exception, match=f"rows.jsonl:1: {number} is not JSON"):
        read_rows([line], source="rows.jsonl")


@pytest.mark.parametrize(
    "arguments",
    [
        {"skills": [5]},
        {"skills": 5},
        {"skills": ["\ud800"]},
        {"skills": ["git"], "scope": "\ud800"},
        {"skills": ["x" * 1_000_000]},
        {"right": "yes"},
        {"right": float("nan")},
        {"id": "\ud800", "right": True},
        {"id": 10**400, "right": True},
        {"id": ["x"], "right": True},
        {"id": "\0", "right": True},
    ],
    ids=repr,
)
async def test_feedback_on_a_route_with_arguments_of_any_kind_is_refused(
    tmp_path: Path, arguments: dict[str, Any]
) -> None:
    async with shipped_router(tmp_path) as router:
        result = await router.route(SQUASH)
        given = dict(arguments)
        with pytest.raises(InvalidRequest):
            await router.feedback(given.pop("id", result.id), **given)


@pytest.mark.parametrize(
    "arguments",
    [
        {"route_id": ["x"]},
        {"route_id": "\ud800"},
        {"layer": ["project"]},
        {"layer": "\ud800"},
        {"useful": "yes"},
        {"useful": float("nan")},
        {"query": 5, "route_id": None},
        {"query": "\ud800", "route_id": None},
    ],
    ids=repr,
)
async def test_feedback_on_a_recall_with_arguments_of_any_kind_is_refused(
    tmp_path: Path, arguments: dict[str, Any]
) -> None:
    async with Memory(settings_in(tmp_path)) as memory:
        recalled = await memory.recall("Why did we choose Postgres?")
        fine = {"layer": "project", "useful": True, "route_id": recalled.id}
        given: dict[str, Any] = fine | arguments
        with pytest.raises(InvalidRequest):
            await memory.feedback(given.pop("layer"), **given)
