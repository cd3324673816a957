"""Texts of SKILL.md files, on the disk or read as if they were, and what is said of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.errors import ManifestError
from router.skills.manifest import SkillManifest, parse_manifest

PATH = Path("skills/git/SKILL.md")
GOOD = "name: git\ndescription: Work with Git.\n"


def put(folder: Path, *, name: str | None = None, text: str = "x", more: str = "") -> Path:
    """Write a skill's file; ``more`` are lines of its frontmatter."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "SKILL.md"
    path.write_text(f"---\nname: {name or folder.name}\ndescription: {text}\n{more}---\nbody\n")
    return path


def read(frontmatter: str, body: str = "Do it.\n") -> SkillManifest:
    return parse_manifest(f"---\n{frontmatter}\n---\n{body}".encode(), path=PATH)


def refusal(data: bytes) -> ManifestError:
    with pytest.raises(ManifestError) as caught:
        parse_manifest(data, path=PATH)
    return caught.value


def codes(manifest: SkillManifest) -> list[str]:
    return [diagnostic.code for diagnostic in manifest.diagnostics]


def lines(manifest: SkillManifest) -> list[tuple[int, str]]:
    return [(diagnostic.line, diagnostic.code) for diagnostic in manifest.diagnostics]
