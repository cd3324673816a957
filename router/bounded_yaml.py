"""YAML that may be a stranger's: PyYAML takes quadratic time for what is nested deeply."""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_OPENING: Final = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_CLOSING: Final = (yaml.MappingEndEvent, yaml.SequenceEndEvent)
MAX_MERGED: Final = 1_000_000
"""Values that aliases may stand for beside a ``<<``, which writes them out: 30 lines could ask for
2^30. Elsewhere an alias costs nothing, whatever it stands for."""
_MERGE: Final = "tag:yaml.org,2002:merge"
_LONG_NUMBER: Final = re.compile(r"[-+]?(?:0[xb][0-9a-f_]{300,}|[\d_:.]{300,})", re.ASCII)
"""Digits to the base of 60 (``1:30:00``) take quadratic time, and no float may hold so many."""


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
    seen = aliased = 0
    merges = False
    sizes: dict[str, int] = {}  # of each anchor's value, with every alias written out
    around: list[tuple[str | None, int]] = []  # anchor of each value around, and what was before it
    for event in yaml.parse(text, Loader=_LOADER):
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
            raise ValueError(f"it is nested more than {max_depth} levels deep")
    if merges and aliased > MAX_MERGED:
        raise ValueError(f"it merges (<<) what may be more than {MAX_MERGED:,} values")
    return yaml.safe_load(text)
