"""``router learn``, ``router feedback`` and ``router calibrate``: what the router has learnt,
and how to teach it more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from router.cli import output
from router.cli.batch import Line, read_lines, text_of
from router.cli.cache import forget_corrections
from router.cli.commands import prints
from router.cli.options import (
    LabelledFile,
    NoLLM,
    SkillFolders,
    open_router,
    read_catalog,
    read_settings,
)
from router.errors import ConfigurationError, InvalidRequest

if TYPE_CHECKING:
    from router.learning.evidence import EvidenceStore, Example

MAX_DIGEST: Final = 64

app = typer.Typer(help="Look at what was learnt, export, import, forget.", no_args_is_help=True)


_BOUND_ROWS: Final = {
    "max_error": "error bound",
    "requests": "requests counted",
    "local": "answered without the LLM",
    "error_limit": "error of these, at most",
    "threshold": "answers up to a risk of",
    "drifts": "alarms",
}
"""What the fields of the error bound's account are called in the table."""


def _show_status(known: dict[str, Any]) -> None:
    rows = [(f"examples from {source}", number) for source, number in known["examples"].items()]
    model = known["model"]
    rows.append(("local model", "none yet" if model is None else f"{model['examples']} examples"))
    for key, value in known["bound"].items():
        shown = f"{value:.4f}" if isinstance(value, float) else value
        rows.append((_BOUND_ROWS.get(key, key.replace("_", " ")), "-" if value is None else shown))
    for stage, state in known["calibrations"].items():
        fitted = "yes" if state["calibrated"] else "not yet"
        rows.append((f"calibration of {stage}", f"{fitted}, {state['outcomes']} outcomes"))
    output.print_rows("learning", "value", rows=rows)
    if others := known["others"]:
        running = output.counted(others, "other process is", "other processes are")
        output.warn(
            f"{running} running over these skills, whose account of the error bound is not shown; "
            "a server's GET /v1/learning shows its own"
        )


@app.command("status")
@prints(_show_status)
async def show_status(folders: SkillFolders = None) -> dict[str, Any]:
    """Show the evidence, the local model, the error bound and the calibrations."""
    async with open_router(folders, read_settings()) as router:
        return router.learner.status()


def _show_training(known: dict[str, Any]) -> None:
    done, model = known["last_training"], known["model"]
    if model is None:
        typer.echo("there is nothing to learn from: examples of two answers are needed", err=True)
        return
    said = "the kept model is up to date" if done is None else "there is a new model"
    typer.echo(f"{said}: version {model['version']}, {model['examples']} examples")
    if not model["serves"]:
        typer.echo(
            "it answers no request yet: too little is known of where it is right, so the LLM or "
            "retrieval goes on deciding"
        )


@app.command("train")
@prints(_show_training)
async def train_model(folders: SkillFolders = None) -> dict[str, Any]:
    """Fit the local model on all evidence and the skills' own examples now, and keep it.

    A router that stays open does so by itself; commands that answer one request use what is kept.
    """
    async with open_router(folders, read_settings()) as router:
        with output.progress("training"):
            await router.learned()
        known = router.learner.status()
    return {name: known[name] for name in ("model", "last_training")}


def _show_forgotten(done: dict[str, int]) -> None:
    typer.echo(f"forgot {output.counted(done['forgotten'], 'example')}", err=True)


@app.command("reset")
@prints(_show_forgotten)
def reset_evidence(
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
) -> dict[str, int]:
    """Forget all evidence, what was fitted on it, and the corrected answers that the cache holds.
    Running routers keep theirs until they end."""
    with _evidence() as store:
        number = sum(store.counts().values())
        if not yes:
            counted = output.counted(number, "example")
            typer.confirm(f"Forget {counted}?", abort=True, err=True)
        store.reset()
    forget_corrections(read_settings())
    return {"forgotten": number}


@app.command("export")
def export_evidence() -> None:
    """Print the evidence as JSON lines. With import --restore they are taken in as they were."""
    with _evidence() as store:
        for example in store.all():
            row: dict[str, Any] = {"request": example.text, "source": example.source.value}
            row["skills" if example.right else "wrong"] = list(example.skills)
            row["learnt"] = datetime.fromtimestamp(example.learnt or 0.0, UTC).isoformat()
            row["digests"] = example.digests
            output.print_json_line(row)


def _show_imported(done: dict[str, Any]) -> None:
    typer.echo(f"{done['read']} examples read, {done['kept']} of them kept", err=True)


@app.command("import")
@prints(_show_imported)
def import_evidence(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE",
            exists=True,
            dir_okay=False,
            help='JSON lines {"request": ..., "skills": [names]}, or a trigger file with --skill.',
        ),
    ],
    skill: Annotated[
        str | None, typer.Option(help="The skill that a trigger file is about.")
    ] = None,
    restore: Annotated[
        bool,
        typer.Option("--restore", help="It is your own export: what a person said counts as such."),
    ] = False,
    folders: SkillFolders = None,
) -> dict[str, Any]:
    """Take in labelled requests, all or none. They count once their skills are installed."""
    from router.learning.evidence import Source
    from router.learning.examples import read_triggers

    examples = _read_examples(file) if skill is None else read_triggers(file, skill, pipes=True)
    said = sum(example.source is Source.FEEDBACK for example in examples)
    if said and not restore:
        examples = [
            replace(one, source=Source.FILE) if one.source is Source.FEEDBACK else one
            for one in examples
        ]
        output.warn(
            f"{output.counted(said, 'label says', 'labels say')} that a person gave it, and counts "
            "as a file's; give --restore if you exported them yourself"
        )
    if not examples:
        raise InvalidRequest(f"{file}: no examples; see router learn import --help")
    catalog = read_catalog(folders, read_settings())
    unknown = sorted({n for e in examples for n in e.skills} - catalog.skills.keys())
    with _evidence() as store:
        changed = store.add_many(examples, catalog=catalog.skills)
    for name in unknown[:10]:
        output.warn(f"{name!r} is not installed; its examples wait until it is")
    return {"read": len(examples), "kept": changed, "not_installed": unknown}


def _read_examples(file: Path) -> list[Example]:
    examples = []
    with file.open("rb") as source:
        for line in read_lines(source):
            try:
                examples.append(_example(line))
            except InvalidRequest as error:
                raise InvalidRequest(f"{file}:{line.number}: {error}") from error
    return examples


def _example(line: Line) -> Example:
    from router.learning.evidence import Example, Source
    from router.request import MAX_REQUEST_CHARACTERS, check_text

    written = text_of(line)
    try:
        row = json.loads(written)
    except (ValueError, RecursionError) as error:  # a number of thousands of digits is one
        raise InvalidRequest(f"not JSON ({error})") from error
    if not isinstance(row, dict):
        raise InvalidRequest(f"expected an object, not {type(row).__name__}")
    text, right = row.get("request", row.get("query")), "wrong" not in row
    key = "skills" if right else "wrong"
    names = row.get(key)
    if not isinstance(text, str):
        raise InvalidRequest("'request' must be a string")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InvalidRequest(f"{key!r} must be a list of names; an empty list when nothing fits")
    if not right and len(names) != 1:
        raise InvalidRequest("'wrong' must name one skill")
    check_text("request", text, MAX_REQUEST_CHARACTERS)
    given = next((one for one in Source if one == row.get("source")), Source.FILE)
    return Example(
        text,
        tuple(names),
        right,
        given,
        learnt=_learnt(row.get("learnt")),
        digests=_digests(row.get("digests")),
    )


def _learnt(written: object) -> float | None:
    if written is None:
        return None
    try:
        when = datetime.fromisoformat(str(written))
        return (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        raise InvalidRequest("'learnt' must be an ISO 8601 time") from None


def _digests(written: object) -> dict[str, str] | None:
    if written is None:
        return None
    if not isinstance(written, dict) or not all(
        isinstance(digest, str) and len(digest) <= MAX_DIGEST for digest in written.values()
    ):
        raise InvalidRequest("'digests' must be an object of texts, by the name of the skill")
    return written


def _show_noted(noted: dict[str, str]) -> None:
    typer.echo(f"noted for {output.plain(noted['id'])}", err=True)


@prints(_show_noted)
async def give_feedback(
    answer: Annotated[str, typer.Argument(metavar="ID", help="The id of an answer.")],
    skills: Annotated[
        list[str] | None, typer.Option("--skill", help="A skill that is right; may be repeated.")
    ] = None,
    none: Annotated[bool, typer.Option("--none", help="No skill is right.")] = False,
    right: Annotated[
        bool | None, typer.Option("--right/--wrong", help="Whether the answer was right.")
    ] = None,
    scope: Annotated[
        str | None, typer.Option(help="The scope of the request that was answered.")
    ] = None,
    folders: SkillFolders = None,
) -> dict[str, str]:
    """Say what an earlier answer should have been; the router learns from it."""
    if sum((bool(skills), none, right is not None)) != 1:
        raise typer.BadParameter("give one of --skill, --none, --right and --wrong")
    named = [] if none else skills
    async with open_router(folders, read_settings()) as router:
        await router.feedback(
            answer, None if right is not None else named, right=right, scope=scope
        )
    return {"id": answer}


def _show_calibrations(fitted: dict[str, Any]) -> None:
    rows = (
        (
            stage,
            state["outcomes"],
            "yes" if state["calibrated"] else "not yet",
            "-" if state.get("held_out_error") is None else f"{state['held_out_error']:.3f}",
        )
        for stage, state in fitted.items()
    )
    output.print_rows("stage", "outcomes", "calibrated", "error, held out", rows=rows)


@prints(_show_calibrations)
def calibrate(
    file: LabelledFile, folders: SkillFolders = None, no_llm: NoLLM = False
) -> dict[str, Any]:
    """Fit the confidences to labelled requests, which no cache answers meanwhile.

    A row counts once, however often it is given, until the skills change.
    """
    from router.evaluation import evaluate, read_rows
    from router.learning.stage_calibrations import CALIBRATED

    with file.open("rb") as lines:
        rows = read_rows(lines, source=str(file))

    async def fit() -> dict[str, Any]:
        judged = []
        async with open_router(folders, read_settings(no_llm=no_llm)) as router:
            learner, version = router.learner, router.catalog.version
            new = [row for row in rows if not learner.calibrations.counted(row.digest(version))]
            if len(new) < len(rows):
                output.warn(f"{len(rows) - len(new)} of {len(rows)} rows were counted before")
            with output.progress("routing") as show:
                async for judgement in evaluate(router, new):
                    judged.append(judgement)
                    show(len(judged), len(new))
            await learner.calibrate(
                [
                    (one.row.digest(version), one.stage, one.own_confidence, one.right)
                    for one in judged
                    if one.stage in CALIBRATED
                ]
            )
            calibrations: dict[str, Any] = learner.status()["calibrations"]
            return calibrations

    return asyncio.run(fit())


@contextmanager
def _evidence() -> Iterator[EvidenceStore]:
    """The store of evidence that a router with these settings uses."""
    import time

    from router.learning.evidence import open_evidence

    settings = read_settings()
    if not settings.learning.enabled:
        raise ConfigurationError("setting learning.enabled: learning is switched off")
    store = open_evidence(settings, clock=time.time)
    try:
        yield store
    finally:
        store.close()
