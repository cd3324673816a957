"""BM25: how well texts hold the words of a query, among each other. All of memory counts it here.

Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond" (2009), with
Lucene's IDF, which is never negative: a word that all texts hold still counts a little. The places
differ in where the counts come from: the store reads them from SQLite (``stores/lexical.py``),
memory files are indexed as they come and go (``TextIndex``), and what several layers found is
ranked by its own statistics (``BM25.shares``).

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
    """The formula's two constants: ``k1``, above 0, says how late repeating a word stops to count,
    and ``b``, in [0, 1], how much the length of a text counts."""

    k1: float
    b: float

    def length_norm(self, length: int, mean: float) -> float:
        """What the counts of a text are divided by; 1 at the mean length."""
        return 1 - self.b + self.b * length / mean

    def gain(self, frequency: float) -> float:
        """What a normalised count adds to a score, times the word's IDF; in [0, k1 + 1)."""
        return frequency * (self.k1 + 1) / (frequency + self.k1)

    def shares(self, terms: Iterable[str], contents: Sequence[str]) -> list[float]:
        """The score of each content among these contents, which were all found for the query, as a
        share of what a content could reach; in [0, 1). The terms are stems; repeating one changes
        nothing."""
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
"""Memories are short: repeating a word in one says little, and a longer one is no weaker."""


def idf(holders: int, texts: int) -> float:
    """The weight of a word that so many of the texts hold, above 0."""
    return math.log1p((texts - holders + 0.5) / (holders + 0.5))


def mean_length(total: int, texts: int) -> float:
    """Words of a text in the mean; at least 1, because it is divided by."""
    return max(total / texts, 1.0) if texts else 1.0


class TextIndex:
    """Texts by id, which come and go. Holds counts of stems, never the texts. Not thread-safe.

    A text's title is a second field (BM25F): its words count as that many more occurrences, so that
    a name helps and never decides.
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
        """Forget a text; unknown ones are forgotten already."""
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
