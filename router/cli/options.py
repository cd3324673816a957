"""Options that several commands share, and the settings and router that they lead to."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from router.cli import output

if TYPE_CHECKING:
    from router.router import SemanticRouter
    from router.settings import Settings
    from router.skills.catalog import Catalog
    from router.skills.sources import SkillSource

EXIT_CODES: Final = (
    "Exit codes: 0 done; 1 it ran and something is wrong (a skill that cannot be loaded, a bad "
    "batch line, a store that cannot be opened); 2 the command line, a setting or the input is "
    "wrong; 130 interrupted."
)

SkillFolders: TypeAlias = Annotated[
    list[Path] | None,
    typer.Option(
        "--skills",
        metavar="DIR",
        help="Folder of skills, in place of the configured ones; may be repeated.",
    ),
]
AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON.")]
NoLLM: TypeAlias = Annotated[
    bool, typer.Option("--no-llm", help="Ask no LLM, whatever is configured.")
]


def read_settings(*, no_llm: bool = False, **values: Any) -> Settings:
    """The effective settings, with what the command line says on top.

    Raises:
        ConfigurationError: a setting is malformed.
    """
    from router.settings import Settings

    if no_llm:
        values["llm"] = {"enabled": False}
    return Settings(**values)


def left_out_in_words(catalog: Catalog) -> str:
    """How much is missing from a catalog, and the first reason."""
    first = catalog.left_out[0]
    failed, others = len(catalog.failures), len(catalog.left_out) - len(catalog.failures)
    counts = [f"{failed} not loaded"] if failed else []
    counts += [f"{others} left out"] if others else []
    return f"{', '.join(counts)}, such as {first.path}: {first.message}"


def make_router(
    folders: Sequence[Path] | None,
    settings: Settings,
    *,
    progress: Callable[[int, int], None] | None = None,
    more: Sequence[SkillSource] = (),
) -> SemanticRouter:
    """A router over the given folders, or over the configured ones when none is given, and over
    ``more`` sources, which are weaker; not open."""
    from router.router import SemanticRouter

    if more:
        from router.skills.folders import FolderSource

        source = (
            FolderSource(folders, max_skills=settings.max_skills)
            if folders
            else FolderSource.configured(settings)
        )
        return SemanticRouter(settings, sources=[source, *more], progress=progress)
    if folders:
        return SemanticRouter.from_skills(*folders, settings=settings, progress=progress)
    return SemanticRouter(settings, progress=progress)


@asynccontextmanager
async def open_router(
    folders: Sequence[Path] | None, settings: Settings
) -> AsyncIterator[SemanticRouter]:
    """An open router over the given folders, or over the configured ones when none is given.

    Raises:
        RouterError: the skills cannot be read or indexed.
    """
    with output.progress("indexing skills") as show:
        router = make_router(folders, settings, progress=show)
        await router.open()
    async with router:
        yield router
