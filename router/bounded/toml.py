"""TOML that may be a stranger's: tomllib takes quadratic time for a key of many parts, and gives
numbers that Python then refuses to write down."""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

MAX_KEY_PARTS: Final = 32
MAX_NUMBER_BITS: Final = 64
"""TOML asks for whole numbers of 64 bits and leaves larger ones to the reader."""

_PART: Final = r"""(?>[\w-]+|"(?>[^"\\\n]|\\.)*"|'[^'\n]*')[ \t]*"""
_LONG_KEY: Final = re.compile(rf"(?<![\w\\-])(?:{_PART}\.[ \t]*){{{MAX_KEY_PARTS}}}", re.ASCII)
"""It begins behind no backslash: looking for the end from each escaped quote on takes too long."""


def load_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML document, whose length the caller bounds.

    Raises:
        ValueError: it is no TOML, has a key of more than 32 parts (or words in a row with nothing
            but a dot between them), or a whole number of more than 64 bits.
        RecursionError: it is nested too deeply.
    """
    if found := _LONG_KEY.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise ValueError(f"a key has more than {MAX_KEY_PARTS} parts (at line {line})")
    tables = tomllib.loads(text)
    values: list[Any] = [tables]
    while values:
        value = values.pop()
        if isinstance(value, dict):
            values += value.values()
        elif isinstance(value, list):
            values += value
        elif isinstance(value, int) and value.bit_length() > MAX_NUMBER_BITS:
            raise ValueError(f"a whole number has more than {MAX_NUMBER_BITS} bits")
    return tables
