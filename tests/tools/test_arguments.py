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


def test_regular_expressions_of_a_stranger_are_not_run() -> None:
    endless = "^(a+)+$"
    schema = {
        "properties": {"name": {"pattern": endless}},
        "patternProperties": {endless: {"type": "string"}},
        "additionalProperties": False,
        "unevaluatedProperties": False,
    }
    text = "a" * 64 + "!"
    assert fault_of(schema, {"name": text, text: "x"}) is None  # else it never ends
