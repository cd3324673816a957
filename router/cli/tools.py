"""``router tools``: tool definitions from a file, an OpenAPI description or MCP servers."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from router.cli import output
from router.cli.commands import prints
from router.cli.enrich import EnrichOptions, enrich, is_unfinished, show_enriched
from router.cli.options import left_out_in_words, open_router, read_settings
from router.errors import ConfigurationError
from router.request import read_text

if TYPE_CHECKING:
    from router.ranking import RankedSkills
    from router.skills.catalog import Catalog
    from router.skills.sources import SkillSource

app = typer.Typer(help="List, search, check and enrich an agent's tools.", no_args_is_help=True)


@dataclass(frozen=True)
class ToolFiles:
    """The options that say where the tools are."""

    file: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="JSON list of OpenAI, Anthropic or MCP tools."),
    ] = None
    openapi: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="OpenAPI description; each operation is a tool."),
    ] = None
    servers: Annotated[
        Path | None,
        typer.Option(
            "--mcp",
            metavar="FILE",
            help='File of MCP servers, {"mcpServers": {…}}; they are started.',
        ),
    ] = None
    timeout: Annotated[
        float,
        typer.Option(
            "--mcp-timeout",
            metavar="SECONDS",
            min=0.1,
            help="With --mcp: longest wait for a server.",
        ),
    ] = 10.0

    @contextmanager
    def opened(self) -> Iterator[list[SkillSource]]:
        """The sources that are named, open while the block runs."""
        from router.tools.files import OpenApi, ToolsFile

        found: list[SkillSource] = []
        if self.file is not None:
            found.append(ToolsFile(self.file))
        if self.openapi is not None:
            found.append(OpenApi(self.openapi))
        if self.servers is None:
            if not found:
                raise ConfigurationError("name the tools: --from, --openapi or --mcp")
            yield found
            return
        from router.tools.servers import McpServers

        told: set[str] = set()

        def waits_for(names: Sequence[str]) -> None:
            if new := [name for name in names if name not in told]:
                told.update(new)
                output.note(f"waiting for {', '.join(new)}, at most {self.timeout:g} s")

        with McpServers(self.servers, timeout_seconds=self.timeout, waits_for=waits_for) as started:
            yield [*found, started]

    def catalog(self, *, enrichment: Path | None = None) -> Catalog:
        """The tools, with the requests that ``enrichment`` holds for them if it is there."""
        from router.skills.catalog import merge_sources, read_own_enrichments

        known = enrichment if enrichment is not None and enrichment.exists() else None
        with self.opened() as sources:
            return merge_sources(
                [(source, source.read()) for source in sources],
                enrichments=read_own_enrichments(known),
            )


def _show_list(tools: list[dict[str, Any]]) -> None:
    rows = ((tool["name"], tool["source"], tool["description"]) for tool in tools)
    output.print_rows("name", "source", "description", rows=rows, one_line="description")


@app.command("list")
@prints(_show_list)
def list_tools(tools: ToolFiles) -> list[dict[str, Any]]:
    """List the tools with what they do."""
    catalog = tools.catalog()
    if catalog.left_out:
        output.warn(f"{left_out_in_words(catalog)}; see: router tools check")
    return [
        {"name": tool.name, "description": tool.description, "source": tool.origin}
        for tool in catalog.skills.values()
    ]


def _show_ranked(found: dict[str, Any]) -> None:
    rows = ((tool["name"], f"{tool['score'] or 0:.3f}", tool["reason"]) for tool in found["tools"])
    output.print_rows("tool", "score", "why", rows=rows, right=("score",))
    typer.echo(output.plain(f"{found['decision']}: {found['reasoning']}"))


@app.command("search")
@prints(_show_ranked)
def search_tools(
    query: Annotated[str, typer.Argument(metavar="QUERY", help="What is needed.")],
    tools: ToolFiles,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Tools shown at most.")] = 10,
) -> dict[str, Any]:
    """Rank the tools for a request, with what would be decided."""
    query = read_text("query", query)
    with tools.opened() as sources:
        found = asyncio.run(_rank(sources, query, limit))
    return {
        "decision": found.decision.value,
        "selected": list(found.selected),
        "confidence": found.confidence,
        "reasoning": found.reasoning,
        "tools": [
            {"name": tool.name, "score": tool.score, "reason": tool.reason} for tool in found.skills
        ],
    }


def _show_checked(found: dict[str, Any]) -> None:
    for line in (*found["faults"], *found["changes"]):
        typer.echo(output.plain(line))
    typer.echo(
        f"{found['tools']} tools, {len(found['faults'])} faults, {len(found['changes'])} changes",
        err=True,
    )


@app.command("check")
@prints(_show_checked, failed=lambda found: found["faults"] or found["changes"])
def check_tools(
    tools: ToolFiles,
    pin: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Compare with the digests in this file; it is written when it is not there.",
        ),
    ] = None,
) -> dict[str, Any]:
    """Report tools that cannot be used, and with --pin those that are not what was approved. Exit
    code 1 when there is one."""
    catalog = tools.catalog()
    changes: list[str] = []
    if pin is not None:
        from router.tools.pins import changes_since, read_pins, write_pins

        if pin.exists():
            changes = changes_since(read_pins(pin), catalog.skills.values())
        else:
            with output.writing("--pin", pin):
                write_pins(pin, catalog.skills.values())
            output.warn(f"{pin} was not there: it was written, and approves the tools as they are")
    return {"tools": len(catalog.skills), "faults": catalog.left_out, "changes": changes}


@app.command("enrich")
@prints(show_enriched, failed=is_unfinished)
def enrich_tools(
    to: Annotated[
        Path,
        typer.Option("--to", metavar="FILE", help="Where the requests are kept: enrichment.jsonl."),
    ],
    tools: ToolFiles,
    options: EnrichOptions,
) -> Any:
    """Have the configured LLM write requests for tools that have none, or have changed since.

    A router reads them with SemanticRouter.from_tools(tools, enrichment=FILE), or by the setting
    enrichment. Stopped with Ctrl-C, it goes on with the next run. Exit code 1 when tools are left.
    """
    settings = read_settings(enrichment=to.absolute())
    return enrich(lambda: tools.catalog(enrichment=to), settings, options)


async def _rank(sources: list[SkillSource], query: str, limit: int) -> RankedSkills:
    async with open_router(None, read_settings(), sources=sources) as router:
        return await router.rank(query, limit=limit)
