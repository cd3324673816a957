"""``router skills watch``: a real process that follows a real folder."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from cascade import SHIPPED, some_skills

from router.cli import watch


class Watcher:
    """The command, and what it says line by line."""

    def __init__(self, skills: Path, state: Path) -> None:
        self._process = subprocess.Popen(
            [
                *(sys.executable, "-m", "router", "skills", "watch", "--json", "--no-llm"),
                *("--skills", str(skills), "--request", "stash my changes"),
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"ROUTER_STATE_DIR": str(state), "PYTHONPATH": str(SHIPPED.parent)},
        )

    def next(self, event: str) -> dict[str, Any]:
        """The next line, which must be about this event."""
        assert self._process.stdout is not None
        line: dict[str, Any] = json.loads(self._process.stdout.readline())
        assert line["event"] == event
        return line

    def interrupt(self) -> int:
        self._process.send_signal(signal.SIGINT)
        self._process.communicate(timeout=120)
        return self._process.returncode

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    return some_skills(tmp_path / "skills", "git", "testing")


@pytest.fixture
def watcher(skills: Path, tmp_path: Path) -> Iterator[Watcher]:
    watcher = Watcher(skills, tmp_path / "state")
    yield watcher
    watcher.kill()


def test_a_saved_skill_is_reported_with_what_it_did(watcher: Watcher, skills: Path) -> None:
    assert watcher.next("watching")["skills"] == 2
    assert watcher.next("routed")["skills"] == ["git"]

    manifest = skills / "git" / "SKILL.md"
    manifest.write_text(manifest.read_text("utf-8") + "\nOne more line.\n", "utf-8")
    changed = watcher.next("changed")
    assert (changed["changed"], changed["added"], changed["removed"]) == (["git"], [], [])
    assert (changed["moved"], changed["warnings"]) == ([], [])
    assert datetime.fromisoformat(changed["time"]).tzinfo is not None
    assert changed["encoded"] == 1
    assert watcher.next("routed")["skills"] == ["git"]

    manifest.write_text("---\nname: git\n", "utf-8")
    broken = watcher.next("changed")
    assert str(manifest) in broken["failed"][0]
    assert (broken["changed"], broken["skills"], broken["encoded"]) == ([], 2, 0)
    assert watcher.next("routed")["skills"] == ["git"]

    (skills / "testing").rename(skills / "trying")
    moved = watcher.next("changed")
    assert moved["moved"] == ["testing"]
    assert ["differs from its folder, 'trying'" in found for found in moved["warnings"]] == [True]
    assert watcher.next("routed")["skills"] == ["git"]

    copytree(skills / "trying", skills / "zz")
    shadowed = watcher.next("changed")
    assert shadowed["shadowed"] == ["testing"]
    [told] = shadowed["warnings"]
    assert told.startswith(str(skills / "zz" / "SKILL.md"))
    assert f"the skill 'testing' at {skills / 'trying'}" in told
    assert watcher.next("routed")["skills"] == ["git"]

    assert watcher.interrupt() == 130


def changed(**lists: list[str]) -> dict[str, Any]:
    names = ("added", "changed", "removed", "moved", "shadowed", "failed", "mended", "warnings")
    return {
        "event": "changed",
        **{name: [] for name in names},
        "skills": 2,
        "encoded": 0,
        **lists,
    }


def test_a_change_is_one_line_with_its_time_and_a_line_for_each_fault(
    capsys: pytest.CaptureFixture[str],
) -> None:
    row = changed(changed=["git"], moved=["sql"], warnings=["a/SKILL.md:2: warning: odd"])
    watch._tell({**row, "encoded": 1}, as_json=False)
    first, second = capsys.readouterr().out.splitlines()
    assert re.fullmatch(
        r"\d\d:\d\d:\d\d  1 changed \(git\); 1 moved \(sql\); 2 skills now; 1 encoded", first
    )
    assert second == "          a/SKILL.md:2: warning: odd"


def test_many_names_and_faults_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"skill-{number:03}" for number in range(500)]
    watch._tell(changed(added=names, failed=names), as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(
        "500 added (skill-000, skill-001, skill-002, skill-003, skill-004 and 495 more); "
        "2 skills now"
    )
    assert lines[-1] == "          and 490 more: router skills check"
    assert len(lines) == 12
