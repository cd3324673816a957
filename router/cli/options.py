"""Options that several commands share, and how settings, skills and a router are opened by them."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import typer

from router.cli import output
from router.errors import ConfigurationError, InvalidRequest

if TYPE_CHECKING:
    from router.router import SemanticRouter
    from router.settings.settings import Settings
    from router.skills.catalog import Catalog

SkillFolders: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "--skills",
        metavar="DIR",
        help="Folder of skills, in place of all others, those of the package too; may be repeated.",
    ),
]
LabelledFile: TypeAlias = Annotated[
    Path,
    typer.Argument(
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help='JSONL rows {"request": ..., "skills": [names]}; an empty list: nothing fits.',
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
AllowedHosts: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        metavar="NAME",
        help="Further host name that clients may use, such as a proxy's; may be repeated.",
    ),
]
NoLLM: TypeAlias = Annotated[
    bool, typer.Option("--no-llm", help="Ask no LLM, whatever is configured.")
]


def or_standard_input(parameter: typer.CallbackParam, value: str | None) -> str | None:
    """What an argument says; for "-" the text on standard input, read as UTF-8, without the line
    break at its end."""
    from router.memory.model import MAX_CONTENT_CHARACTERS

    if value != "-":
        return value
    text = read_standard_input(str(parameter.name), MAX_CONTENT_CHARACTERS)
    return text.removesuffix("\n").removesuffix("\r")


def read_standard_input(what: str, most: int) -> str:
    """The text on standard input, read as UTF-8; an error calls it ``what``.

    Raises:
        InvalidRequest: it is no UTF-8, or has so many bytes that it has over ``most`` characters.
    """
    room = 4 * most + 5  # for a mark at its beginning and a line break at its end, too
    data = typer.get_binary_stream("stdin").read(room + 1)
    if len(data) > room:
        raise InvalidRequest(f"{what}: over {most:,} characters")
    return output.decoded(data, what)


def read_secret(variable: str) -> str:
    """The key or token in an environment variable. No option takes the key itself, because other
    users of the machine can see command lines.

    Raises:
        ConfigurationError: the variable holds none that a header can carry.
    """
    secret = os.environ.get(variable, "").strip()
    if not secret:
        raise ConfigurationError(f"the variable {variable} is not set, or empty")
    if not secret.isascii() or not secret.isprintable() or " " in secret:
        raise ConfigurationError(f"the value of {variable} cannot be sent in a header")
    return secret


def read_settings(
    *, no_llm: bool = False, serves: Sequence[Path] | None = None, **values: Any
) -> Settings:
    """The effective settings; what the command line says is stronger than all other sources.

    Raises:
        ConfigurationError: a setting is malformed, or a folder that is to be served does not exist.
            A server says so before it says that it serves.
    """
    from router.settings.settings import Settings
    from router.skills.discovery import existing_root

    if no_llm:
        values["llm"] = {"enabled": False}
    settings = Settings(**values)
    for folder in () if serves is None else serves or settings.skills or ():
        existing_root(folder)
    return settings


def left_out_in_words(catalog: Catalog) -> str:
    """One sentence: how many skills are missing from a catalog, and the first reason."""
    first = catalog.left_out[0]
    failed, others = len(catalog.failures), len(catalog.left_out) - len(catalog.failures)
    counts = [f"{failed} not loaded"] if failed else []
    counts += [f"{others} left out"] if others else []
    return f"{', '.join(counts)}, such as {first.path}: {first.message}"


def read_catalog(folders: Sequence[Path] | None, settings: Settings) -> Catalog:
    """The skills of the given folders, or of the configured ones when none is given; nothing is
    indexed. Raises ConfigurationError when a folder does not exist."""
    from router.skills.catalog import load_catalog
    from router.skills.discovery import configured_roots, existing_root

    return load_catalog(
        tuple(map(existing_root, folders or configured_roots(settings))),
        enrichment=settings.enrichment,
        max_skills=settings.max_skills,
    )


@asynccontextmanager
async def open_router(
    folders: Sequence[Path] | None, settings: Settings, **parts: Any
) -> AsyncIterator[SemanticRouter]:
    """An open router over the given folders, strongest first, or over the configured ones when none
    is given. ``parts`` are what the router's constructor takes besides."""
    from router.router import SemanticRouter

    with output.progress("indexing") as show:
        router = SemanticRouter(settings, roots=folders or None, progress=show, **parts)
        # A command has no other requests that would wait, and may need no decision.
        await router.open(to_decide=False)
    try:
        yield router
    finally:
        await router.aclose()
