"""Texts that are made to keep their reader busy, and a strategy that draws others."""

from __future__ import annotations

import random
from typing import Final

from hypothesis import strategies as st

CHARACTERS: Final = 20_000


def repeated(unit: str, length: int = CHARACTERS) -> str:
    """The unit again and again, cut to a length."""
    return (unit * (length // len(unit) + 1))[:length]


def _drawn(*ranges: tuple[int, int]) -> str:
    """Characters of the ranges, all different as far as there are enough."""
    draw = random.Random(5)
    return "".join(chr(draw.randint(*draw.choice(ranges))) for _ in range(CHARACTERS))


FAMILIES: Final[dict[str, str]] = {
    "marks out of order": ("a" + "\u0301" * 4_999 + "\u0f73" * 15_000)[:CHARACTERS],
    "marks that alternate": repeated("a" + "\u0301\u0316" * 5_000),
    "marks without a combining class": repeated("\uff9e\u0301"),
    "marks beyond the first plane": repeated("\U0001d165\u0301"),
    "as many marks as count": repeated("a" + "\u0301\u0316" * 15),
    "the longest ligature": repeated("\ufdfa"),
    "words of the longest ligature": repeated("\ufdfa "),
    "squared words": repeated("\u3316"),
    "letters that folding takes apart": repeated("\u0390"),
    "a dotted capital": repeated("\u0130"),
    "one long word": repeated("a"),
    "one long word of two cases": repeated("aB"),
    "one long word of capitals": repeated("A"),
    "one long foreign word": repeated("\u03a3"),
    "one long word that grows": repeated("\u00df"),
    "one long word of syllables": _drawn((0xAC00, 0xD7A3)),
    "ideographs": _drawn((0x4E00, 0x9FFF)),
    "anything": _drawn((0x21, 0x7E), (0xA1, 0xD7FF), (0x10000, 0x1FFFF)),
    "very many clauses": repeated("commit my changes, "),
    "emoji": repeated("\U0001f600"),
    "an endless emoji": repeated("\U0001f468\u200d"),
    **{
        unit: repeated(unit)
        for unit in (
            *("a ", "the, ", "the\n", "x. ", "? ", "1! ", "1.", "a-b_", "a/", "a'", '"a ', "`a"),
            *(
                "(",
                "[",
                "<",
                "{",
                "\\",
                "_",
                ".",
                ",",
                "#",
                "# what\n",
                "# ",
                "```\n",
                "~~~\n```\n",
            ),
            *(
                " \n\t",
                "aB1_",
                "A1-",
                "@a",
                "a.b",
                "a::",
                "http://a",
                "~/",
                "--- \n",
                "- [a](",
                "|a",
            ),
            *("please ", "not ", "from a to b ", "and then ", "always use this ", "ignore all "),
            *("</system>", "<system ", "ignore ", "\nsystem:", "you are now ", "use this skill "),
            *("irm ://", "curl a.bc/", "curl ://|", "base64 -d ", "eval $(", "password: ", "zip "),
            *("in 3 days ", "last week ", "2021-", "between may and ", "may 3 ", "Ab Cd "),
            *("\u0928\u092e\u0938\u094d\u0924\u0947 ", "\u0e01\u0e33", "\u0645\u0631\u062d\u0628 "),
            *(
                "{'",
                '{"',
                '{"skills": [',
                '"\\',
                "\u200d",
                "\u202e",
                "\U000e0061",
                "QUJD",
                "QUJDaa1/",
            ),
        )
    },
}
"""By what they are made of, ``CHARACTERS`` long each."""


def hostile_texts(length: int = CHARACTERS) -> st.SearchStrategy[str]:
    """Texts of up to a length, of any Unicode that can be encoded: a few pieces, each repeated."""
    characters = st.characters(exclude_categories=["Cs"])
    known = st.sampled_from([text[:40] for text in FAMILIES.values()])
    piece = st.one_of(st.text(characters, min_size=1, max_size=12), known)
    run = st.builds(lambda unit, times: (unit * times)[:length], piece, st.integers(1, length))
    return st.lists(run, min_size=1, max_size=4).map(lambda runs: "".join(runs)[:length])
