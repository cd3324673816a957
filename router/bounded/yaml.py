"""YAML that may be a stranger's: PyYAML takes quadratic time for what is nested deeply."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

import yaml

_LOADER: Final[Any] = getattr(
    yaml, "CSafeLoader", yaml.SafeLoader
)  # libyaml takes a third of the time
_PARSER_TOO_DEEP: Final = "exceeded maximum nesting depth"
"""What libyaml says of 1,000 levels, since PyYAML 6.0.4."""
_OPENING: Final = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_CLOSING: Final = (yaml.MappingEndEvent, yaml.SequenceEndEvent)
MAX_MERGED: Final = 1_000_000
"""Values that aliases may stand for beside a ``<<``, which writes them out: 30 lines could ask for
2^30. Elsewhere an alias costs nothing, whatever it stands for."""
_MERGE: Final = "tag:yaml.org,2002:merge"
_LONG_NUMBER: Final = re.compile(r"[-+]?(?:0[xb][0-9a-f_]{300,}|[\d_:.]{300,})", re.ASCII)
"""Digits to the base of 60 (``1:30:00``) take quadratic time, and no float may hold so many."""


class BeyondBound(yaml.MarkedYAMLError):
    """A YAML text goes beyond a bound."""


def parse_events(text: str | bytes, *, max_depth: int) -> Iterator[Any]:
    """The events of a YAML text. The caller counts the levels, and may be spared most of them: the
    parser reads ahead, and may give up before it has told of the first level.

    Raises:
        BeyondBound: the parser has a bound of its own, and the text goes beyond it.
        yaml.YAMLError: it is no YAML.
    """
    try:
        yield from yaml.parse(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        if error.problem != _PARSER_TOO_DEEP:
            raise
        raise too_deep(max_depth, error.problem_mark) from None


def too_deep(max_depth: int, mark: Any) -> BeyondBound:
    """The error for a text that is nested too deeply at ``mark``."""
    return BeyondBound(problem=f"nested more than {max_depth} levels deep", problem_mark=mark)


def load_yaml(text: str | bytes, *, max_depth: int, aliases: bool = True) -> Any:
    """The value of a YAML document; nothing in it is constructed but plain types.

    Args:
        text: the document. The caller bounds its length.
        max_depth: levels that it may be nested.
        aliases: whether it may hold aliases, which can make a small text a huge value.

    Raises:
        ValueError: it is nested more deeply, holds an alias that it may not, or merges or a number
            that take work without end.
        yaml.YAMLError: it is no YAML.
    """
    try:
        return _load(text, max_depth, aliases)
    except BeyondBound as error:
        raise ValueError(f"it is {error.problem}") from None


def _load(text: str | bytes, max_depth: int, aliases: bool) -> Any:
    seen = aliased = 0
    merges = False
    sizes: dict[str, int] = {}  # of each anchor's value, with every alias written out
    around: list[tuple[str | None, int]] = []  # anchor of each value around, and what was before it
    for event in parse_events(text, max_depth=max_depth):
        if isinstance(event, yaml.AliasEvent):
            if not aliases:
                raise ValueError("it holds a YAML alias")
            size = sizes.get(event.anchor or "", 1)
            aliased, seen = aliased + size, seen + size
        elif isinstance(event, yaml.ScalarEvent):
            seen += 1
            if event.implicit[0] and _LONG_NUMBER.fullmatch(event.value):
                raise ValueError("a number is too long")
            merges |= event.tag == _MERGE or (event.implicit[0] and event.value == "<<")
        elif isinstance(event, _OPENING):
            around.append((event.anchor, seen))
            seen += 1
        elif isinstance(event, _CLOSING):
            anchor, before = around.pop()
            if anchor is not None:
                sizes[anchor] = min(seen - before, MAX_MERGED + 1)
        if len(around) > max_depth:
            raise too_deep(max_depth, event.start_mark)
    if merges and aliased > MAX_MERGED:
        raise ValueError(f"it merges (<<) what may be more than {MAX_MERGED:,} values")
    return yaml.safe_load(text)
