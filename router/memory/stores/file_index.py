"""BM25 over texts that come and go, in memory.

Robertson and Zaragoza, "The probabilistic relevance framework: BM25 and beyond" (2009), with the
textbook's constants. A text's title is a second field (BM25F): its words count as that many more
occurrences, so that a name helps and never decides.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from typing import Final

from router.text import STOPWORDS, stems, tokens

K1: Final = 1.2
B: Final = 0.75
TITLE_WEIGHT: Final = 1.0


class TextIndex:
    """Texts by id. Holds counts of stems, never the texts. Not thread-safe."""

    def __init__(self) -> None:
        self._postings: dict[str, dict[str, tuple[int, int]]] = {}
        """Stem to id to its counts in text and title."""
        self._terms: dict[str, tuple[str, ...]] = {}
        self._lengths: dict[str, int] = {}
        self._total_length = 0

    def __len__(self) -> int:
        return len(self._lengths)

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
        if not self._lengths:
            return []
        mean = max(self._total_length / len(self._lengths), 1.0)
        scores: dict[str, float] = {}
        for term in query_terms(query):
            holders = self._postings.get(term, {})
            idf = math.log1p((len(self._lengths) - len(holders) + 0.5) / (len(holders) + 0.5))
            for key, (in_text, in_title) in holders.items():
                norm = 1 - B + B * self._lengths[key] / mean
                frequency = in_text / norm + TITLE_WEIGHT * in_title
                value = idf * frequency * (K1 + 1) / (frequency + K1)
                scores[key] = scores.get(key, 0.0) + value
        return sorted(scores.items(), key=lambda entry: (-entry[1], entry[0]))


def query_terms(query: str) -> Iterable[str]:
    """The different stems of a query's content words; of all words if it has no others."""
    words = tokens(query)
    content = [word for word in words if word not in STOPWORDS] or words
    return dict.fromkeys(stems(" ".join(content)))
