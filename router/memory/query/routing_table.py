"""The routing table: which layers answer which type of query.

The *primary* layers of a type are read first, as far as the wording of the query speaks for them:
"What is JWT?" and "What is our rule on gifts?" are both factual, but the first needs only
``semantic`` and the second ``governance``. Its *secondary* layers are read if the first ones found
too little.

The order of the types breaks ties; planning stands before procedural, because a plan mentions
steps more often than steps mention a plan.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, TypeAlias

from router.errors import ConfigurationError
from router.memory.model import QueryType

MAX_LAYERS: Final = 4
"""How many layers are read at once; the rest are secondary."""


@dataclass(frozen=True, slots=True)
class Route:
    """The layers of one type, by name, with weights in (0, 1]."""

    primary: Mapping[str, float]
    secondary: Mapping[str, float] = field(default_factory=dict)


RoutingTable: TypeAlias = Mapping[QueryType, Route]

ROUTING_TABLE: Final[RoutingTable] = MappingProxyType(
    {
        QueryType.TEMPORAL: Route(
            {"episodic": 1.0}, {"session": 0.6, "project": 0.4, "prospective": 0.3}
        ),
        QueryType.RELATIONAL: Route({"graph": 1.0}, {"project": 0.7, "semantic": 0.4}),
        QueryType.PLANNING: Route(
            {"planning": 1.0}, {"project": 0.7, "prospective": 0.5, "procedural": 0.4}
        ),
        QueryType.PROCEDURAL: Route(
            {"procedural": 1.0}, {"semantic": 0.6, "project": 0.5, "episodic": 0.3}
        ),
        QueryType.PROSPECTIVE: Route(
            {"prospective": 1.0}, {"project": 0.5, "session": 0.4, "planning": 0.3}
        ),
        QueryType.META: Route({"meta": 1.0}, {"semantic": 0.6, "project": 0.4}),
        QueryType.FACTUAL: Route(
            {"semantic": 1.0, "governance": 1.0}, {"project": 0.5, "episodic": 0.3}
        ),
        QueryType.ARCHITECTURAL: Route(
            {"project": 1.0}, {"governance": 0.6, "graph": 0.5, "semantic": 0.4}
        ),
        QueryType.USER: Route({"user": 1.0}, {"episodic": 0.5, "session": 0.5}),
        QueryType.HISTORICAL: Route(
            {"episodic": 1.0, "governance": 1.0}, {"project": 0.6, "session": 0.3, "graph": 0.3}
        ),
        QueryType.GENERAL: Route(
            {"session": 1.0}, {"project": 0.6, "episodic": 0.5, "semantic": 0.3}
        ),
    }
)


def overridden(changes: RoutingTable | None, *, known: Collection[str]) -> RoutingTable:
    """The default table with ``changes`` in place of the types that they name, also by value, such
    as ``"factual"``. ``known`` are the layers that exist.

    Raises:
        ConfigurationError: an unknown type or layer, a type without primary layer, or a weight
            outside (0, 1]; the message names it.
    """
    table = dict(ROUTING_TABLE)
    for kind, route in (changes or {}).items():
        try:
            query_type = QueryType(kind)
        except ValueError:
            raise ConfigurationError(f"routing table: unknown type {kind!r}") from None
        table[query_type] = _checked(query_type, route, known)
    return MappingProxyType(table)


def _checked(query_type: QueryType, route: Route, known: Collection[str]) -> Route:
    where = f"routing table, {query_type.value}"
    if not route.primary:
        raise ConfigurationError(f"{where}: no primary layer")
    for layer, weight in (*route.primary.items(), *route.secondary.items()):
        if layer not in known:
            raise ConfigurationError(f"{where}: unknown layer {layer!r}")
        if isinstance(weight, bool) or not isinstance(weight, int | float) or not 0 < weight <= 1:
            raise ConfigurationError(f"{where}: weight {weight!r} of {layer!r} is not in (0, 1]")
    return Route(MappingProxyType(dict(route.primary)), MappingProxyType(dict(route.secondary)))
