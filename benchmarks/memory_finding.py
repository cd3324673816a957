"""Do people find what they saved?

Sixteen people of twelve projects have saved 1,143 memories in nine layers, with their dates
(``data/memory_finding_*.txt``), and ask 932 questions in the words that people use: bare keywords,
plain questions, questions that share no word with the answer, questions about a time, about what
has changed since, and about what was never saved. One row for each kind: how often the first item
is right, how often one of the first three is, how often an absent answer is empty, how often the
first item is wrong although its relevance is over 0.5, and how often a right item is in a context
of 300 tokens.

Six of the people were looked at while the product was made: ``develop`` (335 questions, of which
228 were written later, to be harder) and ``held_out`` (105), which only measured it at first; the
coefficients of ``router/memory/recall/relevance.py`` are fitted to both. Three (``fresh``, 142)
were written before any of their rankings was seen, and have been read rarely; the weight of another
qualifier (``router/memory/recall/relevance.py``) was chosen on them, too. Three (``unseen``,
150) were written later by somebody who had seen no other question: a wedding planner, a night nurse
who watches the stars, an apprentice of a bakery. Their questions that share no word with the answer
do not share a stem with it either, and what was never saved is about neighbours of what was. They
were measured once, and then read to mend what a time or a change was asked in. The last four
(``later``, 200) measured that: a keeper of tower clocks, an undertaker, a hand on an oyster farm, a
technician of seismic stations. Nobody has read which of their questions fail; their figures were
among those by which the words were chosen that make a replacement likely
(``router/memory/recall/updates.py``), and by which saved questions are left out where another
qualifier is looked for.

With ``--questions`` the memories of the part are saved with one to four questions that they answer,
as an agent is asked to write them when it saves (``data/memory_finding_*_questions.txt``). They
were written by a language model that saw the memories alone, never the questions that are asked
here.

    python benchmarks/memory_finding.py [--part develop|held_out|fresh|unseen|later]
        [--questions] [--encoder minilm] [--errors] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from benchmarks.inputs import give
from router.memory.memory import Memory
from router.memory.model import Scope
from router.settings.settings import Settings

DATA: Final = Path(__file__).with_name("data")
NOW: Final = datetime(2026, 11, 20, 10, 0, tzinfo=UTC)
"""A Friday: when all questions are asked."""
PARTS: Final = ("develop", "held_out", "fresh", "unseen", "later")
KINDS: Final = ("keyword", "plain", "oblique", "time", "update", "absent")
CONTEXT_TOKENS: Final = 300
SURE: Final = 0.5

_ITEM: Final = re.compile(
    r"(?P<layer>[a-z]+) (?P<day>\d{4}-\d\d-\d\d) (?P<id>[\w-]+) (?:\{(?P<attributes>[^}]*)\} )?"
    r"\| (?P<content>.+)"
)
_ATTRIBUTE: Final = re.compile(r"(\w+)=((?:(?! \w+=).)+)")


@dataclass(frozen=True)
class Saved:
    """One memory as a person saved it."""

    id: str
    layer: str
    content: str
    created: datetime
    scope: Scope
    attributes: dict[str, str | tuple[str, ...]]


@dataclass(frozen=True)
class Question:
    """One question; ``right`` are the ids that answer it, none for an absent one."""

    kind: str
    text: str
    right: frozenset[str]
    scope: Scope


@dataclass(frozen=True)
class Outcome:
    """What came of one question; ``place`` of the first right item counts from 0."""

    question: Question
    given: tuple[str, ...]
    place: int | None
    relevance: float
    in_context: bool
    milliseconds: float

    @property
    def is_empty(self) -> bool:
        return not self.given


def read(path: Path) -> tuple[list[Saved], list[Question]]:
    """The memories and the questions of one part."""
    saved: list[Saved] = []
    questions: list[Question] = []
    scope = Scope()
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("@ "):
            _, user, project = line.split()
            scope = Scope(user, project)
        elif line.startswith("? "):
            kind, text, right = (part.strip() for part in line[2:].split("|"))
            ids = frozenset() if right == "-" else frozenset(right.split())
            questions.append(Question(kind, text, ids, scope))
        elif match := _ITEM.fullmatch(line):
            layer = match["layer"]
            owner = {"user": Scope(scope.user), "project": Scope(project=scope.project)}
            saved.append(
                Saved(
                    match["id"],
                    layer,
                    match["content"],
                    datetime.fromisoformat(f"{match['day']}T09:00:00+00:00"),
                    owner.get(layer, scope),
                    dict(_attributes(match["attributes"] or "")),
                )
            )
        else:
            raise SystemExit(f"{path}: cannot read {line!r}")
    return saved, questions


def _attributes(text: str) -> Iterator[tuple[str, str | tuple[str, ...]]]:
    for name, value in _ATTRIBUTE.findall(text):
        yield name, tuple(value.split(",")) if name == "relations" else value


async def ask(memory: Memory, question: Question) -> Outcome:
    """Recall one question, and assemble a context for it."""
    started = time.perf_counter()
    found = await memory.recall(question.text, question.scope, k=5)
    spent = (time.perf_counter() - started) * 1000
    given = tuple(one.item.id for one in found.items)
    places = [place for place, given_id in enumerate(given) if given_id in question.right]
    context = await memory.assemble(
        question.text, token_budget=CONTEXT_TOKENS, scope=question.scope
    )
    return Outcome(
        question,
        given,
        places[0] if places else None,
        found.items[0].relevance if found.items else 0.0,
        any(chunk.item_id in question.right for chunk in context.chunks)
        if question.right
        else not context.chunks,
        spent,
    )


def read_written(path: Path) -> dict[str, list[str]]:
    """Questions that were written to be saved with the memories of one part, by the memory's id."""
    lines = (line.split(" | ") for line in path.read_text(encoding="utf-8").splitlines())
    return {name: questions for name, *questions in lines}


def settings_in(directory: Path, encoder: str) -> Settings:
    """Of a memory in a folder of its own, whose layers have time enough on a busy machine."""
    return Settings(
        encoder={"kind": encoder},
        memory={
            "directory": directory / "kept",
            "project_directory": directory,
            "layer_deadline_seconds": 5,
            "deadline_seconds": 10,
        },
    )


async def measure(
    part: str, directory: Path, *, encoder: str, with_questions: bool
) -> list[Outcome]:
    """Every question of one part, asked of a memory that holds all parts."""
    path = DATA / f"memory_finding_{part}_questions.txt"
    written = read_written(path) if with_questions else {}
    async with Memory(settings_in(directory, encoder), clock=NOW.timestamp) as memory:
        for each in PARTS:
            for one in read(DATA / f"memory_finding_{each}.txt")[0]:
                await memory.save(
                    one.content,
                    name=one.id,
                    layer=one.layer,
                    scope=one.scope,
                    created=one.created,
                    attributes=one.attributes,
                    questions=written.get(one.id, ()) if each == part else (),
                )
        questions = read(DATA / f"memory_finding_{part}.txt")[1]
        return [await ask(memory, question) for question in questions]


def row(name: str, outcomes: list[Outcome]) -> dict[str, Any]:
    """The figures of some questions."""
    asked = [one for one in outcomes if one.question.right]
    absent = [one for one in outcomes if not one.question.right]
    sure = [one for one in outcomes if one.place != 0 and one.given and one.relevance > SURE]
    return {
        "questions": name,
        "n": len(outcomes),
        "first": _share([one.place == 0 for one in asked]),
        "in three": _share([one.place is not None and one.place < 3 for one in asked]),
        "empty": _share([one.is_empty for one in absent]),
        "wrong and sure": _share([one in sure for one in outcomes]),
        "in context": _share([one.in_context for one in asked]),
        "context empty": _share([one.in_context for one in absent]),
    }


def _share(held: list[bool]) -> float | None:
    return round(sum(held) / len(held), 3) if held else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", choices=PARTS, default="fresh")
    parser.add_argument("--questions", action="store_true", help="save memories with questions")
    parser.add_argument("--encoder", default="bundled", help="kind of encoder")
    parser.add_argument("--errors", action="store_true", help="show what was not found")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        outcomes = asyncio.run(
            measure(
                options.part,
                Path(directory),
                encoder=options.encoder,
                with_questions=options.questions,
            )
        )
    by_kind: dict[str, list[Outcome]] = defaultdict(list)
    for one in outcomes:
        by_kind[one.question.kind].append(one)
    rows = [row(kind, by_kind[kind]) for kind in KINDS] + [row("all", outcomes)]
    times = sorted(one.milliseconds for one in outcomes)
    rows[-1]["recall p95 ms"] = round(times[int(0.95 * len(times))], 1)
    give(rows, as_json=options.json)
    if options.errors and not options.json:
        for one in outcomes:
            question = one.question
            if one.place != 0 if question.right else not one.is_empty:
                print(
                    f"{question.kind:8} {question.text}  wanted {' '.join(question.right) or '-'}"
                    f"  got {' '.join(one.given[:4])}  {one.relevance:.2f}"
                )


if __name__ == "__main__":
    main()
