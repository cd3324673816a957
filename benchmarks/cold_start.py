"""How long a command takes from nothing: the CPU seconds of whole processes.

For the shipped skills, and with ``--data FOLDER`` for the real skills in its ``skills/pool``, it
runs ``router route`` in a fresh process, first with an empty state folder and then, several times,
with what the first run has kept, Python's bytecode included: installed packages have it, whatever
``PYTHONDONTWRITEBYTECODE`` says here. The baseline is a process that imports numpy,
pydantic-settings and typer, which the command needs, and does nothing else. It prints user and
system time together, the least of the runs, because other programs on the machine only ever add to
it. A request is asked once, so that no cache answers.

    python benchmarks/cold_start.py [--data FOLDER] [--runs 5]
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

BASELINE = ["-c", "import numpy, pydantic_settings, typer"]


def route(request: str, skills: Path | None) -> list[str]:
    """The arguments of Python for one command."""
    command = ["-m", "router", "route", request, "--json"]
    return command if skills is None else [*command, "--skills", str(skills)]


def cpu_seconds(state: Path, arguments: list[str]) -> float:
    """CPU time of one process of Python."""
    environment = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("ROUTER_") and name != "PYTHONDONTWRITEBYTECODE"
    }
    environment |= {
        "ROUTER_STATE_DIR": str(state),
        "ROUTER_LLM__ENABLED": "false",
        "PYTHONPYCACHEPREFIX": str(state / "bytecode"),
    }
    command = [sys.executable, *arguments]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, check=True, capture_output=True, cwd=state)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--runs", type=int, default=5)
    arguments = parser.parse_args()
    places: list[tuple[str, Path | None]] = [("shipped skills", None)]
    if arguments.data is not None:
        places.append(("skills/pool", arguments.data / "skills" / "pool"))
    for name, skills in places:
        with tempfile.TemporaryDirectory() as folder:
            state = Path(folder)
            cold = cpu_seconds(state, route("rebase my branch onto main", skills))
            runs = [
                (
                    cpu_seconds(state, BASELINE),
                    cpu_seconds(state, route(f"plot column {number} of the table", skills)),
                )
                for number in range(arguments.runs)
            ]
            imports, warm = map(min, zip(*runs, strict=True))
        print(
            f"{name}: first {cold:.2f} s, warm {warm:.2f} s of CPU;"
            f" {warm / imports:.1f} times the imports of libraries, {imports:.2f} s"
        )


if __name__ == "__main__":
    main()
