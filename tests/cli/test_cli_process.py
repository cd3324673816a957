"""What a command that stays sets for its process, and a router does not for its host's."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path

from cascade import SQUASH, router_over, some_skills

from router.cli.process import SWITCH_SECONDS

SERVING = """
import gc, sys
from router.cli.process import ready_to_serve
ready_to_serve()
print(gc.get_freeze_count() > 0, round(sys.getswitchinterval(), 9))
"""


def settings_of_the_process() -> tuple[object, ...]:
    return gc.get_freeze_count(), gc.get_threshold(), gc.isenabled(), sys.getswitchinterval()


def test_a_command_that_stays_leaves_what_is_loaded_out_of_collections() -> None:
    done = subprocess.run(
        [sys.executable, "-c", SERVING], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", str(SWITCH_SECONDS)]


async def test_a_router_sets_nothing_for_the_process_of_its_host(tmp_path: Path) -> None:
    before = settings_of_the_process()
    skills = some_skills(tmp_path / "skills", "git", "testing")
    async with router_over(skills, tmp_path / "state") as router, router.manager.watch():
        await router.route(SQUASH)
        (skills / "testing" / "SKILL.md").unlink()
        await router.reload()
        assert settings_of_the_process() == before
