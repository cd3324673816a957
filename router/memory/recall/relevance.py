"""How probable it is that a text bears on a query, judged from the two alone.

Scores of layers do not compare: BM25 has no upper bound, and the scale of a fused score is its
layer's own. Whether memory holds an answer at all, and whether a cascade is worth its time, needs a
number that means the same for every layer. Three signs are read, each free of scale:

* coverage: the share of the query's words that the text holds, by stems; without a corpus to count
  in, longer words weigh more, because the commonest words are short;
* names: the share of the query's names, numbers and identifiers that the text holds. They decide
  whom or what an answer is about, so they count once more beside the coverage;
* cosine: similarity of meaning by the encoder.

A logistic function of the three is the probability. Its coefficients were fitted to question and
evidence pairs of ten long conversations (LoCoMo), against texts of the same conversation, of others
at random, and the best match of others, one positive in four; left-out conversations and pairs on
software set it apart alike. Nothing bounds it from below: a text that shares nothing with the query
comes near 0.03, and one that repeats it near 0.97.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, Self

from router.memory.texts.bm25 import content_words
from router.retrieval.encoders import Encoder
from router.text import STOPWORDS, stem, stems, tokens

BIAS: Final = -4.2
COVERAGE: Final = 3.9
NAMES: Final = 1.9
COSINE: Final = 1.9
NO_NAMES: Final = 0.5
"""The share of names for a query that has none: says nothing either way."""
LONGEST: Final = 10
"""Letters beyond which a word weighs no more."""

_WORD: Final = re.compile(r"[^\W_][\w'.-]*")


class RelevanceModel(Protocol):
    """Scores contents against a query."""

    def of(self, query: str, contents: Sequence[str]) -> list[float]:
        """For each content the probability, in [0, 1], that it bears on the query."""
        ...


class Relevance:
    """Judges texts; see the module's text. As safe in threads as its encoder."""

    def __init__(self, encoder: Encoder) -> None:
        self._encoder = encoder

    def of(self, query: str, contents: Sequence[str]) -> list[float]:
        """For each content the probability, in [0, 1], that it bears on the query.

        Raises:
            EncoderError: the encoder cannot be reached or gave unusable vectors.
        """
        if not contents:
            return []
        vectors = self._encoder.encode([query, *contents])
        cosines = vectors[1:] @ vectors[0]
        words = _QueryWords.of(query)
        return [
            _logistic(BIAS + words.held_by(content) + COSINE * float(cosine))
            for content, cosine in zip(contents, cosines, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class _QueryWords:
    """What is looked for in a text: stems with their weights, and those of names."""

    weights: dict[str, float]
    names: frozenset[str]

    @classmethod
    def of(cls, query: str) -> Self:
        words = content_words(query)
        weights = {stem(word): 1.0 + min(len(word), LONGEST) / LONGEST for word in words}
        return cls(weights, names_in(query) & weights.keys())

    def held_by(self, content: str) -> float:
        """What coverage and names add up to, from 0 to ``COVERAGE`` + ``NAMES``."""
        if not self.weights:
            return 0.0
        held = self.weights.keys() & set(stems(content))
        coverage = sum(self.weights[word] for word in held) / sum(self.weights.values())
        names = len(held & self.names) / len(self.names) if self.names else NO_NAMES
        return COVERAGE * coverage + NAMES * names


def names_in(query: str) -> frozenset[str]:
    """The stems of the query's names, numbers and identifiers.

    A word counts that holds a digit, or a capital where no sentence begins. The first word counts
    only with a capital inside, as in ``JWT``: every question begins with a capital.
    """
    found: set[str] = set()
    for match in _WORD.finditer(query):
        word = match.group().removesuffix("'s")
        capital = word != word.lower() and (match.start() > 0 or not word.istitle())
        if (capital and word.lower() not in STOPWORDS) or any(c.isdigit() for c in word):
            found.update(map(stem, tokens(word)))
    return frozenset(found)


def _logistic(signal: float) -> float:
    return 1.0 / (1.0 + math.exp(-signal))
