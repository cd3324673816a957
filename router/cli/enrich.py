"""``router skills enrich``: has an LLM write requests for the skills, once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from router.cli import output
from router.cli.commands import prints
from router.cli.options import SkillFolders, read_catalog, read_settings
from router.errors import ConfigurationError
from router.numeric import dollars

if TYPE_CHECKING:
    from router.enrichment.asking import EnrichmentPlan, EnrichmentReport
    from router.llm.protocol import Price
    from router.settings.settings import Settings
    from router.skills.catalog import Catalog

    Enriched: TypeAlias = EnrichmentPlan | EnrichmentReport | dict[str, Any]

MAX_ANSWERS_BYTES = 1 << 28
MAX_SHOWN = 5
"""Requests that were left out, questions that failed and notes, of which a person is shown each."""


@dataclass(frozen=True)
class EnrichOptions:
    """The options that the commands for skills and for tools share."""

    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME", help="Names of those meant; all that need it if none is given."
        ),
    ] = None
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be asked and what it takes.")
    ] = False
    price: Annotated[
        str | None,
        typer.Option(metavar="IN/OUT", help="Dollars for a million tokens, such as 0.40/1.60."),
    ] = None
    max_cost: Annotated[
        float | None,
        typer.Option(metavar="DOLLARS", min=0, help="Stop before it costs more; needs --price."),
    ] = None
    concurrency: Annotated[
        int, typer.Option(min=1, max=64, help="Questions under way at the same time.")
    ] = 4
    export: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write the questions as JSON Lines instead of asking."),
    ] = None
    answers: Annotated[
        Path | None, typer.Option("--import", metavar="FILE", help="Read answers, one a line.")
    ] = None


def show_enriched(found: Enriched) -> None:
    from router.enrichment.asking import EnrichmentPlan
    from router.enrichment.exchange import LINE

    if isinstance(found, dict):
        questions = output.counted(found["questions"], "question")
        typer.echo(output.plain(f"{questions} in {found['file']}"), err=True)
        return
    about = "about " if isinstance(found, EnrichmentPlan) else ""
    cost = "" if found.cost is None else f", {about}{dollars(found.cost)}"
    tokens = f"{about}{found.input_tokens:,} tokens in and {found.output_tokens:,} out{cost}"
    if isinstance(found, EnrichmentPlan):
        calls = output.counted(len(found.skills), "call")
        most = "" if found.most is None else f", at most {dollars(found.most)}"
        typer.echo(f"{calls}, {tokens}{most}; {_skills(found.skipped)} up to date")
        for name in found.skills:
            typer.echo(output.plain(name))
        return
    requests = output.counted(found.requests, "request")
    typer.echo(f"{requests} for {output.counted(len(found.written), 'skill')}; {tokens}")
    for path in found.files:
        typer.echo(f"written: {output.plain(path)}")
    left_out = [f"{name}: {reason}" for name, reasons in found.left_out for reason in reasons]
    for line in left_out[:MAX_SHOWN]:
        typer.echo(output.plain(f"left out of {line}"))
    if len(left_out) > MAX_SHOWN:
        typer.echo(f"left out in all: {len(left_out):,} requests (--json has each of them)")
    for name, fault in found.failed[:MAX_SHOWN]:
        output.warn(f"{name}: {fault}")
    if len(found.failed) > MAX_SHOWN:
        output.warn(f"failed in all: {len(found.failed):,} (--json has each of them)")
    for name, note in found.notes[:MAX_SHOWN]:
        output.warn(f"{name}: {note}")
    if len(found.notes) > MAX_SHOWN:
        output.warn(f"to look at in all: {len(found.notes):,} (--json has each of them)")
    if found.ended:
        output.warn(f"ended early: {found.ended}")
    # Of answers that are imported, lines fail; their skills are among those that are left.
    failures = sum(not name.startswith(LINE) for name, _ in found.failed)
    if unfinished := len(found.left) + failures:
        failed = f", {failures} of them because it failed" if failures else ""
        output.warn(f"{_skills(unfinished)} still to be asked about{failed}")


def _skills(number: int) -> str:
    return output.counted(number, "skill is", "skills are")


def is_unfinished(found: Enriched) -> bool:
    """Whether skills are left that should have been asked about."""
    from router.enrichment.asking import EnrichmentReport

    return isinstance(found, EnrichmentReport) and bool(found.failed or found.left)


def enrich(load: Callable[[], Catalog], settings: Settings, options: EnrichOptions) -> Enriched:
    """What would be asked, what was done, or how many questions were written to which file.

    Args:
        load: reads the skills or tools, once the options have been checked.
        settings: of which ``enrichment`` names the file that is written.
    """
    from router.enrichment.asking import plan_of
    from router.enrichment.exchange import questions

    price = _price(options.price)
    if options.max_cost is not None and price is None:
        raise ConfigurationError("--max-cost needs --price IN/OUT: dollars for a million tokens")
    if sum((options.dry_run, options.export is not None, options.answers is not None)) > 1:
        raise ConfigurationError("give one of --dry-run, --export and --import")
    if options.export == Path("-"):
        raise ConfigurationError("--export -: name a file; questions are not printed")
    catalog = load()
    if options.dry_run:
        return plan_of(catalog, options.names, price=price)
    if options.export is not None:
        lines = list(questions(catalog, options.names))
        with output.writing("--export", options.export):
            options.export.write_text("".join(lines), encoding="utf-8")
        return {"questions": len(lines), "file": options.export}
    if options.answers is not None:
        return _import(catalog, options.answers, options.names, settings)
    return asyncio.run(_ask(catalog, settings, options, price))


def _price(text: str | None) -> Price | None:
    from router.llm.protocol import Price

    if text is None:
        return None
    try:
        given, taken = (float(part) for part in text.split("/"))
        if not (0 <= given < float("inf") and 0 <= taken < float("inf")):
            raise ValueError
    except ValueError:
        raise ConfigurationError(
            f"--price {text!r}: give two prices for a million tokens, as IN/OUT, such as 0.40/1.60"
        ) from None
    return Price(given, taken)


async def _ask(
    catalog: Catalog, settings: Settings, options: EnrichOptions, price: Price | None
) -> EnrichmentReport:
    from router.enrichment.asking import Asker, to_ask
    from router.enrichment.files import one_writer
    from router.stages.llm import models_from_settings

    skills = to_ask(catalog, options.names)
    models = models_from_settings(settings.llm)
    if not models:
        raise ConfigurationError(
            "no LLM is configured: set OPENAI_API_KEY, OPENAI_BASE_URL or OLLAMA_HOST, or have "
            "another agent answer, with --export and --import"
        )
    with one_writer(settings.state_dir), output.progress("asking") as show:
        asker = Asker(
            models[0],
            catalog,
            file=settings.enrichment,
            price=price,
            max_cost=options.max_cost,
            concurrency=options.concurrency,
            progress=show,
        )
        try:
            return await asker.run(skills)
        except asyncio.CancelledError:
            output.warn(_interrupted(asker.report_so_far))
            raise
        finally:
            await models[0].aclose()


def _interrupted(so_far: EnrichmentReport | None) -> str:
    kept = "nothing was written"
    if so_far is not None and so_far.written:
        requests = output.counted(so_far.requests, "request")
        skills = output.counted(len(so_far.written), "skill")
        kept = f"{requests} for {skills} are written to {', '.join(map(str, so_far.files))}"
    return f"{kept}; answers that were under way are lost, and the next run goes on from there"


def _import(
    catalog: Catalog, file: Path, names: list[str] | None, settings: Settings
) -> EnrichmentReport:
    from router.bounded.files import Unreadable, read_bounded
    from router.enrichment.exchange import take_answers
    from router.enrichment.files import one_writer

    try:
        data = read_bounded(file, most=MAX_ANSWERS_BYTES, pipes=True)
    except Unreadable as error:
        raise ConfigurationError(f"--import {file}: {error}") from error
    with one_writer(settings.state_dir):
        lines = data.split(b"\n")
        return take_answers(catalog, lines, names, source=file, file=settings.enrichment)


@prints(show_enriched, failed=is_unfinished)
def enrich_skills(folders: SkillFolders = None, *, options: EnrichOptions) -> Any:
    """Have the configured LLM write requests for skills that have none, or have changed since.

    They go to enrichment.jsonl in the folder of skills, or to the file that the setting enrichment
    names. Stopped with Ctrl-C, it goes on with the next run. Exit code 1 when skills are left.
    """
    settings = read_settings()
    return enrich(lambda: read_catalog(folders, settings), settings, options)
