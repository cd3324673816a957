"""``router skills lint`` and ``router skills new``, for the authors of skills."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from router.cli import output
from router.cli.commands import prints
from router.cli.options import SkillFolders, left_out_in_words, read_catalog, read_settings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from router.settings.settings import Settings
    from router.skills.catalog import Catalog
    from router.skills.diagnostics import Diagnostic

EXIT_CODES = (
    "Exit codes: 0 nothing to mend; 1 there are errors (with --strict, errors or warnings); 2 the "
    "command line or a setting is wrong."
)


def _show(found: dict[str, Any]) -> None:
    for finding in found["findings"]:
        typer.echo(output.plain(finding))
    counts = ("skills", "errors", "warnings", "notes")
    typer.echo(", ".join(f"{what}: {found[what]}" for what in counts), err=True)


@prints(_show, failed=lambda found: found["failed"])
def lint_skills(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="DIR", help="Folders to lint; the configured ones if none."),
    ] = None,
    more: SkillFolders = None,
    strict: Annotated[bool, typer.Option("--strict", help="Warnings fail as errors do.")] = False,
    sarif: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write the findings as SARIF, for code hosts."),
    ] = None,
) -> dict[str, Any]:
    """Report what keeps skills from being found, understood or trusted, by path and line."""
    settings = read_settings()
    given = [*(folders or ()), *(more or ())]
    catalog = read_catalog(given, settings)
    if catalog.left_out:
        output.warn(left_out_in_words(catalog))
    findings = _findings(catalog, settings)
    if settings.shipped_skills and not given:
        findings = [_seen_by_a_user(finding) for finding in findings]
    if sarif is not None:
        _write_sarif(sarif, findings)
    found = [finding.severity.value for finding in findings]
    return {
        "skills": len(catalog.skills) + len(catalog.shadowed) + len(catalog.failures),
        "errors": found.count("error"),
        "warnings": found.count("warning"),
        "notes": found.count("info"),
        "failed": "error" in found or (strict and "warning" in found),
        "findings": findings,
    }


def _show_made(made: dict[str, str]) -> None:
    typer.echo(output.plain(made["path"]))


@prints(_show_made)
def new_skill(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Lower-case letters, digits and hyphens.")
    ],
    folder: Annotated[
        Path, typer.Option("--dir", metavar="DIR", help="Folder of skills that it is put into.")
    ] = Path("skills"),
) -> dict[str, str]:
    """Write a new skill to start from: a valid SKILL.md that says what to replace."""
    from router.skills.scaffold import scaffold_skill

    return {"name": name, "path": str(scaffold_skill(folder, name))}


def _findings(catalog: Catalog, settings: Settings) -> list[Diagnostic]:
    import asyncio

    from router.enrichment.findings import enrichment_findings
    from router.lint.manifest import lint_catalog
    from router.skills.diagnostics import in_order

    findings = [*lint_catalog(catalog), *enrichment_findings(catalog)]
    if len(catalog.routable) > 1:
        from router.lint.routing import lint_routing
        from router.retrieval.configured_encoder import build_encoder

        with output.progress("ranking the examples") as show:
            encoder = build_encoder(settings)
            findings += asyncio.run(lint_routing(catalog, encoder=encoder, progress=show))
    return in_order(findings)


def _seen_by_a_user(finding: Diagnostic) -> Diagnostic:
    """A warning about a skill that comes with the package is a note: its file is not the user's."""
    from router.skills.diagnostics import Severity
    from router.skills.discovery import shipped_skills_root

    is_note = finding.severity is Severity.WARNING
    is_note = is_note and finding.path.is_relative_to(shipped_skills_root())
    return replace(finding, severity=Severity.INFO) if is_note else finding


def _write_sarif(file: Path, findings: Sequence[Diagnostic]) -> None:
    from router.lint.sarif import to_sarif
    from router.version import package_version

    log = to_sarif(findings, root=Path.cwd(), version=package_version() or "0")
    with output.writing("--sarif", file):
        file.write_bytes(json.dumps(log, indent=2).encode())
