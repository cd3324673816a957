"""The wheel, which a user's machine gets, and the source distribution."""

from __future__ import annotations

import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from email.message import Message
from email.parser import BytesParser
from pathlib import Path

import pytest

pytest.importorskip("hatchling", reason="the wheel is built with the build tool of pyproject.toml")

PROJECT = Path(__file__).parents[1]


def _built(target: str, place: Path) -> Path:
    command = [
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "--target",
        target,
        "--directory",
        str(place),
    ]
    subprocess.run(command, cwd=PROJECT, check=True, capture_output=True)
    (file,) = place.glob("cascade_router-*")
    return file


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[zipfile.ZipFile]:
    with zipfile.ZipFile(_built("wheel", tmp_path_factory.mktemp("wheel"))) as wheel:
        yield wheel


def _files(root: Path) -> set[str]:
    return {
        file.relative_to(root).as_posix()
        for file in root.rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }


def test_it_holds_the_package_with_its_types_and_the_shipped_skills_and_nothing_else(
    wheel: zipfile.ZipFile,
) -> None:
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    package = {f"router/{file}" for file in _files(PROJECT / "router")}
    skills = {f"router/_shipped_skills/{file}" for file in _files(PROJECT / "skills")}
    assert names == package | skills
    assert "router/py.typed" in names
    assert len([name for name in skills if name.endswith("/SKILL.md")]) >= 12


def test_its_metadata_name_the_command_the_licence_and_the_least_python(
    wheel: zipfile.ZipFile,
) -> None:
    (info,) = {name.split("/")[0] for name in wheel.namelist() if ".dist-info/" in name}
    assert "router = router.cli:main" in wheel.read(f"{info}/entry_points.txt").decode()
    metadata: Message = BytesParser().parsebytes(wheel.read(f"{info}/METADATA"))
    assert metadata["Name"] == "cascade-router"
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"


def test_the_installed_package_finds_its_skills(wheel: zipfile.ZipFile, tmp_path: Path) -> None:
    wheel.extractall(tmp_path / "site")  # noqa: S202 - we have just built it
    code = "from router.skills.discovery import shipped_skills_root as root; print(root())"
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path / "site")},
        check=True,
        capture_output=True,
        text=True,
    )
    assert done.stdout.strip() == str(tmp_path / "site" / "router" / "_shipped_skills")


def test_the_source_distribution_holds_what_its_readme_and_its_tests_speak_of(
    tmp_path: Path,
) -> None:
    with tarfile.open(_built("sdist", tmp_path)) as source:
        names = {name.partition("/")[2] for name in source.getnames()}
    spoken_of = ("router", "skills", "tests", "docs", "deploy", "examples")
    wanted = {f"{folder}/{file}" for folder in spoken_of for file in _files(PROJECT / folder)}
    wanted |= {"Makefile", "Dockerfile", "compose.yaml", "README.md", "LICENSE", "NOTICE"}
    wanted |= {"benchmarks/run.py", "benchmarks/RESULTS.md", "benchmarks/results/intents.json"}
    assert wanted - names == set()
    assert not any(name.startswith(("benchmarks/runs/", ".venv")) for name in names)
