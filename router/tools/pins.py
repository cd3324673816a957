"""Pins: digests of the definitions of tools that somebody has approved.

A server may change the text of a tool after it was approved, and a model would read the new text as
if it were approved. ``Pinned`` gives only tools whose definition is still the pinned one; the
others are reported and can be neither found nor called.

    sources = [Pinned(McpServers("servers.json"), "approved.json")]

The file is written by ``router tools check --pin approved.json``, and holds ``{NAME: DIGEST}``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from router.bounded.files import Unreadable, read_bounded
from router.errors import ConfigurationError
from router.skills.diagnostics import Diagnostic, Severity
from router.skills.manifest import SkillManifest
from router.skills.sources import SkillSource, SourceSnapshot
from router.tools.files import MAX_FILE_BYTES, snapshot_of
from router.tools.servers import RemoteTool


class Pinned:
    """A source of tools that leaves out tools which were not approved or have changed since."""

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
        """The approved tools; the others are failures."""
        found = self._source.read(quick=quick)
        approved: list[SkillManifest] = []
        failures = list(found.failures)
        for tool in found.skills:
            faults = faults_of(tool, self._pins)
            for name, fault in faults.items():
                place = tool.path if name == tool.name else Path(f"<{self.name}>", name)
                message = f"{name}: {fault}; see {self._file}"
                failures.append(Diagnostic(place, 0, Severity.ERROR, "not-approved", message))
            offered = self._offered(tool, faults)
            approved += offered.skills
            failures += offered.failures
        return replace(found, skills=tuple(approved), failures=tuple(failures))

    def _offered(self, tool: SkillManifest, faults: Collection[str]) -> SourceSnapshot:
        """The tool of the first server whose definition was approved, with its other approved
        twins. ``faults`` are the names that were not approved."""
        if not isinstance(tool.payload, RemoteTool):
            return SourceSnapshot(() if faults else (tool,))
        alike = [one for one in (tool.payload, *tool.payload.others) if one.name not in faults]
        if not alike:
            return SourceSnapshot()
        remote = replace(alike[0], others=tuple(alike[1:]))
        if remote.name == tool.name:
            return SourceSnapshot((replace(tool, payload=remote),))
        return snapshot_of([remote.as_tool()], origin=self.name, path=tool.path)

    def subscribe(self, changed: Callable[[], None]) -> Callable[[], None]:
        return self._source.subscribe(changed)


def faults_of(tool: SkillManifest, pins: Mapping[str, str]) -> dict[str, str]:
    """Why a tool or a twin of it is not approved, by name; approved ones are left out. Each must be
    approved under its own name, because another server can give a tool with the same definition."""
    return {
        name: f"{'changed' if name in pins else 'new'} since the tools were pinned"
        for name, digest in digests_of(tool).items()
        if pins.get(name) != digest
    }


def changes_since(pins: Mapping[str, str], tools: Iterable[SkillManifest]) -> list[str]:
    """A sentence for each tool that differs from the pins, in the order of the names."""
    changes = dict.fromkeys(pins, "gone since the tools were pinned")
    for tool in tools:
        for name in names_of(tool):
            changes.pop(name, None)
        changes |= faults_of(tool, pins)
    return [f"{name}: {change}" for name, change in sorted(changes.items())]


def write_pins(file: Path, tools: Iterable[SkillManifest]) -> None:
    """Approve these tools as they are, with their twins."""
    pins = {name: digest for tool in tools for name, digest in digests_of(tool).items()}
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


def digests_of(tool: SkillManifest) -> dict[str, str]:
    """A digest of the definition of a tool, for each name under which it is offered."""
    if not isinstance(tool.payload, RemoteTool):
        return {tool.name: tool.digest}
    return {one.name: _digest_of(one) for one in (tool.payload, *tool.payload.others)}


def names_of(tool: SkillManifest) -> tuple[str, ...]:
    """The names under which a tool is offered: its own, and those of its twins at other servers."""
    twins = tool.payload.twins if isinstance(tool.payload, RemoteTool) else ()
    return (tool.name, *twins)


def _digest_of(remote: RemoteTool) -> str:
    texts = remote.definition.model_dump(mode="json", by_alias=True, exclude={"name"})
    return hashlib.sha256(json.dumps(texts, sort_keys=True).encode()).hexdigest()
