"""The rules of the linter: a stable code, how bad a breach is, and what the rule asks for.

What the format asks for is checked when a file is read and reported by diagnostics of its own; the
rules here are about how well and how safely a skill can be routed to. What deceives a reader or a
router is an ``ERROR``; what makes a skill harder to find is a ``WARNING``.
"""

from __future__ import annotations

from enum import Enum
from pathlib import Path

from router.skills.diagnostics import Diagnostic, Severity


class Rule(Enum):
    """One rule: how bad a breach is, and what the rule asks for in one sentence."""

    PLACEHOLDER = Severity.WARNING, "No text that `router skills new` wrote is left in its place."
    NO_WHEN = Severity.WARNING, "A description says when to use the skill, not only what it does."
    SHORT_DESCRIPTION = Severity.WARNING, "A description has enough words to route on."
    KEYWORD_STUFFING = Severity.WARNING, "A skill is described in sentences, not in keywords."
    LONG_BODY = Severity.WARNING, "The instructions have at most 500 lines."
    HIDDEN_CHARACTER = Severity.ERROR, "A reader sees every character that a model reads."
    HIDDEN_CHARACTER_IN_BODY = (
        Severity.WARNING,
        "The instructions hold no invisible characters, which most often got there by accident.",
    )
    MIXED_SCRIPT = Severity.ERROR, "No letter of one script poses as a letter of another one."
    ROUTER_INSTRUCTION = (
        Severity.ERROR,
        "A description describes the skill; it gives whoever chooses among skills no orders.",
    )
    CLAIMS_EVERYTHING = Severity.WARNING, "A skill does not claim every request for itself."
    SHELL_COMMAND = (
        Severity.ERROR,
        "A description holds no command that runs what it downloads or decodes.",
    )
    SHELL_COMMAND_IN_BODY = (
        Severity.WARNING,
        "The instructions run nothing that was downloaded or decoded in the same command.",
    )
    ENCODED_TEXT = Severity.ERROR, "A description holds no encoded text."
    ENCODED_TEXT_IN_BODY = Severity.WARNING, "The instructions hold no long encoded text."
    LOCKED_ARCHIVE = (
        Severity.ERROR,
        "A description leads to no archive whose password keeps scanners out.",
    )
    LOCKED_ARCHIVE_IN_BODY = (
        Severity.WARNING,
        "The instructions unpack no archive whose password keeps scanners out.",
    )
    STRAY_EXAMPLE = Severity.WARNING, "A skill is found first for its own example requests."
    COLLISION = Severity.WARNING, "No two skills take each other's example requests."
    GREEDY = Severity.WARNING, "A skill takes no requests that are far from its own."
    NEAR_DUPLICATE = Severity.WARNING, "No two skills have nearly the same description."
    COPY_IN_ANOTHER_ROOT = (
        Severity.ERROR,
        "No skill is described as one of another root is; a copy takes its original's requests.",
    )

    @property
    def code(self) -> str:
        """Names the rule in reports, for filters; stable."""
        return self.name.lower().replace("_", "-")

    @property
    def summary(self) -> str:
        return self.value[1]

    def breach(self, path: Path, line: int, message: str) -> Diagnostic:
        """A diagnostic for a breach; ``message`` is one sentence that says what to do."""
        return Diagnostic(path, line, self.value[0], self.code, message)
