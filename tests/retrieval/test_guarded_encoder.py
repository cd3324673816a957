"""Requests and an encoder that may be down: the limit, the threads, the breaker."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from cascade import WAIT_SECONDS, happened, write_skill
from clock import Clock
from numpy.typing import NDArray

from router.errors import EncoderError
from router.events import Degraded, Event, Events, Recovered
from router.retrieval.encoders import Encoder
from router.retrieval.guarded_encoder import FAILURES, MAX_CALLS, RESET_SECONDS, GuardedEncoder

AMPLE = WAIT_SECONDS


class Remote:
    """An encoder in a thread, which fails or hangs while it is told to."""

    identity, static = "remote", False

    def __init__(self) -> None:
        self.calls = 0
        self.fault = ""
        self.asked = threading.Event()
        self.free = threading.Event()
        self.free.set()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls += 1
        self.asked.set()
        self.free.wait(WAIT_SECONDS)
        if self.fault:
            raise EncoderError(self.fault)
        return np.ones((len(texts), 1), dtype=np.float32)

    def encode_documents(self, documents: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        return self.encode([head for head, _ in documents])


@pytest.fixture
def remote() -> Iterator[Remote]:
    made = Remote()
    yield made
    made.free.set()


def one_text(encoder: Encoder) -> int:
    return len(encoder.encode(["a"]))


async def test_an_encoder_that_hangs_costs_a_request_the_limit_and_the_next_ones_nothing(
    remote: Remote,
) -> None:
    remote.free.clear()
    guarded = GuardedEncoder(remote, seconds=0.05, clock=Clock())
    with pytest.raises(EncoderError, match=r"^remote: no answer within 0\.05 s$"):
        await guarded.ask(one_text)
    for _ in range(3):
        with pytest.raises(EncoderError, match="left alone"):
            await guarded.ask(one_text)
    assert remote.calls <= 1  # the thread may not have come to it


async def test_an_encoder_that_answers_others_meanwhile_is_busy_and_not_down(
    remote: Remote,
) -> None:
    """A burst on a slow encoder left it alone for half a minute while it answered."""
    guarded = GuardedEncoder(remote, seconds=1, clock=Clock())
    free = threading.Event()
    late = asyncio.create_task(guarded.ask(lambda _: free.wait(WAIT_SECONDS)))
    await asyncio.sleep(0)  # it is asked first
    assert await guarded.ask(one_text) == 1
    with pytest.raises(EncoderError, match="no answer within"):
        await late
    free.set()
    assert await guarded.ask(one_text) == 1


async def test_after_failures_in_a_row_the_encoder_is_left_alone_until_one_request_tries_it(
    remote: Remote,
) -> None:
    clock = Clock()
    guarded = GuardedEncoder(remote, seconds=AMPLE, clock=clock)
    remote.fault = "429"
    for _ in range(FAILURES):
        with pytest.raises(EncoderError, match="429"):
            await guarded.ask(one_text)
    with pytest.raises(EncoderError, match="left alone"):
        await guarded.ask(one_text)
    assert remote.calls == FAILURES
    remote.fault = ""
    clock.now += RESET_SECONDS
    assert [await guarded.ask(one_text) for _ in range(2)] == [1, 1]


async def test_an_encoder_that_breaks_its_protocol_is_one_that_fails(
    remote: Remote, caplog: pytest.LogCaptureFixture
) -> None:
    """A request whose words can be ranked failed with an error of the program's own encoder."""
    guarded = GuardedEncoder(remote, seconds=AMPLE, clock=Clock())

    def broken(_: Encoder) -> int:
        raise ConnectionError("refused")

    for _ in range(FAILURES):
        with pytest.raises(EncoderError, match=r"^remote: ConnectionError: refused$"):
            await guarded.ask(broken)
    with pytest.raises(EncoderError, match="left alone"):
        await guarded.ask(one_text)
    assert caplog.records[0].exc_info is not None  # where it came from


async def test_events_tell_that_the_encoder_fails_and_that_it_works_again(remote: Remote) -> None:
    events, told = Events(), list[Event]()
    events.subscribe(told.append)
    guarded = GuardedEncoder(remote, seconds=AMPLE, events=events)
    remote.fault = "429"
    with pytest.raises(EncoderError):
        await guarded.ask(one_text)
    remote.fault = ""
    await guarded.ask(one_text)
    await guarded.ask(one_text)
    assert told == [Degraded("encoder", "429"), Recovered("encoder")]


async def test_requests_that_hang_leave_the_threads_of_the_event_loop_to_others(
    remote: Remote,
) -> None:
    """The host's own ``asyncio.to_thread`` waited 29 s for twelve cancelled requests."""
    remote.free.clear()
    guarded = GuardedEncoder(remote, seconds=AMPLE)
    hanging = [asyncio.create_task(guarded.ask(one_text)) for _ in range(100)]
    await happened(remote.asked)
    for task in hanging:
        task.cancel()
    await asyncio.wait(hanging)  # who is cancelled does not wait for the encoder
    assert all(task.cancelled() for task in hanging)
    assert await asyncio.to_thread(lambda: "at once") == "at once"
    assert remote.calls <= MAX_CALLS
    remote.free.set()


async def test_who_was_cancelled_says_nothing_about_the_encoder(remote: Remote) -> None:
    guarded = GuardedEncoder(remote, seconds=AMPLE)
    for _ in range(FAILURES):
        remote.asked.clear()
        remote.free.clear()
        task = asyncio.create_task(guarded.ask(one_text))
        await happened(remote.asked)
        task.cancel()
        await asyncio.wait([task])
        remote.free.set()
    assert await guarded.ask(one_text) == 1


HANGING = """
import asyncio, sys, threading
import numpy as np
from pathlib import Path
from router import SemanticRouter, Settings

class Hanging:
    identity, static = "hanging", False

    def encode(self, texts):
        threading.Event().wait()

    def encode_documents(self, documents):
        return np.ones((len(documents), 2), dtype=np.float32)

async def main():
    settings = Settings(state_dir=sys.argv[1], llm={"enabled": False}, shipped_skills=False,
                        encoder={"timeout_seconds": 0.1})
    async with SemanticRouter(settings, roots=[Path(sys.argv[2])], encoder=Hanging()) as router:
        print((await router.route("write a poem")).decision.value)

asyncio.run(main())
"""


def test_an_encoder_that_hangs_for_ever_keeps_no_process_from_ending(tmp_path: Path) -> None:
    write_skill(tmp_path / "skills", "git", "Commits, squashes, rebases and pushes.")
    command = [sys.executable, "-c", HANGING, str(tmp_path / "state"), str(tmp_path / "skills")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=WAIT_SECONDS)
    assert (done.returncode, done.stdout) == (0, "abstain\n")
