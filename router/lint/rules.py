"""The rules of the linter: a stable code, how bad a breach is, and what the rule asks for.

What the format asks for is checked when a file is read and reported by diagnostics of its own; the
rules here are about how well and how safely a skill can be routed to. What deceives a reader or a
router is an ``ERROR``; what makes a skill harder to find is a ``WARNING``.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from router.skills.diagnostics import Diagnostic, Severity


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule.

    Attributes:
        code: names the rule in reports, for filters; stable.
        severity: how bad a breach is.
        summary: what the rule asks for, in one sentence.
    """

    code: str
    severity: Severity
    summary: str

    def breach(self, path: Path, line: int, message: str) -> Diagnostic:
        """The report of a breach; ``message`` is one sentence that names the way out."""
        return Diagnostic(path, line, self.severity, self.code, message)


NO_WHEN: Final = Rule(
    "no-when", Severity.WARNING, "A description says when to use the skill, not only what it does."
)
SHORT_DESCRIPTION: Final = Rule(
    "short-description", Severity.WARNING, "A description has enough words to route on."
)
KEYWORD_STUFFING: Final = Rule(
    "keyword-stuffing", Severity.WARNING, "A skill is described in sentences, not in keywords."
)
LONG_BODY: Final = Rule("long-body", Severity.WARNING, "The instructions have at most 500 lines.")
HIDDEN_CHARACTER: Final = Rule(
    "hidden-character", Severity.ERROR, "A reader sees every character that a model reads."
)
HIDDEN_CHARACTER_IN_BODY: Final = Rule(
    "hidden-character-in-body",
    Severity.WARNING,
    "The instructions hold no invisible characters, which most often got there by accident.",
)
MIXED_SCRIPT: Final = Rule(
    "mixed-script",
    Severity.ERROR,
    "No letter of one script poses as a letter of another one.",
)
ROUTER_INSTRUCTION: Final = Rule(
    "router-instruction",
    Severity.ERROR,
    "A description describes the skill; it gives whoever chooses among skills no orders.",
)
CLAIMS_EVERYTHING: Final = Rule(
    "claims-everything", Severity.WARNING, "A skill does not claim every request for itself."
)
SHELL_COMMAND: Final = Rule(
    "shell-command",
    Severity.ERROR,
    "A description holds no command that runs what it downloads or decodes.",
)
SHELL_COMMAND_IN_BODY: Final = Rule(
    "shell-command-in-body",
    Severity.WARNING,
    "The instructions run nothing that was downloaded or decoded in the same command.",
)
ENCODED_TEXT: Final = Rule("encoded-text", Severity.ERROR, "A description holds no encoded text.")
ENCODED_TEXT_IN_BODY: Final = Rule(
    "encoded-text-in-body", Severity.WARNING, "The instructions hold no long encoded text."
)
LOCKED_ARCHIVE: Final = Rule(
    "locked-archive",
    Severity.ERROR,
    "A description leads to no archive whose password keeps scanners out.",
)
LOCKED_ARCHIVE_IN_BODY: Final = Rule(
    "locked-archive-in-body",
    Severity.WARNING,
    "The instructions unpack no archive whose password keeps scanners out.",
)
STRAY_EXAMPLE: Final = Rule(
    "stray-example", Severity.WARNING, "A skill is found first for its own example requests."
)
COLLISION: Final = Rule(
    "collision", Severity.WARNING, "No two skills take each other's example requests."
)
GREEDY: Final = Rule(
    "greedy", Severity.WARNING, "A skill takes no requests that are far from its own."
)
NEAR_DUPLICATE: Final = Rule(
    "near-duplicate", Severity.WARNING, "No two skills have nearly the same description."
)
COPY: Final = Rule(
    "copy-in-another-root",
    Severity.ERROR,
    "No skill is described as one of another root is; a copy takes its original's requests.",
)

RULES: Final = tuple(value for value in tuple(globals().values()) if isinstance(value, Rule))
