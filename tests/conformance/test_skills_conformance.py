"""The conformance suite for observers: good ones pass it, and each kind of bad one does not."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from router.skills.changes import CatalogChange
from router.skills.conformance import ObserverConformance
from router.skills.observers import CatalogObserver


class Index:
    """Keeps names and digests, and waits between any two of them."""

    name = "index"

    def __init__(self) -> None:
        self.content: dict[str, str] = {}

    async def on_catalog_change(self, change: CatalogChange) -> None:
        for name in change.removed:
            await asyncio.sleep(0)
            self.content.pop(name, None)
        for name in (*change.added, *change.changed):
            await asyncio.sleep(0)
            self.content[name] = change.after.skills[name].digest


class TestIndex(ObserverConformance):
    async def make_observer(self) -> CatalogObserver:
        return Index()

    async def state(self, observer: CatalogObserver) -> object:
        assert isinstance(observer, Index)
        return observer.content


class Renamed(Index):
    """Takes its name from what it did."""

    @property
    def name(self) -> str:  # type: ignore[override]
        return f"index of {len(self.content)}"


class Detached(Index):
    """Returns before the work is done."""

    async def on_catalog_change(self, change: CatalogChange) -> None:
        self.task = asyncio.create_task(super().on_catalog_change(change))


class Counting(Index):
    """Is not idempotent."""

    async def on_catalog_change(self, change: CatalogChange) -> None:
        self.content["count"] = self.content.get("count", "") + "|"
        await super().on_catalog_change(change)


class Strict(Index):
    """Expects to know every name that is removed."""

    async def on_catalog_change(self, change: CatalogChange) -> None:
        for name in change.removed:
            del self.content[name]
        await super().on_catalog_change(change)


class Impatient(Index):
    """Believes that what it was told once is done, although it was cut off."""

    def __init__(self) -> None:
        super().__init__()
        self.told: set[str] = set()

    async def on_catalog_change(self, change: CatalogChange) -> None:
        news = [name for name in (*change.added, *change.changed) if name not in self.told]
        self.told.update(news)
        for name in news:
            await asyncio.sleep(0)
            self.content[name] = "there"
        for name in change.removed:
            self.told.discard(name)
            self.content.pop(name, None)


@pytest.mark.parametrize(
    ("bad", "check", "message"),
    [
        (Renamed, "test_its_name_is_a_text_that_stays", "name has changed"),
        (
            Detached,
            "test_a_change_has_been_acted_on_when_the_call_returns",
            "tasks go on after the call",
        ),
        (Counting, "test_being_told_twice_is_as_good_as_once", "telling each change twice"),
        (
            Impatient,
            "test_a_delivery_that_was_cut_off_is_made_good_by_the_next_one",
            "does not make it good",
        ),
    ],
)
def test_a_bad_observer_is_told_what_is_wrong(
    bad: Callable[[], Index], check: str, message: str
) -> None:
    class Suite(TestIndex):
        async def make_observer(self) -> CatalogObserver:
            return bad()

    with pytest.raises(AssertionError, match=message):
        getattr(Suite(), check)()


def test_a_fault_of_the_observer_itself_is_raised() -> None:
    class Suite(TestIndex):
        async def make_observer(self) -> CatalogObserver:
            return Strict()

    with pytest.raises(KeyError):
        Suite().test_names_that_have_not_really_changed_do_no_harm()
