"""The house: imports point downward only, and every public name is there."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

import router

PACKAGE = Path(router.__file__).parent

# Lower floors first; a module may import its own floor and those below it.
FLOORS = (
    (
        "errors",
        "given",
        "result",
        "request",
        "text",
        "settings",
        "version",
        "numeric",
        "plain_json",
        "storage",
        "bounded",
        "concurrency",
        "web",
    ),
    ("skills", "events", "tracing"),
    ("retrieval", "llm", "tools"),
    ("stages", "lint", "memory", "learning", "enrichment"),
    ("cluster",),
    ("components", "ranking"),
    ("decision",),
    ("runtime",),
    ("router",),
    ("sync", "sync_parts"),
    ("evaluation", "service", "adapters"),
    ("mcp",),
    ("http",),
    ("cli",),
)
FLOOR_OF = {room: number for number, floor in enumerate(FLOORS) for room in floor}

MEMORY_FLOORS = (
    ("model",),
    ("texts", "query", "conformance"),
    ("stores", "files"),
    ("services", "layers"),
    ("recall",),
    ("contexts",),
    ("records",),
    ("curation",),
    ("parts",),
    ("memory",),
    ("sync_memory",),
)
"""The same inside ``router/memory``."""


def _upward(
    floors: Sequence[Sequence[str]], imports: Iterable[tuple[str, str]]
) -> set[tuple[str, str]]:
    """The imports that lead to a higher floor."""
    floor_of = {room: number for number, floor in enumerate(floors) for room in floor}
    return {pair for pair in imports if floor_of[pair[0]] < floor_of[pair[1]]}


def _imports(*inside: str) -> list[tuple[str, str]]:
    """(importing room, imported room) for every import within the package, or within one of its
    subpackages, wherever it stands."""
    here = ("router", *inside)
    found = []
    for path in PACKAGE.joinpath(*inside).rglob("*.py"):
        parts = path.relative_to(PACKAGE.joinpath(*inside)).with_suffix("").parts
        if parts in (("__init__",), ("__main__",)) or parts[0] == "_shipped_skills":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: relative import"
                names = [node.module or ""]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            for name in names:
                room = tuple(name.split("."))
                assert name != "router", f"{path}: a room imports the whole house"
                if room[: len(here)] == here:
                    found.append((parts[0], room[len(here)]))
    return found


def test_every_room_stands_on_a_floor() -> None:
    assert {room for pair in _imports() for room in pair} <= set(FLOOR_OF)


def test_imports_point_downward_only() -> None:
    assert _upward(FLOORS, _imports()) == set()


def test_imports_within_memory_point_downward_only() -> None:
    assert _upward(MEMORY_FLOORS, _imports("memory")) == set()


def test_memory_and_the_stages_do_not_know_each_other() -> None:
    assert {("memory", "stages"), ("stages", "memory")} & set(_imports()) == set()


def test_retrieval_and_llm_do_not_know_each_other() -> None:
    assert {("retrieval", "llm"), ("llm", "retrieval")} & set(_imports()) == set()


def test_importing_the_package_leaves_the_heavy_libraries_alone() -> None:
    code = (
        "import router, sys; print(sorted(set(sys.modules) & "
        "{'chromadb', 'openai', 'ollama', 'numpy', 'typer', 'rich', 'yaml'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.strip() == "[]"


def test_the_public_names_are_those_that_can_be_imported() -> None:
    assert sorted(router.__all__) == sorted(router._MODULES)


def test_shells_and_notebooks_complete_the_public_names() -> None:
    assert set(router.__all__) <= set(dir(router))


@pytest.mark.parametrize("name", router.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert hasattr(router, name)


def test_the_public_names_need_no_extra() -> None:
    extras = ["jinja2", "mcp", "mcp_types", "prometheus_client", "psycopg", "redis", "starlette"]
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({extras!r}))\n"
        "import router; [getattr(router, name) for name in router.__all__]"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=os.environ)
