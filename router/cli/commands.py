"""What the commands share: one way to print what was found, and the options of memory.

A command is written as a function that only returns what it found:

    @prints(_show)
    def list_things(folder: Path) -> list[Thing]: ...

``prints`` makes the command of it that typer runs: with the option ``--json``, and printed by
``_show`` without it. The function may be asynchronous. ``memory_command`` does the same for a
function that returns what is to be done with an open memory; it opens one, and adds ``--user``,
``--project`` and ``--session``.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypeAlias, TypeVar

import typer

from router.cli import output
from router.cli.options import AsJson, read_settings

if TYPE_CHECKING:
    from router.llm.protocol import ChatModel
    from router.memory.memory import Memory
    from router.memory.model import Scope

    Work: TypeAlias = Callable[[Memory, Scope], Awaitable[Any]]
else:
    Work = Any

P = ParamSpec("P")
T = TypeVar("T")
Command: TypeAlias = Callable[..., None]

User: TypeAlias = Annotated[str | None, typer.Option("--user", help="Whose memories.")]
Project: TypeAlias = Annotated[str | None, typer.Option("--project", help="Of which project.")]
Session: TypeAlias = Annotated[str | None, typer.Option("--session", help="Of which session.")]

Options: TypeAlias = dict[str, tuple[Any, object]]
"""Options by name, each with its annotation and its default."""
_JSON: Options = {"as_json": (AsJson, False)}
_WHOSE: Options = {"user": (User, None), "project": (Project, None), "session": (Session, None)}


def prints(
    show: Callable[[T], None], *, failed: Callable[[T], object] = lambda _: False
) -> Callable[[Callable[P, T | Coroutine[Any, Any, T]]], Command]:
    """The command that prints what the function returns: with ``--json`` as JSON, else by ``show``.
    The exit code is 1 where ``failed`` says that something was found wrong."""

    def decorated(find: Callable[P, T | Coroutine[Any, Any, T]]) -> Command:
        def command(**given: Any) -> None:
            as_json = given.pop("as_json")
            found = find(**given)  # type: ignore[call-arg]
            if asyncio.iscoroutine(found):
                found = asyncio.run(found)
            _print(found, show if not as_json else output.print_json, failed)

        return with_options(command, find, _JSON)

    return decorated


def memory_command(
    show: Callable[[Any], None] | None = None,
    *,
    failed: Callable[[Any], object] = lambda _: False,
    scoped: bool = True,
    configured: bool = True,
    with_models: bool = False,
) -> Callable[[Callable[P, Work]], Command]:
    """The command that does the returned work with an open memory, and closes it whatever happens.

    Args:
        show: prints what the work gives for a person, and ``--json`` prints all of it. None: the
            work prints what there is to say.
        failed: whether something went wrong, so that the exit code is 1.
        scoped: whether the command takes --user, --project and --session.
        configured: whether what is left out of them is as the settings say; else it is not set.
        with_models: whether the memory may ask the LLMs that are configured.
    """

    def decorated(prepare: Callable[P, Work]) -> Command:
        def command(**given: Any) -> None:
            as_json = given.pop("as_json", False)
            whose = [given.pop(name) for name in _WHOSE] if scoped else [None] * 3
            work = prepare(**given)  # type: ignore[call-arg]
            found = asyncio.run(_with_memory(work, whose, configured, with_models))
            if show is not None:
                _print(found, show if not as_json else output.print_json, failed)

        further = (_WHOSE if scoped else {}) | (_JSON if show is not None else {})
        return with_options(command, prepare, further)

    return decorated


def _print(found: T, show: Callable[[T], None], failed: Callable[[T], object]) -> None:
    show(found)
    if failed(found):
        raise typer.Exit(1)


def with_options(
    command: Callable[..., T], like: Callable[..., object], further: Options
) -> Callable[..., T]:
    """The command as typer sees it: with the text and the options of ``like``, and further ones."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    signature = inspect.signature(like, eval_str=True)
    own = [parameter.replace(kind=keyword) for parameter in signature.parameters.values()]
    more = [
        inspect.Parameter(name, keyword, annotation=annotation, default=default)
        for name, (annotation, default) in further.items()
    ]
    command.__signature__ = inspect.Signature([*own, *more])  # type: ignore[attr-defined]
    command.__name__, command.__doc__ = like.__name__, like.__doc__
    return command


async def _with_memory(
    work: Work, whose: list[str | None], configured: bool, with_models: bool
) -> Any:
    from router.memory.memory import Memory
    from router.memory.model import Scope
    from router.service.memory import scope_of

    settings = read_settings()
    models: list[ChatModel] = []
    if with_models:
        from router.stages.llm import models_from_settings

        models = list(models_from_settings(settings.llm))
    try:
        async with Memory(settings, models=models) as memory:
            scope = scope_of(settings, *whose) if configured else Scope(*whose)
            return await work(memory, scope)
    finally:
        for model in models:
            await model.aclose()
