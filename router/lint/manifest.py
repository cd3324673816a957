"""Linting one skill: every rule that needs nothing but its file."""

from __future__ import annotations

from itertools import chain, islice
from typing import Final

from router.lint.characters import hidden_characters
from router.lint.injection import injections
from router.lint.payloads import payloads
from router.lint.scripts import mixed_scripts
from router.lint.source import Source
from router.lint.wording import wording
from router.skills.diagnostics import Diagnostic, Severity
from router.skills.manifest import SkillManifest

MAX_FINDINGS: Final = 100
"""Findings reported for one file."""


def lint_manifest(skill: SkillManifest, data: bytes) -> tuple[Diagnostic, ...]:
    """What a skill's author should mend, in the order of the lines.

    What the format asks for is not repeated: it is in ``skill.diagnostics``.

    Args:
        skill: the manifest.
        data: the bytes of the file that it was read from.
    """
    source = Source.of(skill, data)
    found = chain(
        wording(source),
        hidden_characters(source),
        mixed_scripts(source),
        injections(source),
        payloads(source),
    )
    first = sorted(islice(found, MAX_FINDINGS), key=lambda diagnostic: diagnostic.line)
    if next(found, None) is None:
        return tuple(first)
    message = f"there is more to mend; the first {MAX_FINDINGS} findings are reported"
    return (*first, Diagnostic(skill.path, 0, Severity.WARNING, "more-findings", message))
