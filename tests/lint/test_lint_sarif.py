"""SARIF 2.1.0: the properties that the standard requires, and places that code hosts find."""

from __future__ import annotations

import json
from pathlib import Path

from router.lint.rules import Rule
from router.lint.sarif import to_sarif
from router.skills.diagnostics import Diagnostic, Severity

ROOT = Path("/repo")
FINDINGS = (
    Rule.NO_WHEN.breach(ROOT / "skills/a b/SKILL.md", 3, "says what but not when"),
    Diagnostic(ROOT / "skills/c/SKILL.md", 0, Severity.ERROR, "not-loaded", "the file is empty"),
    Diagnostic(Path("/else/SKILL.md"), 5, Severity.INFO, "unknown-key", "no key 'x'"),
)


def test_the_log_has_what_the_standard_requires() -> None:
    log = to_sarif(FINDINGS, root=ROOT, version="1.2.3")
    assert log["version"] == "2.1.0"
    assert log["$schema"].endswith("sarif-2.1.0.json")
    [run] = log["runs"]
    driver = run["tool"]["driver"]
    assert (driver["name"], driver["version"]) == ("cascade-router", "1.2.3")
    assert len({rule["id"] for rule in driver["rules"]}) == len(driver["rules"])
    for result in run["results"]:
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        assert result["level"] in ("none", "note", "warning", "error")
        assert result["message"]["text"]
        [location] = result["locations"]
        assert location["physicalLocation"]["artifactLocation"]["uri"]
    assert json.loads(json.dumps(log)) == log


def test_every_rule_explains_itself() -> None:
    log = to_sarif(FINDINGS, root=ROOT, version="1")
    rules = {rule["id"]: rule for rule in log["runs"][0]["tool"]["driver"]["rules"]}
    assert rules["no-when"]["shortDescription"]["text"] == Rule.NO_WHEN.summary
    assert rules["unknown-key"]["shortDescription"]["text"].endswith(".")
    assert len({rule.code for rule in Rule}) == len(Rule)


def test_places_are_relative_to_the_root_and_lines_count_from_one() -> None:
    results = to_sarif(FINDINGS, root=ROOT, version="1")["runs"][0]["results"]
    places = [result["locations"][0]["physicalLocation"] for result in results]
    assert places == [
        {"artifactLocation": {"uri": "skills/a%20b/SKILL.md"}, "region": {"startLine": 3}},
        {"artifactLocation": {"uri": "skills/c/SKILL.md"}},
        {"artifactLocation": {"uri": "file:///else/SKILL.md"}, "region": {"startLine": 5}},
    ]
    assert [result["level"] for result in results] == ["warning", "error", "note"]


def test_a_log_without_findings_is_still_a_run() -> None:
    [run] = to_sarif((), root=ROOT, version="1")["runs"]
    assert (run["results"], run["tool"]["driver"]["rules"]) == ([], [])
