"""What a command that stays sets for its process, and a router does not for its host's."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

import pytest
from cascade import SQUASH, router_over, some_skills

from router.cli.process import SWITCH_SECONDS

SERVING = """
import gc, sys
usual = gc.get_threshold()
from router.cli.process import ready_to_serve, start_quickly
start_quickly()
print(gc.get_threshold()[0] > usual[0])
ready_to_serve()
print(gc.get_freeze_count() > 0, gc.get_threshold() == usual, round(sys.getswitchinterval(), 9))
"""


def settings_of_the_process() -> tuple[object, ...]:
    return gc.get_freeze_count(), gc.get_threshold(), gc.isenabled(), sys.getswitchinterval()


def test_a_command_that_stays_leaves_what_is_loaded_out_of_collections() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SERVING], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "True", "True", str(SWITCH_SECONDS)]


ENDING = """
import atexit, gc
atexit.register(lambda: print(gc.get_freeze_count() > 0))
from router.cli.process import start_quickly
start_quickly()
"""


def test_a_command_that_ends_looks_for_no_garbage() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ENDING], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True"]


async def test_a_router_sets_nothing_for_the_process_of_its_host(tmp_path: Path) -> None:
    before = settings_of_the_process()
    skills = some_skills(tmp_path / "skills", "git", "testing")
    async with router_over(skills, tmp_path / "state") as router, router.manager.watch():
        await router.route(SQUASH)
        (skills / "testing" / "SKILL.md").unlink()
        await router.reload()
        assert settings_of_the_process() == before


INTERRUPTED = """
import functools, os, sys

where, module = sys.argv.pop(1).split(":")

def interrupt(*_):
    os.kill(os.getpid(), 2)

class Interrupts:
    # sends Ctrl-C when a module is about to be imported, or when the next class is made

    def find_spec(self, name, path=None, target=None):
        if name != module:
            return
        if where == "class":
            functools.cached_property.__set_name__ = interrupt
        else:
            interrupt()

sys.meta_path.insert(0, Interrupts())
from router.cli import main
main()
"""


@pytest.mark.parametrize(
    "place",
    [
        "import:signal",
        "import:router.cli.process",
        "import:typer",
        "class:typer",
        "import:router.settings.settings",
        "class:router.settings.settings",
        "import:numpy",
    ],
)
def test_ctrl_c_while_libraries_are_imported_ends_quietly(place: str) -> None:
    """Python 3.11 makes another exception of one that comes while a class is made."""
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, place, "route", "commit my changes"],
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def test_importing_the_package_for_a_command_imports_none_of_its_rooms() -> None:
    code = "import router.cli, sys; print(sorted(m for m in sys.modules if m.startswith('router')))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['router', 'router.cli']"


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_closed_standard_stream_is_as_an_empty_one(closed: int) -> None:
    asked = ["skills", "list"] if closed else ["route", "-"]
    command = [sys.executable, "-m", "router", *asked]
    code = f"import os; os.close({closed}); os.execv({sys.executable!r}, {command!r})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert done.returncode == (0 if closed else 2)


def test_a_working_directory_that_is_deleted_is_named_as_the_fault() -> None:
    code = (
        "import os, sys, tempfile; here = tempfile.mkdtemp(); os.chdir(here); os.rmdir(here); "
        "from router.cli.app import app; app(['skills', 'list'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "error: the working directory has been deleted\n")
