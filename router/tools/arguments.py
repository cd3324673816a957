"""Are these the arguments that a tool asks for? Checked before it is called.

The schema comes from a stranger. So references lead nowhere outside it, and its regular expressions
are not run, because one that is written for it keeps a process busy for ever: what they ask for is
left to the server.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import islice
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from router.errors import InvalidRequest

MAX_FAULTS: Final = 5
MAX_FAULT_CHARACTERS: Final = 300


def check_arguments(
    tool: str, schema: Mapping[str, Any] | None, arguments: Mapping[str, Any]
) -> None:
    """Check arguments against the schema of a tool.

    Args:
        tool: its name, for errors.
        schema: JSON Schema; draft 2020-12 where it names no other one.
        arguments: what the tool would be called with.

    Raises:
        InvalidRequest: they do not fit, at most five faults are named; or the schema cannot be
            used.
    """
    if not schema:
        return
    kind = _kind(validator_for(schema, default=Draft202012Validator))
    try:
        kind.check_schema(dict(schema))
        checker = kind(dict(schema), registry=Registry())
        found = islice(checker.iter_errors(arguments), MAX_FAULTS)
        faults = [_in_words(fault) for fault in found]
    except (SchemaError, Unresolvable, RecursionError) as error:
        why = " ".join(str(error).split())[:MAX_FAULT_CHARACTERS]
        raise InvalidRequest(f"{tool}: the schema of its arguments cannot be used: {why}") from None
    if faults:
        raise InvalidRequest(f"{tool}: its arguments do not fit: {'; '.join(faults)}")


@cache
def _kind(draft: type[Validator]) -> type[Validator]:
    """A draft's validator that runs no regular expression."""
    own = draft.VALIDATORS.get("additionalProperties", _nothing)

    def additional(checker: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if "patternProperties" not in schema:
            yield from own(checker, value, instance, schema)

    ignored = dict.fromkeys(("pattern", "patternProperties", "unevaluatedProperties"), _nothing)
    changed = {**ignored, "additionalProperties": additional}
    made: type[Validator] = extend(draft, changed)  # type: ignore[no-untyped-call]
    return made


def _nothing(_checker: Any, _value: Any, _instance: Any, _schema: Any) -> Iterator[Any]:
    return iter(())


def _in_words(fault: ValidationError) -> str:
    place = ".".join(str(part) for part in fault.absolute_path)
    message = fault.message[:MAX_FAULT_CHARACTERS]
    return f"{place}: {message}" if place else message
