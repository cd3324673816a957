"""Characters that a model reads and a person does not see.

Text can be hidden in tag characters and variation selectors, words split by zero-width characters,
and the order of what is shown turned round by direction marks ("Trojan Source", CVE-2021-42574).
What scripts and emoji need stays allowed: joiners after a letter of a script that joins or inside
an emoji, direction marks beside letters of a script that runs from right to left, one variation
selector after a symbol or an ideograph, the tags of a flag.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from itertools import islice
from typing import Final

from router.lint.rules import Rule
from router.lint.skill_file import Passage, SkillFile
from router.skills.diagnostics import Diagnostic

MAX_COUNTED: Final = 1_000
"""Hidden characters counted in one text."""

_SUSPECTS: Final = re.compile(
    "["
    "\u200b\u2060-\u2064\ufeff\u00ad\u034f\u180e"  # zero width
    "\u200c\u200d"  # joiners
    "\u200e\u200f\u061c"  # direction marks
    "\u202a-\u202e\u2066-\u2069"  # embeddings, overrides, isolates
    "\u115f\u1160\u3164\uffa0"  # fillers
    "\u206a-\u206f\ufff9-\ufffb"  # deprecated formats, annotations
    "\ufe00-\ufe0f\U000e0100-\U000e01ef"  # variation selectors
    "\U000e0000-\U000e007f"  # tags
    "\ue000-\uf8ff\U000f0000-\U000ffffd\U00100000-\U0010fffd"  # private use
    "]"
)
_DECEIVING: Final = re.compile(
    "[\u202a-\u202e\u2066-\u2069\ufe00-\ufe0f\U000e0000-\U000e01ef\ufff9-\ufffb]"
)
"""Nobody puts these characters into a text by accident; in the body they are an error, too."""
_FLAG: Final = re.compile("\U0001f3f4[\U000e0020-\U000e007e]{2,6}\U000e007f")
_RIGHT_TO_LEFT: Final = frozenset(("R", "AL", "AN"))
_SYMBOLS: Final = frozenset(("So", "Sk", "Sm", "Po", "Pd"))
_NEIGHBOURHOOD: Final = 40
"""How many characters around a direction mark are searched for a letter from right to left, which
excuses it."""


def hidden_characters(file: SkillFile) -> Iterator[Diagnostic]:
    """One finding for each line and kind of character."""
    skill = file.skill
    for passage in (*file.head, file.body):
        reported: dict[tuple[int, str], tuple[int, int]] = {}
        for place in islice(_hidden(passage.text), MAX_COUNTED):
            character = passage.text[place]
            line = file.place(passage, place, place + 1)
            count, first = reported.get((line, character), (0, place))
            reported[line, character] = (count + 1, first)
        for (line, character), (count, first) in reported.items():
            deceives = passage is not file.body or _DECEIVING.match(character)
            rule = Rule.HIDDEN_CHARACTER if deceives else Rule.HIDDEN_CHARACTER_IN_BODY
            times = f" {count} times" if count > 1 else ""
            message = (
                f"{passage.label} holds {_called(character)}{times}"
                f"{_column(file, passage, line, first)}: take it out"
            )
            yield rule.breach(skill.path, line, message)


def hides_characters(text: str) -> bool:
    """Whether a text holds characters that a model reads and a person does not see."""
    return next(_hidden(text), None) is not None


def _hidden(text: str) -> Iterator[int]:
    """The positions of hidden characters that no visible neighbour needs."""
    if text.isascii():
        return
    flags = {place for flag in _FLAG.finditer(text) for place in range(*flag.span())}
    for found in _SUSPECTS.finditer(text):
        if found.start() not in flags and not _excused(text, found.start()):
            yield found.start()


def _excused(text: str, place: int) -> bool:
    character = text[place]
    before = text[place - 1] if place else ""
    if character in "\u200e\u200f\u061c":
        around = text[max(0, place - _NEIGHBOURHOOD) : place + _NEIGHBOURHOOD]
        return any(unicodedata.bidirectional(c) in _RIGHT_TO_LEFT for c in around if c.isalpha())
    if character in "\u200c\u200d":
        return _is_symbol(before) or _joins(before)
    if character in "\ufe0e\ufe0f":  # text or emoji style; programs add it to many a sign
        return before.isprintable() and not before.isspace() and before not in "\ufe0e\ufe0f"
    if "\ufe00" <= character <= "\ufe0d":
        return _is_symbol(before) or _is_ideograph(before)
    if "\U000e0100" <= character <= "\U000e01ef":
        return _is_ideograph(before)
    return False


def _is_symbol(character: str) -> bool:
    """A symbol that an emoji may be made of, or a sign that alters one."""
    if not character or character.isascii():
        return False
    return character == "\ufe0f" or unicodedata.category(character) in _SYMBOLS


def _joins(character: str) -> bool:
    """A letter or mark of a script from Arabic on, where a joiner changes how letters look."""
    return character >= "\u0600" and unicodedata.category(character)[0] in "LM"


def _is_ideograph(character: str) -> bool:
    return bool(character) and unicodedata.name(character, "").startswith("CJK ")


def _called(character: str) -> str:
    name = unicodedata.name(character, "")
    if not name:
        name = "private-use character" if unicodedata.category(character) == "Co" else "tag"
    return f"U+{ord(character):04X} ({name.lower()})"


def _column(file: SkillFile, passage: Passage, line: int, place: int) -> str:
    """Where the character stands on its line; nothing is said where YAML spells it as an escape."""
    if not 0 < line <= len(file.lines):
        return ""
    column = file.lines[line - 1].find(passage.text[place])
    return f" from column {column + 1} on" if column >= 0 else ", written as an escape"
