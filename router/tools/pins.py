"""Pins: which tools somebody has looked at and approved, by a digest of what they said then.

A server may change the text of a tool after it was approved, and a model reads that text as if it
were still the approved one. ``Pinned`` gives only the tools that are what was pinned; the others
are reported and can be neither found nor called.

    sources = [Pinned(McpServers("servers.json"), "approved.json")]

The file is written by ``router tools check --pin approved.json``, and holds ``{NAME: DIGEST}``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from router.bounded_files import Unreadable, read_bounded
from router.errors import ConfigurationError
from router.skills.diagnostics import Diagnostic, Severity
from router.skills.manifest import SkillManifest
from router.skills.sources import SkillSource, SourceSnapshot
from router.tools.files import MAX_FILE_BYTES
from router.tools.servers import RemoteTool


class Pinned:
    """A source of tools without those that are not what was approved."""

    def __init__(self, source: SkillSource, pins: Path | str) -> None:
        """Wraps a source.

        Raises:
            ConfigurationError: the file of pins cannot be read.
        """
        self._source = source
        self._file = Path(pins)
        self._pins = read_pins(self._file)
        self.name = source.name
        self.roots = source.roots

    def read(
        self,
        previous: SourceSnapshot | None = None,  # noqa: ARG002 - it may hold less than the source
        *,
        quick: bool = False,
    ) -> SourceSnapshot:
        """The approved tools as they are now; the others are failures."""
        found = self._source.read(quick=quick)
        approved: list[SkillManifest] = []
        failures = list(found.failures)
        for tool in found.skills:
            fault = fault_of(tool, self._pins)
            if fault is None:
                approved.append(_with_approved_twins(tool, self._pins))
            else:
                message = f"{tool.name}: {fault}; see {self._file}"
                failures.append(Diagnostic(tool.path, 0, Severity.ERROR, "not-approved", message))
        return replace(found, skills=tuple(approved), failures=tuple(failures))

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        """See the source."""
        return self._source.subscribe(changed)


def fault_of(tool: SkillManifest, pins: Mapping[str, str]) -> str | None:
    """Why a tool is not what was approved; None when it is. It must have been approved under its
    own name: another server can say the same of a tool of its own."""
    if tool.name not in pins:
        return "new since the tools were pinned"
    return None if digest_of(tool) == pins[tool.name] else "changed since the tools were pinned"


def changes_since(pins: Mapping[str, str], tools: Iterable[SkillManifest]) -> list[str]:
    """What differs from the pins, in the order of the names."""
    changes: dict[str, str] = {}
    there: set[str] = set()
    for tool in tools:
        there.update(names_of(tool))
        if (fault := fault_of(tool, pins)) is not None:
            changes[tool.name] = fault
    changes |= dict.fromkeys(pins.keys() - there, "gone since the tools were pinned")
    return [f"{name}: {change}" for name, change in sorted(changes.items())]


def write_pins(file: Path, tools: Iterable[SkillManifest]) -> None:
    """Approve these tools as they are, with their twins."""
    pins = {name: digest_of(tool) for tool in tools for name in names_of(tool)}
    file.write_text(json.dumps(pins, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def read_pins(file: Path) -> dict[str, str]:
    """The pins in a file.

    Raises:
        ConfigurationError: it cannot be read, or holds something else.
    """
    try:
        pins = json.loads(read_bounded(file, most=MAX_FILE_BYTES))
    except (Unreadable, ValueError, RecursionError) as error:
        raise ConfigurationError(f"{file}: no file of pinned tools: {error}") from error
    if not isinstance(pins, dict) or not all(isinstance(pin, str) for pin in pins.values()):
        raise ConfigurationError(f"{file}: no file of pinned tools: it holds no names and digests")
    return pins


def digest_of(tool: SkillManifest) -> str:
    """A digest of all that a tool says of itself, whatever it is named here."""
    payload = tool.payload
    if not isinstance(payload, RemoteTool):
        return tool.digest
    said = payload.definition.model_dump(mode="json", by_alias=True, exclude={"name"})
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def names_of(tool: SkillManifest) -> tuple[str, ...]:
    """The names under which a tool is offered: its own, and those of its twins at other servers."""
    twins = tool.payload.twins if isinstance(tool.payload, RemoteTool) else ()
    return (tool.name, *twins)


def _with_approved_twins(tool: SkillManifest, pins: Mapping[str, str]) -> SkillManifest:
    """An approved tool without those twins that nobody approved."""
    if not isinstance(tool.payload, RemoteTool):
        return tool
    twins = tuple(twin for twin in tool.payload.twins if pins.get(twin) == pins[tool.name])
    return replace(tool, payload=replace(tool.payload, twins=twins))
