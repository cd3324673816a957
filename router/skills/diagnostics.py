"""What is odd about a skill, as data: where, how bad, which kind, and a sentence for a person.

A diagnostic never stops anything. What could not be loaded is reported by a diagnostic of severity
``ERROR``; everything else was loaded, and the diagnostic says how it was understood.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from router.errors import ManifestError
from router.plain_json import PlainJson

MAX_DIAGNOSTICS: Final = 100
"""Oddities reported for one file; the last one says that there are more."""


class Severity(StrEnum):
    INFO = "info"
    """Read as meant; another reader of the format may refuse it."""
    WARNING = "warning"
    """Read, but something was guessed, cut, replaced or left out."""
    ERROR = "error"
    """Not loaded."""


@dataclass(frozen=True, slots=True)
class Diagnostic(PlainJson):
    """One oddity of one file or folder.

    Attributes:
        path: the file or folder.
        line: 1-based line; 0 when it is about the whole file.
        severity: how bad it is.
        code: the kind of oddity, such as ``unknown-key``; stable, for filters.
        message: one sentence without the path.
    """

    path: Path
    line: int
    severity: Severity
    code: str
    message: str

    @classmethod
    def of_failure(cls, error: ManifestError) -> Diagnostic:
        """The report of a skill that could not be loaded."""
        return cls(error.path, error.line, Severity.ERROR, "not-loaded", error.reason)

    def __str__(self) -> str:
        place = f"{self.path}:{self.line}" if self.line else str(self.path)
        return f"{place}: {self.severity}: {self.message} [{self.code}]"


def in_order(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Diagnostics by path and line."""
    return sorted(found, key=lambda each: (each.path.parts, each.line))


class Report:
    """Collects what is odd about one file, up to ``MAX_DIAGNOSTICS``."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._found: list[Diagnostic] = []

    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """What was reported so far, in the order of the lines."""
        return tuple(sorted(self._found, key=lambda diagnostic: diagnostic.line))

    @property
    def is_full(self) -> bool:
        """Whether nothing further is reported."""
        return len(self._found) >= MAX_DIAGNOSTICS

    def info(self, line: int, code: str, message: str) -> None:
        """Report an oddity that left no doubt about the meaning."""
        self._add(line, Severity.INFO, code, message)

    def warn(self, line: int, code: str, message: str) -> None:
        """Report what was guessed, cut, replaced or left out."""
        self._add(line, Severity.WARNING, code, message)

    def _add(self, line: int, severity: Severity, code: str, message: str) -> None:
        if len(self._found) < MAX_DIAGNOSTICS - 1:
            self._found.append(Diagnostic(self.path, line, severity, code, message))
        elif len(self._found) == MAX_DIAGNOSTICS - 1:
            message = f"there are more oddities; the first {MAX_DIAGNOSTICS - 1} are reported"
            found = Diagnostic(self.path, line, Severity.WARNING, "more-oddities", message)
            self._found.append(found)


def short(text: str) -> str:
    """A text from a file as it is quoted in a message: escaped, on one line, cut to 60."""
    return repr(text if len(text) <= 60 else f"{text[:57]}...")
