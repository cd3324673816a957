"""The Dockerfile's steps as a plain install, where no base image can be fetched: the server runs as
the image's user, on a file system that it may only read, and passes the image's health check.

The dependencies are those of the tests. Where the tests themselves run unprivileged, so does the
server, and where mounts may not be changed, the file system stays as it is.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from cascade import SQUASH, some_skills

PROJECT: Final = Path(__file__).parents[1]
KEY: Final = "a-long-random-text-that-clients-show"
UID: Final = 10001


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that other users can reach, unlike pytest's own."""
    folder = Path(os.path.realpath("/var/tmp")) / f"router-deploy-{os.getpid()}"  # noqa: S108
    folder.mkdir(mode=0o755)
    yield folder
    shutil.rmtree(folder)


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile, each instruction with what follows it."""
    text = (PROJECT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = (line for line in text.splitlines() if line and not line.startswith("#"))
    return [(keyword, rest) for keyword, _, rest in (line.partition(" ") for line in lines)]


def install(place: Path) -> Path:
    """The first stage: the copied files alone are enough to build and install the package."""
    build, environment = place / "build", place / "opt"
    build.mkdir()
    for keyword, rest in instructions():
        if keyword == "COPY" and not rest.startswith("--from"):
            for name in rest.split()[:-1]:
                copy = shutil.copytree if (PROJECT / name).is_dir() else shutil.copy2
                copy(PROJECT / name, build / name)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    (packages,) = environment.glob("lib/python*/site-packages")
    (packages / "tests.pth").write_text("\n".join(p for p in sys.path if "site-packages" in p))
    interpreter = str(environment / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", interpreter, "install"]
    quick = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--ignore-installed"]
    subprocess.run([*pip, *quick, build], check=True, capture_output=True)
    return environment


@cache
def can_mount() -> bool:
    """Whether a process may have mounts of its own."""
    tried = subprocess.run(["/usr/bin/unshare", "--mount", "true"], capture_output=True)
    return tried.returncode == 0


def confined(command: list[str], home: Path) -> list[str]:
    """The command as the image's user, who may write to ``home`` alone."""
    if os.geteuid() != 0:
        return command
    # The interpreter of the tests may lie in a folder that only root can read.
    reads_all = ["--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search"]
    user = [f"--reuid={UID}", f"--regid={UID}", "--clear-groups", "--no-new-privs"]
    unprivileged = ["setpriv", *user, *reads_all, *command]
    if not can_mount():
        return unprivileged
    own = shlex.quote(str(home))
    read_only = f"mount --bind {own} {own} && mount -o remount,bind,ro / && cd {own}"
    return ["unshare", "--mount", "sh", "-c", f"{read_only} && exec {shlex.join(unprivileged)}"]


def test_the_image_s_steps_give_a_server_that_runs_unprivileged_and_is_healthy(
    place: Path,
) -> None:
    environment = install(place)
    home = place / "home"
    home.mkdir()
    if os.geteuid() == 0:
        os.chown(home, UID, UID)
    skills = some_skills(place / "skills", "git", "testing")
    last = dict(instructions())  # the second stage stands last
    here = {"/opt/router": str(environment), "/var/lib/router": str(home), "=/skills": f"={skills}"}

    def placed(text: str) -> str:
        for path, instead in here.items():
            text = text.replace(path, instead)
        return text

    variables = dict(word.split("=", 1) for word in shlex.split(placed(last["ENV"])))
    start = [*json.loads(placed(last["ENTRYPOINT"])), *json.loads(last["CMD"]), "--port", "0"]
    with subprocess.Popen(
        confined(start, home),
        cwd=home,
        env={"PATH": os.environ["PATH"], "SERVER_KEY": KEY, **variables},
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            assert server.stderr is not None
            line = server.stderr.readline()
            assert line.startswith("serving at http://0.0.0.0:"), line + server.stderr.read()
            port = line.rstrip().rpartition(":")[2]
            status = Path(f"/proc/{server.pid}/status").read_text(encoding="ascii")
            assert f"Uid:\t{os.geteuid() or UID}\t" in status
            if os.geteuid() == 0 and can_mount():
                mounts = Path(f"/proc/{server.pid}/mounts").read_text(encoding="utf-8")
                assert re.search(r"^\S+ / \S+ ro,", mounts, re.MULTILINE)

            check = last["HEALTHCHECK"].partition("CMD ")[2].replace("8017", port)
            subprocess.run(json.loads(placed(check)), check=True)

            request = urllib.request.Request(
                f"http://127.0.0.1:{port}/v1/route",
                json.dumps({"request": SQUASH}).encode(),
                {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"},
            )
            with urllib.request.urlopen(request, timeout=120) as answer:  # noqa: S310
                assert json.load(answer)["selected_skills"] == ["git"]
        finally:
            server.terminate()
    assert server.returncode == 0
    assert (home / "state").is_dir()
    if os.geteuid() == 0:
        written = (path for path in place.rglob("*") if path.lstat().st_uid == UID)
        assert all(path.is_relative_to(home) for path in written)
