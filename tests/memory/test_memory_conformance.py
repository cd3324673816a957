"""The eleven layers do what every layer must; and the suite sees it when one does not."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest

from router.memory.conformance import LayerConformance
from router.memory.layers import built_in_layers
from router.memory.model import AnyLayer, LayerQuery, LayerSpec, MemoryItem, Scope, ScoreKind
from router.memory.stores.memory_store import MemoryStore
from router.memory.stores.rows import REQUIRED_SCOPE
from router.retrieval.bundled_encoder import BundledEncoder

ENCODER = BundledEncoder()


class BuiltIn(LayerConformance):
    """One of the built-in layers, on a store of its own."""

    name: ClassVar[str]

    async def make_layer(self) -> AnyLayer:
        self._folder = tempfile.TemporaryDirectory()
        self._store = MemoryStore.open(Path(self._folder.name), encoder=ENCODER)
        return next(one for one in built_in_layers(self._store) if one.spec.name == self.name)

    async def fill(self, layer: AnyLayer, items: Sequence[MemoryItem]) -> None:
        needed = REQUIRED_SCOPE.get(self.name)
        self._store.save([i for i in items if needed is None or getattr(i.scope, needed)])

    async def close(self, layer: AnyLayer) -> None:
        self._store.close()
        self._folder.cleanup()


class TestSession(BuiltIn):
    name = "session"


class TestProject(BuiltIn):
    name = "project"


class TestUser(BuiltIn):
    name = "user"


class TestSemantic(BuiltIn):
    name = "semantic"


class TestGraph(BuiltIn):
    name = "graph"


class TestGovernance(BuiltIn):
    name = "governance"


class TestEpisodic(BuiltIn):
    name = "episodic"


class TestProcedural(BuiltIn):
    name = "procedural"


class TestProspective(BuiltIn):
    name = "prospective"


class TestPlanning(BuiltIn):
    name = "planning"


class TestMeta(BuiltIn):
    name = "meta"
    computes = True


class ListLayer:
    """A plug-in on the event loop, right in all that is asked: newest first."""

    spec = LayerSpec("list", "A list of items.")

    def __init__(self) -> None:
        self.items: list[MemoryItem] = []

    async def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        seen = sorted(
            (one for one in self.items if scope.sees(one.scope)),
            key=lambda one: one.created,
            reverse=True,
        )
        return [one.scored(1 / (n + 1), ScoreKind.FUSED) for n, one in enumerate(seen[:k])]


class TestPlugin(LayerConformance):
    layer: type[ListLayer] = ListLayer

    async def make_layer(self) -> AnyLayer:
        return self.layer()

    async def fill(self, layer: AnyLayer, items: Sequence[MemoryItem]) -> None:
        assert isinstance(layer, ListLayer)
        layer.items += items


class TooMany(ListLayer):
    async def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        return await super().search(query, scope=scope, k=k + 1)


class Upside(ListLayer):
    async def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        return list(reversed(await super().search(query, scope=scope, k=k)))


class Leaky(ListLayer):
    async def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        wide = [replace(one, scope=Scope()) for one in self.items]
        return [one.scored(1.0, ScoreKind.FUSED) for one in wide[:k]]


class LateFilter(ListLayer):
    async def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        best = [one for one in self.items[:k] if scope.sees(one.scope)]
        return [one.scored(1.0, ScoreKind.FUSED) for one in best]


class Unscored(ListLayer):
    async def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        found = await super().search(query, scope=scope, k=k)
        return [replace(one, score=None, score_kind=None) for one in found]


class Picky(ListLayer):
    async def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        if '"' in query.text:
            raise ValueError("fts5: syntax error")
        return await super().search(query, scope=scope, k=k)


@pytest.mark.parametrize(
    ("fault", "check"),
    [
        (TooMany, "test_an_answer_has_at_most_k_items"),
        (Upside, "test_every_item_is_scored_and_the_best_comes_first"),
        (Unscored, "test_every_item_is_scored_and_the_best_comes_first"),
        (Leaky, "test_nothing_of_another_scope_is_found"),
        (LateFilter, "test_the_scope_is_applied_before_the_best_are_taken"),
    ],
)
def test_the_suite_tells_what_a_faulty_layer_does_wrong(fault: type[ListLayer], check: str) -> None:
    suite = TestPlugin()
    suite.layer = fault
    with pytest.raises(AssertionError):
        getattr(suite, check)()


def test_the_suite_lets_an_error_of_the_layer_through() -> None:
    suite = TestPlugin()
    suite.layer = Picky
    with pytest.raises(ValueError, match="fts5"):
        suite.test_any_text_is_accepted()
