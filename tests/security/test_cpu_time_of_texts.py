"""No text of 20,000 characters keeps a reader busy: wherever texts enter, they take linear time.

On a quiet machine each, and a whole request, takes at most 50 ms of CPU time. What is asserted is
more, for machines that are slow or busy: there the same work takes twice the CPU time and more.
Quadratic work takes seconds.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import pytest
from cascade import shipped_router
from cpu_time import cpu_time_at_most
from hostile_texts import FAMILIES, hostile_texts
from hypothesis import given
from hypothesis import strategies as st
from kept_memory import settings_in

from router import Memory
from router.errors import InvalidRequest, LLMAnswerError, ManifestError
from router.learning.features import Terms
from router.lint.manifest import lint_manifest
from router.llm.prompt import build_prompt, parse_answer
from router.llm.protocol import OfferedSkill
from router.memory.files.names import parse_name
from router.memory.model import MAX_QUERY_CHARACTERS
from router.memory.query.classifier import QueryClassifier
from router.memory.query.rewrite import rewrite
from router.memory.texts.chunking import sections
from router.memory.texts.contents import content_key, name_from, readable, title_of
from router.memory.texts.words import content_terms
from router.request import Request
from router.result import RoutingResult
from router.retrieval.documents import SkillDocument, indexed_words
from router.retrieval.reader import clauses
from router.skills.manifest import parse_manifest
from router.stages.wording import signature_of
from router.text import normalise, stems, tokens

QUIET_SECONDS: Final = 0.05
ALLOWED_SECONDS: Final = 3 * QUIET_SECONDS
WHOLE_SECONDS: Final = 5 * QUIET_SECONDS
"""What a whole request may take: its text goes through many of these entry points, and random
Unicode of all planes fills each of their tables for the first time."""
RECALL_SECONDS: Final = 10 * QUIET_SECONDS
"""A recall reads a query and the longest memory."""

OFFERED: Final = [OfferedSkill("git", "Commits.")]
NOW: Final = datetime(2026, 3, 1, tzinfo=UTC)
COSTLIEST: Final = (
    "marks out of order",
    "anything",
    "one long word that grows",
    "the longest ligature",
    "very many clauses",
)
REFUSALS: Final = (InvalidRequest, LLMAnswerError, ManifestError, ValueError)
"""What a text that cannot be used is answered with."""


CLASSIFIER: Final = QueryClassifier()


def read_skill(body: str, description: str = "Commits. Use when changes are to be kept.") -> None:
    """Everything that is done with the file of a skill."""
    lines = ["---", "name: git", f"description: {json.dumps(description)}", "---", body]
    data = "\n".join(lines).encode()
    skill = parse_manifest(data, path=Path("git/SKILL.md"))
    SkillDocument.of(skill)
    lint_manifest(skill, data)


def read_answer(text: str) -> None:
    fields = {"skills": ["git"], "memory_layers": [], "confidence": 0.5}
    answer = json.dumps(fields | {"mission_brief": text, "reasoning": text}, ensure_ascii=False)
    parse_answer(answer, OFFERED, provider="p")


ENTRIES: Final[dict[str, Callable[[str], object]]] = {
    "request": Request.parse,
    "history": lambda text: Request.parse("x", history=[text]),
    "prompt": lambda text: build_prompt(Request("x", history=()), [OfferedSkill("git", text)]),
    "normal form": normalise,
    "tokens": tokens,
    "stems": stems,
    "content gate": lambda text: signature_of(normalise(text)),
    "clauses": clauses,
    "learnt features": Terms.of,
    "indexed words": indexed_words,
    "body of a skill": read_skill,
    "description of a skill": lambda text: read_skill("Commit.", text[:5_000]),
    "model's answer": lambda text: parse_answer(text, OFFERED, provider="p"),
    "texts in a model's answer": read_answer,
    "result": RoutingResult.from_json,
    "content of a memory": lambda text: (
        content_key(text),
        content_terms(text),
        title_of(readable(text)),
        name_from(text),
    ),
    "document": lambda text: list(sections(text)),
    "name of a memory": parse_name,
    "query of memory": lambda text: rewrite(text[:MAX_QUERY_CHARACTERS], now=NOW),
    "query to be classified": lambda text: CLASSIFIER.classify(text[:MAX_QUERY_CHARACTERS]),
}


@pytest.fixture(scope="module", autouse=True)
def _warm() -> None:
    """Tables and models that are read once, at first use."""
    for read in ENTRIES.values():
        with suppress(*REFUSALS):
            read("\u00e9 b")


@pytest.mark.parametrize("entry", ENTRIES)
def test_known_attacks_take_little_time(entry: str) -> None:
    slow: list[str] = []
    for name, text in FAMILIES.items():
        try:
            with cpu_time_at_most(ALLOWED_SECONDS), suppress(*REFUSALS):
                ENTRIES[entry](text)
        except AssertionError as error:
            slow.append(f"{name!r} {error}")
    assert slow == []


@given(st.sampled_from(sorted(ENTRIES)), hostile_texts())
def test_no_text_takes_long(entry: str, text: str) -> None:
    with cpu_time_at_most(ALLOWED_SECONDS), suppress(*REFUSALS):
        ENTRIES[entry](text)


@pytest.mark.parametrize("family", COSTLIEST)
async def test_no_request_or_memory_blocks_the_event_loop(tmp_path: Path, family: str) -> None:
    text = FAMILIES[family]
    question = text[:MAX_QUERY_CHARACTERS].strip()
    async with (
        shipped_router(tmp_path / "state") as router,
        Memory(settings_in(tmp_path)) as memory,
    ):
        await router.route("commit my changes")
        await memory.recall("when was it?")
        with cpu_time_at_most(WHOLE_SECONDS):
            await router.route(text)
        with cpu_time_at_most(WHOLE_SECONDS):
            await router.discover(text)
        with cpu_time_at_most(WHOLE_SECONDS):
            await memory.save(text, layer="semantic")
        with cpu_time_at_most(RECALL_SECONDS):
            await memory.recall(question)
