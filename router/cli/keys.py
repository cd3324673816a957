"""``router keys``: the keys of those who may use this user's servers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from router.cli import output
from router.cli.commands import prints
from router.errors import ConfigurationError
from router.http.keys import FILE_NAME, KeyFile, Right

if TYPE_CHECKING:
    from router.http.caller import Callers

app = typer.Typer(help="Make, list and revoke keys of router serve.", no_args_is_help=True)


def _show_made(made: dict[str, str]) -> None:
    typer.echo(made["key"])


@app.command("new")
@prints(_show_made)
def new_key(
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the key is for.")],
    rights: Annotated[
        list[Right], typer.Option("--right", help="What it may be used for; may be repeated.")
    ] = [Right.ROUTE, Right.FEEDBACK],  # noqa: B006 - typer makes a list of its own
    scopes: Annotated[
        list[str] | None,
        typer.Option(
            "--scope",
            metavar="SCOPE",
            help="Whose requests it may route, such as a tenant; may be repeated. Left out: any.",
        ),
    ] = None,
    namespaces: Annotated[
        list[str] | None,
        typer.Option(
            "--namespace",
            metavar="NAME",
            help="Whose tools it may see; skills are the skills of folders; may be repeated. "
            "Left out: all.",
        ),
    ] = None,
) -> dict[str, str]:
    """Make a key and print it. It is shown only once; only its digest is kept."""
    made = key_file().make(name, rights=rights, scopes=scopes or (), namespaces=namespaces or ())
    kept = key_file().find(made)
    return {"id": "" if kept is None else kept.id, "key": made}


def _show(keys: list[dict[str, Any]]) -> None:
    rows = (
        {
            **key,
            "rights": ", ".join(key["rights"]),
            "scopes": ", ".join(key["scopes"]) or "any",
            "namespaces": ", ".join(key["namespaces"]) or "all",
        }.values()
        for key in keys
    )
    output.print_rows("id", "name", "rights", "scopes", "namespaces", "created", rows=rows)


@app.command("list")
@prints(_show)
def list_keys() -> list[dict[str, Any]]:
    """List the keys; the keys themselves are not kept."""
    shown = ("id", "name", "rights", "scopes", "namespaces", "created")
    return [{field: getattr(key, field) for field in shown} for key in key_file().all()]


def _show_revoked(revoked: dict[str, Any]) -> None:
    typer.echo(f"revoked {output.plain(revoked['id'])}", err=True)
    if not revoked["keys_left"]:
        typer.echo(
            "it was the last one: a server that was started without any key asks callers on this "
            "machine for none again",
            err=True,
        )


@app.command("revoke")
@prints(_show_revoked)
def revoke_key(
    key_id: Annotated[str, typer.Argument(metavar="ID", help="As router keys list shows it.")],
) -> dict[str, Any]:
    """Refuse a key from now on; running servers do so at once."""
    keys = key_file()
    if not keys.revoke(key_id):
        raise ConfigurationError(f"no key has the id {key_id!r}; see router keys list")
    return {"id": key_id, "keys_left": len(keys.all())}


def key_file() -> KeyFile:
    """The keys of this user's servers, beside their settings."""
    from router.settings.trust import config_folder

    return KeyFile(config_folder() / FILE_NAME)


def who_may_call(
    host: str, *, allowed: Sequence[str], secret: str | None
) -> tuple[Sequence[str], Callers]:
    """Under which names a server is known, and who may call it: those who have a key of this
    user's, or the secret. Where there is neither, the user of this machine may.

    Raises:
        ConfigurationError: others can reach the address, and nobody is known or no name is.
    """
    from router.http.caller import Callers
    from router.web.names import served_names

    keys = key_file()
    required = secret is not None or bool(keys.all())
    names = served_names(host, allowed=allowed, guarded=required)
    return names, Callers(keys, secret=secret, required=required)
