"""What tests of the command line write for a command, and read of its answer."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

from typer.testing import Result

Run: TypeAlias = Callable[..., Result]
"""Runs a command."""


def parsed(result: Result) -> Any:
    return json.loads(result.stdout)


def write_file(name: str, text: str) -> None:
    """A memory file of the project that somebody else has written."""
    file = Path(".serena", "memories", f"{name}.md")
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def ids(answer: dict[str, Any]) -> list[str]:
    return [item["id"] for item in answer["items"]]


def save(memory: Run, name: str, text: str, layer: str, *more: str) -> None:
    """Save an item of a name to a memory layer."""
    memory("save", text, "--layer", layer, "--name", name, *more)
