"""router demo."""

from __future__ import annotations

from pathlib import Path

from cli.results import Run


def test_the_demo_is_a_table_for_people_and_leaves_nothing_behind(run: Run, tmp_path: Path) -> None:
    lines = run("demo").stdout.splitlines()
    assert lines[0].split() == ["request", "decision", "skills", "stage", "confidence", "ms"]
    assert not (tmp_path / "state").exists()
