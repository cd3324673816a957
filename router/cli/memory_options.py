"""What the memory commands share: whose memories, and the memory that they lead to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias, TypeVar

import typer

from router.cli.options import read_settings

if TYPE_CHECKING:
    from router.llm.protocol import ChatModel
    from router.memory.memory import Memory
    from router.memory.model import Scope
    from router.settings import Settings

T = TypeVar("T")

User: TypeAlias = Annotated[str | None, typer.Option("--user", help="Whose memories.")]
Project: TypeAlias = Annotated[str | None, typer.Option("--project", help="Of which project.")]
Session: TypeAlias = Annotated[str | None, typer.Option("--session", help="Of which session.")]

TimeZone: TypeAlias = Annotated[
    str | None,
    typer.Option("--time-zone", metavar="ZONE", help='Such as Europe/Berlin, for "yesterday".'),
]


def run(work: Callable[[Memory, Settings], Awaitable[T]], *, with_models: bool = False) -> T:
    """Do something with an open memory, and close it whatever happens.

    Args:
        with_models: whether the memory may ask the LLMs that are configured.
    """

    async def opened() -> T:
        from router.memory.memory import Memory

        settings = read_settings()
        models: Sequence[ChatModel] = ()
        if with_models:
            from router.stages.llm import models_from_settings

            models = models_from_settings(settings.llm)
        try:
            async with Memory(settings, models=models) as memory:
                return await work(memory, settings)
        finally:
            for model in models:
                await model.aclose()

    return asyncio.run(opened())


def scope_of(
    settings: Settings, user: str | None, project: str | None, session: str | None
) -> Scope:
    """Who asks: what the command line says, else the settings."""
    from router.memory.model import Scope

    given = settings.memory
    return Scope(
        given.user if user is None else user,
        given.project if project is None else project,
        given.session if session is None else session,
    )
