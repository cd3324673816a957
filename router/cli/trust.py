"""``router trust``: let the settings files of a folder say what only the user may say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from router.cli import output
from router.cli.commands import prints
from router.cli.config import shown_value

if TYPE_CHECKING:
    from router.settings.files import FolderSettings


def _show(found: list[dict[str, str]] | dict[str, Any]) -> None:
    if isinstance(found, list):
        output.print_rows("folder", "state", rows=(entry.values() for entry in found))
        return
    folder = output.plain(found["folder"])
    if "was_trusted" in found:
        typer.echo(
            f"{folder} {'is trusted no more' if found['was_trusted'] else 'was not trusted'}"
        )
    elif not found["trusted"]:
        typer.echo(f"{folder} sets nothing that needs trust")
    else:
        typer.echo(f"trusted {folder}, until one of these changes:")
        for file, settings in found["settings"].items():
            for name, value in settings.items():
                typer.echo(f"  {file}: {name} = {output.plain(value)}")


@prints(_show)
def trust_folder(
    folder: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="The folder; this one by default.")
    ] = None,
    show_list: Annotated[
        bool, typer.Option("--list", help="Show the trusted folders, and change nothing.")
    ] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Trust the folder no more.")] = False,
) -> Any:
    """Let router.toml and pyproject.toml of a folder set what only you may: addresses, models,
    encoders, other folders, and what costs money or loosens a guard.

    The values are shown: look at them. A file that the router is pointed to, such as a model, is
    trusted with them. When one of the values changes, the folder must be trusted again.
    """
    from router.settings.trust import TrustedFolders

    if show_list:
        if folder is not None or revoke:
            raise typer.BadParameter("--list takes neither a folder nor --revoke")
        return [
            {"folder": str(path), "state": _state(path, digest)}
            for path, digest in TrustedFolders().all().items()
        ]
    place = Path.cwd() if folder is None else folder
    if revoke:
        was_trusted = TrustedFolders().remove(place)
        return {"folder": str(place.resolve()), "was_trusted": was_trusted}
    if not place.is_dir():
        raise typer.BadParameter(f"{output.plain(place)} is not a folder")
    found = _settings_of(place)
    guarded = {
        file: {".".join(path): shown_value(".".join(path), value) for path, value in v.items()}
        for file, v in found.guarded.items()
        if v
    }
    if guarded:
        TrustedFolders().add(found.folder, found.digest)
    return {"folder": str(found.folder), "trusted": bool(guarded), "settings": guarded}


def _state(folder: Path, digest: str) -> str:
    from router.errors import ConfigurationError

    if not folder.is_dir():
        return "gone"
    try:
        is_same = _settings_of(folder).digest == digest
    except ConfigurationError as error:
        return str(error)
    return "trusted" if is_same else "changed since; trust it again"


def _settings_of(folder: Path) -> FolderSettings:
    from router.settings.files import folder_settings
    from router.settings.settings import Settings

    return folder_settings(Settings, folder.resolve())
