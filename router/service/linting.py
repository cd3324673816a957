"""What is odd about the skills of a catalog: what reading them told, the linter's rules, and who
takes whose example requests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.errors import ManifestError
from router.skills.diagnostics import Diagnostic
from router.skills.manifest import read_manifest_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from router.retrieval.encoders import Encoder
    from router.skills.catalog import Catalog
    from router.skills.manifest import SkillManifest


def lint(catalog: Catalog) -> list[Diagnostic]:
    """The findings on each skill by itself, those on shadowed skills included. Reads every file."""
    shadowed = tuple(lost.manifest for lost in catalog.shadowed)
    findings = [*catalog.diagnostics, *(d for skill in shadowed for d in skill.diagnostics)]
    for skill in (*catalog.skills.values(), *shadowed):
        findings += rules_broken_by(skill)
    return findings


def rules_broken_by(skill: SkillManifest) -> Sequence[Diagnostic]:
    """The linter's findings on one skill; none for a skill without a file."""
    from router.lint.manifest import lint_manifest

    if not skill.has_file:
        return ()
    try:
        return lint_manifest(skill, read_manifest_bytes(skill.path))
    except ManifestError as error:  # deleted since the catalog was loaded
        return (Diagnostic.of_failure(error),)


async def lint_together(
    catalog: Catalog, encoder: Encoder, progress: Callable[[int, int], None] | None = None
) -> Sequence[Diagnostic]:
    """Who takes whose example requests; computes for seconds where there are many skills.

    Raises:
        EncoderError: a skill or an example cannot be encoded.
        StoreError: no temporary index can be written.
    """
    from router.lint.routing import lint_routing

    return await lint_routing(catalog, encoder=encoder, progress=progress)


def in_order(findings: Sequence[Diagnostic]) -> list[Diagnostic]:
    """Findings by path and line."""
    return sorted(findings, key=lambda finding: (finding.path.parts, finding.line))
