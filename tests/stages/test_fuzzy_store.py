"""The file of the fuzzy cache: what it keeps, who may share it, and which faults it survives."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from cached import answer
from clock import Clock

from router.stages.fuzzy import FuzzyCache
from router.stages.validation import Basis, DecidedBy


async def test_eviction_and_order_of_use_survive_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "fuzzy.db"
    cache = FuzzyCache(max_entries=3, path=path)
    for text in ("write tests", "review code", "ship release", "plan sprint"):
        await cache.learn(text, answer(text))
    cache.find("review code")
    cache.close()
    smaller = FuzzyCache(max_entries=2, path=path)
    held = [t for t in ("write tests", "review code", "ship release") if smaller.find(t).result]
    assert held == ["review code"]
    smaller.close()


CHILD = """
import asyncio, sys
from pathlib import Path
from router.result import RoutingResult
from router.stages.fuzzy import FuzzyCache

async def main():
    cache = FuzzyCache(path=Path(sys.argv[1]), max_entries=100_000)
    for n in range(int(sys.argv[3])):
        text = f"{sys.argv[2]} ticket {n}"
        await cache.learn(text, RoutingResult.from_json(sys.argv[4]))
        assert cache.flush()
        print(text, flush=True)

asyncio.run(main())
"""


def start_learning(path: Path, verb: str, count: int) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(path), verb, str(count), answer(verb).to_json()],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )


@pytest.mark.parametrize("lines", [1, 40, 333])
def test_kill_minus_nine_while_learning_loses_nothing_that_was_acknowledged(
    tmp_path: Path, lines: int
) -> None:
    path = tmp_path / "fuzzy.db"
    acknowledged: list[str] = []
    with start_learning(path, "close", 1_000_000) as child:
        assert child.stdout is not None
        acknowledged += [child.stdout.readline().strip() for _ in range(lines)]
        child.send_signal(signal.SIGKILL)
        acknowledged += child.stdout.read().splitlines()[:-1]  # the last line may be cut
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()
    cache = FuzzyCache(path=path, max_entries=100_000)
    assert [text for text in acknowledged if cache.find(text).result is None] == []
    assert cache.diagnostics == []
    cache.close()


def test_two_processes_may_learn_into_one_file(tmp_path: Path) -> None:
    path = tmp_path / "fuzzy.db"
    with start_learning(path, "close", 150) as one, start_learning(path, "open", 150) as other:
        one.communicate()
        other.communicate()
    cache = FuzzyCache(path=path, max_entries=1000)
    assert len(cache) == 300
    assert cache.find("open ticket 7").result == answer("open")
    cache.close()


async def test_what_another_process_learns_and_clears_is_seen_within_a_second(
    tmp_path: Path,
) -> None:
    clock = Clock(1_000_000.0)
    here = FuzzyCache(path=tmp_path / "fuzzy.db", clock=clock)
    there = FuzzyCache(path=tmp_path / "fuzzy.db", clock=clock)
    await here.learn("write tests", answer("here"))
    await there.learn("review code", answer("there"))
    assert here.flush() and there.flush()
    clock.now += 1
    assert here.find("review the code").result == answer("there")
    assert there.find("write the tests").result == answer("here")
    there.clear()
    clock.now += 1
    assert here.find("write tests").result is None
    here.close()
    there.close()


async def test_a_cache_that_is_cleared_before_any_other_use_holds_nothing(tmp_path: Path) -> None:
    earlier = FuzzyCache(path=tmp_path / "fuzzy.db")
    await earlier.learn("write tests", answer("testing"))
    earlier.close()
    cache = FuzzyCache(path=tmp_path / "fuzzy.db")
    cache.clear()
    assert (len(cache), cache.find("write tests").result) == (0, None)
    cache.close()


def break_header(path: Path) -> None:
    path.write_bytes(b"this is no database at all" * 100)


def break_pages(path: Path) -> None:
    content = bytearray(path.read_bytes())
    middle = random.Random(0).randbytes(len(content) - 4096)
    path.write_bytes(bytes(content[:4096]) + middle)


@pytest.mark.parametrize("fault", [break_header, break_pages])
async def test_an_unusable_file_is_moved_aside_and_begun_anew(
    tmp_path: Path, fault: object, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "fuzzy.db"
    cache = FuzzyCache(path=path)
    for n in range(100):
        await cache.learn(f"close ticket {n}", answer("tickets"))
    cache.close()
    assert callable(fault)
    fault(path)
    damaged = path.read_bytes()

    anew = FuzzyCache(path=path)
    assert len(anew) == 0
    assert (tmp_path / "fuzzy.db.broken-1").read_bytes() == damaged
    assert len(anew.diagnostics) == 1
    assert anew.diagnostics[0] in caplog.text
    await anew.learn("fix the bug", answer("debugging"))
    anew.close()
    again = FuzzyCache(path=path)
    assert again.find("fix bug").result == answer("debugging")
    again.close()


async def test_a_file_of_a_later_version_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "fuzzy.db"
    first = FuzzyCache(path=path)
    first.open()
    first.close()
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()
    before = path.read_bytes()
    cache = FuzzyCache(path=path)
    await cache.learn("fix the bug", answer("debugging"))
    assert cache.find("fix bug").result == answer("debugging")
    assert "later version" in cache.diagnostics[0]
    cache.close()
    assert path.read_bytes() == before


async def test_a_row_stamped_in_the_future_does_not_outlive_the_others(tmp_path: Path) -> None:
    path = tmp_path / "fuzzy.db"
    clock = Clock(1_000_000.0)
    cache = FuzzyCache(path=path, ttl_seconds=100, clock=clock)
    for text in ("write tests", "ship release"):
        await cache.learn(text, answer(text))
    cache.close()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE entries SET learned = 9e12 WHERE text = 'write tests'")
    db.close()
    again = FuzzyCache(path=path, ttl_seconds=100, clock=clock)
    assert again.find("write tests").result is None
    assert again.find("ship release").result == answer("ship release")
    again.close()


async def test_an_unreadable_row_is_dropped_and_the_others_stay(tmp_path: Path) -> None:
    path = tmp_path / "fuzzy.db"
    cache = FuzzyCache(path=path)
    for text in ("write tests", "review code", "ship release"):
        await cache.learn(text, answer(text))
    cache.close()
    with sqlite3.connect(path) as db:
        db.execute("UPDATE entries SET result = '{\"half' WHERE text = 'write tests'")
        db.execute("UPDATE entries SET learned = 'yesterday' WHERE text = 'review code'")
    db.close()
    again = FuzzyCache(path=path)
    held = [t for t in ("write tests", "review code", "ship release") if again.find(t).result]
    assert held == ["ship release"]
    again.close()


async def test_a_file_that_cannot_be_opened_means_working_in_memory(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("a file where a folder is due")
    cache = FuzzyCache(path=tmp_path / "taken" / "fuzzy.db")
    await cache.learn("fix the bug", answer("debugging"))
    assert cache.find("fix bug").result == answer("debugging")
    assert "memory only" in cache.diagnostics[0]
    cache.close()


async def test_a_file_locked_by_another_process_delays_nothing_but_the_writing(
    tmp_path: Path,
) -> None:
    path = tmp_path / "fuzzy.db"
    cache = FuzzyCache(path=path)
    cache.open()
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    await cache.learn("fix the bug", answer("debugging"))
    assert cache.find("fix bug").result == answer("debugging")
    assert not cache.flush()
    assert "not written down yet" in cache.diagnostics[0]
    other.execute("ROLLBACK")
    other.close()
    cache.close()
    again = FuzzyCache(path=path)
    assert again.find("fix bug").result == answer("debugging")
    again.close()


async def test_an_answer_that_is_still_to_be_written_replaces_what_another_process_wrote(
    tmp_path: Path,
) -> None:
    clock = Clock(1_000_000.0)
    here, there = (FuzzyCache(path=tmp_path / "fuzzy.db", clock=clock) for _ in range(2))
    await there.learn("fix the bug", answer("there"))
    await here.learn("fix the bug", answer("here"))
    assert there.flush()
    clock.now += 1
    assert here.find("fix the bug").result == answer("here")
    assert here.flush()
    clock.now += 1
    assert there.find("fix the bug").result == answer("here")
    here.close()
    there.close()


async def test_a_dropped_answer_stays_dropped_where_rows_are_read_again(tmp_path: Path) -> None:
    clock = Clock(1_000_000.0)
    here, there = (FuzzyCache(path=tmp_path / "fuzzy.db", clock=clock) for _ in range(2))
    by_router, by_person = Basis(DecidedBy.ROUTER, "1"), Basis(DecidedBy.PERSON, "1")
    await there.learn("fix the bug", answer("there"), basis=by_person)
    await here.learn("fix the bug", answer("here"), basis=by_router)
    assert there.flush()
    await there.learn("send an email", answer("wrong"), basis=by_router)
    assert there.flush()
    clock.now += 1
    here.follow()
    assert here.flush()  # leaves what the person said, and will read the rows from there on again
    here.discard("send an email", "")
    clock.now += 1
    assert here.find("send an email").result is None
    assert here.flush()
    assert here.find("send an email").result is None
    here.close()
    there.close()


async def test_an_answer_that_is_still_to_be_written_does_not_replace_what_a_person_said(
    tmp_path: Path,
) -> None:
    clock = Clock(1_000_000.0)
    dropped: set[str] = set()
    here = FuzzyCache(
        path=tmp_path / "fuzzy.db",
        clock=clock,
        changed_elsewhere=lambda text, _context: dropped.add(text),
    )
    there = FuzzyCache(path=tmp_path / "fuzzy.db", clock=clock)
    by_router, by_person = Basis(DecidedBy.ROUTER, "1"), Basis(DecidedBy.PERSON, "1")
    await there.learn("fix the bug", answer("there"), basis=by_person)
    await here.learn("fix the bug", answer("here"), basis=by_router)
    assert there.flush()
    clock.now += 1
    here.follow()  # has read what the person said, and would replace it
    assert here.flush()
    for cache in (here, there):
        clock.now += 1
        assert cache.find("fix the bug").result == answer("there")
    assert dropped == {"fix the bug"}
    await here.learn("fix the bug", answer("anew"), basis=by_router)  # the person's holds no more
    assert here.flush()
    clock.now += 1
    assert there.find("fix the bug").result == answer("anew")
    here.close()
    there.close()
