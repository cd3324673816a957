"""Listings: skills that are not installed but could be. They are suggested, never routed to.

The setting ``listings`` names them. A listing is a path on this machine: a folder of skills, or a
JSON index. Nothing is downloaded; the web addresses of an index are handed on and never opened.

An index may come from strangers. It is bounded in size, and each entry is either taken as it is or
left out; nothing is guessed or repaired. Unknown keys are ignored, because other tools may keep
more in the same file. Names must follow the rule of the Agent Skills format.

    [{"name": "pdf-forms", "description": "Fills PDF forms.",
      "keywords": ["acroform"], "url": "https://example.org/pdf-forms"}]

or the same list under the key ``skills`` of an object.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_core import from_json

from router.bounded.files import Unreadable, read_bounded
from router.errors import ManifestError
from router.plain_json import first_fault
from router.skills.catalog import Catalog, load_catalog
from router.skills.diagnostics import Diagnostic, Report, Severity
from router.skills.frontmatter import words_on_one_line
from router.skills.manifest import NAME_LIMIT, NAME_PATTERN, SkillManifest

MAX_INDEX_BYTES: Final = 8 << 20
MAX_ENTRIES: Final = 10_000
MAX_KEYWORDS: Final = 50


@dataclass(frozen=True, slots=True)
class SkillListing:
    """What one path lists.

    Attributes:
        path: the folder or the index, as an absolute path.
        catalog: the skills by name; those of an index have the index as their ``path`` and no body.
            ``failures`` and ``notices`` say what could not be read or was left out.
        urls: where to get a skill, by name; only an index says so.
        digest: SHA-256 of an index's bytes in hex; empty for a folder.
    """

    path: Path
    catalog: Catalog
    urls: Mapping[str, str] = field(default_factory=dict)
    digest: str = ""


def read_listing(path: Path, *, previous: SkillListing | None = None) -> SkillListing:
    """Read what a path lists; faults are reported in the outcome, and nothing is raised.

    Args:
        path: an absolute path.
        previous: what the same path listed before. What did not change is not parsed again, and an
            index that cannot be read now goes on listing what it did, until it is mended or gone.
    """
    if os.path.isdir(path):  # noqa: PTH112 - Path.is_dir raises below an unreadable folder
        known = previous.catalog if previous is not None else None
        return SkillListing(path, load_catalog([path], previous=known, missing_ok=True, quick=True))
    try:
        data = read_bounded(path, most=MAX_INDEX_BYTES)
        digest = hashlib.sha256(data).hexdigest()
        if previous is not None and previous.digest == digest:
            return previous
        return _parse_index(data, path, digest)
    except (ManifestError, Unreadable) as error:
        reason = error.reason if isinstance(error, ManifestError) else f"the listing: {error}"
        failures = (Diagnostic(path, 0, Severity.ERROR, "not-loaded", reason),)
        if previous is None or not os.path.lexists(path):
            return SkillListing(path, Catalog(failures=failures))
        kept = replace(previous.catalog, failures=failures)
        return replace(previous, catalog=kept, digest="")


def _parse_index(data: bytes, path: Path, digest: str) -> SkillListing:
    """An index's bytes as a listing.

    Raises:
        ManifestError: it is not JSON, not a list of entries, or has too many of them.
    """
    try:
        document = from_json(data, allow_inf_nan=False)
    except ValueError as error:
        raise ManifestError(path, 0, f"the index is not JSON: {error}") from error
    entries = document.get("skills") if isinstance(document, dict) else document
    if not isinstance(entries, list):
        raise ManifestError(path, 0, 'the index is neither a list nor an object with "skills"')
    if len(entries) > MAX_ENTRIES:
        reason = f"the index has {len(entries):,} entries; at most {MAX_ENTRIES:,}"
        raise ManifestError(path, 0, reason)
    report = Report(path)
    skills: dict[str, SkillManifest] = {}
    urls: dict[str, str] = {}
    for number, value in enumerate(entries, start=1):
        try:
            entry = _Entry.model_validate(value)
        except ValidationError as error:
            report.warn(0, "bad-entry", f"entry {number} is left out: {first_fault(error)}")
            continue
        if entry.name in skills:
            message = f"entry {number} is left out: {entry.name} is listed before it"
            report.warn(0, "listed-twice", message)
            continue
        skills[entry.name] = entry.as_manifest(path)
        if entry.url is not None:
            urls[entry.name] = entry.url
    return SkillListing(path, Catalog(skills, notices=report.diagnostics), urls, digest)


class _Entry(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, extra="ignore")

    name: Annotated[str, Field(max_length=NAME_LIMIT, pattern=f"^{NAME_PATTERN}$")]
    description: Annotated[str, Field(max_length=1024), AfterValidator(words_on_one_line)]
    keywords: Annotated[
        list[Annotated[str, Field(max_length=100), AfterValidator(words_on_one_line)]],
        Field(max_length=MAX_KEYWORDS),
    ] = []
    # A web address of a host by name, without user name and password.
    url: (
        Annotated[
            str,
            Field(
                max_length=2048, pattern=r"^https?://[A-Za-z0-9.-]+(:[0-9]{1,5})?([/?#][!-~]*)?$"
            ),
        ]
        | None
    ) = None

    def as_manifest(self, index: Path) -> SkillManifest:
        """The entry as a skill without instructions."""
        return SkillManifest(
            name=self.name,
            description=self.description,
            routing_keywords=tuple(self.keywords),
            body="",
            path=index,
            digest=hashlib.sha256(self.model_dump_json().encode()).hexdigest(),
        )
