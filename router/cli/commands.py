"""What the commands share: one way to print what was found, and the options of memory.

A command is written as a function that only returns what it found:

    @prints(_show)
    def list_things(folder: Path, which: Which) -> list[Thing]: ...

``prints`` makes the command of it that typer runs: with the option ``--json``, and printed by
``_show`` without it. The function may be asynchronous. A parameter that is a dataclass, such as
``Which``, stands for its fields, each of which is an option: so commands share options.
``memory_command`` does the same for a function that returns what is to be done with an open memory;
it opens one, and adds ``--user``, ``--project`` and ``--session``.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import astuple, dataclass, fields, is_dataclass
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    ParamSpec,
    TypeAlias,
    TypeVar,
    get_type_hints,
)

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


@dataclass(frozen=True, slots=True)
class Whose:
    """The options that say whose memories a command is about."""

    user: Annotated[str | None, typer.Option(help="Whose memories.")] = None
    project: Annotated[str | None, typer.Option(help="Of which project.")] = None
    session: Annotated[str | None, typer.Option(help="Of which session.")] = None


_KEYWORD: Final = inspect.Parameter.KEYWORD_ONLY
_AS_JSON: Final = inspect.Parameter("as_json", _KEYWORD, annotation=AsJson, default=False)
_WHOSE: Final = inspect.Parameter("whose", _KEYWORD, annotation=Whose)


def prints(
    show: Callable[[T], None], *, failed: Callable[[T], object] = lambda _: False
) -> Callable[[Callable[P, T | Coroutine[Any, Any, T]]], Command]:
    """The command that prints what the function returns: with ``--json`` as JSON, else by ``show``.
    The exit code is 1 where ``failed`` says that something was found wrong."""

    def decorated(find: Callable[P, T | Coroutine[Any, Any, T]]) -> Command:
        def run(*, as_json: bool, **given: Any) -> None:
            found = find(**given)  # type: ignore[call-arg]
            if asyncio.iscoroutine(found):
                found = asyncio.run(found)
            _print(found, show if not as_json else output.print_json, failed)

        return _command(run, find, _AS_JSON)

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
        def run(*, as_json: bool = False, **given: Any) -> None:
            whose = given.pop("whose") if scoped else Whose()
            work = prepare(**given)  # type: ignore[call-arg]
            found = asyncio.run(_with_memory(work, whose, configured, with_models))
            if show is not None:
                _print(found, show if not as_json else output.print_json, failed)

        more = [*([_WHOSE] if scoped else []), *([_AS_JSON] if show is not None else [])]
        return _command(run, prepare, *more)

    return decorated


def _print(found: T, show: Callable[[T], None], failed: Callable[[T], object]) -> None:
    show(found)
    if failed(found):
        raise typer.Exit(1)


def _command(
    run: Callable[..., None], like: Callable[..., object], *more: inspect.Parameter
) -> Command:
    """What typer runs: ``run``, with the text and the parameters of ``like``, and further ones. A
    dataclass among them is shown as its fields, and put together again."""
    shown: list[inspect.Parameter] = []
    groups: dict[str, Any] = {}
    for one in (*inspect.signature(like, eval_str=True).parameters.values(), *more):
        kind = one.annotation
        if not is_dataclass(kind):
            shown.append(one.replace(kind=_KEYWORD))
            continue
        groups[one.name] = kind
        hints = get_type_hints(kind, include_extras=True)
        shown += [
            inspect.Parameter(f.name, _KEYWORD, annotation=hints[f.name], default=f.default)
            for f in fields(kind)
        ]

    def command(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        run(**given)

    command.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    command.__name__, command.__doc__ = like.__name__, like.__doc__
    return command


async def _with_memory(work: Work, whose: Whose, configured: bool, with_models: bool) -> Any:
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
            named = astuple(whose)
            return await work(memory, scope_of(settings, *named) if configured else Scope(*named))
    finally:
        for model in models:
            await model.aclose()
