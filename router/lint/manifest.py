"""Linting skills one by one: every rule that needs nothing but the skill's file."""

from __future__ import annotations

from itertools import chain, islice
from typing import Final

from router.errors import ManifestError
from router.lint.characters import hidden_characters
from router.lint.injection import injections
from router.lint.payloads import payloads
from router.lint.scripts import mixed_scripts
from router.lint.skill_file import SkillFile
from router.lint.wording import wording
from router.skills.catalog import Catalog
from router.skills.diagnostics import Diagnostic, Severity
from router.skills.manifest import SkillManifest, read_manifest_bytes

MAX_FINDINGS: Final = 100
"""Findings reported for one file."""


def lint_catalog(catalog: Catalog) -> list[Diagnostic]:
    """The findings on each skill by itself, those on shadowed skills included. Reads every file."""
    findings = list(catalog.diagnostics)
    for skill in (*catalog.skills.values(), *(lost.manifest for lost in catalog.shadowed)):
        findings += lint_file_of(skill)
    return findings


def lint_file_of(skill: SkillManifest) -> tuple[Diagnostic, ...]:
    """The findings on one skill, whose file is read; none for a skill without a file."""
    if not skill.has_file:
        return ()
    try:
        return lint_manifest(skill, read_manifest_bytes(skill.path))
    except ManifestError as error:  # deleted since the catalog was loaded
        return (Diagnostic.of_failure(error),)


def lint_manifest(skill: SkillManifest, data: bytes) -> tuple[Diagnostic, ...]:
    """What a skill's author should mend, in the order of the lines; ``data`` are its file's bytes.

    What the format asks for is not repeated: it is in ``skill.diagnostics``.
    """
    file = SkillFile.of(skill, data)
    found = chain(
        wording(file),
        hidden_characters(file),
        mixed_scripts(file),
        injections(file),
        payloads(file),
    )
    first = sorted(islice(found, MAX_FINDINGS), key=lambda diagnostic: diagnostic.line)
    if next(found, None) is None:
        return tuple(first)
    message = f"there is more to mend; the first {MAX_FINDINGS} findings are reported"
    return (*first, Diagnostic(skill.path, 0, Severity.WARNING, "more-findings", message))
