"""``router config``: every setting's effective value, and which source gave it; and how changes
of the skills are noticed here.

The sources are asked one by one, in the order in which ``Settings`` lets them win, so the answer
is theirs and not a guess. A value that a file of the working directory gives and that does not
count, because the folder is not trusted, is named too. Keys are never shown, and neither are user
names, passwords and queries inside addresses: some gateways carry a key there.
"""

from __future__ import annotations

import os
import re
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from router.cli import output
from router.cli.commands import prints
from router.cli.options import read_settings

if TYPE_CHECKING:
    from router.settings.settings import Settings

MASK: Final = "********"

_PROVIDER_VARIABLES: Final = {
    "llm.openai.api_key": "OPENAI_API_KEY",
    "llm.openai.base_url": "OPENAI_BASE_URL",
    "llm.ollama.host": "OLLAMA_HOST",
}
"""Settings for which None means: what the provider's own variable says."""


def _show(settings: dict[str, dict[str, Any]]) -> None:
    rows = []
    for name, setting in settings.items():
        value, source = setting["value"], setting["source"]
        if "not_trusted" in setting:
            source += f" ({', '.join(setting['not_trusted'])}: not trusted)"
        shown = ", ".join(map(str, value)) if isinstance(value, list) else value
        rows.append((name, "" if shown is None else shown, source))
    output.print_rows("setting", "value", "from", rows=rows)


@prints(_show)
def show_config() -> dict[str, dict[str, Any]]:
    """Show the effective settings and where each came from, and whether this system has native file
    events for the folders of skills. Keys are masked."""
    from router.settings.files import folder_settings
    from router.settings.settings import Settings, given_by_source, source_of
    from router.settings.trust import leaves

    settings = read_settings()
    ignored_here = folder_settings(Settings, Path.cwd()).ignored if settings.folder_settings else {}
    given = given_by_source(Settings)
    shown: dict[str, dict[str, Any]] = {}
    for path, _ in leaves(Settings):
        name, value = ".".join(path), attrgetter(".".join(path))(settings)
        source = source_of(path, given) or "default"
        variable = _PROVIDER_VARIABLES.get(name)
        if value is None and variable is not None and os.environ.get(variable):
            value, source = os.environ[variable], variable
        shown[name] = {"value": shown_value(name, value), "source": source}
        ignored = [file for file, values in ignored_here.items() if path in values]
        if ignored:
            shown[name]["not_trusted"] = ignored
    return shown | {"file events": _file_events(settings)}


def _file_events(settings: Settings) -> dict[str, Any]:
    """Whether file changes are noticed by native events or by polling, and why. This is no setting,
    but people look for it here."""
    from router.skills.discovery import configured_roots
    from router.skills.watching import how_watched

    roots = configured_roots(settings, later_ones=True)
    report = how_watched(roots, polling=settings.watch.polling)
    return {"value": report.mode.value, "source": report.reason or "this system"}


def shown_value(name: str, value: Any) -> Any:
    """A setting's value as plain JSON types, without keys."""
    from pydantic import SecretStr

    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, SecretStr) or name.endswith("api_key"):
        return MASK
    if isinstance(value, tuple | list):
        return [str(item) for item in value]
    shown = str(value)
    is_address = name in _PROVIDER_VARIABLES or name.endswith("url") or "://" in shown
    return _without_credentials(shown) if is_address else shown


def _without_credentials(address: str) -> str:
    """The address with everything before an ``@`` in the host part, and after ``?``, masked."""
    address = re.sub(r"^([a-z][a-z0-9+.-]*://)?[^/?#]*@", rf"\1{MASK}@", address, flags=re.I)
    return re.sub(r"[?#].*", f"?{MASK}", address, flags=re.DOTALL)
