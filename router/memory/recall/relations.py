"""Follows the relations of the graph from the items that bear on a query to those they lead to.

If the query asks for relations, items that the layer ``graph`` reached from a relevant item are
relevant, too. If the query names an entity that no item is about, the entity itself counts as that
relevant item, but only for items that state a relation such as the query asks for: "Who owns
Redis?" is not answered by what uses Redis. If it asks what has a relation to that entity ("What
depends on Redis?"), the items that state it are as relevant as any of them, and come before the
item about the entity.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import replace
from typing import Final

from router.memory.model import GRAPH_LAYER
from router.memory.recall.answers import RecalledItem
from router.memory.stores.graph import (
    asked_way,
    continues,
    leads_to_named,
    relations_away,
    states_relation,
)

RELEVANCE_SHARE_PER_RELATION: Final = 0.7
"""The share of its relevance that an item passes on over each relation."""
MIN_GRAPH_WEIGHT: Final = 0.5
"""A query asks for relations if the classifier gives the layer ``graph`` at least this weight, or
its words say what they ask for of an entity (``asked_way``, ``continues``): some names are words
that ask for something else, such as "search"."""


def follow_relations(
    judged: MutableMapping[str, RecalledItem],
    query: str,
    *,
    graph_weight: float,
    entity_relevance: float,
) -> set[str]:
    """Raise the relevance of items that the graph reached from relevant ones. Returns the contents
    of the items that state what the query asks for (``leads_to_named``): they become as relevant as
    the best item that the graph reached, and the others less.

    Args:
        judged: the items by content, with the relevance of their texts; it is changed.
        graph_weight: the weight of the layer ``graph``.
        entity_relevance: that of an entity which the query names and no item is about.
    """
    away = {
        content: hops
        for content, one in judged.items()
        if one.item.layer == GRAPH_LAYER
        for hops in [relations_away(one.item)]
        if hops is not None
    }
    starts = [judged[content].relevance for content, hops in away.items() if not hops]
    named = [
        str(judged[content].item.attributes.get("entity", ""))
        for content, hops in away.items()
        if not hops
    ]
    asks_for_relations = (
        graph_weight >= MIN_GRAPH_WEIGHT
        or any(asked_way(name, query) for name in named)
        or any(continues(judged[content].item, query, named) for content in away)
    )
    for content, hops in away.items() if asks_for_relations else ():
        known = starts or states_relation(judged[content].item, query)
        reached = max(starts, default=entity_relevance) * RELEVANCE_SHARE_PER_RELATION**hops
        if hops and known and reached > judged[content].relevance:
            judged[content] = replace(judged[content], relevance=reached)
    best = max((judged[content].relevance for content in away), default=0.0)
    leading = {content for content in away if leads_to_named(judged[content].item, query)}
    for content, hops in away.items() if leading else ():
        most = best * RELEVANCE_SHARE_PER_RELATION ** max(1, hops)
        relevance = best if content in leading else min(most, judged[content].relevance)
        judged[content] = replace(judged[content], relevance=relevance)
    return leading
