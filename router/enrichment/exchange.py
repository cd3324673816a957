"""Questions and answers as JSON Lines, for users without an API key: any agent can answer them.

A question is ``{"skill", "digest", "instructions", "document", "schema"}``, which is what a model
would get. An answer is a line as in ``enrichment.jsonl``: ``{"skill", "digest", "requests",
"near_misses", "model"}``. Answers are trusted no more than those of a model.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from router.enrichment.asking import EnrichmentReport, RunRecord, to_ask
from router.enrichment.question import Written, question_of
from router.errors import ConfigurationError, UnknownSkill
from router.skills.catalog import Catalog
from router.skills.diagnostics import Report
from router.skills.enrichment import Enrichment, parse_line


def questions(catalog: Catalog, names: Iterable[str] | None = None) -> Iterator[str]:
    """The question of each skill that ``to_ask`` names, one JSON object a line."""
    for skill in to_ask(catalog, names):
        prompt = question_of(skill)
        question = {
            "skill": skill.name,
            "digest": skill.digest,
            "instructions": prompt.system,
            "document": json.loads(prompt.user),
            "schema": prompt.schema,
        }
        yield json.dumps(question, ensure_ascii=False) + "\n"


LINE: Final = "line "
"""The beginning of the name, in reports, of a line that cannot be used. No skill's name has a
space."""


def take_answers(
    catalog: Catalog,
    lines: Iterable[bytes],
    names: Iterable[str] | None = None,
    *,
    source: Path,
    file: Path | None,
) -> EnrichmentReport:
    """Filter answers and write the useful part to the files of enrichments.

    Args:
        names: of the skills to write for; None means all. Lines about others are not
            read.
        source: where they come from, for reports.
        file: where to write; None means the file of each skill's root.

    Raises:
        UnknownSkill: there is no skill of one of the names.
        StoreError: a file cannot be written.
    """
    chosen = None if names is None else {catalog.get(name).name for name in names}
    report, record = Report(source), RunRecord(catalog, file)
    routable = {skill.name for skill in catalog.routable}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            answer = parse_line(line, number, report)
            skill = catalog.get(answer.skill)
            if chosen is not None and skill.name not in chosen:
                record.notes.append((f"{LINE}{number}", f"about {skill.name}, and not read"))
                continue
            if skill.name not in routable:
                raise ValueError("the skill is not offered for routing")
            if answer.digest is not None and answer.digest != skill.digest:
                raise ValueError("the skill has changed since the question was written")
            if answer.digest is None and _is_older(answer, skill.enrichment):
                raise ValueError("the skill has requests that were written later")
            record.keep(
                skill,
                Written(answer.requests, answer.near_misses),
                model=answer.model,
                written_at=answer.written_at or datetime.now(UTC),
            )
        except (ValueError, UnknownSkill, ConfigurationError) as error:
            record.failed.append((f"{LINE}{number}", str(error)))
    record.drop_replaced()
    record.notes += [(f"{LINE}{found.line}", found.message) for found in report.diagnostics]
    left = {skill.name for skill in to_ask(catalog, chosen)} - record.written.keys()
    return record.report(left)


def _is_older(answer: Enrichment, present: Enrichment | None) -> bool:
    """Whether an answer says that it was written before what the skill has."""
    return (
        present is not None
        and present.written_at is not None
        and answer.written_at is not None
        and answer.written_at < present.written_at
    )
