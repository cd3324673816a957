"""What the documents show is what happens: their sessions are run and compared."""

from __future__ import annotations

import doctest
import operator
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from router import Settings
from router.settings.trust import leaves

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def _clean_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # away from this repository's own skills folder
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("SERENA_HOME", raising=False)
    monkeypatch.setenv("ROUTER_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("ROUTER_MEMORY__DIRECTORY", str(tmp_path / "memory"))
    # A busy machine keeps these; whoever reads the documents has the default ones.
    monkeypatch.setenv("ROUTER_MEMORY__LAYER_DEADLINE_SECONDS", "30")
    monkeypatch.setenv("ROUTER_MEMORY__DEADLINE_SECONDS", "60")


@pytest.mark.usefixtures("_clean_machine")
@pytest.mark.parametrize(
    ("file", "steps"), [("README.md", 20), ("docs/memory.md", 32), ("docs/settings.md", 3)]
)
def test_the_python_that_a_document_shows_gives_what_it_shows(file: str, steps: int) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    names: dict[str, object] = {}
    attempted = 0
    for block in re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        if block.startswith(">>> "):
            test = doctest.DocTestParser().get_doctest(block, names, file, file, 0)
            outcome = doctest.DocTestRunner(verbose=False).run(test, clear_globs=False)
            names.update(test.globs)
            assert outcome.failed == 0
            attempted += outcome.attempted
        elif "async with" not in block:
            exec(block, names)  # noqa: S102 - our own documents
    assert attempted == steps


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


def _links() -> list[tuple[str, str]]:
    """(document, relative link) for every link in the documents that is no address."""
    documents = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [
        (file.relative_to(ROOT).as_posix(), link)
        for file in documents
        for link in re.findall(r"\]\(((?!http)[^)#]+)\)", file.read_text(encoding="utf-8"))
    ]


@pytest.mark.parametrize(("file", "link"), sorted(set(_links())))
def test_every_link_of_a_document_leads_somewhere(file: str, link: str) -> None:
    assert ((ROOT / file).parent / link).exists()


def test_every_setting_stands_in_the_documents_with_its_default() -> None:
    rows = re.findall(
        r"^\| `([\w.]+)` \| ([^|]+) \|", (ROOT / "docs/settings.md").read_text(), re.M
    )
    told, computed = dict(rows), {"state_dir": "user's cache folder"}
    described = (ROOT / "docs/memory.md").read_text(encoding="utf-8")
    of_memory = [path[1:] for path, _ in leaves(Settings) if path[0] == "memory"]
    assert [name for path in of_memory if f"`{(name := '.'.join(path))}`" not in described] == []
    names = [".".join(path) for path, _ in leaves(Settings) if path[0] != "memory"]
    assert sorted(told) == sorted(names)
    assert told == {name: computed.get(name) or _shown_default(name) for name in names}


def _shown_default(name: str) -> str:
    value = operator.attrgetter(name)(Settings())
    if isinstance(value, tuple):
        value = ", ".join(map(str, value))
    return (
        "–" if value in (None, "") else str(value).lower() if value in (True, False) else str(value)
    )
