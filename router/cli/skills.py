"""``router skills``: what is installed, what is wrong with it, and what a query would find."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from router.cli import enrich, lint, output, watch
from router.cli.commands import prints
from router.cli.options import (
    SkillFolders,
    left_out_in_words,
    open_router,
    read_catalog,
    read_settings,
)
from router.errors import ConfigurationError
from router.request import read_text

if TYPE_CHECKING:
    from router.settings.settings import Settings
    from router.skills.catalog import Catalog
    from router.skills.manifest import SkillManifest

_HINT_ROWS = ("routing-keywords", "intents", "examples", "generic")


def _show_list(skills: list[dict[str, Any]]) -> None:
    table = output.table("name", "generic", "source", "description", one_line="description")
    table.columns[0].max_width, table.columns[2].max_width = 40, 30
    for skill in skills:
        generic, source = "yes" if skill["generic"] else "", _short(Path(skill["source"]))
        table.add_row(*map(output.plain, (skill["name"], generic, source, skill["description"])))
    output.screen().print(table)


@prints(_show_list)
def list_skills(folders: SkillFolders = None) -> list[dict[str, Any]]:
    """List the installed skills and where each comes from."""
    settings = read_settings()
    catalog = read_catalog(folders, settings)
    _warn_of_faults(catalog)
    return [_summary(manifest, catalog, settings) for manifest in catalog.skills.values()]


def _show_skill(skill: dict[str, Any]) -> None:
    metadata = {k: v for k, v in skill["metadata"].items() if k not in _HINT_ROWS}
    fields = {**skill, "metadata": metadata}  # the hints among it stand in rows of their own
    diagnostics = fields.pop("diagnostics")
    rows = (
        ("" if number else key.replace("_", " "), text)
        for key, value in fields.items()
        for number, text in enumerate(_lines(key, value))
    )
    output.print_rows("field", "value", rows=rows)
    for found in diagnostics:
        typer.echo(output.plain(found))


@prints(_show_skill)
def show_skill(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the skill.")],
    folders: SkillFolders = None,
) -> dict[str, Any]:
    """Show a skill's manifest and whatever is odd about its file."""
    settings = read_settings()
    catalog = read_catalog(folders, settings)
    _warn_of_faults(catalog)
    manifest = catalog.get(name)
    return {
        **_summary(manifest, catalog, settings),
        "license": manifest.license,
        "compatibility": manifest.compatibility,
        "allowed_tools": list(manifest.allowed_tools),
        "routing_keywords": list(manifest.routing_keywords),
        "intents": list(manifest.intents),
        "examples": list(manifest.examples),
        "metadata": dict(manifest.metadata),
        "extra": dict(manifest.extra),
        "routable": not manifest.disable_model_invocation,
        "body_lines": manifest.body.count("\n") + 1 if manifest.body else 0,
        "digest": manifest.digest,
        "diagnostics": [found for found in catalog.diagnostics if found.path == manifest.path],
    }


def _show_found(found: list[dict[str, Any]]) -> None:
    numbers = ("score", "BM25", "cosine", "examples")
    columns = ["skill", *numbers, "words in common"]
    rows = [[skill["name"], *_scores(skill), ", ".join(skill["why"]["terms"])] for skill in found]
    if not all(skill["installed"] for skill in found):
        columns.append("not installed; from")
        for skill, row in zip(found, rows, strict=True):
            row.append("" if skill["installed"] else skill["url"] or "listing")
    output.print_rows(*columns, rows=rows, right=numbers)


def _scores(skill: dict[str, Any]) -> Iterator[str]:
    why = skill["why"]
    for value in (skill["score"], why["lexical"], why["cosine"], why["examples"]):
        yield "" if value is None else f"{value:.3f}"


@prints(_show_found)
async def search_skills(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to look for.")],
    folders: SkillFolders = None,
    limit: Annotated[int, typer.Option(min=1, max=50, help="Skills shown at most.")] = 10,
    everywhere: Annotated[
        bool, typer.Option("--all", help="Suggest skills from the listings too.")
    ] = False,
) -> list[dict[str, Any]]:
    """Rank the skills for a query, with what each score is made of. Decides nothing.

    Scores of skills that are not installed compare with each other only.
    """
    from router.service.service import Service
    from router.service.shapes import FindArguments

    query = read_text("query", query)
    asked = FindArguments(query=query, limit=limit, installed_only=not everywhere)
    async with open_router(folders, read_settings()) as router:
        found = await Service(router).find(asked)
    return [skill.model_dump() for skill in found.skills]


def _show_checked(found: dict[str, Any]) -> None:
    for diagnostic in found["diagnostics"]:
        typer.echo(output.plain(diagnostic))
    typer.echo(
        f"{found['loaded']} loaded, {found['shadowed']} shadowed, {found['not_loaded']} not "
        f"loaded, {found['left_out']} left out, {len(found['diagnostics'])} diagnostics",
        err=True,
    )


@prints(_show_checked, failed=lambda found: found["left_out"] or found["errors"])
def check_skills(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="DIR", help="Folders to check; the configured ones if none."),
    ] = None,
    more: SkillFolders = None,
) -> dict[str, Any]:
    """Report everything odd by path and line. Exit code 1 when something is not loaded, or when a
    request that an LLM wrote for a skill is an order or hides characters."""
    from router.enrichment.findings import enrichment_findings
    from router.skills.diagnostics import Severity, in_order

    catalog = read_catalog([*(folders or ()), *(more or ())], read_settings())
    diagnostics = in_order([*catalog.diagnostics, *enrichment_findings(catalog)])
    return {
        "loaded": len(catalog.skills),
        "shadowed": len(catalog.shadowed),
        "not_loaded": len(catalog.failures),
        "left_out": len(catalog.left_out) - len(catalog.failures),
        "errors": sum(found.severity is Severity.ERROR for found in diagnostics),
        "diagnostics": diagnostics,
    }


def _summary(manifest: SkillManifest, catalog: Catalog, settings: Settings) -> dict[str, Any]:
    return {
        "name": manifest.name,
        "description": manifest.description,
        "generic": manifest.generic or manifest.name in settings.vector.generic_skills,
        "source": str(catalog.root_of(manifest)),
        "path": str(manifest.path),
    }


def _lines(key: str, value: object) -> list[str]:
    """A field's value as the lines of its table cell; none when it is empty."""
    if isinstance(value, list):
        return value if key == "examples" or not value else [", ".join(value)]
    if isinstance(value, dict):
        return [f"{name}: {item}" for name, item in value.items()]
    if isinstance(value, bool):
        return ["yes" if value else "no"]
    return [] if value is None else [str(value)]


def _short(root: Path) -> str:
    """The root as the reader would type it: below the working directory or the home folder."""
    from router.skills.discovery import shipped_skills_root

    with suppress(ConfigurationError):  # an installation may do without them
        if root == shipped_skills_root():
            return "shipped"
    if root.is_relative_to(Path.cwd()):
        return str(root.relative_to(Path.cwd()))
    try:
        return str(Path("~") / root.relative_to(Path.home()))
    except (ValueError, RuntimeError):  # not below it, or there is no home
        return str(root)


def _warn_of_faults(catalog: Catalog) -> None:
    from router.skills.shadow_warnings import warn_of_shadowed

    warn_of_shadowed(catalog)
    if catalog.left_out:
        output.warn(f"{left_out_in_words(catalog)}; see: router skills check")


app = typer.Typer(help="List, search, check, write, enrich and watch skills.", no_args_is_help=True)
for name, command in (
    ("list", list_skills),
    ("show", show_skill),
    ("search", search_skills),
    ("check", check_skills),
    ("lint", lint.lint_skills),
    ("new", lint.new_skill),
    ("enrich", enrich.enrich_skills),
    ("watch", watch.watch_skills),
):
    app.command(name, epilog=lint.EXIT_CODES if name == "lint" else None)(command)
