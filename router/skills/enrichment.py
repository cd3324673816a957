"""Enrichment: requests that an LLM has written once for a skill, and the file that holds them.

Few requests share words with the skill that serves them. So an LLM is asked once, per skill, for
requests that it should serve and for near misses that it should not; routing then uses them without
any LLM. They are kept as JSON Lines in ``enrichment.jsonl``, to be looked at and committed::

    {"skill": "git", "digest": "9f2c...", "requests": ["undo my last commit"],
     "near_misses": ["undo my last edit in Word"], "model": "gpt-4.1-mini",
     "written_at": "2026-11-22T09:00:00+00:00"}

A file in a root of skills is used for the skills of that root only: text from one folder must not
decide what the skills of another one are for. The file that the setting ``enrichment`` names is the
user's own; it is used for every skill, and wins over the files in the roots. New answers are
appended, so if there are two lines for one skill, the later one is used.

The file may come from strangers. It is read strictly and within bounds; a line that cannot be used
is left out and reported, and the others are used.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from io import BytesIO
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from router.bounded.files import Unreadable, read_bounded
from router.plain_json import first_fault
from router.skills.diagnostics import Diagnostic, Report, Severity, short
from router.skills.frontmatter import distinct, on_one_line, words_on_one_line

ENRICHMENT_FILE: Final = "enrichment.jsonl"
MAX_FILE_BYTES: Final = 1 << 28
MAX_LINE_BYTES: Final = 1 << 18
LEAST_LINE_BYTES: Final = len('{"skill":"","requests":[]}')
"""A line of at most this length, line break included, cannot be used. To find out why takes 4 µs a
byte, so once the report is full, such lines are skipped."""
IN_DOUBT: Final = "in doubt"
"""Stands in place of a digest where most of the requests belong to other skills. They are then
stale, as those for another version of the skill are."""
MAX_NAME_CHARACTERS: Final = 200
MAX_REQUESTS: Final = 64
"""How many requests, and how many near misses, are kept of one line."""
MAX_REQUEST_CHARACTERS: Final = 2_000

_Text = Annotated[str, Field(max_length=MAX_NAME_CHARACTERS), AfterValidator(on_one_line)]
_Texts = Annotated[list[str], Field(fail_fast=True)]


class _Line(BaseModel):
    model_config = ConfigDict(strict=True, extra="allow")

    skill: Annotated[_Text, AfterValidator(words_on_one_line)]
    requests: _Texts | None
    near_misses: _Texts | None = None
    digest: _Text | None = None
    model: _Text | None = None
    written_at: _Text | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrichment:
    """What an LLM has written about the requests of one skill. Deeply immutable.

    Attributes:
        skill: name of the skill that the texts are about.
        requests: requests that the skill should serve. Without any, the skill is asked about again.
        near_misses: requests that sound like the skill's and that it should not serve.
        digest: ``SkillManifest.digest`` of the skill that was read; None where the line has none,
            which fits every version of the skill.
        model: who wrote the texts.
        written_at: when; with a time zone, which is UTC where the line names none.
        fingerprint: 16 hex digits, equal for equal ``requests``, ``near_misses`` and ``digest``.
    """

    skill: str
    requests: tuple[str, ...]
    near_misses: tuple[str, ...] = ()
    digest: str | None = None
    model: str | None = None
    written_at: datetime | None = None
    fingerprint: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        content = json.dumps([self.requests, self.near_misses, self.digest])
        fingerprint = hashlib.sha256(content.encode()).hexdigest()[:16]
        object.__setattr__(self, "fingerprint", fingerprint)

    def to_line(self) -> str:
        """The enrichment as one line of the file, with its line break."""
        values: dict[str, Any] = {"skill": self.skill}
        if self.digest is not None:
            values["digest"] = self.digest
        values["requests"] = list(self.requests)
        if self.near_misses:
            values["near_misses"] = list(self.near_misses)
        if self.model is not None:
            values["model"] = self.model
        if self.written_at is not None:
            values["written_at"] = self.written_at.isoformat(timespec="seconds")
        return json.dumps(values, ensure_ascii=False) + "\n"


@dataclass(frozen=True, slots=True)
class EnrichmentFile:
    """One file of enrichments, as it was read.

    Attributes:
        by_skill: the enrichments by the name of their skill; read-only.
        diagnostics: what is odd about the file.
        digest: SHA-256 of its bytes, in hex; empty when it was not read.
    """

    by_skill: Mapping[str, Enrichment] = field(default_factory=lambda: MappingProxyType({}))
    diagnostics: tuple[Diagnostic, ...] = ()
    digest: str = ""


def read_enrichment(path: Path, *, previous: EnrichmentFile | None = None) -> EnrichmentFile:
    """Read a file of enrichments. Nothing is raised: what cannot be used is reported. ``previous``
    is what it held before, and is given back when its bytes are the same."""
    try:
        data = read_bounded(path, most=MAX_FILE_BYTES)
    except Unreadable as error:
        fault = Diagnostic(path, 0, Severity.WARNING, "enrichment-file", str(error))
        return EnrichmentFile(diagnostics=(fault,))
    digest = hashlib.sha256(data).hexdigest()
    if previous is not None and previous.digest == digest:
        return previous
    report = Report(path)
    found: dict[str, Enrichment] = {}
    for number, line in enumerate(BytesIO(data), start=1):
        if not line.strip():
            continue
        if report.is_full and len(line) <= LEAST_LINE_BYTES:
            continue
        try:
            enrichment = parse_line(line.removesuffix(b"\n"), number, report)
        except ValueError as error:
            if not line.endswith(b"\n"):  # somebody may be writing it just now
                report.info(number, "enrichment-line", f"the last line is not whole: {error}")
            else:
                report.warn(number, "enrichment-line", f"left out: {error}")
            continue
        found[enrichment.skill] = enrichment
    return EnrichmentFile(MappingProxyType(found), report.diagnostics, digest)


def parse_line(line: bytes, number: int, report: Report) -> Enrichment:
    """One line of the file, in UTF-8. What is left out of one that is otherwise used is reported.

    Raises:
        ValueError: the line cannot be used; the message says why, in words for the file's author.
    """
    if len(line) > MAX_LINE_BYTES:
        raise ValueError(f"the line has over {MAX_LINE_BYTES:,} bytes")
    try:
        read = _Line.model_validate(json.loads(line))
    except ValidationError as error:
        raise ValueError(first_fault(error)) from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from None
    if unknown := sorted(read.model_extra or ()):
        keys = ", ".join(map(short, unknown[:5]))
        report.info(number, "enrichment-key", f"not read: {keys}")
    return Enrichment(
        skill=read.skill,
        requests=_requests("requests", read.requests, number, report),
        near_misses=_requests("near_misses", read.near_misses, number, report),
        digest=read.digest or None,
        model=read.model or None,
        written_at=_time(read.written_at, number, report),
    )


def _requests(key: str, given: list[str] | None, number: int, report: Report) -> tuple[str, ...]:
    texts = distinct(given or ())
    kept = [text for text in texts if len(text) <= MAX_REQUEST_CHARACTERS]
    if len(kept) < len(texts):
        limit = f"{MAX_REQUEST_CHARACTERS:,} characters"
        report.warn(number, "enrichment-line", f'a text of "{key}" has over {limit}; left out')
    if len(kept) > MAX_REQUESTS:
        message = f'"{key}" holds {len(kept):,} texts; the first {MAX_REQUESTS} are read'
        report.warn(number, "enrichment-line", message)
    return tuple(kept[:MAX_REQUESTS])


def _time(text: str | None, number: int, report: Report) -> datetime | None:
    try:
        found = datetime.fromisoformat(text) if text else None
    except ValueError:
        message = f'"written_at" is no ISO 8601 time: {short(text or "")}'
        report.info(number, "enrichment-line", message)
        return None
    return found.replace(tzinfo=UTC) if found is not None and found.tzinfo is None else found
