"""``router skills``: what is installed, what is wrong with it, and what a query would find."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from router.cli import enrich, lint, output, watch
from router.cli.options import (
    EXIT_CODES,
    AsJson,
    SkillFolders,
    left_out_in_words,
    open_router,
    read_catalog,
    read_settings,
)
from router.cli.server import KeyVariable, Server, ServerUrl
from router.errors import ConfigurationError
from router.request import MAX_REQUEST_CHARACTERS, check_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from router.service.shapes import FoundSkills
    from router.settings import Settings
    from router.skills.catalog import Catalog
    from router.skills.manifest import SkillManifest

_HINT_ROWS = ("routing-keywords", "intents", "examples", "generic")

app = typer.Typer(help="List, show, search, check, lint and write skills.", no_args_is_help=True)


@app.command("list", epilog=EXIT_CODES)
def list_skills(folders: SkillFolders = None, as_json: AsJson = False) -> None:
    """List the installed skills and where each comes from."""
    settings = read_settings()
    catalog = read_catalog(folders, settings)
    rows = [_summary(manifest, catalog, settings) for manifest in catalog.skills.values()]
    if as_json:
        output.print_json(rows)
    else:
        table = output.table("name", "generic", "source", "description", one_line="description")
        table.columns[0].max_width, table.columns[2].max_width = 40, 30
        for row in rows:
            table.add_row(
                output.plain(row["name"]),
                "yes" if row["generic"] else "",
                output.plain(_short(Path(row["source"]))),
                output.plain(row["description"]),
            )
        output.screen().print(table)
    _warn_of_faults(catalog)


@app.command("show", epilog=EXIT_CODES)
def show_skill(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the skill.")],
    folders: SkillFolders = None,
    as_json: AsJson = False,
) -> None:
    """Show a skill's manifest and whatever is odd about its file."""
    settings = read_settings()
    catalog = read_catalog(folders, settings)
    _warn_of_faults(catalog)
    manifest = catalog.get(name)
    fields = {
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
    }
    if as_json:
        diagnostics = [found.to_dict() for found in manifest.diagnostics]
        output.print_json({**fields, "diagnostics": diagnostics})
        return
    table = output.table("field", "value")
    for key, value in fields.items():
        if key == "metadata":  # the hints among it stand in rows of their own already
            value = {k: v for k, v in manifest.metadata.items() if k not in _HINT_ROWS}
        label = key.replace("_", " ")
        for text in _lines(key, value):
            table.add_row(label, output.plain(text))
            label = ""
    output.screen().print(table)
    for diagnostic in manifest.diagnostics:
        typer.echo(output.plain(diagnostic))


@app.command("search", epilog=EXIT_CODES)
def search_skills(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What to look for.")],
    folders: SkillFolders = None,
    limit: Annotated[int, typer.Option(min=1, max=50, help="Skills shown at most.")] = 10,
    everywhere: Annotated[
        bool, typer.Option("--all", help="Suggest skills from the catalogues too.")
    ] = False,
    as_json: AsJson = False,
    server: ServerUrl = None,
    key_env: KeyVariable = None,
) -> None:
    """Rank the skills for a query, with what each score is made of. Decides nothing.

    Scores of skills that are not installed compare with each other only. With --server a running
    router serve searches its skills.
    """
    check_text("query", query, MAX_REQUEST_CHARACTERS)
    asked = {"query": query, "limit": limit, "installed_only": not everywhere}
    if server is None:
        if key_env is not None:
            raise typer.BadParameter("--key-env goes with --server")
        found = asyncio.run(_search(asked, folders)).skills
    elif folders:
        raise typer.BadParameter("--server goes without --skills")
    else:
        with Server(server, key_env) as there:
            found = there.find(**asked).skills
    if as_json:
        output.print_json([skill.model_dump() for skill in found])
        return
    numbers = ("score", "BM25", "cosine", "examples")
    table = output.table("skill", *numbers, "words in common", right=numbers)
    if everywhere:
        table.add_column("not installed; from", overflow="fold")
    for skill in found:
        why = skill.why
        values = (skill.score, why.lexical, why.cosine, why.examples)
        cells = [
            output.plain(skill.name),
            *("" if value is None else f"{value:.3f}" for value in values),
            output.plain(", ".join(why.terms)),
        ]
        if everywhere:
            cells.append("" if skill.installed else output.plain(skill.url or "catalogue"))
        table.add_row(*cells)
    output.screen().print(table)


async def _search(asked: dict[str, Any], folders: Sequence[Path] | None) -> FoundSkills:
    from router.service.service import Service
    from router.service.shapes import FindArguments

    async with open_router(folders, read_settings()) as router:
        return await Service(router).find(FindArguments(**asked))


@app.command("check", epilog=EXIT_CODES)
def check_skills(
    folders: Annotated[
        list[Path] | None,
        typer.Argument(metavar="DIR", help="Folders to check; the configured ones if none."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Report everything odd by path and line. Exit code 1 when something is not loaded."""
    from router.service.linting import in_order

    catalog = read_catalog(folders, read_settings())
    shadowed = (found for lost in catalog.shadowed for found in lost.manifest.diagnostics)
    diagnostics = in_order([*catalog.diagnostics, *shadowed])
    counts = {
        "loaded": len(catalog.skills),
        "shadowed": len(catalog.shadowed),
        "not_loaded": len(catalog.failures),
        "left_out": len(catalog.left_out) - len(catalog.failures),
    }
    if as_json:
        output.print_json({**counts, "diagnostics": [found.to_dict() for found in diagnostics]})
    else:
        for diagnostic in diagnostics:
            typer.echo(output.plain(diagnostic))
        typer.echo(
            f"{counts['loaded']} loaded, {counts['shadowed']} shadowed, "
            f"{counts['not_loaded']} not loaded, {counts['left_out']} left out, "
            f"{len(diagnostics)} diagnostics",
            err=True,
        )
    if catalog.left_out:
        raise typer.Exit(1)


def _summary(manifest: SkillManifest, catalog: Catalog, settings: Settings) -> dict[str, Any]:
    # The roots are in order: the strongest one that the skill lies under is the one it is from.
    source = next(root for root in catalog.roots if manifest.path.is_relative_to(root))
    return {
        "name": manifest.name,
        "description": manifest.description,
        "generic": manifest.generic or manifest.name in settings.vector.generic_skills,
        "source": str(source),
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
    if catalog.left_out:
        output.warn(f"{left_out_in_words(catalog)}; see: router skills check")


app.command("lint", epilog=lint.EXIT_CODES)(lint.lint_skills)
app.command("new", epilog=EXIT_CODES)(lint.new_skill)
app.command("enrich", epilog=EXIT_CODES)(enrich.enrich_skills)
app.command("watch", epilog=EXIT_CODES)(watch.watch_skills)
