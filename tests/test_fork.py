"""Forked processes: what was not used before the fork works, what was used says so at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from cascade import SHIPPED, SQUASH, WAIT_SECONDS

PROGRAM = f"""
import asyncio, os, signal, sys
from pathlib import Path
from router import ForkedProcess, SemanticRouter, Settings, SyncMemory, SyncSemanticRouter

SQUASH = {SQUASH!r}
settings = Settings(
    state_dir=sys.argv[2],
    llm={{"enabled": False}},
    memory={{"directory": sys.argv[2] + "/memory", "project_directory": sys.argv[2]}},
)

def in_child(work):
    child = os.fork()
    if child == 0:
        signal.alarm({int(WAIT_SECONDS)})  # a child that hangs is killed, which the test sees
        code = 3
        try:
            print(work(), flush=True)
            code = 0
        except ForkedProcess as error:
            print("ForkedProcess:", error, flush=True)
            code = 0
        finally:
            os._exit(code)
    assert os.waitpid(child, 0)[1] == 0, "the child failed or hung"

def unused():
    router = SyncSemanticRouter(settings, roots=[Path({str(SHIPPED)!r})])
    in_child(lambda: router.route(SQUASH).selected_skills)
    print(router.route(SQUASH).selected_skills)
    router.close()

def used():
    with SyncSemanticRouter(settings, roots=[Path({str(SHIPPED)!r})]) as router:
        router.route(SQUASH)
        in_child(lambda: router.route(SQUASH))
        in_child(router.close)
        print(router.route(SQUASH).stage.value)

def asynchronous():
    async def main():
        async with SemanticRouter(settings, roots=[Path({str(SHIPPED)!r})]) as router:
            await router.route(SQUASH)
            def child():
                asyncio._set_running_loop(None)
                return asyncio.run(router.route(SQUASH))
            in_child(child)
            def close():
                asyncio._set_running_loop(None)
                return asyncio.run(router.aclose())
            in_child(close)
            print((await router.route(SQUASH)).stage.value)
    asyncio.run(main())

def memory():
    with SyncMemory(settings) as kept:
        kept.save("The deploy key expires in March.")
        in_child(lambda: kept.recall("deploy key"))

globals()[sys.argv[1]]()
"""
ERROR = "ForkedProcess: this {} was used before the process forked, and cannot be used in the child"


@pytest.mark.parametrize(
    ("case", "said"),
    [
        ("unused", ["('git',)", "('git',)"]),
        ("used", [ERROR.format("router"), "None", "exact"]),
        ("asynchronous", [ERROR.format("router"), "None", "exact"]),
        ("memory", [ERROR.format("memory")]),
    ],
)
def test_a_child_answers_or_says_at_once_that_it_cannot(
    tmp_path: Path, case: str, said: list[str]
) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PROGRAM, case, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=5 * WAIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [line.partition(": use it")[0] for line in done.stdout.splitlines()]
    assert lines == said
