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

T = TypeVar("T")

User: TypeAlias = Annotated[str | None, typer.Option("--user", help="Whose memories.")]
Project: TypeAlias = Annotated[str | None, typer.Option("--project", help="Of which project.")]
Session: TypeAlias = Annotated[str | None, typer.Option("--session", help="Of which session.")]

TimeZone: TypeAlias = Annotated[
    str | None,
    typer.Option("--time-zone", metavar="ZONE", help='Such as Europe/Berlin, for "yesterday".'),
]


def run(
    work: Callable[[Memory, Scope], Awaitable[T]],
    whose: tuple[str | None, str | None, str | None] = (None, None, None),
    *,
    with_models: bool = False,
) -> T:
    """Do something with an open memory, and close it whatever happens.

    Args:
        work: what to do, with the memory and the scope of who asks.
        whose: user, project and session of the scope; for None the settings' own.
        with_models: whether the memory may ask the LLMs that are configured.
    """

    async def opened() -> T:
        from router.memory.memory import Memory
        from router.service.memory import scope_of

        settings = read_settings()
        models: Sequence[ChatModel] = ()
        if with_models:
            from router.stages.llm import models_from_settings

            models = models_from_settings(settings.llm)
        try:
            async with Memory(settings, models=models) as memory:
                return await work(memory, scope_of(settings, *whose))
        finally:
            for model in models:
                await model.aclose()

    return asyncio.run(opened())
