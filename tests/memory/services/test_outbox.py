"""The outbox: what is to be told to the service, kept through anything."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from clock import Clock
from hypothesis import given, settings
from hypothesis import strategies as st

from router.errors import StoreError
from router.memory.services import outbox as module
from router.memory.services.outbox import Delivered, Intent, QueuedFile, ServiceOutbox


@pytest.fixture
def outbox(tmp_path: Path, clock: Clock) -> Iterator[ServiceOutbox]:
    made = ServiceOutbox(tmp_path / "outbox.sqlite3", clock=clock)
    yield made
    made.close()


def taken(outbox: ServiceOutbox, store: str = "s") -> QueuedFile:
    entry = outbox.take([store])
    assert entry is not None
    return entry


def test_entries_are_taken_in_the_order_they_came(outbox: ServiceOutbox) -> None:
    outbox.add([("s", "b", Intent.SEND), ("s", "a", Intent.DELETE)])
    outbox.add([("s", "c", Intent.SEND)])
    assert [(taken(outbox).name) for _ in range(3)] == ["b", "a", "c"]
    assert outbox.take(["s"]) is None


def test_a_later_intention_takes_the_place_of_an_earlier_one(outbox: ServiceOutbox) -> None:
    outbox.add([("s", "a", Intent.SEND), ("s", "b", Intent.SEND), ("s", "a", Intent.DELETE)])
    assert outbox.queued(["s"]) == {("s", "b"): Intent.SEND, ("s", "a"): Intent.DELETE}
    assert [taken(outbox).name, taken(outbox).name] == ["b", "a"]


def test_other_stores_entries_are_left_to_them(outbox: ServiceOutbox) -> None:
    outbox.add([("other", "a", Intent.SEND)])
    assert outbox.take(["s"]) is None
    assert taken(outbox, "other").name == "a"


def test_an_entry_that_is_held_is_not_taken_again_until_its_holder_is_late(
    outbox: ServiceOutbox, clock: Clock
) -> None:
    outbox.add([("s", "a", Intent.SEND)])
    assert taken(outbox).attempts == 1
    clock.now += module.HOLD_SECONDS - 1
    assert outbox.take(["s"]) is None
    clock.now += 1
    assert taken(outbox).attempts == 2


def test_failures_are_tried_again_later_and_later(outbox: ServiceOutbox, clock: Clock) -> None:
    outbox.add([("s", "a", Intent.SEND)])
    delays = []
    for _ in range(14):
        outbox.postpone(taken(outbox), "down")
        began = clock.now
        while (entry := outbox.take(["s"])) is None:
            clock.now += 1
        delays.append(clock.now - began)
        outbox.postpone(entry, "down")
        clock.now += 4_000
    assert delays == [2, 8, 32, 128, 512, 2048, *[3600] * 8]


def test_what_was_postponed_can_be_made_due_but_not_what_is_held(outbox: ServiceOutbox) -> None:
    outbox.add([("s", "a", Intent.SEND), ("s", "b", Intent.SEND)])
    outbox.postpone(taken(outbox), "down")
    held = taken(outbox)
    outbox.make_due(["s"])
    assert (taken(outbox).name, held.name) == ("a", "b")
    assert outbox.take(["s"]) is None


def test_what_is_settled_is_gone_and_recorded(outbox: ServiceOutbox) -> None:
    outbox.add([("s", "a", Intent.SEND)])
    outbox.settle(taken(outbox), Delivered("d1", (7, 8)))
    assert outbox.queued(["s"]) == {}
    assert outbox.delivered(["s"]) == {("s", "a"): Delivered("d1", (7, 8))}
    outbox.add([("s", "a", Intent.DELETE)])
    outbox.settle(taken(outbox), None)
    assert outbox.delivered(["s"]) == {}


def test_an_intention_that_came_meanwhile_is_not_settled_with_the_old_one(
    outbox: ServiceOutbox,
) -> None:
    outbox.add([("s", "a", Intent.SEND)])
    old = taken(outbox)
    outbox.add([("s", "a", Intent.DELETE)])
    outbox.note_sent(old, "d1", [7])
    outbox.settle(old, Delivered("d1", (7,)))
    new = taken(outbox)
    assert (new.intent, new.sent) == (Intent.DELETE, ())


def test_parts_that_were_sent_are_remembered_even_by_a_later_intention(
    outbox: ServiceOutbox, clock: Clock
) -> None:
    outbox.add([("s", "a", Intent.SEND)])
    outbox.note_sent(taken(outbox), "d1", [7, 8])
    outbox.add([("s", "a", Intent.SEND)])
    entry = taken(outbox)
    assert (entry.sent_digest, entry.sent) == ("d1", (7, 8))


def test_it_is_bounded(outbox: ServiceOutbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_ENTRIES", 2)
    outbox.add([("s", "a", Intent.SEND), ("s", "b", Intent.SEND)])
    with pytest.raises(StoreError, match="full"):
        outbox.add([("s", "c", Intent.SEND)])
    outbox.add([("s", "a", Intent.DELETE)])
    assert len(outbox.queued(["s"])) == 2


def test_two_connections_share_it(tmp_path: Path, outbox: ServiceOutbox, clock: Clock) -> None:
    other = ServiceOutbox(tmp_path / "outbox.sqlite3", clock=clock)
    other.add([("s", "a", Intent.SEND), ("s", "b", Intent.SEND)])
    assert [taken(outbox).name, taken(other).name] == ["a", "b"]
    other.close()


@pytest.mark.parametrize("damage", [b"not a database" * 100, None])
def test_a_file_that_is_not_an_outbox_is_an_error_and_left_alone(
    tmp_path: Path, clock: Clock, damage: bytes | None
) -> None:
    path = tmp_path / "other.sqlite3"
    if damage is None:
        foreign = sqlite3.connect(path)
        foreign.execute("CREATE TABLE theirs (x)")
        foreign.close()
    else:
        path.write_bytes(damage)
    with pytest.raises(StoreError):
        ServiceOutbox(path, clock=clock)
    assert path.exists()


_WRITER = """
    import sys, time
    from pathlib import Path
    from router.memory.services.outbox import Intent, ServiceOutbox
    outbox = ServiceOutbox(Path(sys.argv[1]), clock=time.time)
    for number in range(10**9):
        outbox.add([("s", str(number), Intent.SEND)])
        print(number, flush=True)
"""


def test_what_was_added_survives_kill_9(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "outbox.sqlite3"
    writer = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(_WRITER), str(path)], stdout=subprocess.PIPE
    )
    assert writer.stdout is not None
    said = [int(writer.stdout.readline()) for _ in range(20)]
    writer.send_signal(signal.SIGKILL)
    said += [int(line) for line in writer.stdout if line.endswith(b"\n")]
    writer.wait()
    writer.stdout.close()
    outbox = ServiceOutbox(path, clock=clock)
    names = [int(name) for _, name in outbox.queued(["s"])]
    outbox.close()
    assert sorted(names)[: len(said)] == said


_STEPS = st.lists(
    st.tuples(
        st.sampled_from(["send", "delete", "done", "fail", "lose", "wait"]), st.sampled_from("abc")
    ),
    max_size=40,
)


@given(steps=_STEPS)
@settings(max_examples=50)
def test_the_last_intention_for_each_name_is_always_carried_out(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, str]]
) -> None:
    clock = Clock()
    outbox = ServiceOutbox(tmp_path_factory.mktemp("o") / "outbox.sqlite3", clock=clock)
    wanted: dict[str, Intent] = {}
    carried: dict[str, Intent] = {}

    def work(step: str) -> bool:
        entry = outbox.take(["s"])
        if entry is None:
            return False
        if step == "fail":
            outbox.postpone(entry, "down")
        elif step == "done":
            carried[entry.name] = entry.intent
            outbox.settle(entry, None)
        return True  # "lose": whoever took it is killed

    for step, name in steps:
        if step in ("send", "delete"):
            wanted[name] = Intent(step)
            outbox.add([("s", name, Intent(step))])
        elif step == "wait":
            clock.now += 100
        else:
            work(step)
    while outbox.queued(["s"]):
        clock.now += 3_600
        work("done")
    outbox.close()
    assert carried == wanted
