"""BM25, for all of memory: a score for how well a text matches the words of a query.

Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with
Lucene's IDF, which is never negative: a word that is in all texts still counts a little. It is used
in three places, with counts of different origin: the store reads them from the database
(``stores/lexical.py``), memory files have an index in memory (``TextIndex``), and the items that
several layers found are ranked by their own statistics (``BM25.shares``).

Skills are ranked elsewhere (``router/retrieval/lexical.py``): six weighted fields, as arrays.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from router.memory.texts.words import content_terms, words_of
from router.text import stems

TITLE_WEIGHT: Final = 1.0


@dataclass(frozen=True, slots=True)
class BM25:
    """The two constants of the formula: the larger ``k1`` (above 0), the more a repeated word
    counts; the larger ``b`` (in [0, 1]), the more a long text loses."""

    k1: float
    b: float

    def length_norm(self, length: int, mean: float) -> float:
        """The divisor for the counts of a text; 1 at the mean length."""
        return 1 - self.b + self.b * length / mean

    def gain(self, frequency: float) -> float:
        """The score of a normalised count, before it is multiplied by the IDF; in [0, k1 + 1)."""
        return frequency * (self.k1 + 1) / (frequency + self.k1)

    def shares(self, terms: Iterable[str], contents: Sequence[str]) -> list[float]:
        """The score of each content, with the statistics of these contents, divided by the highest
        score that is possible; in [0, 1). The terms are stems; repeated ones count once."""
        texts = [words_of(content) for content in contents]
        bags = [text.bag for text in texts]
        lengths = [text.length for text in texts]
        mean = mean_length(sum(lengths), len(lengths))
        norms = [self.length_norm(length, mean) for length in lengths]
        scores = [0.0] * len(bags)
        reachable = 0.0
        for term in dict.fromkeys(terms):
            holders = [(number, bag[term]) for number, bag in enumerate(bags) if term in bag]
            weight = idf(len(holders), len(bags))
            reachable += weight * (self.k1 + 1)
            for number, count in holders:
                scores[number] += weight * self.gain(count / norms[number])
        return [score / reachable for score in scores] if reachable > 0 else scores


TEXTBOOK: Final = BM25(1.2, 0.75)
MEMORIES: Final = BM25(0.8, 0.4)
"""For memories, which are short: a repeated word says little, and length hardly matters."""


def idf(holders: int, texts: int) -> float:
    """The weight of a word that is in ``holders`` of the texts, above 0."""
    return math.log1p((texts - holders + 0.5) / (holders + 0.5))


def mean_length(total: int, texts: int) -> float:
    """The mean number of words of a text; at least 1, because it is used as a divisor."""
    return max(total / texts, 1.0) if texts else 1.0


class TextIndex:
    """An index of texts by id. It contains counts of stems, never the texts. Not thread-safe.

    The title of a text is a second field (BM25F): a word of it counts as ``TITLE_WEIGHT`` further
    occurrences, so that a name helps but does not decide.
    """

    def __init__(self) -> None:
        self._postings: dict[str, dict[str, tuple[int, int]]] = {}
        """Stem to id to its counts in text and title."""
        self._terms: dict[str, tuple[str, ...]] = {}
        self._lengths: dict[str, int] = {}
        self._total_length = 0

    def put(self, key: str, text: str, title: str) -> None:
        """Add a text, in place of the one that had this id."""
        self.remove(key)
        in_text, in_title = Counter(stems(text)), Counter(stems(title))
        terms = tuple(in_text.keys() | in_title.keys())
        for term in terms:
            self._postings.setdefault(term, {})[key] = in_text[term], in_title[term]
        self._terms[key] = terms
        self._lengths[key] = in_text.total()
        self._total_length += in_text.total()

    def remove(self, key: str) -> None:
        """Remove a text; an unknown id is ignored."""
        for term in self._terms.pop(key, ()):
            holders = self._postings[term]
            del holders[key]
            if not holders:
                del self._postings[term]
        self._total_length -= self._lengths.pop(key, 0)

    def search(self, query: str) -> list[tuple[str, float]]:
        """The ids of all texts that share a content word with the query and their BM25, which is
        positive, best first; of equals, in order of their ids."""
        mean = mean_length(self._total_length, len(self._lengths))
        scores: dict[str, float] = {}
        for term in content_terms(query):
            holders = self._postings.get(term, {})
            weight = idf(len(holders), len(self._lengths))
            for key, (in_text, in_title) in holders.items():
                norm = TEXTBOOK.length_norm(self._lengths[key], mean)
                value = weight * TEXTBOOK.gain(in_text / norm + TITLE_WEIGHT * in_title)
                scores[key] = scores.get(key, 0.0) + value
        return sorted(scores.items(), key=lambda entry: (-entry[1], entry[0]))
