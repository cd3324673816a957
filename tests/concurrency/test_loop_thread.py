"""The thread behind a synchronous face: interrupted, closed, used after it was closed."""

from __future__ import annotations

import asyncio
import gc
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from cascade import SHIPPED, SQUASH, WAIT_SECONDS, HeldModel, answer, settings_for

from router import ConfigurationError, Memory, SemanticRouter, SyncSemanticRouter
from router.concurrency.loop_thread import LoopThread


@pytest.fixture(scope="module")
def router(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SyncSemanticRouter]:
    settings = settings_for(tmp_path_factory.mktemp("state"))
    with SyncSemanticRouter.from_skills(SHIPPED, settings=settings) as router:
        yield router


def held_router(state: Path, model: HeldModel) -> SyncSemanticRouter:
    return SyncSemanticRouter(settings_for(state), roots=[SHIPPED], models=[model])


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """The interpreter's own handling of Ctrl-C, which a job in the background does not have."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_stops_the_work_and_leaves_the_router_usable(tmp_path: Path) -> None:
    model = HeldModel(answer("git"))
    main = threading.main_thread().ident
    assert main is not None

    def press_ctrl_c() -> None:
        model.asked.wait(WAIT_SECONDS)
        signal.pthread_kill(main, signal.SIGINT)

    with held_router(tmp_path, model) as router:
        finger = threading.Thread(target=press_ctrl_c)
        finger.start()
        with pytest.raises(KeyboardInterrupt):
            router.route(SQUASH)
        finger.join()
        assert model.stopped.wait(WAIT_SECONDS)
        assert model.running == 0
        model.release()
        assert router.route(SQUASH).selected_skills == ("git",)


def test_closing_gives_other_threads_their_answers(tmp_path: Path) -> None:
    model = HeldModel(answer("git", confidence=0.1))
    router = held_router(tmp_path, model)
    with ThreadPoolExecutor(2) as pool:
        under_way = pool.submit(router.route, SQUASH)
        assert model.asked.wait(WAIT_SECONDS)
        closing = pool.submit(router.close)
        model.release()
        closing.result(WAIT_SECONDS)
        assert under_way.result(WAIT_SECONDS).suggested_skills[0] == "git"


def test_closing_twice_is_fine_from_any_thread(tmp_path: Path) -> None:
    before = threading.enumerate()
    router = SyncSemanticRouter.from_skills(SHIPPED, settings=settings_for(tmp_path))
    router.route(SQUASH)
    with ThreadPoolExecutor(3) as pool:
        for closing in [pool.submit(router.close) for _ in range(3)]:
            closing.result(WAIT_SECONDS)
    router.close()
    assert [thread for thread in threading.enumerate() if thread not in before] == []


def test_use_after_close_is_a_clear_error(tmp_path: Path) -> None:
    router = SyncSemanticRouter.from_skills(SHIPPED, settings=settings_for(tmp_path))
    router.close()
    uses = [
        lambda: router.route(SQUASH),
        lambda: router.route_many([SQUASH]),
        router.reload,
        lambda: router.catalog,
        router.__enter__,
    ]
    for use in uses:
        with pytest.raises(RuntimeError, match="this router is closed"):
            use()


def test_no_thread_is_left_of_a_closed_router(tmp_path: Path) -> None:
    def live(state: Path) -> None:
        with SyncSemanticRouter.from_skills(SHIPPED, settings=settings_for(state)) as router:
            router.route(SQUASH)
        gone = SyncSemanticRouter.from_skills(tmp_path / "gone", settings=settings_for(state))
        with pytest.raises(ConfigurationError), gone:
            pytest.fail("it was opened")

    live(tmp_path / "warm")  # libraries keep a few threads of their own
    gc.collect()
    threads = set(threading.enumerate())
    live(tmp_path / "state")
    assert set(threading.enumerate()) == threads


def test_a_sink_that_would_wait_for_its_own_thread_or_end_it_is_told(tmp_path: Path) -> None:
    told: list[RuntimeError] = []
    with SyncSemanticRouter(settings_for(tmp_path), roots=[SHIPPED]) as router:

        def ask_and_close(_: object) -> None:
            for call in (partial(router.route, SQUASH), router.close):
                with pytest.raises(RuntimeError, match="in its own thread") as error:
                    call()
                told.append(error.value)

        router.events.subscribe(ask_and_close)
        router.route(SQUASH)
        router.route(SQUASH)  # it is still open
    assert told


def test_a_failure_at_the_end_is_raised_and_the_thread_ends_all_the_same() -> None:
    thread = LoopThread("thing")

    async def fail() -> None:
        raise ConfigurationError("it cannot be closed")

    with pytest.raises(ConfigurationError, match="it cannot be closed"):
        thread.close(fail)
    again = threading.Thread(target=thread.close, args=(fail,), daemon=True)
    again.start()
    again.join(10)
    assert not again.is_alive()
    assert "thing" not in [one.name for one in threading.enumerate()]


@pytest.mark.parametrize("kind", ["router", "memory"])
async def test_another_event_loop_is_told_so_and_changes_nothing(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It waited for ever, or ended in an error of asyncio that named neither cause nor cure.
    monkeypatch.chdir(tmp_path)
    settings = settings_for(tmp_path)
    thing: SemanticRouter | Memory = (
        SemanticRouter(settings, roots=[SHIPPED]) if kind == "router" else Memory(settings)
    )

    def elsewhere(work: Callable[[], Coroutine[Any, Any, object]]) -> None:
        with pytest.raises(RuntimeError, match=f"this {kind} belongs to the event loop that used"):
            asyncio.run(work())

    async with thing:
        for work in (thing.open, thing.aclose, thing.__aenter__):
            await asyncio.to_thread(elsewhere, work)
        await thing.open()  # still open here


@pytest.mark.parametrize("kind", ["router", "memory"])
def test_what_was_left_open_is_closed_in_another_event_loop_once_its_own_has_ended(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = settings_for(tmp_path)
    thing: SemanticRouter | Memory = (
        SemanticRouter(settings, roots=[SHIPPED]) if kind == "router" else Memory(settings)
    )

    async def use() -> None:
        await thing.open()
        if isinstance(thing, SemanticRouter):
            await thing.route(SQUASH)

    asyncio.run(use())
    with pytest.raises(RuntimeError, match="belongs to the event loop"):
        asyncio.run(use())
    asyncio.run(thing.aclose())
    asyncio.run(thing.aclose())  # twice is fine
    with pytest.raises(RuntimeError, match=f"this {kind} is closed"):
        asyncio.run(use())
