"""The memory router: chooses the layers to read for a query, and reads them.

The steps are: rewrite the query once for all layers, look into the cache, classify the query,
choose layers, ask a few of them at a time.

The cache holds only answers to which every layer contributed, for five minutes. Its key is
everything that changes an answer: the normalised query with the period read from it, today's date,
the scope, the layers, the number of items, the layer weights, and the generation of the stores,
which rises with every write. "Yesterday" asked after midnight is another period and so another key.
Equal queries that arrive while one is being answered share its work.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Final, Protocol

from cachetools import LRUCache, TTLCache

from router.concurrency.single_flight import SingleFlight
from router.concurrency.tasks import in_thread
from router.errors import InvalidRequest, LayerError
from router.memory.model import (
    COUNTING_LAYER,
    EVENT_LAYER,
    GRAPH_LAYER,
    TASK_LAYER,
    AnyLayer,
    Classification,
    LayerQuery,
    LayerStatus,
    QueryType,
    Scope,
)
from router.memory.query.listing import asks_for_tasks, asks_what_happened, is_keyword
from router.memory.query.rewrite import rewrite
from router.memory.recall.answers import MemoryRoute, MemoryStatus, RouteStats
from router.memory.recall.gather import THREADS_AT_A_TIME, Gatherer
from router.memory.recall.weights import LayerWeights
from router.memory.stores.graph import asks_what_is_needed
from router.result import LayerChoice
from router.text import normalise

MAX_K: Final = 100
CACHE_SECONDS: Final = 300.0
_CACHE_CHARACTERS: Final = 20_000_000
_ENTRY_CHARACTERS: Final = 2_000
"""The size of an entry without items, for the bound of the cache."""
UNLIKELY_WEIGHT: Final = 0.1
"""Weight of a layer that is read although the classifier did not choose it."""
_REMEMBERED_ROUTES: Final = 1_000
"""The latest answers, whose ids feedback can refer to."""


class Classifier(Protocol):
    """Says what a query asks for."""

    def classify(self, query: str) -> Classification: ...


class MemoryRouter:
    """Chooses and reads layers; see the module's text. Belongs to one event loop. ``specs`` are the
    ``LayerSpec`` of the layers, by name, in the order of ``layers``.

    Args:
        layers: all layers that can be read.
        classifier: says which of them a query needs.
        weights: learned layer weights; the caller closes them.
        generation: changes with every write to what the layers read. It may block, and is called in
            a thread.
        layer_deadline_seconds: how long one layer may take, from when it is asked.
        deadline_seconds: how long all layers together may take, once the query is classified.
        threads_at_a_time: how many layers in threads are asked at a time; see ``Gatherer``.

    Raises:
        ConfigurationError: two layers share a name.
    """

    def __init__(
        self,
        layers: Iterable[AnyLayer],
        *,
        classifier: Classifier,
        weights: LayerWeights,
        generation: Callable[[], int] = lambda: 0,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
        layer_deadline_seconds: float = 0.05,
        deadline_seconds: float = 0.25,
        threads_at_a_time: int = THREADS_AT_A_TIME,
        cache_seconds: float = CACHE_SECONDS,
    ) -> None:
        self._gatherer = Gatherer(
            layers,
            layer_seconds=layer_deadline_seconds,
            threads_at_a_time=threads_at_a_time,
            clock=monotonic,
        )
        self.specs = self._gatherer.specs
        self._classifier = classifier
        self._weights = weights
        self._generation = generation
        self._clock = clock
        self._monotonic = monotonic
        self._deadline_seconds = deadline_seconds
        self._cache: TTLCache[Hashable, MemoryRoute] = TTLCache(
            _CACHE_CHARACTERS, cache_seconds, timer=monotonic, getsizeof=_characters
        )
        self._hits = self._misses = 0
        self._flights: SingleFlight[MemoryRoute] = SingleFlight()
        self._types_by_id: LRUCache[str, tuple[QueryType, ...]] = LRUCache(_REMEMBERED_ROUTES)

    async def route(
        self,
        query: str,
        *,
        scope: Scope,
        k: int = 5,
        layers: Sequence[str] | None = None,
        strict: bool = False,
    ) -> MemoryRoute:
        """What the layers that fit the query find within the deadline, also if some of them fail.

        Args:
            query: 1 to 2,000 characters of any language.
            scope: who asks; only items that it sees are found.
            k: items of each layer at most, 1 to 100.
            layers: read these, whatever the query asks for; None lets the classifier choose.
            strict: raise if a layer fails, instead of an answer without it.

        Raises:
            InvalidRequest: an argument cannot be used, or a layer is unknown.
            LayerError: ``strict``, and a layer failed, was late or was skipped.
            StoreError: the stores' generation cannot be read.
        """
        check_k(k)
        layer_query = rewrite(query, now=datetime.fromtimestamp(self._clock(), UTC))
        route = await self.read(layer_query, scope=scope, k=k, layers=layers)
        if strict:
            for report in route.results:
                if not report.is_complete:
                    raise LayerError(report.layer, f"{report.status}: {report.reason}")
        return route

    async def read(
        self,
        layer_query: LayerQuery,
        *,
        scope: Scope,
        k: int,
        layers: Sequence[str] | None = None,
        even_if_unneeded: bool = False,
    ) -> MemoryRoute:
        """As ``route``, for a query that has been rewritten.

        Args:
            even_if_unneeded: if the classifier chooses no layer, and for bare keywords, read all
                layers but ``meta``.
        """
        started = self._monotonic()
        named = None if layers is None else self._named(layers)
        generation = await in_thread(self._generation)
        key = (
            (
                normalise(layer_query.text),
                layer_query.terms,
                layer_query.period,
                layer_query.now.date(),
            ),
            (scope, k, named, even_if_unneeded, self._weights.version(), generation),
        )
        route = self._cache.get(key)
        cache_hit = route is not None
        if route is None:
            self._misses += 1
            read = partial(self._read, layer_query, scope, k, named, even_if_unneeded, key)
            route = await self._flights.do(key, read)
        else:
            self._hits += 1
        return self._for_caller(route, layer_query.text, started, cache_hit=cache_hit)

    async def feedback(
        self,
        layer: str,
        *,
        useful: bool,
        route_id: str | None = None,
        query: str | None = None,
    ) -> None:
        """Store whether a layer's part of an answer was useful. When it returns, that is on disk.

        Args:
            route_id: the ``id`` of the answer, one of the last 1,000 routes or recalls.
            query: instead of the id, the query itself.

        Raises:
            InvalidRequest: the layer or the answer is unknown, no layer is read for the query, or
                not exactly one of ``route_id`` and ``query`` is given.
        """
        self._check_known("layer", layer)
        if not isinstance(useful, bool):
            raise InvalidRequest(f"useful: expected bool, not {useful!r:.100}")
        if (query is None) == (route_id is None):
            raise InvalidRequest("feedback: give either route_id or query")
        if query is not None:
            types = self._classifier.classify(query).types
            if not types:
                raise InvalidRequest("query: no layer is read for it, so none can be judged")
        elif isinstance(route_id, str) and route_id in self._types_by_id:
            types = self._types_by_id[route_id]
        else:
            raise InvalidRequest(f"route_id: {route_id!r} is none of the latest answers")
        await in_thread(partial(self._weights.learn, types, layer, useful=useful))

    def clear_cache(self) -> int:
        """Drop all cached answers; returns how many there were."""
        entries = len(self._cache)
        self._cache.clear()
        return entries

    async def reset_weights(self) -> None:
        """Forget all feedback."""
        await in_thread(self._weights.reset)

    def status(self) -> MemoryStatus:
        """The state of the layers, their weights and the cache."""
        self._weights.version()  # reads the feedback that other processes stored
        self._cache.expire()
        return MemoryStatus(
            layers=self._gatherer.states(),
            weight_factors=self._weights.factors(),
            cache={"entries": len(self._cache), "hits": self._hits, "misses": self._misses},
        )

    async def aclose(self) -> None:
        """End all work and all threads; layers that hang are named in the log."""
        await self._gatherer.aclose()
        await self._flights.finish()

    async def _read(
        self,
        layer_query: LayerQuery,
        scope: Scope,
        k: int,
        named: tuple[str, ...] | None,
        even_if_unneeded: bool,
        key: Hashable,
    ) -> MemoryRoute:
        """Make an answer that is not cached; a complete one is put into the cache."""
        classification = self._classifier.classify(layer_query.text)
        chosen, secondary = self._choose(layer_query, classification, named)
        is_bare = is_keyword(layer_query.text) and not asks_what_happened(layer_query)
        if even_if_unneeded and named is None and (not chosen or is_bare):
            chosen, secondary = self._all_of(classification), ()
        # The deadline of the layers begins here: what classifying took is not taken off it.
        until = self._monotonic() + self._deadline_seconds
        results = await self._gatherer.gather(layer_query, chosen, scope=scope, k=k, until=until)
        queried = sum(1 for report in results if report.status is not LayerStatus.SKIPPED)
        stats = RouteStats(0.0, queried, cache_hit=False)
        route = MemoryRoute("", layer_query.text, classification, results, secondary, stats)
        if route.is_complete:
            with suppress(ValueError):  # larger than the whole cache
                self._cache[key] = route
        return route

    def _choose(
        self, layer_query: LayerQuery, classification: Classification, named: tuple[str, ...] | None
    ) -> tuple[tuple[LayerChoice, ...], tuple[LayerChoice, ...]]:
        """The layers to read, and those to read next, highest weight first. A query that asks for
        nothing but tasks reads the layer of tasks, though the classifier may choose others because
        of words like "I" and "work"; and one that asks for what happened reads that of events. One
        that asks what something needs also reads the graph, because the classifier cannot know
        whether the name is that of an entity.

        Feedback changes the order of the layers, and so which are read, but not how many: a
        secondary layer whose weight becomes higher than that of a primary one takes its place.
        """
        primary = {choice.name: choice.weight for choice in classification.layers}
        further = {choice.name: choice.weight for choice in classification.secondary}
        if named is not None:
            wanted = {name: primary.get(name, further.get(name, 1.0)) for name in named}
            return self._weighed(wanted, classification.types), ()
        if asks_for_tasks(layer_query):
            primary = {TASK_LAYER: 1.0} | primary
        if asks_what_happened(layer_query):
            primary |= {EVENT_LAYER: 1.0}
        primary = {name: weight for name, weight in primary.items() if name in self.specs}
        lightest = min(primary.values(), default=1.0)
        wanted = primary | {
            name: min(weight, lightest)
            for name, weight in further.items()
            if name in self.specs and name not in primary
        }
        reads_graph = GRAPH_LAYER in self.specs and asks_what_is_needed(layer_query.text)
        if wanted and reads_graph:
            wanted.setdefault(GRAPH_LAYER, UNLIKELY_WEIGHT)
        ranked = self._weighed(wanted, classification.types)
        # If none of the primary layers is installed, the best other layer is read.
        count = max(1, len(primary))
        chosen, later = ranked[:count], ranked[count:]
        graph = tuple(choice for choice in later if reads_graph and choice.name == GRAPH_LAYER)
        return chosen + graph, tuple(choice for choice in later if choice not in graph)

    def _all_of(self, classification: Classification) -> tuple[LayerChoice, ...]:
        """Every layer but ``meta``, those first that the classifier chose."""
        likely = {choice.name: choice.weight for choice in classification.layers}
        wanted = {
            name: max(likely.get(name, 0.0), UNLIKELY_WEIGHT)
            for name in self.specs
            if name != COUNTING_LAYER
        }
        return self._weighed(wanted, classification.types)

    def _weighed(
        self, weights: dict[str, float], types: Iterable[QueryType]
    ) -> tuple[LayerChoice, ...]:
        """The layers with their weights times the factors of feedback, scaled to at most 1, highest
        first."""
        adapted = {
            name: weight * self._weights.factor(types, name) for name, weight in weights.items()
        }
        scale = max(1.0, *adapted.values()) if adapted else 1.0
        ranked = sorted(adapted, key=adapted.__getitem__, reverse=True)  # stable
        return tuple(LayerChoice(name, adapted[name] / scale) for name in ranked)

    def _named(self, layers: Sequence[str]) -> tuple[str, ...]:
        if isinstance(layers, str):
            raise InvalidRequest("layers: expected a list of names, not one string")
        for name in layers:
            self._check_known("layers", name)
        return tuple(dict.fromkeys(layers))

    def _check_known(self, argument: str, name: object) -> None:
        if not isinstance(name, str) or name not in self.specs:
            known = ", ".join(self.specs)
            raise InvalidRequest(f"{argument}: no layer is named {name!r}; there are {known}")

    def _for_caller(
        self, route: MemoryRoute, query: str, started: float, *, cache_hit: bool
    ) -> MemoryRoute:
        """The answer, which callers may share, with an id and statistics for this caller."""
        identity = secrets.token_hex(8)
        self._types_by_id[identity] = route.classification.types
        milliseconds = (self._monotonic() - started) * 1000
        queried = 0 if cache_hit else route.stats.layers_queried
        stats = RouteStats(milliseconds, queried, cache_hit)
        return replace(route, id=identity, query=query, stats=stats)


def check_k(k: int) -> None:
    """Raise InvalidRequest unless ``k`` is an allowed number of items."""
    if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MAX_K:
        raise InvalidRequest(f"k: {k!r} is no whole number from 1 to {MAX_K}")


def _characters(route: MemoryRoute) -> int:
    return _ENTRY_CHARACTERS + sum(
        len(item.content) for report in route.results for item in report.items
    )
