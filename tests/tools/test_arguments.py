from __future__ import annotations

from typing import Any

import pytest

from router.errors import InvalidRequest
from router.tools.arguments import check_arguments

REFUND = {
    "type": "object",
    "properties": {"amount": {"type": "number", "minimum": 0}, "to": {"$ref": "#/$defs/person"}},
    "required": ["amount"],
    "additionalProperties": False,
    "$defs": {"person": {"type": "string"}},
}


def fault_of(schema: dict[str, Any] | None, arguments: dict[str, Any]) -> str | None:
    """What is wrong with the arguments; None when nothing is."""
    try:
        check_arguments("bank__refund", schema, arguments)
    except InvalidRequest as error:
        return str(error)
    return None


def test_arguments_that_fit_pass() -> None:
    for schema, arguments in ((REFUND, {"amount": 7, "to": "Ada"}), (None, {"whatever": 1})):
        assert fault_of(schema, arguments) is None


def test_what_does_not_fit_is_named_by_its_place() -> None:
    told = fault_of(REFUND, {"amount": -1, "to": 7, "all": True})
    assert told is not None
    assert told.startswith("bank__refund: its arguments do not fit: ")
    assert "amount: -1 is less than the minimum of 0" in told
    assert "to: 7 is not of type 'string'" in told
    assert "'all' was unexpected" in told


@pytest.mark.parametrize(
    "schema",
    [
        {"type": 7},
        {"properties": {"amount": {"$ref": "http://example.org/schema.json"}}},
        {"properties": {"amount": {"$ref": "#/$defs/none"}}},
        {"allOf": [{"$ref": "#"}]},
    ],
)
def test_a_schema_that_cannot_be_used_refuses_the_call(schema: dict[str, Any]) -> None:
    told = fault_of(schema, {"amount": 7})
    assert told is not None
    assert told.startswith("bank__refund: the schema of its arguments cannot be used: ")


def doubled(keyword: str) -> dict[str, Any]:
    """A small schema that asks for 2**40 checks."""
    definitions: dict[str, Any] = {
        str(n): {keyword: [{"$ref": f"#/$defs/{n + 1}"}] * 2} for n in range(40)
    }
    definitions["40"] = {"type": "integer"}
    return {"properties": {"amount": {"$ref": "#/$defs/0"}}, "$defs": definitions}


def circle(**definition: Any) -> dict[str, Any]:
    return {"properties": {"amount": {"$ref": "#/$defs/a"}}, "$defs": {"a": definition}}


@pytest.mark.parametrize(
    ("schema", "amount"),
    [
        (doubled("allOf"), 7),
        (doubled("anyOf"), "much"),
        (circle(**{"$ref": "#/$defs/a"}), 7),
        (circle(**{"not": {"$ref": "#/$defs/a"}}), 7),  # a panic of the Rust library below
        ({"items": [{"$ref": "#"}], "$ref": "#"}, 7),
        ({"$schema": "http://json-schema.org/draft-03/schema#", "extends": {"$ref": "#"}}, 7),
    ],
    ids=["doubled", "doubled, all refused", "itself", "not itself", "the root", "an older draft"],
)
def test_a_schema_that_asks_for_checks_without_end_refuses_the_call(
    schema: dict[str, Any], amount: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("router.tools.arguments.MAX_CHECKS", 1_000)
    told = fault_of(schema, {"amount": amount})
    assert told is not None
    assert "cannot be used: it asks for too many checks" in told


def test_a_schema_of_a_tree_is_followed_as_deep_as_the_tree() -> None:
    node: dict[str, Any] = {"properties": {"kids": {"items": {"$ref": "#/$defs/node"}}}}
    tree: dict[str, Any] = {"kids": "none"}
    for _ in range(12):
        tree = {"kids": [tree]}
    schema = {"$ref": "#/$defs/node", "$defs": {"node": node}}
    assert fault_of(schema, tree) is None
    node["properties"]["kids"]["type"] = "array"
    told = fault_of(schema, tree)
    assert told is not None
    assert told.endswith("kids: 'none' is not of type 'array'")


def test_many_values_that_must_differ_are_not_compared() -> None:
    schema = {"properties": {"all": {"uniqueItems": True}}}
    assert fault_of(schema, {"all": [{"n": n} for n in range(100_000)]}) is None  # else 10**10


def test_regular_expressions_of_a_stranger_are_not_run() -> None:
    endless = "^(a+)+$"
    schema: dict[str, Any] = {
        "properties": {"name": {"pattern": endless}},
        "patternProperties": {endless: {"type": "string"}},
        "additionalProperties": False,
        "unevaluatedProperties": False,
    }
    own = {"$schema": "https://json-schema.org/draft/2020-12/schema", "pattern": endless}
    schema["properties"]["own"] = own
    text = "a" * 64 + "!"
    assert fault_of(schema, {"name": text, "own": text, text: "x"}) is None  # else it never ends
