"""Finds the line of a skill's text in its file, so that a finding can name it.

A manifest keeps values without their places: YAML folds lines, drops quotes and resolves escapes.
So the place is looked up in the file. The line of a key is exact. A text inside its value is
searched for from there on; where YAML spells it differently, the line of the key is reported.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from dataclasses import dataclass
from typing import Final, Self

from router.errors import ManifestError
from router.lint.rules import Rule
from router.skills.diagnostics import Diagnostic, Report
from router.skills.frontmatter import Node, split_manifest
from router.skills.manifest import HINTS, SkillManifest, canonical

_TEXTS: Final = ("routing-keywords", "intents", "examples")


@dataclass(frozen=True, slots=True)
class Passage:
    """One text of a skill, as routers and models read it.

    Attributes:
        label: what it is, for messages: "the description".
        text: the text.
        line: 1-based line of its key; for the body, the line of its first character.
    """

    label: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class SkillFile:
    """A skill beside the lines of its file.

    Attributes:
        skill: the manifest.
        lines: the file's lines.
        head: what routers and models read before the skill is chosen: name, description, hints.
        body: the instructions.
        fence: 1-based line on which the frontmatter ends.
        breaks: where the body's line breaks stand in its text.
    """

    skill: SkillManifest
    lines: tuple[str, ...]
    head: tuple[Passage, ...]
    body: Passage
    fence: int
    breaks: tuple[int, ...]

    @classmethod
    def of(cls, skill: SkillManifest, data: bytes) -> Self:
        """The manifest and the bytes that it was read from."""
        text = data.decode("utf-8-sig", errors="replace")
        lines = tuple(text.replace("\r\n", "\n").replace("\r", "\n").split("\n"))
        try:
            top, _, fence = split_manifest(data, Report(skill.path))
        except ManifestError:  # the file changed since the manifest was read
            top, fence = {}, 0
        start = next((i for i in range(fence, len(lines)) if lines[i]), fence)
        head = [
            Passage("the name", skill.name, _line(top, "name")),
            Passage("the description", skill.description, _line(top, "description")),
        ]
        for key in _TEXTS:
            spellings = [spelling for spelling, target in HINTS.items() if target == key]
            line = _line(_metadata(top), *spellings, default=_line(top, *spellings, "metadata"))
            items: tuple[str, ...] = getattr(skill, key.replace("-", "_"))
            head += (Passage(f"metadata.{key}", item, line) for item in items)
        body = Passage("the body", skill.body, start + 1)
        breaks = tuple(found.start() for found in re.finditer("\n", skill.body))
        return cls(skill, lines, tuple(head), body, fence, breaks)

    def breach(
        self, rule: Rule, passage: Passage, span: tuple[int, int], message: str
    ) -> Diagnostic:
        """A diagnostic: ``passage.text[slice(*span)]`` breaks a rule."""
        return rule.breach(self.skill.path, self.place(passage, *span), message)

    def place(self, passage: Passage, start: int, end: int) -> int:
        """The line of ``passage.text[start:end]``; the key's where it is spelled differently."""
        if passage is self.body:
            return passage.line + bisect_left(self.breaks, start)
        wanted = passage.text[start:end].split("\n")[0]
        for number in range(max(passage.line, 1), min(self.fence, len(self.lines)) + 1):
            if wanted in self.lines[number - 1]:
                return number
        return passage.line


def _metadata(top: dict[str, Node]) -> dict[str, Node]:
    node = top.get("metadata")
    return node.value if node is not None and isinstance(node.value, dict) else {}


def _line(nodes: dict[str, Node], *spellings: str, default: int = 1) -> int:
    """The line of the first key with one of those spellings."""
    found = {canonical(key): node.line for key, node in nodes.items()}
    return next((found[spelling] for spelling in spellings if spelling in found), default)
