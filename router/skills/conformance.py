"""A conformance suite for authors of observers.

It is part of the package because a plug-in's author has the package and not its tests. It needs
no test library; pytest collects it from a subclass whose name begins with ``Test``:

    class TestMyObserver(ObserverConformance):
        async def make_observer(self) -> CatalogObserver:
            return MyObserver()

        async def state(self, observer: CatalogObserver) -> object:
            return await observer.indexed_names()

What is asked of an observer follows from how it is told (see ``observers``): at least once, with
changes merged when it lags, and again after an attempt that failed half way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

from router.skills.catalog import Catalog
from router.skills.changes import CatalogChange
from router.skills.manifest import parse_manifest
from router.skills.observers import CatalogObserver

MANY: Final = 500
"""Skills in the largest change that the suite sends."""
CUTS: Final = 12
"""Places at which a delivery is cut off."""


class ObserverConformance:
    """Says whether an observer does what it must. Each ``test_`` method raises ``AssertionError``
    with the reason when it does not."""

    async def make_observer(self) -> CatalogObserver:
        """A new observer that has seen an empty catalog."""
        raise NotImplementedError

    async def state(self, observer: CatalogObserver) -> object:
        """What the observer has made of the catalog, as a value to compare: such as the names and
        digests in its index. None for an observer that keeps nothing, such as a notifier."""
        raise NotImplementedError

    async def close(self, observer: CatalogObserver) -> None:
        """Release what the observer holds."""

    def test_its_name_is_a_text_that_stays(self) -> None:
        """Reports name the observer by it."""

        async def run(observer: CatalogObserver) -> None:
            name = observer.name
            must(isinstance(name, str) and name != "", "the name is not a text")
            await observer.on_catalog_change(_change(_NONE, _ONE))
            must(observer.name == name, "the name has changed")

        self._run(run)

    def test_a_change_has_been_acted_on_when_the_call_returns(self) -> None:
        """A failure of work that goes on after the call would neither be seen nor tried again."""

        async def run(observer: CatalogObserver) -> None:
            others = asyncio.all_tasks()
            await observer.on_catalog_change(_change(_NONE, _ONE))
            left = asyncio.all_tasks() - others
            must(not left, f"tasks go on after the call: {left}")

        self._run(run)

    def test_being_told_twice_is_as_good_as_once(self) -> None:
        """Delivery is at least once."""
        once = [_change(_NONE, _ONE), _change(_ONE, _TWO)]
        twice = [once[0], once[0], once[1], once[1]]
        self._must_agree(once, twice, "telling each change twice gives another state")

    def test_changes_merged_into_one_give_what_they_give_one_by_one(self) -> None:
        """An observer that lags is told several changes as one."""
        steps = [_change(_NONE, _ONE), _change(_ONE, _TWO), _change(_TWO, _THREE)]
        self._must_agree(steps, [_change(_NONE, _THREE)], "merged changes give another state")

    def test_names_that_have_not_really_changed_do_no_harm(self) -> None:
        """After a failed attempt names are told again, whatever became of them."""
        again = CatalogChange.between(_ONE, _ONE, touched=["edited", "never-seen"])
        plain = [_change(_NONE, _ONE)]
        self._must_agree(plain, [*plain, again], "names told without need give another state")

    def test_a_change_without_skills_is_accepted(self) -> None:
        """Failures, notices and shadowed skills are told too."""
        nothing = CatalogChange.between(_ONE, _ONE)
        plain = [_change(_NONE, _ONE)]
        self._must_agree(plain, [*plain, nothing], "a change without skills gives another state")

    def test_many_skills_may_come_and_go_at_once(self) -> None:
        """A branch switch replaces everything."""
        many = _catalog({f"skill-{n}": "x" for n in range(MANY)})
        back = [_change(_NONE, many), _change(many, _ONE)]
        self._must_agree([_change(_NONE, _ONE)], back, "coming and going leaves something behind")

    def test_a_delivery_that_was_cut_off_is_made_good_by_the_next_one(self) -> None:
        """Cancelled at each of the first places where it waits."""
        first, second, third = _change(_NONE, _ONE), _change(_ONE, _TWO), _change(_TWO, _THREE)
        both = CatalogChange.between(second.before, third.after, touched=second.names)
        whole = self._state_after([first, _change(_ONE, _THREE)])
        for cut in range(CUTS):
            state = self._state_after([first, second, both], cut=cut)
            message = (
                f"cut off after {cut} turns of the loop, the next change does not make it good"
            )
            must(state == whole, f"{message}: {whole!r} and {state!r}")

    def _must_agree(self, one: list[CatalogChange], two: list[CatalogChange], message: str) -> None:
        """Both ways lead to the same state."""
        states = self._state_after(one), self._state_after(two)
        must(states[0] == states[1], f"{message}: {states[0]!r} and {states[1]!r}")

    def _state_after(self, changes: list[CatalogChange], *, cut: int | None = None) -> object:
        """Of a new observer; with ``cut`` the second change is cut off after so many turns."""

        async def run(observer: CatalogObserver) -> object:
            for number, change in enumerate(changes):
                delivery = observer.on_catalog_change(change)
                await (delivery if cut is None or number != 1 else _cut_off(delivery, cut))
            return await self.state(observer)

        return self._run(run)

    def _run(self, check: Callable[[CatalogObserver], Awaitable[object]]) -> object:
        async def fresh() -> object:
            observer = await self.make_observer()
            try:
                return await check(observer)
            finally:
                await self.close(observer)

        return asyncio.run(fresh())


async def _cut_off(call: Awaitable[None], turns: int) -> None:
    task = asyncio.ensure_future(call)
    for _ in range(turns + 1):  # one turn only starts it
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def must(fine: bool, message: str) -> None:
    """What ``assert`` does, also where Python runs with ``-O``."""
    if not fine:
        raise AssertionError(message)


def _catalog(descriptions: Mapping[str, str]) -> Catalog:
    return Catalog(
        {
            name: parse_manifest(
                f"---\nname: {name}\ndescription: {text}\n---\nDo it.\n".encode(),
                path=Path("/skills") / name / "SKILL.md",
            )
            for name, text in descriptions.items()
        }
    )


_change: Final = CatalogChange.between
_NONE: Final = Catalog()
_ONE: Final = _catalog({"kept": "same", "edited": "before", "removed": "soon gone"})
_TWO: Final = _catalog({"kept": "same", "edited": "between", "added": "new", "brief": "new"})
_THREE: Final = _catalog({"kept": "same", "edited": "after", "added": "new", "last": "new"})
