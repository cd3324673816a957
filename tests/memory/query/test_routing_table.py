"""The table of routes: which layers a type of query is sent to."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.errors import ConfigurationError
from router.memory.model import Classification, QueryType
from router.memory.query.classifier import QueryClassifier
from router.memory.query.routing_table import ROUTING_TABLE, Route
from router.result import MEMORY_LAYERS
from router.retrieval.bundled_encoder import BundledEncoder


def names(classification: Classification) -> list[str]:
    return [choice.name for choice in classification.layers]


CLASSIFIER = QueryClassifier()
WORDS = "what who did we our you my plan remind last ago steps depends policy thanks 7 rhubarb ?"


@settings(max_examples=150)
@given(st.lists(st.sampled_from(WORDS.split()), min_size=1, max_size=12).map(" ".join))
def test_the_first_weight_is_the_tables_and_the_others_are_below_it(text: str) -> None:
    weights = [choice.weight for choice in CLASSIFIER.classify(text).layers]
    assert weights == sorted(weights, reverse=True)
    assert weights[:1] in ([], [1.0])


def test_a_route_of_ones_own_takes_the_place_of_the_default_one(encoder: BundledEncoder) -> None:
    table = {QueryType.RELATIONAL: Route({"project": 0.8}, {"meta": 0.2})}
    classified = QueryClassifier(table=table, encoder=encoder).classify(
        "Which modules depend on the tokenizer?"
    )
    assert names(classified)[0] == "project"
    assert classified.layers[0].weight == pytest.approx(0.8, abs=0.01)
    assert "meta" in [choice.name for choice in classified.secondary]
    assert "graph" not in names(classified)


def test_a_second_primary_layer_is_read_as_well(encoder: BundledEncoder) -> None:
    table = {QueryType.META: Route({"meta": 1.0, "semantic": 0.5})}
    classified = QueryClassifier(table=table, encoder=encoder).classify(
        "How much do you know about our vendors?"
    )
    assert names(classified)[:2] == ["meta", "semantic"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"cosmic": Route({"graph": 1.0})}, "unknown type 'cosmic'"),
        ({QueryType.META: Route({"mata": 1.0})}, "meta: unknown layer 'mata'"),
        ({QueryType.META: Route({"meta": 1.0}, {"mata": 1.0})}, "meta: unknown layer 'mata'"),
        ({QueryType.META: Route({"meta": 0.0})}, "weight 0.0 of 'meta'"),
        ({QueryType.META: Route({"meta": 1.5})}, "weight 1.5 of 'meta'"),
        ({QueryType.META: Route({"meta": float("nan")})}, "weight nan of 'meta'"),
        ({QueryType.META: Route({"meta": True})}, "weight True of 'meta'"),
        ({QueryType.META: Route({})}, "meta: no primary layer"),
    ],
)
def test_a_table_that_cannot_be_meant_is_refused(
    table: dict[QueryType, Route], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        QueryClassifier(table=table)


def test_the_default_table_has_a_route_for_every_type_and_reaches_every_layer() -> None:
    assert set(ROUTING_TABLE) == set(QueryType)
    reached = {layer for route in ROUTING_TABLE.values() for layer in route.primary}
    assert reached == set(MEMORY_LAYERS)
