"""Skills written into a temporary folder, and linted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from router.lint.manifest import lint_manifest
from router.skills.diagnostics import Diagnostic
from router.skills.manifest import parse_manifest

Lint = Callable[..., list[Diagnostic]]

FINE = "Turns meeting recordings into minutes with owners and dates. Use when a call was recorded."


def manifest_text(
    description: str = FINE, *, body: str = "# Steps\n\nListen.", hints: str = "", name: str = "x"
) -> bytes:
    """A SKILL.md; ``hints`` are lines under metadata, indented."""
    metadata = f"metadata:\n{hints}" if hints else ""
    return f"---\nname: {name}\ndescription: {description}\n{metadata}---\n\n{body}\n".encode()


@pytest.fixture
def lint() -> Lint:
    """Lints a skill that is given by its texts."""

    def run(description: str = FINE, **parts: str) -> list[Diagnostic]:
        data = manifest_text(description, **parts)
        skill = parse_manifest(data, path=Path("/skills/x/SKILL.md"))
        return list(lint_manifest(skill, data))

    return run
