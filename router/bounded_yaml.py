"""YAML that may be a stranger's: PyYAML takes quadratic time for what is nested deeply."""

from __future__ import annotations

from typing import Any, Final

import yaml

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_OPENING: Final = (yaml.MappingStartEvent, yaml.SequenceStartEvent)
_CLOSING: Final = (yaml.MappingEndEvent, yaml.SequenceEndEvent)


def load_yaml(text: str | bytes, *, max_depth: int, aliases: bool = True) -> Any:
    """The value of a YAML document; nothing in it is constructed but plain types.

    Args:
        text: the document. The caller bounds its length.
        max_depth: levels that it may be nested.
        aliases: whether it may hold aliases, which can make a small text a huge value.

    Raises:
        ValueError: it is nested more deeply, or holds an alias that it may not.
        yaml.YAMLError: it is no YAML.
    """
    depth = 0
    for event in yaml.parse(text, Loader=_LOADER):
        if isinstance(event, yaml.AliasEvent) and not aliases:
            raise ValueError("it holds a YAML alias")
        depth += isinstance(event, _OPENING) - isinstance(event, _CLOSING)
        if depth > max_depth:
            raise ValueError(f"it is nested more than {max_depth} levels deep")
    return yaml.safe_load(text)
