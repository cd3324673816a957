"""Findings as SARIF 2.1.0, the format in which code hosts take them: OASIS Standard, March 2020.

Only what such hosts read: one run, the rules that were broken, a place for each finding. Paths
below the working directory, a checkout's root, are given relative to it; others as absolute URIs.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from router.lint.rules import Rule
from router.skills.diagnostics import Diagnostic, Severity

SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"

_LEVEL: Final = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}
_SUMMARY: Final = {rule.code: rule.summary for rule in Rule}
_FORMAT_SUMMARY: Final = "The file follows the Agent Skills format."
"""The summary of each of the reader's own diagnostics; their messages say what is wrong."""


def to_sarif(findings: Sequence[Diagnostic], *, root: Path, version: str) -> dict[str, Any]:
    """One SARIF log. Paths are given relative to ``root``; ``version`` is this package's."""
    codes = sorted({finding.code for finding in findings})
    rules = [
        {
            "id": code,
            "shortDescription": {"text": _SUMMARY.get(code, _FORMAT_SUMMARY)},
        }
        for code in codes
    ]
    place = {code: number for number, code in enumerate(codes)}
    driver = {"name": "cascade-router", "version": version, "rules": rules}
    return {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "columnKind": "unicodeCodePoints",
                "results": [_result(finding, place[finding.code], root) for finding in findings],
            }
        ],
    }


def _result(finding: Diagnostic, rule: int, root: Path) -> dict[str, Any]:
    location: dict[str, Any] = {"artifactLocation": {"uri": _uri(finding.path, root)}}
    if finding.line > 0:  # SARIF counts from 1; a finding about the whole file names no region
        location["region"] = {"startLine": finding.line}
    return {
        "ruleId": finding.code,
        "ruleIndex": rule,
        "level": _LEVEL[finding.severity],
        "message": {"text": finding.message},
        "locations": [{"physicalLocation": location}],
    }


def _uri(path: Path, root: Path) -> str:
    if path.is_relative_to(root):
        return quote(path.relative_to(root).as_posix(), errors="replace")
    return path.as_uri()
