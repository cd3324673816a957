"""A small set of skills, and a machine on which nothing else is configured."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cascade import own_machine, write_skill
from cli.results import Run
from served import environment_of, started
from typer.testing import CliRunner, Result

from router.cli.app import app

SKILLS = {
    "git": (
        "Works with Git history and branches: commits, merges, rebases, conflicts, tags. Use when "
        "the user wants to commit, push, squash or undo something.",
        "git, commit, branch, merge conflict, rebase, push",
    ),
    "debugging": (
        "Finds the root cause of wrong behaviour, crashes and tracebacks. Use when something "
        "fails, hangs or gives wrong results, or a bug must be fixed.",
        "bug, crash, traceback, stack trace, fix, error",
    ),
    "testing": (
        "Writes and maintains automated tests, fixtures and fakes. Use for unit tests, coverage "
        "and flaky tests.",
        "unit test, pytest, fixture, coverage, flaky",
    ),
    "data-analysis": (
        "Explores and plots tabular data from CSV, Excel and Parquet files. Use for statistics, "
        "charts, pivots and cleaning of data.",
        "csv, dataframe, plot, chart, statistics",
    ),
    "writer": (
        "Drafts and edits general prose such as emails, announcements and blog posts.",
        "email, blog post, announcement, letter, prose",
    ),
}


@pytest.fixture(scope="session")
def skills(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of five skills that no test changes."""
    root = tmp_path_factory.mktemp("skills")
    for name, (description, keywords) in SKILLS.items():
        hints = f'metadata:\n  routing-keywords: "{keywords}"'
        write_skill(root, name, repr(description), hints)
    return root


@pytest.fixture(autouse=True)
def clean_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_machine(tmp_path, monkeypatch)
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setenv("ROUTER_MEMORY__DIRECTORY", str(tmp_path / "memory"))
    monkeypatch.delenv("SERENA_HOME", raising=False)  # under HOME then


@pytest.fixture
def run() -> Run:
    """Runs a command in this process."""

    def invoke(*arguments: object, stdin: str | bytes | None = None) -> Result:
        return CliRunner().invoke(app, [str(argument) for argument in arguments], input=stdin)

    return invoke


@pytest.fixture
def route(run: Run, skills: Path) -> Run:
    """Routes over the five skills."""

    def invoke(*arguments: object, stdin: str | bytes | None = None) -> Result:
        return run("route", *arguments, "--skills", skills, stdin=stdin)

    return invoke


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Deadlines of memory that a busy machine keeps, and a scope to save in."""
    monkeypatch.setenv("ROUTER_MEMORY__LAYER_DEADLINE_SECONDS", "30")
    monkeypatch.setenv("ROUTER_MEMORY__DEADLINE_SECONDS", "60")
    monkeypatch.setenv("ROUTER_MEMORY__SERVICE__PROBE_SECONDS", "60")
    monkeypatch.setenv("ROUTER_MEMORY__USER", "ada")
    monkeypatch.setenv("ROUTER_MEMORY__PROJECT", "shop")


@pytest.fixture
def memory(run: Run, patient: None) -> Run:
    """Runs a memory command that must succeed, as Ada in the project shop."""

    def invoke(*arguments: object, stdin: str | bytes | None = None) -> Result:
        result = run("memory", *arguments, stdin=stdin)
        assert result.exit_code == 0, result.output
        return result

    return invoke


@pytest.fixture
def start() -> Callable[..., subprocess.Popen[bytes]]:
    """Starts a command in a process of its own, with three pipes."""

    def popen(*arguments: object) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "router", *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    return popen


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """The variables of a server's process."""
    return environment_of(tmp_path)


@pytest.fixture
def served(
    tmp_path: Path, environment: dict[str, str]
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A running server and its address."""
    with started(tmp_path, environment) as running:
        yield running
