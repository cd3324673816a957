"""A storm: many skills replaced at once by a branch switch, and back, while requests are routed.

The switch is ``git checkout`` where git is installed, and renames elsewhere; the watcher is the
real one. By default the storm is small enough for every run of the suite. With ``ROUTER_STORM`` set
to a number of switches there and back, and ``ROUTER_BENCH_DATA`` to the benchmark data, the 574
skills of the pool are switched; ``benchmarks/hot_reload.py`` does that.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pytest
from cascade import SHIPPED, WAIT_SECONDS, router_over, summary, write_skill
from numpy.typing import NDArray

from router import RoutingResult, SemanticRouter
from router.retrieval.bundled_encoder import BundledEncoder
from router.retrieval.index import SkillIndex
from router.skills.catalog import Catalog, load_catalog
from router.skills.changes import CatalogChange

SWITCHES: Final = int(os.environ.get("ROUTER_STORM", "3"))
BENCH_DATA: Final = os.environ.get("ROUTER_BENCH_DATA") if "ROUTER_STORM" in os.environ else None
TOPICS: Final = """
    anchovies bagpipes carburettors dahlias earthquakes falconry gargoyles hammocks igloos juggling
    kayaks lighthouses mosaics nightingales origami pelicans quicksand rhubarb seismographs tapestry
    ukuleles volcanoes windmills xylophones yoghurt zeppelins
""".split()
"""What the small storm is made of, beside the shipped skills."""
SETTLE_SECONDS: Final = WAIT_SECONDS

pytestmark = pytest.mark.timeout(600 + 60 * SWITCHES if BENCH_DATA else 600)


# --- two branches


class Branches:
    """A folder of skills in two versions, in which no skill is the same: of every two, one has
    another text, and one has given way to a new one."""

    def __init__(self, place: Path) -> None:
        self.skills = place / "skills"
        self._aside = place / "aside"
        self._on_first = True
        self._git = shutil.which("git")
        if BENCH_DATA is None:
            _small(self.skills)
        else:
            shutil.copytree(
                Path(BENCH_DATA) / "skills" / "pool", self.skills, copy_function=shutil.copyfile
            )
            for folder in (self.skills, *(p for p in self.skills.rglob("*") if p.is_dir())):
                folder.chmod(0o755)  # the data is read-only
        if self._git is None:
            shutil.copytree(self.skills, self._aside)
            _replace_all(self._aside)
            return
        self._run("init", "--quiet", "--initial-branch=first")
        self._commit()
        self._run("checkout", "--quiet", "-b", "second")
        _replace_all(self.skills)
        self._commit()
        self._run("checkout", "--quiet", "first")

    def switch(self) -> None:
        """To the other branch."""
        self._on_first = not self._on_first
        if self._git is not None:
            self._run("checkout", "--quiet", "first" if self._on_first else "second")
            return
        between = self._aside.with_name("between")
        self.skills.rename(between)
        self._aside.rename(self.skills)
        between.rename(self._aside)

    def _commit(self) -> None:
        self._run("add", "--all")
        self._run("commit", "--quiet", "--message", "Skills.")

    def _run(self, *arguments: str) -> None:
        who = {"NAME": "A", "EMAIL": "a@example.org"}
        subprocess.run(
            [self._git or "git", *arguments],
            cwd=self.skills,
            env={
                "PATH": os.environ["PATH"],
                "GIT_CONFIG_GLOBAL": os.devnull,
                "GIT_CONFIG_SYSTEM": os.devnull,
                **{
                    f"GIT_{role}_{k}": v for role in ("AUTHOR", "COMMITTER") for k, v in who.items()
                },
            },
            check=True,
        )


def _small(skills: Path) -> None:
    shutil.copytree(SHIPPED, skills)
    for topic in TOPICS:
        write_skill(skills, topic, f"Knows all of {topic}. Use for questions on {topic} alone.")


def _replace_all(skills: Path) -> None:
    for number, path in enumerate(sorted(skills.rglob("SKILL.md"))):
        if number % 2:
            with path.open("a", encoding="utf-8") as file:
                file.write("\nOn this branch it says more.\n")
        else:
            shutil.rmtree(path.parent)
            name = f"second-{number}"
            write_skill(skills, name, f"Polishes gemstone number {number}. Use to polish gems.")


@pytest.fixture
def branches(tmp_path: Path) -> Branches:
    return Branches(tmp_path)


# --- what is watched during the storm, and compared after it


class Snapshots:
    """An observer that keeps every snapshot that was current, and lets others wait for one."""

    name = "snapshots"

    def __init__(self) -> None:
        self.by_version: dict[str, Catalog] = {}
        self._changed = asyncio.Condition()

    async def on_catalog_change(self, change: CatalogChange) -> None:
        async with self._changed:
            self.by_version[change.before.version] = change.before
            self.by_version[change.after.version] = change.after
            self._changed.notify_all()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(SETTLE_SECONDS), self._changed:
            await self._changed.wait_for(condition)


def requests_over(catalog: Catalog) -> list[str]:
    """Some requests that some skills answer, and one that none does."""
    skills = list(catalog.routable)[:: max(1, len(catalog.routable) // 40)]
    return [*(skill.description[:200] for skill in skills), "polish the gemstone", "qwzx"]


def names_in(result: RoutingResult) -> set[str]:
    candidates = {candidate.name for entry in result.trace for candidate in entry.candidates}
    return candidates | {*result.selected_skills, *result.suggested_skills}


async def routing(router: SemanticRouter, requests: list[str], seen: dict[str, set[str]]) -> None:
    """Route until cancelled, and note the names that the results give, by version."""
    number = 0
    while True:
        request = requests[number % len(requests)]
        # Some of them are new to the caches, and some are not.
        result = await router.route(request, scope=str(number // len(requests) % 3))
        seen.setdefault(result.catalog_version, set()).update(names_in(result))
        number += 1
        await asyncio.sleep(0)


def lexical_content(index: SkillIndex) -> dict[str, dict[str, float]]:
    """Every posting, by stem and skill."""
    lexical = index._scores.lexical
    content = {}
    for term, number in zip(lexical._numbers, lexical.numbers(lexical._numbers), strict=True):
        if number is None:
            continue
        postings = slice(lexical.start[number], lexical.start[number + 1])
        names = [index._names[document] for document in lexical.document[postings]]
        content[term] = dict(zip(names, lexical.saturated[postings].tolist(), strict=True))
    return content


def vectors(index: SkillIndex) -> dict[str, NDArray[np.float32]]:
    return dict(zip(index._names, index._scores._vectors, strict=True))


async def assert_like_new(router: SemanticRouter, skills: Path, state: Path) -> None:
    """Catalog, lexical index, vectors and rankings are those of a router that begins now, and the
    answers are, cached or not."""
    async with router_over(skills, state) as fresh:
        ours, theirs = router._runtime.current, fresh._runtime.current
        assert ours.catalog.version == theirs.catalog.version == load_catalog([skills]).version
        assert ours.catalog.skills == theirs.catalog.skills
        assert ours.catalog.failures == theirs.catalog.failures
        assert ours.catalog.shadowed == theirs.catalog.shadowed

        assert lexical_content(ours.index) == lexical_content(theirs.index)

        held, wanted = vectors(ours.index), vectors(theirs.index)
        assert held.keys() == wanted.keys() == {skill.name for skill in ours.catalog.routable}
        for name, vector in wanted.items():
            np.testing.assert_allclose(held[name], vector, atol=1e-6)

        requests = requests_over(theirs.catalog)
        for request in requests:
            mine = await ours.index.rank(request)
            other = await theirs.index.rank(request)
            assert [m.score for m in mine.matches] == pytest.approx(
                [m.score for m in other.matches], abs=1e-4
            )

        for request in requests:
            assert summary(await router.route(request)) == summary(await fresh.route(request))


async def test_every_route_is_of_one_snapshot_and_afterwards_all_is_as_if_new(
    branches: Branches, tmp_path: Path
) -> None:
    snapshots = Snapshots()
    seen: dict[str, set[str]] = {}
    async with router_over(branches.skills, tmp_path / "state") as router:
        first = router.catalog
        router.manager.observers.add(snapshots)
        snapshots.by_version[first.version] = first
        requests = requests_over(first)

        def is_at(version: str) -> bool:
            return router.catalog.version == version

        async with router.manager.watch():
            router_task = asyncio.create_task(routing(router, requests, seen))
            for number in range(2 * SWITCHES):
                await asyncio.to_thread(branches.switch)
                if number % 2 == 0:  # back before or while it is taken in, or afterwards
                    here = load_catalog([branches.skills]).version
                    await snapshots.until(partial(is_at, here))
            await snapshots.until(partial(is_at, first.version))
            await router.route_many(requests)  # so that there is something to compare
            router_task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await router_task
        await router.manager.observers.drain()
        assert len(seen) > 1
        for version, names in seen.items():
            assert names <= snapshots.by_version[version].skills.keys()
        await assert_like_new(router, branches.skills, tmp_path / "fresh")
        assert len(router.exact) > 0


# --- killed in the middle


class TellingEncoder(BundledEncoder):
    """Says on standard output when it begins to encode skills."""

    def encode_documents(self, documents: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        print("encoding", flush=True)  # noqa: T201 - read by the test
        return super().encode_documents(documents)


class TellingObserver:
    """Says on standard output when a change has become effective."""

    name = "telling"

    async def on_catalog_change(self, change: CatalogChange) -> None:
        print("installed", flush=True)  # noqa: T201 - read by the test


async def live(skills: Path, state: Path) -> None:
    """The life of the process that is killed: it routes and watches."""
    async with router_over(skills, state, encoder=TellingEncoder()) as router:
        router.manager.observers.add(TellingObserver())
        requests = requests_over(router.catalog)
        await router.route_many(requests)
        async with router.manager.watch():
            print("ready", flush=True)  # noqa: T201 - read by the test
            await routing(router, requests, {})


@pytest.mark.parametrize("moment", ["encoding", "installed"])
async def test_a_process_that_is_killed_in_the_storm_leaves_what_the_next_one_mends(
    branches: Branches, tmp_path: Path, moment: str
) -> None:
    state = tmp_path / "state"
    # Going back to the first branch encodes nothing: its vectors are kept by their texts.
    for number in range(1 if moment == "encoding" else 2):
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            __file__,
            str(branches.skills),
            str(state),
            stdout=asyncio.subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(SHIPPED.parent)},
        )
        assert process.stdout is not None
        async with asyncio.timeout(SETTLE_SECONDS):
            while (line := await process.stdout.readline()) != b"ready\n":
                assert line, "the process has ended"
            await asyncio.to_thread(branches.switch)
            while (line := await process.stdout.readline()) != f"{moment}\n".encode():
                assert line, "the process has ended"
            process.send_signal(signal.SIGKILL)
            assert await process.wait() == -signal.SIGKILL
        async with router_over(branches.skills, state) as router:
            await assert_like_new(router, branches.skills, tmp_path / f"fresh-{number}")
            for request in requests_over(router.catalog):
                assert names_in(await router.route(request)) <= router.catalog.skills.keys()


if __name__ == "__main__":
    asyncio.run(live(Path(sys.argv[1]), Path(sys.argv[2])))
