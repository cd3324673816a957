"""The answers of this machine: what the port asks of every cache, and what the file adds."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from router.concurrency.tasks import in_thread
from router.stages.answers import AnswerCache, LocalAnswers
from router.stages.conformance import AnswerCacheConformance, kept_answer
from router.stages.validation import KeptAnswer

REQUEST = "squash the last four commits on this branch"


class TestInMemory(AnswerCacheConformance):
    async def make_cache(self) -> AnswerCache:
        return LocalAnswers()


class TestInAFile(AnswerCacheConformance):
    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path) -> None:
        self.path = tmp_path / "answers.sqlite3"

    async def make_cache(self) -> AnswerCache:
        return LocalAnswers(path=self.path)


def test_making_one_opens_nothing(tmp_path: Path) -> None:
    cache = LocalAnswers(path=tmp_path / "deep" / "answers.sqlite3")
    assert not (tmp_path / "deep").exists()
    assert len(cache.exact) == 0


async def test_another_process_finds_the_answer_what_it_rests_on_and_the_marks(
    tmp_path: Path,
) -> None:
    path = tmp_path / "answers.sqlite3"
    here = LocalAnswers(path=path)
    await here.open()
    await here.keep(REQUEST, "c", kept_answer("git"), similar=True)
    await here.keep_marks("v1", b"marks of v1")
    await here.aclose()
    there = LocalAnswers(path=path)
    await there.open()
    found = await there.find(REQUEST, "c", similar=True)
    assert found.kept == kept_answer("git")
    assert (await there.find(REQUEST, "c", similar=False)).kept is found.kept  # exact from now on
    assert await there.marks_of("v1") == b"marks of v1"
    await there.aclose()


async def test_an_answer_is_soon_written_down_though_nobody_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "answers.sqlite3"
    here, there = LocalAnswers(path=path), LocalAnswers(path=path)
    written = threading.Event()
    flush = here.fuzzy.flush

    def flush_and_tell() -> None:
        assert flush()
        written.set()

    monkeypatch.setattr(here.fuzzy, "flush", flush_and_tell)
    await here.keep(REQUEST, "c", kept_answer("git"), similar=True)
    assert await in_thread(lambda: written.wait(60))
    assert (await there.find(REQUEST, "c", similar=True)).kept == kept_answer("git")
    for cache in (here, there):
        await cache.aclose()


async def test_what_is_forgotten_before_it_was_written_down_never_comes_back(
    tmp_path: Path,
) -> None:
    path = tmp_path / "answers.sqlite3"
    here, there = LocalAnswers(path=path), LocalAnswers(path=path)
    await here.keep(REQUEST, "c", kept_answer("git"), similar=True)
    await here.keep("another request", "c", kept_answer("git"), similar=True)
    await here.forget(REQUEST, "c")  # from here on it holds, even if the process is killed
    assert (await there.find(REQUEST, "c", similar=True)).kept is None
    assert (await there.find("another request", "c", similar=True)).kept is not None
    await here.aclose()
    again = LocalAnswers(path=path)
    assert (await again.find(REQUEST, "c", similar=True)).kept is None
    for cache in (there, again):
        await cache.aclose()


async def test_what_another_process_forgets_or_corrects_is_gone_here_after_a_second(
    tmp_path: Path,
) -> None:
    now = 1_000.0
    here, there = (LocalAnswers(path=tmp_path / "answers", clock=lambda: now) for _ in range(2))

    async def found_there() -> KeptAnswer | None:
        return (await there.find(REQUEST, "c", similar=True)).kept

    for answer in (kept_answer("git"), kept_answer("terminal")):
        await here.keep(REQUEST, "c", answer, similar=True)
        assert here.fuzzy.flush()
        now += 1
        found = [await found_there() for _ in range(2)]  # from the file, and then from memory
        assert found == [answer, answer]
    await here.forget(REQUEST, "c")
    now += 1
    assert await found_there() is None
    for cache in (here, there):
        await cache.aclose()


async def test_what_another_process_forgets_is_gone_here_although_it_is_in_no_file(
    tmp_path: Path,
) -> None:
    now = 1_000.0
    here, there = (LocalAnswers(path=tmp_path / "answers", clock=lambda: now) for _ in range(2))

    async def found_there() -> list[str]:
        texts = (REQUEST, "another request")
        return [text for text in texts if (await there.find(text, "c", similar=True)).kept]

    for cache in (here, there):
        await cache.open()
    for text in (REQUEST, "another request"):
        await there.keep(text, "c", kept_answer("git"), similar=False)
    await here.forget(REQUEST, "c")
    now += 1
    assert await found_there() == ["another request"]
    assert here.fuzzy.clear()
    now += 1
    assert await found_there() == []
    await there.keep(REQUEST, "c", kept_answer("git"), similar=False)
    now += 1
    assert await found_there() == [REQUEST]  # it is newer than what was dropped
    for cache in (here, there):
        await cache.aclose()


async def test_marks_of_catalogs_that_no_answer_is_of_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "answers.sqlite3"
    here = LocalAnswers(path=path)
    for version in ("v1", "v2"):
        await here.keep(REQUEST, "c", kept_answer("git", catalog=version), similar=True)
        await here.keep_marks(version, b"marks of " + version.encode())
    await here.aclose()
    there = LocalAnswers(path=path)
    assert await there.marks_of("v1") is None
    assert await there.marks_of("v2") == b"marks of v2"
    await there.aclose()
