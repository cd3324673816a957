"""What the documents show is what happens: their sessions are run and compared."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_readmes_python_session_gives_what_it_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # away from this repository's own skills folder
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ROUTER_STATE_DIR", str(tmp_path / "state"))
    session = re.search(r"```python\n(>>> .*?)```", README, re.DOTALL)
    assert session is not None
    test = doctest.DocTestParser().get_doctest(session.group(1), {}, "README", "README.md", 0)
    outcome = doctest.DocTestRunner(verbose=False).run(test)
    assert (outcome.attempted, outcome.failed) == (9, 0)


def test_the_readme_shows_what_the_demo_prints(tmp_path: Path) -> None:
    shown = re.search(r"\$ router demo\n(.*?)```", README, re.DOTALL)
    assert shown is not None
    done = subprocess.run(
        [sys.executable, "-m", "router", "demo"],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT), "COLUMNS": "100"},
    )
    assert _without_noise(done.stdout) == _without_noise(shown.group(1))


def _without_noise(table: str) -> list[list[str]]:
    """The words of each line without milliseconds, and with confidences cut to tenths: the last
    digit may differ between processors."""
    return [
        re.sub(r"(\d\.\d)\d\s+\d+\.\d+$", r"\1", line.rstrip()).split()
        for line in table.splitlines()
        if not line.startswith("─")
    ]


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(((?!http)[^)#]+)\)", README))))
def test_every_link_of_the_readme_leads_somewhere(link: str) -> None:
    assert (ROOT / link).exists()
