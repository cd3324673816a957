"""Labelled examples that come with the skills, and files of examples from elsewhere.

A skill's manifest lists whole requests that it answers. Beside it there may be trigger files in the
format that skill authors use to test descriptions: ``[{"query": "...", "should_trigger": true}]``.
And its enrichment holds requests that an LLM wrote from the skill's text. All of them are read anew
with every catalog, so they are never older than the skill. All of it is written by strangers: it is
bounded, parsed strictly, and what cannot be used is left out with a warning.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from router.bounded.files import Unreadable, read_bounded
from router.errors import InvalidRequest
from router.learning.evidence import Example, Source
from router.request import MAX_REQUEST_CHARACTERS, check_text
from router.skills.manifest import SkillManifest

_log = logging.getLogger(__name__)

MAX_TRIGGER_BYTES: Final = 1 << 18
MAX_TRIGGER_FILES: Final = 5
MAX_TRIGGERS: Final = 500
"""How many triggers of one file are read."""
TRIGGER_FILES: Final = ("*trigger*.json", "evals/*.json", "tests/*trigger*.json")
"""Where trigger files are looked for in a skill's folder."""

WRITTEN_WEIGHT: Final = 0.5
"""Of a request that an LLM wrote beforehand, beside 1 for one that was really asked. With 300
requests of BANKING77 and CLINC150 labelled, what may be answered locally at 1% error rises from .23
and .19 to .38 and .59; with 3,000 it stays at .68 and rises from .79 to .81. Between .2 and 1 the
weight makes no difference."""


def shipped_examples(skills: Iterable[SkillManifest]) -> list[Example]:
    """What the skills' own files say about requests, in the order of the skills."""
    return [example for skill in skills for example in _of(skill)]


def written_examples(skills: Iterable[SkillManifest]) -> list[Example]:
    """The requests that an LLM wrote for the skills beforehand, in the order of the skills."""
    return [
        Example(text, (skill.name,), True, Source.FILE, WRITTEN_WEIGHT)
        for skill in skills
        if skill.enrichment is not None
        for text in skill.enrichment.requests
        if _usable(text)
    ]


def _of(skill: SkillManifest) -> Iterator[Example]:
    names = (skill.name,)
    for text in skill.examples:
        if _usable(text):
            yield Example(text, names, True, Source.FILE)
    for path in trigger_files(skill.path.parent) if skill.has_file else ():
        try:
            yield from read_triggers(path, skill.name)
        except InvalidRequest as error:
            _log.warning("left out: %s", error)


def trigger_files(folder: Path) -> list[Path]:
    """The trigger files of a skill, at most ``MAX_TRIGGER_FILES``; no link is followed. A folder
    that may not be read has none."""
    try:
        found = {
            path
            for pattern in TRIGGER_FILES
            for path in folder.glob(pattern)
            if path.is_file() and not path.is_symlink() and not path.parent.is_symlink()
        }
    except OSError as error:  # its skill may still be offered in the last version that was read
        _log.warning("left out: the examples beside a skill: %s", error)
        return []
    return sorted(found)[:MAX_TRIGGER_FILES]


def read_triggers(path: Path, skill: str, *, pipes: bool = False) -> list[Example]:
    """The examples of one trigger file; a JSON file of another form gives none. With ``pipes`` it
    may be standard input.

    Raises:
        InvalidRequest: the file cannot be read, or one of its rows cannot be used; it names both.
    """
    rows = _json(path, pipes=pipes)
    if not isinstance(rows, list) or not all(_is_trigger(row) for row in rows):
        return []
    if len(rows) > MAX_TRIGGERS:
        raise InvalidRequest(f"{path}: {len(rows)} rows; at most {MAX_TRIGGERS}")
    for number, row in enumerate(rows, start=1):
        try:
            check_text("query", row["query"], MAX_REQUEST_CHARACTERS)
        except InvalidRequest as error:
            raise InvalidRequest(f"{path}: row {number}: {error}") from None
    return [Example(row["query"], (skill,), row["should_trigger"], Source.FILE) for row in rows]


def _is_trigger(row: object) -> bool:
    return (
        isinstance(row, dict)
        and isinstance(row.get("query"), str)
        and isinstance(row.get("should_trigger"), bool)
    )


def _json(path: Path, *, pipes: bool) -> Any:
    try:
        return json.loads(read_bounded(path, most=MAX_TRIGGER_BYTES, pipes=pipes))
    except Unreadable as error:
        raise InvalidRequest(f"{path}: {error}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(f"{path}: not JSON: {error}") from None


def _usable(text: str) -> bool:
    try:
        check_text("example", text, MAX_REQUEST_CHARACTERS)
    except InvalidRequest:
        return False
    return True
