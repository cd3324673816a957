"""Texts of SKILL.md files, read as if they were on the disk, and what is said of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from router.errors import ManifestError
from router.skills.manifest import SkillManifest, parse_manifest

PATH = Path("skills/git/SKILL.md")
GOOD = "name: git\ndescription: Work with Git.\n"


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
