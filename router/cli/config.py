"""``router config``: every setting's effective value, and which source gave it; and how changes
of the skills are noticed here.

The sources are asked one by one, in the order in which ``Settings`` lets them win, so the answer
is theirs and not a guess. Keys are never shown, and neither are user names, passwords and queries
inside addresses: some gateways carry a key there.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from router.cli import output
from router.cli.options import AsJson, read_settings

if TYPE_CHECKING:
    from pydantic import BaseModel

MASK: Final = "********"

_PROVIDER_VARIABLES: Final = {
    "llm.openai.api_key": "OPENAI_API_KEY",
    "llm.openai.base_url": "OPENAI_BASE_URL",
    "llm.ollama.host": "OLLAMA_HOST",
}
"""Settings for which None means: what the provider's own variable says."""


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """One setting as it holds now.

    Attributes:
        name: dotted name, such as ``fuzzy.ttl_seconds``.
        value: plain JSON types; secrets masked.
        source: a variable's name, ``router.toml``, ``pyproject.toml`` or ``default``.
    """

    name: str
    value: Any
    source: str


def show_config(as_json: AsJson = False) -> None:
    """Show the effective settings and where each came from, and whether this system has native file
    events for the folders of skills. Keys are masked."""
    found = [*effective_settings(), _file_events()]
    if as_json:
        output.print_json({s.name: {"value": s.value, "source": s.source} for s in found})
        return
    table = output.table("setting", "value", "from")
    for setting in found:
        value = setting.value
        shown = ", ".join(map(str, value)) if isinstance(value, list) else value
        table.add_row(
            setting.name, "" if shown is None else output.plain(shown), output.plain(setting.source)
        )
    output.screen().print(table)


def effective_settings() -> Iterator[EffectiveSetting]:
    """All settings in the order of ``Settings``.

    Raises:
        ConfigurationError: a setting is malformed.
    """
    settings = read_settings()
    given = _given_values()
    for path, value in _leaves(settings):
        name = ".".join(path)
        source = next((label for label, values in given if _holds(values, path)), "default")
        if source == "environment":
            source = _variable_name(path)
        variable = _PROVIDER_VARIABLES.get(name)
        if value is None and variable is not None and os.environ.get(variable):
            value, source = os.environ[variable], variable
        yield EffectiveSetting(name, _shown(name, value), source)


def _file_events() -> EffectiveSetting:
    """Native events, or polling and why: found out, not set."""
    from router.skills.discovery import configured_roots
    from router.skills.watching import how_watched

    settings = read_settings()
    roots = configured_roots(settings, later_ones=True)
    report = how_watched(roots, polling=settings.watch.polling)
    return EffectiveSetting("file events", report.mode.value, report.reason or "this system")


def _given_values() -> list[tuple[str, Mapping[str, Any]]]:
    """What each source gives, strongest first."""
    from pydantic_settings import (
        EnvSettingsSource,
        PyprojectTomlConfigSettingsSource,
        TomlConfigSettingsSource,
    )

    from router.settings import Settings

    return [
        ("environment", EnvSettingsSource(Settings)()),
        ("router.toml", TomlConfigSettingsSource(Settings)()),
        ("pyproject.toml", PyprojectTomlConfigSettingsSource(Settings)()),
    ]


def _leaves(
    section: BaseModel, above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    from pydantic import BaseModel

    for name in type(section).model_fields:
        value = getattr(section, name)
        if isinstance(value, BaseModel):
            yield from _leaves(value, (*above, name))
        else:
            yield (*above, name), value


def _holds(values: Mapping[str, Any], path: tuple[str, ...]) -> bool:
    here: Any = values
    for name in path:
        if not isinstance(here, Mapping) or name not in here:
            return False
        here = here[name]
    return True


def _variable_name(path: tuple[str, ...]) -> str:
    """The variable that gives a setting: its own, or one that holds its whole section as JSON.

    Names of variables are compared without regard to case, as pydantic-settings does.
    """
    set_now = {name.upper(): name for name in os.environ}
    spellings = (f"ROUTER_{'__'.join(path[:depth])}".upper() for depth in range(len(path), 0, -1))
    return next(set_now[spelling] for spelling in spellings if spelling in set_now)


def _shown(name: str, value: Any) -> Any:
    from pydantic import SecretStr

    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, SecretStr) or name.endswith("api_key"):
        return MASK
    if isinstance(value, tuple):
        return [str(item) for item in value]
    is_address = name in _PROVIDER_VARIABLES or name.endswith("url")
    return _without_credentials(str(value)) if is_address else str(value)


def _without_credentials(address: str) -> str:
    """The address with everything before an ``@`` in the host part, and after ``?``, masked."""
    address = re.sub(r"^([a-z][a-z0-9+.-]*://)?[^/?#]*@", rf"\1{MASK}@", address, flags=re.I)
    return re.sub(r"[?#].*", f"?{MASK}", address, flags=re.DOTALL)
