"""How observers are told: in order, at least once, and each for itself."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.skills.catalog import Catalog
from router.skills.changes import CatalogChange
from router.skills.manifest import SkillManifest
from router.skills.observers import MAX_PENDING, PAUSES, Observers


def catalog(content: dict[str, str]) -> Catalog:
    """Skills from name to digest."""
    return Catalog(
        {
            name: SkillManifest(
                name=name, description="x", body="y", path=Path(name) / "SKILL.md", digest=digest
            )
            for name, digest in content.items()
        }
    )


def changes(catalogs: Iterable[Catalog]) -> list[CatalogChange]:
    """From an empty catalog on, one step after the other."""
    before = Catalog()
    steps = []
    for after in catalogs:
        steps.append(CatalogChange.between(before, after))
        before = after
    return steps


STEPS = changes(catalog({"git": str(number)}) for number in range(1, 100))


class Recorder:
    """Keeps what it takes; raises as often as it is told to; waits while its gate is closed."""

    def __init__(self, name: str = "recorder", *, failing: int = 0) -> None:
        self.name = name
        self.failing = failing
        self.taken: list[CatalogChange] = []
        self.began = asyncio.Event()
        self.took = asyncio.Event()
        self.gate = asyncio.Event()
        self.gate.set()

    async def on_catalog_change(self, change: CatalogChange) -> None:
        self.began.set()
        await self.gate.wait()
        if self.failing:
            self.failing -= 1
            raise OSError("disk full")
        self.taken.append(change)
        self.took.set()


class Pauses:
    """A sleep that takes no time and remembers how long it was to be."""

    def __init__(self) -> None:
        self.seconds: list[float] = []

    async def __call__(self, seconds: float) -> None:
        self.seconds.append(seconds)
        await asyncio.sleep(0)


async def test_changes_are_delivered_in_order() -> None:
    recorder = Recorder()
    observers = Observers([recorder])
    for step in STEPS[:10]:
        observers.publish(step)
    await observers.drain()
    assert recorder.taken == STEPS[:10]
    [report] = observers.reports()
    assert (report.name, report.delivered, report.pending) == ("recorder", 10, 0)
    assert (report.is_behind, report.failures, report.last_error) == (False, 0, None)


async def test_a_slow_observer_delays_no_other() -> None:
    slow, quick = Recorder("slow"), Recorder("quick")
    slow.gate.clear()
    observers = Observers([slow, quick])
    observers.publish(STEPS[0])
    await slow.began.wait()
    observers.publish(STEPS[1])
    while len(quick.taken) < 2:
        quick.took.clear()
        await quick.took.wait()
    assert [report.pending for report in observers.reports()] == [2, 0]
    slow.gate.set()
    await observers.drain()
    assert slow.taken == quick.taken == STEPS[:2]


async def test_an_observer_that_raises_is_tried_again_after_growing_pauses() -> None:
    pauses, recorder = Pauses(), Recorder(failing=4)
    observers = Observers([recorder], sleep=pauses)
    observers.publish(STEPS[0])
    observers.publish(STEPS[1])
    await observers.drain()
    assert recorder.taken == STEPS[:2]
    assert pauses.seconds == [0.1, 0.2, 0.4, 0.8]
    [report] = observers.reports()
    assert (report.failures, report.given_up, report.is_behind) == (4, 0, False)
    assert report.last_error == "OSError: disk full"


async def test_what_was_given_up_is_covered_by_the_next_change(
    caplog: pytest.LogCaptureFixture,
) -> None:
    recorder = Recorder(failing=1 + len(PAUSES))
    observers = Observers([recorder], sleep=Pauses())
    before, between, after = (catalog(c) for c in ({}, {"a": "1", "b": "1"}, {"b": "1", "c": "1"}))
    observers.publish(CatalogChange.between(before, between))
    await observers.drain()
    [report] = observers.reports()
    assert (report.delivered, report.given_up, report.is_behind) == (0, 1, True)
    assert "recorder gave up on: 2 added (a, b); OSError: disk full" in caplog.text
    observers.publish(CatalogChange.between(between, after))
    await observers.drain()
    [taken] = recorder.taken
    assert (taken.before, taken.after) == (before, after)
    # It may have added a in its failed attempts, so it is told to remove it.
    assert (taken.added, taken.removed) == (("b", "c"), ("a",))
    assert observers.reports()[0].is_behind is False


async def test_a_lagging_observer_gets_the_rest_as_one_change() -> None:
    recorder = Recorder()
    recorder.gate.clear()
    observers = Observers([recorder])
    for step in STEPS:
        observers.publish(step)
    assert observers.reports()[0].pending == MAX_PENDING
    recorder.gate.set()
    await observers.drain()
    assert recorder.taken[:-1] == STEPS[: MAX_PENDING - 1]
    merged = recorder.taken[-1]
    assert merged.before is STEPS[MAX_PENDING - 1].before
    assert merged.after is STEPS[-1].after


async def test_a_lagging_observer_keeps_few_snapshots_alive() -> None:
    recorder = Recorder()
    recorder.gate.clear()
    observers = Observers([recorder])
    others = [found for found in gc.get_objects() if type(found) is Catalog]  # of other tests
    before = Catalog()
    for number in range(500):
        after = catalog({"git": str(number)})
        observers.publish(CatalogChange.between(before, after))
        before = after
    mine = {id(c) for c in gc.get_objects() if type(c) is Catalog}
    assert MAX_PENDING <= len(mine - set(map(id, others))) <= MAX_PENDING + 10
    await observers.aclose()


async def test_merged_changes_that_undo_each_other_are_not_delivered() -> None:
    recorder = Recorder()
    recorder.gate.clear()
    observers = Observers([recorder])
    one, two = catalog({"git": "1"}), catalog({"git": "2"})
    first = CatalogChange.between(Catalog(), one)
    observers.publish(first)
    for _ in range(MAX_PENDING):
        observers.publish(CatalogChange.between(one, two))
        observers.publish(CatalogChange.between(two, one))
    recorder.gate.set()
    await observers.drain()
    assert recorder.taken[0] is first
    assert recorder.taken[-1].after is one
    assert all(not change.is_empty for change in recorder.taken)


async def test_an_observer_that_cancels_itself_is_tried_again() -> None:
    class Cancelled(Recorder):
        async def on_catalog_change(self, change: CatalogChange) -> None:
            if not self.began.is_set():
                self.began.set()
                raise asyncio.CancelledError
            await super().on_catalog_change(change)

    recorder = Cancelled()
    observers = Observers([recorder], sleep=Pauses())
    observers.publish(STEPS[0])
    await observers.drain()
    assert recorder.taken == STEPS[:1]
    assert observers.reports()[0].last_error == "CancelledError: "


async def test_an_observer_that_comes_later_is_told_from_then_on() -> None:
    early, late = Recorder("early"), Recorder("late")
    observers = Observers([early])
    observers.publish(STEPS[0])
    observers.add(late)
    observers.publish(STEPS[1])
    await observers.drain()
    assert late.taken == STEPS[1:2]
    assert early.taken == STEPS[:2]


async def test_a_removed_observer_is_told_nothing_more() -> None:
    recorder, other = Recorder(), Recorder("other")
    observers = Observers([recorder, other])
    await observers.remove("recorder")
    await observers.remove("never there")
    observers.publish(STEPS[0])
    await observers.drain()
    assert (recorder.taken, other.taken) == ([], STEPS[:1])


async def test_two_observers_cannot_have_one_name() -> None:
    with pytest.raises(ValueError, match="named 'same' already"):
        Observers([Recorder("same"), Recorder("same")])


async def test_closing_leaves_no_task() -> None:
    class Stubborn(Recorder):
        async def on_catalog_change(self, change: CatalogChange) -> None:
            self.began.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return

    hanging, stubborn = Recorder("hanging"), Stubborn("stubborn")
    hanging.gate.clear()
    observers = Observers([hanging, stubborn])
    for step in STEPS[:3]:
        observers.publish(step)
    await hanging.began.wait()
    await stubborn.began.wait()
    await observers.aclose()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert observers.reports() == ()


# Any schedule

_EVENTS = st.lists(
    st.one_of(
        st.dictionaries(st.sampled_from("abc"), st.sampled_from("12"), max_size=3),
        st.sampled_from(["run", "run", "fail", "half", "kill"]),
    ),
    max_size=60,
)


@given(_EVENTS)
@settings(max_examples=150, deadline=None)
def test_whatever_happens_an_observer_ends_up_with_the_last_catalog(
    events: list[dict[str, str] | str],
) -> None:
    class Index:
        """Acts on a change name by name, so that a fault can come half way."""

        name = "index"

        def __init__(self) -> None:
            self.content: dict[str, str] = {}
            self.fault = ""
            self.spans: list[tuple[Catalog, Catalog]] = []

        async def on_catalog_change(self, change: CatalogChange) -> None:
            fault, self.fault = self.fault, ""
            if fault == "fail":
                raise OSError
            for name in change.names:
                if name in change.after.skills:
                    self.content[name] = change.after.skills[name].digest
                else:
                    self.content.pop(name, None)
                if fault == "half":
                    raise OSError
                await asyncio.sleep(0)
            self.spans.append((change.before, change.after))

    async def run() -> None:
        index = Index()
        observers = Observers([index], sleep=Pauses())
        current = Catalog()
        for event in [*events, {"last": "1"}]:
            if isinstance(event, dict):
                after = catalog(event)
                observers.publish(CatalogChange.between(current, after))
                current = after
            elif event == "run":
                await asyncio.sleep(0)
            elif event == "kill":
                for task in asyncio.all_tasks() - {asyncio.current_task()}:
                    task.cancel()
            else:
                index.fault = event
        await observers.drain()
        index.fault = ""
        final = catalog({"final": "1"})
        observers.publish(CatalogChange.between(current, final))
        await observers.drain()
        assert index.content == {"final": "1"}
        ends = [Catalog(), *(after for _, after in index.spans)]
        # Each change starts where the last one taken ended: none is lost, none out of order.
        assert [before.version for before, _ in index.spans] == [c.version for c in ends[:-1]]
        await observers.aclose()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("router.skills.observers.PAUSES", (0.1,))  # some changes are given up
        asyncio.run(run())
