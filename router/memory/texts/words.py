"""The words of a text, split and stemmed once, for finding, judging and comparing memories."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from router.memory.texts.chunking import CHUNK_CHARACTERS
from router.text import STOPWORDS, stem, stems_of, tokens, word_set

_KEPT: Final = 4_096
"""Short texts whose words are cached; about 3 KB each."""
_ASKING: Final = word_set(
    "remind remember recall forgot forget forgotten tell know knows before after "
    "summarize summarise describe explain ever"
)
"""Words of asking, such as in "remind me of", and of order in time. They are no part of the
subject."""

_NEIGHBOURS: Final = re.compile(
    r"\b(?:(?<=-)|(?!\d+ ))([^\W_]+(?:'[a-z]+)?) +(?=([^\W_]+(?:'[a-z]+)?))"
)
"""Two words with only spaces between them; the first is no number by itself."""
_OF_NO_KIND: Final = STOPWORDS | word_set(
    "new old current latest next last first present usual right correct actual exact main best "
    "whole full own several many few two three different"
)
"""Function words, and words that tell things apart only by time, order or number."""


@dataclass(frozen=True, slots=True)
class TextWords:
    """The words of one text: the different stems of its content words in order, how often each stem
    of all its words occurs, and how many words it has."""

    terms: tuple[str, ...]
    bag: Mapping[str, int]
    length: int


def words_of(text: str) -> TextWords:
    """The words of a text; those of short texts are cached."""
    return _kept(text) if len(text) <= CHUNK_CHARACTERS else _split(text)


def content_words(text: str) -> list[str]:
    """The words of a text in order, without function words and words of asking. If nothing is left,
    words of asking are included; if still nothing is left, all words."""
    return _content_of(tokens(text))


def _content_of(words: list[str]) -> list[str]:
    content = [word for word in words if word not in STOPWORDS]
    return [word for word in content if word not in _ASKING] or content or words


def content_terms(text: str) -> list[str]:
    """The different stems of the content words, for a search."""
    return list(dict.fromkeys(stems_of(content_words(text))))


def qualified_in(text: str) -> set[tuple[str, str]]:
    """The stems of each content word that stands directly behind another one, and of that, which
    often says which of several things is meant: (wifi, guest) in "the guest wifi"."""
    return {
        (stem(word), stem(qualifier))
        for qualifier, word in _NEIGHBOURS.findall(text.lower())
        if qualifier not in _OF_NO_KIND and word not in STOPWORDS
    }


def _split(text: str) -> TextWords:
    words = tokens(text)
    stemmed = stems_of(words)
    stem_of = dict(zip(words, stemmed, strict=True))
    terms = dict.fromkeys(stem_of[word] for word in _content_of(words))
    return TextWords(tuple(terms), Counter(stemmed), len(words))


_kept: Final = lru_cache(maxsize=_KEPT)(_split)
