"""What the graph reached from a relevant item is relevant, too."""

from __future__ import annotations

import pytest
from memory.remembered import item

from router.memory.model import ScoreKind
from router.memory.recall.answers import RecalledItem
from router.memory.recall.relations import (
    MIN_GRAPH_WEIGHT,
    RELEVANCE_SHARE_PER_RELATION,
    follow_relations,
)

ENTITY = 0.7
"""The relevance of an entity that the query names and no item is about."""


def reached(
    content: str, relevance: float, hops: int, *relations: str, layer: str = "graph"
) -> RecalledItem:
    """An item about what its content names, so many relations away from what the query names."""
    said = {"entity": content, "relations": relations}
    found = item(content, content, layer=layer, attributes=said)
    return RecalledItem(found.scored(1 / (1 + hops), ScoreKind.FUSED), relevance)


def followed(
    query: str, *found: RecalledItem, graph_weight: float = MIN_GRAPH_WEIGHT
) -> tuple[dict[str, float], set[str]]:
    """The relevance of each content afterwards, and which of them lead."""
    judged = {one.item.content: one for one in found}
    leading = follow_relations(judged, query, graph_weight=graph_weight, entity_relevance=ENTITY)
    return {content: one.relevance for content, one in judged.items()}, leading


def test_each_relation_passes_on_a_share_of_the_relevance() -> None:
    found = [reached("cart", 0.9, 0), reached("ledger", 0.1, 1), reached("vault", 0.1, 2)]
    relevance, _ = followed("Tell me of the cart", *found)
    share = RELEVANCE_SHARE_PER_RELATION
    assert relevance == {
        "cart": 0.9,
        "ledger": pytest.approx(0.9 * share),
        "vault": pytest.approx(0.9 * share**2),
    }


def test_what_is_more_relevant_by_its_text_stays_so() -> None:
    relevance, _ = followed("Tell me of the cart", reached("cart", 0.5, 0), reached("till", 0.8, 1))
    assert relevance["till"] == 0.8


@pytest.mark.parametrize(
    ("query", "graph_weight", "is_raised"),
    [
        ("Tell me of the cart", MIN_GRAPH_WEIGHT, True),
        ("Tell me of the cart", 0.1, False),
        ("What does the cart use?", 0.1, True),
    ],
)
def test_relations_are_followed_for_a_query_that_asks_for_them(
    query: str, graph_weight: float, is_raised: bool
) -> None:
    found = [reached("cart", 0.9, 0, "uses -> ledger"), reached("ledger", 0.1, 1)]
    relevance, _ = followed(query, *found, graph_weight=graph_weight)
    assert (relevance["ledger"] > 0.1) is is_raised


def test_an_entity_without_an_item_passes_on_to_what_states_such_a_relation_alone() -> None:
    uses, owns = reached("cart", 0.1, 1, "uses -> Redis"), reached("team", 0.1, 1, "owns -> Redis")
    relevance, leading = followed("Who owns Redis?", uses, owns)
    assert relevance == {"cart": 0.1, "team": pytest.approx(ENTITY * RELEVANCE_SHARE_PER_RELATION)}
    assert leading == {"team"}


def test_what_states_the_relation_asked_for_is_as_relevant_as_the_entity() -> None:
    found = [reached("Redis", 0.9, 0), reached("cart", 0.1, 1, "depends on -> Redis")]
    relevance, leading = followed("What depends on Redis?", *found)
    assert leading == {"cart"}
    assert relevance["cart"] == 0.9 > relevance["Redis"]


def test_items_of_other_layers_are_left_alone() -> None:
    fact = reached("ledger", 0.1, 1, layer="semantic")
    relevance, leading = followed("What does the cart use?", reached("cart", 0.9, 0), fact)
    assert (relevance["ledger"], leading) == (0.1, set())
