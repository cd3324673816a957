"""Letters of one script that pose as letters of another, such as a Cyrillic o in "commit".

To a reader the two look the same; to a router they are different words, so a skill can hide from
search, or look like another one. Only look-alikes count. A word may well hold two scripts (a unit
such as the micrometre, a foreign ending at an acronym), and a text may well hold words of several.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from router.lint.rules import Rule
from router.lint.skill_file import SkillFile
from router.skills.diagnostics import Diagnostic, short

_LOOK_ALIKES: Final = (
    # Cyrillic: a e o p c y x i s j d h l q w A B E K M H O P C T Y X I J S
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0455\u0458\u0501\u04bb\u04cf\u051b\u051d"
    "\u0410\u0412\u0415\u041a\u041c\u041d\u041e\u0420\u0421\u0422\u0423\u0425\u0406\u0408\u0405"
    # Greek: o v i A B E Z H I K M N O P T Y X
    "\u03bf\u03bd\u03b9\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1"
    "\u03a4\u03a5\u03a7"
)
_WORD: Final = re.compile(r"[^\W\d_]+")
_LATIN: Final = re.compile("[A-Za-z]")
_FOREIGN: Final = re.compile("[\u0370-\u03ff\u0400-\u052f]")
_POSES: Final = re.compile(f"[{_LOOK_ALIKES}]")
_ENDING: Final = re.compile("[A-Z]+[\u0400-\u052f]+")
"""Matches an acronym with the ending of a Russian case."""
LEAST_LETTERS: Final = 3
"""A word of nothing but look-alikes counts from this length on, and only where no other word is of
its script."""


def mixed_scripts(file: SkillFile) -> Iterator[Diagnostic]:
    """Report the first posing word in each text that routers read before they choose."""
    for passage in file.head:
        found = _posing_word(passage.text)
        if found is not None:
            word, letter = found
            message = (
                f"{passage.label} writes {short(word.group())} with a letter of another script "
                f"(U+{ord(letter):04X}): write it in the script of the text"
            )
            yield file.breach(Rule.MIXED_SCRIPT, passage, word.span(), message)


def _posing_word(text: str) -> tuple[re.Match[str], str] | None:
    """The first word that a look-alike stands in, and that letter."""
    if text.isascii() or _LATIN.search(text) is None:
        return None
    has_foreign_words = any(not _POSES.match(letter) for letter in _FOREIGN.findall(text))
    for word in _WORD.finditer(text):
        foreign = _FOREIGN.findall(word.group())
        if not foreign or not all(_POSES.match(letter) for letter in foreign):
            continue
        if _LATIN.search(word.group()):
            poses = _ENDING.fullmatch(word.group()) is None
        else:
            poses = len(foreign) >= LEAST_LETTERS and not has_foreign_words
        if poses:
            return word, foreign[0]
    return None
