"""Are these the arguments that a tool asks for? Checked before it is called.

The schema comes from a stranger. So references lead nowhere outside it, and the checks that it asks
for are bounded in number and in depth: a few references that lead to each other can ask for more
than a process ever finishes. Regular expressions are not run, and the values of a list are not
compared with each other, for the same reason: what these ask for is left to the server.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from referencing import Registry

from router.errors import InvalidRequest

MAX_FAULTS: Final = 5
MAX_FAULT_CHARACTERS: Final = 300
MAX_CHECKS: Final = 100_000
"""Keywords that are looked at for one call."""
MAX_DEPTH: Final = 100
"""How deeply keywords may be nested. Each level takes some five of the thousand frames that Python
has."""
_LEFT_OUT: Final = (
    "pattern",
    "patternProperties",
    "uniqueItems",
    "unevaluatedItems",
    "unevaluatedProperties",
)


class _TooMuch(Exception):
    """A schema asks for more checks than are made."""


class _Effort(threading.local):
    """What the check that runs in this thread has cost so far."""

    checks = 0
    depth = 0


_effort: Final = _Effort()


def check_arguments(
    tool: str, schema: Mapping[str, Any] | None, arguments: Mapping[str, Any]
) -> None:
    """Check arguments against the schema of a tool: draft 2020-12 where it names no other one.

    Raises:
        InvalidRequest: they do not fit, at most five faults are named; or the schema cannot be
            used.
    """
    if not schema:
        return
    _effort.checks = _effort.depth = 0
    try:
        kind = _kind(validator_for(schema, default=Draft202012Validator))
        checker = kind(_of_one_draft(schema), registry=Registry())
        found = islice(checker.iter_errors(arguments), MAX_FAULTS)
        faults = [_in_words(fault) for fault in found]
    except Exception as error:  # noqa: BLE001 - what a stranger wrote breaks checks in any way
        why = " ".join(str(error).split())[:MAX_FAULT_CHARACTERS]
        raise InvalidRequest(f"{tool}: the schema of its arguments cannot be used: {why}") from None
    if faults:
        raise InvalidRequest(f"{tool}: its arguments do not fit: {'; '.join(faults)}")


def _of_one_draft(schema: Mapping[str, Any]) -> Any:
    """The schema without the drafts that it names: the library takes its own validator, which has
    no bounds, for a part that names one."""

    def without(part: dict[str, Any]) -> dict[str, Any]:
        return {k: v for k, v in part.items() if k != "$schema" or not isinstance(v, str)}

    return json.loads(json.dumps(schema), object_hook=without)


@cache
def _kind(draft: type[Validator]) -> type[Validator]:
    """A draft's validator that makes a bounded number of checks."""
    own = draft.VALIDATORS.get("additionalProperties", _nothing)

    def additional(checker: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if "patternProperties" not in schema:
            yield from own(checker, value, instance, schema)

    checks = {**draft.VALIDATORS, "additionalProperties": additional}
    changed = {keyword: _bounded(check) for keyword, check in checks.items()}
    changed |= dict.fromkeys(_LEFT_OUT, _nothing)
    made: type[Validator] = extend(draft, changed)  # type: ignore[no-untyped-call]
    return made


def _bounded(check: Any) -> Any:
    """The check of one keyword, counted."""

    def counted(checker: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        _effort.checks += 1
        if _effort.checks > MAX_CHECKS or _effort.depth == MAX_DEPTH:
            raise _TooMuch("it asks for too many checks")
        _effort.depth += 1
        try:
            yield from check(checker, value, instance, schema) or ()
        finally:
            _effort.depth -= 1

    return counted


def _nothing(_checker: Any, _value: Any, _instance: Any, _schema: Any) -> Iterator[Any]:
    return iter(())


def _in_words(fault: ValidationError) -> str:
    place = ".".join(str(part) for part in fault.absolute_path)
    message = fault.message[:MAX_FAULT_CHARACTERS]
    return f"{place}: {message}" if place else message
