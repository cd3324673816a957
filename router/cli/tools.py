"""``router tools``: tool definitions from a file, an OpenAPI description or MCP servers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from router.cli import output
from router.cli.enrich import (
    Answers,
    Concurrency,
    DryRun,
    Export,
    MaxCost,
    Names,
    Options,
    Prices,
    enrich_catalog,
)
from router.cli.options import EXIT_CODES, AsJson, left_out_in_words, open_router, read_settings
from router.errors import ConfigurationError
from router.request import MAX_REQUEST_CHARACTERS, check_text

if TYPE_CHECKING:
    from router.ranking import RankedSkills
    from router.skills.catalog import Catalog
    from router.skills.sources import SkillSource

app = typer.Typer(help="List, search and check the tools of an agent.", no_args_is_help=True)

FromFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--from", metavar="FILE", help="JSON list of OpenAI, Anthropic or MCP tools."),
]
FromOpenApi: TypeAlias = Annotated[
    Path | None, typer.Option("--openapi", metavar="FILE", help="OpenAPI description.")
]
FromServers: TypeAlias = Annotated[
    Path | None,
    typer.Option("--mcp", metavar="FILE", help='MCP servers, as {"mcpServers": {…}}; started.'),
]


@app.command("list", epilog=EXIT_CODES)
def list_tools(
    file: FromFile = None,
    openapi: FromOpenApi = None,
    servers: FromServers = None,
    as_json: AsJson = False,
) -> None:
    """List the tools with what they do."""
    catalog = _catalog(file, openapi, servers)
    rows = [
        {"name": tool.name, "description": tool.description, "source": tool.origin}
        for tool in catalog.skills.values()
    ]
    if as_json:
        output.print_json(rows)
    else:
        table = output.table("name", "source", "description", one_line="description")
        for row in rows:
            table.add_row(*(output.plain(row[key]) for key in ("name", "source", "description")))
        output.screen().print(table)
    _warn(catalog)


@app.command("search", epilog=EXIT_CODES)
def search_tools(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What is needed.")],
    file: FromFile = None,
    openapi: FromOpenApi = None,
    servers: FromServers = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Tools shown at most.")] = 10,
    as_json: AsJson = False,
) -> None:
    """Rank the tools for a request, with what would be decided."""
    check_text("query", query, MAX_REQUEST_CHARACTERS)
    with _sources(file, openapi, servers) as sources:
        found = asyncio.run(_rank(sources, query, limit))
    if as_json:
        output.print_json(
            {
                "decision": found.decision.value,
                "selected": list(found.selected),
                "confidence": found.confidence,
                "reasoning": found.reasoning,
                "tools": [
                    {"name": tool.name, "score": tool.score, "reason": tool.reason}
                    for tool in found.skills
                ],
            }
        )
        return
    table = output.table("tool", "score", "why", right=("score",))
    for tool in found.skills:
        table.add_row(output.plain(tool.name), f"{tool.score or 0:.3f}", output.plain(tool.reason))
    output.screen().print(table)
    typer.echo(output.plain(f"{found.decision.value}: {found.reasoning}"))


@app.command("check", epilog=EXIT_CODES)
def check_tools(
    file: FromFile = None,
    openapi: FromOpenApi = None,
    servers: FromServers = None,
    pin: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Compare with the digests in this file; it is written when it is not there.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Report tools that cannot be used, and with --pin those that are not what was approved. Exit
    code 1 when there is one."""
    catalog = _catalog(file, openapi, servers)
    faults = [str(fault) for fault in catalog.left_out]
    changes: list[str] = []
    if pin is not None:
        from router.tools.pins import changes_since, read_pins, write_pins

        if pin.exists():
            changes = changes_since(read_pins(pin), catalog.skills.values())
        else:
            write_pins(pin, catalog.skills.values())
    if as_json:
        found = {"tools": len(catalog.skills), "faults": faults, "changes": changes}
        output.print_json(found)
    else:
        for line in (*faults, *changes):
            typer.echo(output.plain(line))
        typer.echo(
            f"{len(catalog.skills)} tools, {len(faults)} faults, {len(changes)} changes", err=True
        )
    if faults or changes:
        raise typer.Exit(1)


@app.command("enrich", epilog=EXIT_CODES)
def enrich_tools(
    to: Annotated[
        Path,
        typer.Option("--to", metavar="FILE", help="Where the requests are kept: enrichment.jsonl."),
    ],
    names: Names = None,
    file: FromFile = None,
    openapi: FromOpenApi = None,
    servers: FromServers = None,
    dry_run: DryRun = False,
    price: Prices = None,
    max_cost: MaxCost = None,
    concurrency: Concurrency = 4,
    export: Export = None,
    answers: Answers = None,
    as_json: AsJson = False,
) -> None:
    """Have the configured LLM write requests for tools that have none, or have changed since.

    A router reads them with SemanticRouter.from_tools(tools, enrichment=FILE), or by the setting
    enrichment. Stopped with Ctrl-C, it goes on with the next run. Exit code 1 when tools are left.
    """
    enrich_catalog(
        lambda: _catalog(file, openapi, servers, enrichment=to),
        read_settings(enrichment=to.absolute()),
        Options(names, dry_run, price, max_cost, concurrency, export, answers, as_json),
    )


async def _rank(sources: list[SkillSource], query: str, limit: int) -> RankedSkills:
    async with open_router(None, read_settings(), sources=sources) as router:
        return await router.rank(query, limit=limit)


def _catalog(
    file: Path | None,
    openapi: Path | None,
    servers: Path | None,
    *,
    enrichment: Path | None = None,
) -> Catalog:
    from router.skills.catalog import merge_sources, read_own_enrichments

    known = enrichment if enrichment is not None and enrichment.exists() else None
    with _sources(file, openapi, servers) as sources:
        return merge_sources(
            [(source, source.read()) for source in sources],
            enrichments=read_own_enrichments(known),
        )


@contextmanager
def _sources(
    file: Path | None, openapi: Path | None, servers: Path | None
) -> Iterator[list[SkillSource]]:
    """The sources that the options name, open while the block runs."""
    from router.tools.files import OpenApi, ToolsFile

    found: list[SkillSource] = []
    if file is not None:
        found.append(ToolsFile(file))
    if openapi is not None:
        found.append(OpenApi(openapi))
    if servers is None:
        if not found:
            raise ConfigurationError("name the tools: --from, --openapi or --mcp")
        yield found
        return
    from router.tools.servers import McpServers

    with McpServers(servers) as started:
        yield [*found, started]


def _warn(catalog: Catalog) -> None:
    if catalog.left_out:
        output.warn(f"{left_out_in_words(catalog)}; see: router tools check")
