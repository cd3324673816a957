"""Classifies a query: what does it ask for, and which layers of memory can answer it?

Three things decide. A model that was trained on written examples (``classifier_model``) gives the
probability of each type of answer from each built-in layer. Layers that somebody has added
(plug-ins) are compared with the query by their own examples. And the routing table says which
layers answer each type. No LLM is asked, because this must take less than a millisecond.

A query may be of more than one type, so several layers may be read: all whose share of the
probability reaches ``READ_SHARE``. If the likeliest is that nothing in memory bears on the query,
none is read.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from router.errors import ConfigurationError
from router.memory.model import MAX_QUERY_CHARACTERS, Classification, LayerSpec, QueryType
from router.memory.query.cues import cues
from router.memory.query.routing_table import MAX_LAYERS, RoutingTable, overridden
from router.numeric import logistic
from router.request import check_text
from router.result import MEMORY_LAYERS, LayerChoice
from router.text import STOPWORDS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from router.memory.query.classifier_model import QueryKind
    from router.retrieval.encoders import Encoder

READ_SHARE: Final = 0.05
"""A layer is read if it has at least this share of the probability."""
PLUGIN_SLOPE: Final = 24.0
PLUGIN_INTERCEPT: Final = -9.1
"""P(a plugged-in layer is wanted) as a logistic function of the cosine between the query and the
nearest of its examples. Fitted on CLINC150: each of its 150 intents as a layer of five examples,
its requests for validation against ten times as many queries that this package learned from."""

REMEMBERED_QUERIES: Final = 256
_MAX_CITED_CHARACTERS: Final = 40


class QueryClassifier:
    """Says which layers of memory a query needs.

    Args:
        table: routes to use instead of the default ones, by type.
        layers: the plug-ins; those with the name of a built-in layer are ignored here. A query is
            recognised as one for a plug-in by its examples and description.
        encoder: the bundled encoder, if it is loaded already. Another one is not used, because the
            weights were learned with the bundled one.

    Raises:
        ConfigurationError: the table names what does not exist or has a weight outside (0, 1], or a
            layer has neither examples nor a description.
    """

    def __init__(
        self,
        *,
        table: RoutingTable | None = None,
        layers: Sequence[LayerSpec] = (),
        encoder: Encoder | None = None,
    ) -> None:
        self._plugins = tuple(spec for spec in layers if spec.name not in MEMORY_LAYERS)
        for spec in self._plugins:
            if not _example_texts(spec):
                raise ConfigurationError(
                    f"layer {spec.name!r} has neither examples nor a description to know it by"
                )
        known = (*MEMORY_LAYERS, *(spec.name for spec in self._plugins))
        self._table = overridden(table, known=known)
        self._encoder = encoder

    def load(self) -> None:
        """Load the weights now, and not in the first call of another method."""
        _ = self._local

    def classify(self, query: str) -> Classification:
        """Classify a query of 1 to 2,000 characters. The first call loads the weights; later ones
        take some 0.2 ms."""
        check_text("query", query, MAX_QUERY_CHARACTERS)
        return self._local.classify(query)

    def layers(self, query: str) -> tuple[LayerChoice, ...]:
        """The layers that ``classify`` would read; quicker, because nothing is explained."""
        check_text("query", query, MAX_QUERY_CHARACTERS)
        return self._local.layers(query)

    @cached_property
    def _local(self) -> _LocalClassifier:
        return _LocalClassifier(self._table, self._plugins, self._encoder)


class _LocalClassifier:
    """The classifier once its weights are loaded."""

    def __init__(
        self, table: RoutingTable, plugins: Sequence[LayerSpec], encoder: Encoder | None
    ) -> None:
        from router.memory.query.classifier_model import ClassifierModel
        from router.retrieval.bundled_encoder import BundledEncoder, bundled_encoder

        if encoder is None or encoder.identity != BundledEncoder.identity:
            encoder = bundled_encoder()
        self._encoder = encoder
        self._model = ClassifierModel.load()
        self._table = table
        self._routes = _routes(self._model.kinds, table)
        self._plugins = [(spec.name, encoder.encode(_example_texts(spec))) for spec in plugins]
        # Cached because each step of a recall's cascade classifies the same query again.
        self.classify = lru_cache(maxsize=REMEMBERED_QUERIES)(self._classify)
        self.layers = lru_cache(maxsize=REMEMBERED_QUERIES)(
            lambda query: self._chosen(query).layers
        )

    def _classify(self, query: str) -> Classification:
        chosen = self._chosen(query)
        layers = chosen.layers
        if not layers:
            reason = "It calls for no layer in particular."
            return Classification((), (), (), chosen.confidence, (reason,))
        speaking = self._model.speaking_for(int(chosen.shares.argmax()), chosen.cues)
        types = _types(chosen.evidence, layers)
        reasons = _reasons(layers, types, [chosen.cues[cue] for cue in speaking], chosen.plugged)
        secondary = _secondary(self._table, types, layers)
        return Classification(types, layers, secondary, chosen.confidence, reasons)

    def _chosen(self, query: str) -> _ChosenLayers:
        """The layers to read for a query, and what they were chosen by."""
        found = cues(query)
        vector = self._encoder.encode([query])[0]
        shares = self._model.probabilities(found, vector)
        plugged, rest = self._plugged(vector)
        best, share = self._model.likeliest_layer(shares)
        confidence = rest * self._model.confidence_of(share)
        evidence: dict[_Destination, float] = defaultdict(float)
        if plugged and max(plugged.values()) > rest * share:
            confidence = max(plugged.values())
        elif best is None:
            return _ChosenLayers(found, shares, plugged, evidence, (), confidence)

        for likely, routed in zip(shares.tolist(), self._routes, strict=True):
            for destination in routed:
                evidence[destination] += rest * likely
        for name, likely in plugged.items():
            evidence[QueryType.GENERAL, name] += likely
        layers = self._layers(evidence)
        return _ChosenLayers(found, shares, plugged, evidence, layers, confidence)

    def _plugged(self, vector: NDArray[np.float32]) -> tuple[dict[str, float], float]:
        """How likely each plugged-in layer is wanted, and how likely none of them is."""
        alone = {
            name: logistic(PLUGIN_SLOPE * float((vectors @ vector).max()) + PLUGIN_INTERCEPT)
            for name, vectors in self._plugins
        }
        none = math.prod(1 - likely for likely in alone.values())
        scale = (1 - none) / sum(alone.values()) if alone else 1.0
        return {name: likely * scale for name, likely in alone.items()}, none

    def _layers(self, evidence: Mapping[_Destination, float]) -> tuple[LayerChoice, ...]:
        """The layers to read. The primary layer has its weight of the table; the weight of another
        one is multiplied by its share divided by that of the primary layer."""
        shares: dict[str, float] = defaultdict(float)
        weighted: dict[str, float] = defaultdict(float)
        for (kind, layer), share in evidence.items():
            shares[layer] += share
            weighted[layer] += share * self._table[kind].primary.get(layer, 1.0)
        ranked = sorted(weighted, key=weighted.__getitem__, reverse=True)[:MAX_LAYERS]
        read = [name for name in ranked if name == ranked[0] or shares[name] >= READ_SHARE]
        return tuple(LayerChoice(name, weighted[name] / shares[ranked[0]]) for name in read)


class _ChosenLayers(NamedTuple):
    """The layers to read for a query, and what they were chosen by.

    Attributes:
        cues: of the query, each with its words.
        shares: the probability of each kind of query.
        plugged: the probability of each plug-in.
        evidence: the probability of each type and layer.
        layers: the layers to read; empty if nothing in memory bears on the query.
        confidence: the probability that the first layer, or reading none, is right.
    """

    cues: dict[str, str]
    shares: NDArray[np.float32]
    plugged: dict[str, float]
    evidence: Mapping[_Destination, float]
    layers: tuple[LayerChoice, ...]
    confidence: float


def _example_texts(spec: LayerSpec) -> list[str]:
    """The texts with which a query is compared, to see whether it needs a plug-in."""
    return [text for text in (*spec.examples, spec.description) if text.strip()]


_Destination: TypeAlias = tuple[QueryType, str]
"""A type, and a layer that answers it."""


def _routes(kinds: Sequence[QueryKind], table: RoutingTable) -> list[list[_Destination]]:
    """Where the evidence for each learned kind counts, under a table.

    It counts for the kind's primary layer, if the table answers the type from there, and for every
    layer of the type that nothing was learned about; if that leaves none, for all of the type's.
    Further layers count under the types that they are primary to.
    """
    learned = {(kind.type, kind.primary) for kind in kinds}
    routes: list[list[_Destination]] = []
    for kind in kinds:
        if kind.type is None:
            routes.append([])
            continue
        primary = table[kind.type].primary
        chosen = [
            layer for layer in primary if layer == kind.primary or (kind.type, layer) not in learned
        ]
        further = [
            (other, layer)
            for layer in kind.layers[1:]
            for other in [next((t for t in table if layer in table[t].primary), None)]
            if other is not None
        ]
        routes.append([*((kind.type, layer) for layer in chosen or primary), *further])
    return routes


def _types(
    evidence: Mapping[_Destination, float], layers: Sequence[LayerChoice]
) -> tuple[QueryType, ...]:
    """The types of the query: that of the primary layer, then those of the other layers to read."""
    read = {choice.name for choice in layers}
    ranked = sorted(
        (pair for pair in evidence if pair[1] in read),
        key=lambda pair: (pair[1] == layers[0].name, evidence[pair]),
        reverse=True,
    )
    types = [pair[0] for pair in ranked if pair == ranked[0] or evidence[pair] >= READ_SHARE]
    return tuple(dict.fromkeys(types))


def _secondary(
    table: RoutingTable, types: Iterable[QueryType], layers: Sequence[LayerChoice]
) -> tuple[LayerChoice, ...]:
    """The layers that the table has for these types and that are not read first, best first.

    A primary layer of these types that is not read has half its weight, because the classifier did
    not choose it.
    """
    read = {choice.name for choice in layers}
    weights: dict[str, float] = {}
    for kind in types:
        unread = {name: weight / 2 for name, weight in table[kind].primary.items()}
        for name, weight in (*table[kind].secondary.items(), *unread.items()):
            if name not in read:
                weights[name] = max(weight, weights.get(name, 0.0))
    ranked = sorted(weights, key=weights.__getitem__, reverse=True)
    return tuple(LayerChoice(name, weights[name]) for name in ranked)


def _reasons(
    layers: Sequence[LayerChoice],
    types: Sequence[QueryType],
    words: Iterable[str],
    plugged: Mapping[str, float],
) -> tuple[str, ...]:
    primary = layers[0].name
    if primary in plugged:
        reasons = [f"It is like the examples of {primary}."]
    else:
        cited = _cited(words)
        quoted = " and ".join(f'"{word}"' for word in cited)
        verb = "speaks" if len(cited) == 1 else "speak"
        because = f"{quoted} {verb} for it" if cited else "it is like the queries for it"
        reasons = [f"The query is {types[0].value}, for {primary}: {because}."]
    if others := ", ".join(choice.name for choice in layers[1:]):
        reasons.append(f"It may also want {others}.")
    return tuple(reasons)


def _cited(words: Iterable[str]) -> list[str]:
    """The first two words that mean something by themselves and do not repeat each other."""
    cited: list[str] = []
    for cue in words:
        word = cue.removesuffix(" ?")
        says = word not in STOPWORDS and any(map(str.isalnum, word))
        repeats = any(word in other or other in word for other in cited)
        if says and not repeats and len(word) <= _MAX_CITED_CHARACTERS:
            cited.append(word)
            if len(cited) == 2:
                break
    return cited
