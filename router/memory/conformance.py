"""A conformance suite for memory layers, for authors of layers.

It is part of the package because the author of a plug-in has the package and not its tests. It
needs no test library; pytest collects it from a subclass whose name begins with ``Test``:

    class TestMyLayer(LayerConformance):
        async def make_layer(self) -> AnyLayer:
            return MyLayer()

        async def fill(self, layer: AnyLayer, items: Sequence[MemoryItem]) -> None:
            await layer.add(items)

It tests layers that run on the event loop and layers that block; the latter are called in a thread,
as by the router.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import math
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar, cast

from router.concurrency.tasks import in_thread
from router.memory.model import (
    MAX_QUERY_CHARACTERS,
    AnyLayer,
    BlockingLayer,
    LayerQuery,
    LayerSpec,
    MemoryItem,
    MemoryLayer,
    Scope,
)
from router.text import STOPWORDS, tokens

NOW: Final = datetime(2026, 3, 4, 12, 0, tzinfo=UTC)
"""The time of the suite's queries; its items are from the days before."""
OWN: Final = Scope(user="ada", project="engine", session="monday")
"""The scope of the suite's queries."""
CANARY: Final = "zanzibar"
"""A word in the items of other scopes, which must never be in an answer."""
TEXTS: Final = (
    "a",
    "?",
    '"',
    "'; DROP TABLE items; --",
    '"unbalanced AND (NEAR OR NOT *',
    "content:deploy^2 -staging +prod {a b} : *",
    "C:\\Users\\ada\\notes",
    "%s %d {0} {{x}} $1 \\1",
    "what\tabout\nwhite space",
    "部署流程是什么?",
    "كيف أنشر الخدمة؟",
    "Как развернуть сервис?",
    "デプロイの手順",
    "👩‍💻 deploy 🚀",
    "e\u0301 \u202eright to left\u202c \u200b",
    "the of and to",
    "deploy " * (MAX_QUERY_CHARACTERS // len("deploy ")),
    "x" * MAX_QUERY_CHARACTERS,
)
"""Queries that have broken a search somewhere."""


_Suite = TypeVar("_Suite", bound="LayerConformance")


def _over_a_fresh_layer(
    check: Callable[[_Suite, AnyLayer], Awaitable[None]],
) -> Callable[[_Suite], None]:
    """Makes a test method of a check: it makes a layer, runs the check on an event loop of its own,
    and closes the layer."""

    def test(suite: _Suite) -> None:
        async def run() -> None:
            layer = await suite.make_layer()
            try:
                await check(suite, layer)
            finally:
                await suite.close(layer)

        asyncio.run(run())

    test.__doc__ = check.__doc__
    return test


class LayerConformance:
    """Tests whether a layer keeps the rules of ``MemoryLayer``. Each ``test_`` method raises
    ``AssertionError`` with the reason if it does not.

    Attributes:
        computes: the layer answers with items of its own making, such as counts. What it was
            filled with need not come back, and it may say that there is nothing.
    """

    computes: bool = False

    async def make_layer(self) -> AnyLayer:
        """A new, empty layer."""
        raise NotImplementedError

    async def fill(self, layer: AnyLayer, items: Sequence[MemoryItem]) -> None:
        """Store items, which have the layer's name and different ids.

        A layer that stores items of some scopes only may ignore the others.
        """
        raise NotImplementedError

    async def close(self, layer: AnyLayer) -> None:
        """Close the layer and release its resources."""

    @_over_a_fresh_layer
    async def test_its_spec_says_what_it_is(self, layer: AnyLayer) -> None:
        """The classifier reads the spec, and reports use its name."""
        spec = layer.spec
        _must(isinstance(spec, LayerSpec), "the spec is no LayerSpec")
        _must(spec.name.strip() != "", "the spec has no name")
        _must(spec.description.strip() != "", "the spec has no description")
        _must(0 <= spec.quality <= 1, f"quality {spec.quality} is not in [0, 1]")
        _must(layer.spec == spec, "the spec changes")

    @_over_a_fresh_layer
    async def test_an_empty_layer_gives_an_empty_answer(self, layer: AnyLayer) -> None:
        """An empty layer gives an empty answer, and no error."""
        found = await _ask(layer, "how do we deploy the service?", k=5)
        _must(self.computes or not found, f"an empty layer answers {_ids(found)}")

    @_over_a_fresh_layer
    async def test_what_is_stored_is_found(self, layer: AnyLayer) -> None:
        """Stored items are found by their own words."""
        await self.fill(layer, _items(layer, OWN, 3))
        found = await _ask(layer, "how do we deploy the service?", k=5)
        _must(self.computes or len(found) == 3, f"3 items are stored, {len(found)} found")
        names = {item.layer for item in found}
        _must(names <= {layer.spec.name}, f"items of {names} in {layer.spec.name}")

    @_over_a_fresh_layer
    async def test_an_answer_has_at_most_k_items(self, layer: AnyLayer) -> None:
        """An answer has at most ``k`` items, for every ``k`` from 1."""
        await self.fill(layer, _items(layer, OWN, 12))
        for k in (1, 2, 5, 50):
            found = await _ask(layer, "how do we deploy the service?", k=k)
            _must(len(found) <= k, f"{len(found)} items for k={k}")

    @_over_a_fresh_layer
    async def test_every_item_is_scored_and_the_best_comes_first(self, layer: AnyLayer) -> None:
        """All scores finite and of one kind; no item twice."""
        await self.fill(layer, _items(layer, OWN, 12))
        for text in ("how do we deploy the service?", "step 7", "last week", "pending tasks"):
            _must_be_ranked(await _ask(layer, text, k=8), text)

    @_over_a_fresh_layer
    async def test_nothing_of_another_scope_is_found(self, layer: AnyLayer) -> None:
        """No query of any scope finds an item that the scope does not see."""
        for number, scope in enumerate(_SCOPES):
            text = f"deploy the service {_canary(scope)}"
            item = _item(layer, scope, f"foreign-{number}", text)
            await self.fill(layer, [item])
        for asking in _SCOPES:
            for text in (f"deploy {CANARY}", CANARY, "last week", "what do we know?"):
                for item in await _ask(layer, text, k=50, scope=asking):
                    _must(asking.sees(item.scope), f"{asking} is given {item.id!r}")
                    seen = [s for s in _SCOPES if _canary(s) in item.content]
                    _must(
                        all(asking.sees(scope) for scope in seen),
                        f"{asking} is given content of {seen}",
                    )

    @_over_a_fresh_layer
    async def test_the_scope_is_applied_before_the_best_are_taken(self, layer: AnyLayer) -> None:
        """Better matches in other scopes must not keep out items that the query sees."""
        others = Scope(user="bob", project="loom", session="friday")
        crowd = [_item(layer, others, f"crowd-{n}", f"deploy the service: {n}") for n in range(60)]
        await self.fill(layer, crowd)
        await self.fill(layer, [_item(layer, OWN, "mine", "notes on how to deploy, in short")])
        found = await _ask(layer, "deploy the service", k=1)
        _must(self.computes or _ids(found) == ["mine"], f"found {_ids(found)}, not 'mine'")

    @_over_a_fresh_layer
    async def test_any_text_is_accepted(self, layer: AnyLayer) -> None:
        """Queries of any language, with quotes or operators, of 1 to 2,000 characters, are
        answered."""
        await self.fill(layer, _items(layer, OWN, 5))
        for text in TEXTS:
            _must_be_ranked(await _ask(layer, text, k=3), text)

    @_over_a_fresh_layer
    async def test_searching_changes_nothing(self, layer: AnyLayer) -> None:
        """The same query has the same answer."""
        await self.fill(layer, _items(layer, OWN, 6))
        text = "how do we deploy the service?"
        first = await _ask(layer, text, k=4)
        await _ask(layer, "something else entirely", k=4)
        _must(list(await _ask(layer, text, k=4)) == list(first), "the answer has changed")

    @_over_a_fresh_layer
    async def test_it_may_be_asked_many_things_at_once(self, layer: AnyLayer) -> None:
        """Queries at the same time have the same answers as one after the other."""
        await self.fill(layer, _items(layer, OWN, 12))
        texts = [f"deploy step {n}" for n in range(12)]
        alone = [_ids(await _ask(layer, text, k=3)) for text in texts]
        together = await asyncio.gather(*(_ask(layer, text, k=3) for text in texts))
        _must([_ids(found) for found in together] == alone, "answers differ when asked at once")


_SCOPES: Final = tuple(
    Scope(*dimensions)
    for dimensions in itertools.product(
        (None, "ada", "bob"), (None, "engine", "loom"), (None, "monday")
    )
)


def _canary(scope: Scope) -> str:
    """A word that is only in items of this scope."""
    parts = (scope.user, scope.project, scope.session)
    return CANARY + "".join(part or "all" for part in parts) + CANARY


def _items(layer: AnyLayer, scope: Scope, count: int) -> list[MemoryItem]:
    return [
        _item(layer, scope, f"item-{n}", f"To deploy the service, step {n}: run stage {n}.")
        for n in range(count)
    ]


def _item(layer: AnyLayer, scope: Scope, name: str, content: str) -> MemoryItem:
    age = timedelta(days=sum(map(ord, name)) % 20)
    return MemoryItem(
        id=name, layer=layer.spec.name, content=content, created=NOW - age, scope=scope
    )


async def _ask(layer: AnyLayer, text: str, *, k: int, scope: Scope = OWN) -> Sequence[MemoryItem]:
    words = (word for word in tokens(text) if word not in STOPWORDS)
    query = LayerQuery(text, tuple(dict.fromkeys(words)), None, NOW)
    if inspect.iscoroutinefunction(layer.search):
        return await cast(MemoryLayer, layer).search(query, scope=scope, k=k)
    blocking = cast(BlockingLayer, layer)
    return await in_thread(lambda: blocking.search(query, scope=scope, k=k))


def _must_be_ranked(found: Sequence[MemoryItem], text: str) -> None:
    asked = text if len(text) < 40 else f"{text[:40]}…"
    scores = [item.score for item in found if item.score is not None]
    _must(len(scores) == len(found), f"{asked!r}: an item has no score")
    _must(len({item.score_kind for item in found}) <= 1, f"{asked!r}: scores of several kinds")
    _must(all(map(math.isfinite, scores)), f"{asked!r}: a score is not finite")
    _must(scores == sorted(scores, reverse=True), f"{asked!r}: the best does not come first")
    _must(len(set(_ids(found))) == len(found), f"{asked!r}: an item comes twice")


def _ids(found: Sequence[MemoryItem]) -> list[str]:
    return [item.id for item in found]


def _must(fine: bool, message: str) -> None:
    if not fine:
        raise AssertionError(message)
