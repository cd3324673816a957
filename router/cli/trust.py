"""``router trust``: let the settings files of a folder say what only the user may say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from router.cli import output
from router.cli.config import shown_value
from router.cli.options import AsJson

if TYPE_CHECKING:
    from router.settings_files import FolderSettings


def trust_folder(
    folder: Annotated[
        Path | None, typer.Argument(metavar="[DIR]", help="The folder; this one by default.")
    ] = None,
    show_list: Annotated[
        bool, typer.Option("--list", help="Show the trusted folders, and change nothing.")
    ] = False,
    revoke: Annotated[bool, typer.Option("--revoke", help="Trust the folder no more.")] = False,
    as_json: AsJson = False,
) -> None:
    """Let router.toml and pyproject.toml of a folder set addresses, models, encoders and folders.

    The values are shown: look at them. A file that the router is pointed to, such as a model, is
    trusted with them. When one of the values changes, the folder must be trusted again.
    """
    if show_list:
        if folder is not None or revoke:
            raise typer.BadParameter("--list takes neither a folder nor --revoke")
        _show_list(as_json=as_json)
        return
    place = Path.cwd() if folder is None else folder
    if revoke:
        _revoke(place, as_json=as_json)
    else:
        _trust(place, as_json=as_json)


def _trust(place: Path, *, as_json: bool) -> None:
    from router.trust import TrustedFolders

    if not place.is_dir():
        raise typer.BadParameter(f"{output.plain(place)} is not a folder")
    found = _settings_of(place)
    needed = any(found.guarded.values())
    if needed:
        TrustedFolders().add(found.folder, found.digest)
    if as_json:
        values = {
            file: {".".join(path): shown_value(".".join(path), value) for path, value in v.items()}
            for file, v in found.guarded.items()
            if v
        }
        output.print_json({"folder": str(found.folder), "trusted": needed, "settings": values})
        return
    where = output.plain(found.folder)
    if not needed:
        typer.echo(f"{where} sets nothing that needs trust")
        return
    typer.echo(f"trusted {where}, until one of these changes:")
    for file, guarded in found.guarded.items():
        for path, value in guarded.items():
            name = ".".join(path)
            typer.echo(f"  {file}: {name} = {output.plain(shown_value(name, value))}")


def _revoke(place: Path, *, as_json: bool) -> None:
    from router.trust import TrustedFolders

    was_trusted = TrustedFolders().remove(place)
    if as_json:
        output.print_json({"folder": str(place.resolve()), "was_trusted": was_trusted})
    else:
        where = output.plain(place.resolve())
        typer.echo(f"{where} is trusted no more" if was_trusted else f"{where} was not trusted")


def _show_list(*, as_json: bool) -> None:
    from router.errors import ConfigurationError
    from router.trust import TrustedFolders

    rows = []
    for entry in TrustedFolders().all():
        try:
            same = _settings_of(entry.folder).digest == entry.digest
            state = "trusted" if same else "changed since; trust it again"
        except ConfigurationError as error:
            state = str(error)
        if not entry.folder.is_dir():
            state = "gone"
        rows.append((str(entry.folder), state))
    if as_json:
        output.print_json([{"folder": folder, "state": state} for folder, state in rows])
        return
    output.print_rows("folder", "state", rows=rows)


def _settings_of(folder: Path) -> FolderSettings:
    from router.settings import Settings
    from router.settings_files import folder_settings

    return folder_settings(Settings, folder.resolve())
