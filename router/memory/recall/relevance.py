"""How probable it is that a text bears on a query, judged from the two alone.

Scores of layers do not compare: BM25 has no upper bound, and the scale of a fused score is its
layer's own. Whether memory holds an answer at all, and whether a cascade is worth its time, needs a
number that means the same for every layer. Seven signs are read, each free of scale:

* coverage: the share of the query's words that the text holds, by stems; without a corpus to count
  in, longer words weigh more, because the commonest words are short;
* soft coverage: the same, where a word that the text does not hold counts with the cosine of the
  word of the text that is nearest to it. Only a static encoder is asked for so many vectors; with
  another one it is the coverage;
* related words: the share of the query's words for which the text holds a related one
  (``texts/related_words.py``);
* names: the share of the query's names, numbers and identifiers that the text holds. They decide
  whom or what an answer is about, so they count once more;
* missing names and missing numbers: the share of these, and of the words with a digit in them,
  that the text does not hold. What is known about E17 says nothing about E99;
* cosine: similarity of meaning by the encoder.

A logistic function of the seven is the probability. Its coefficients were chosen on the half
``develop`` of ``benchmarks/memory_finding.py`` and on 250 question and evidence pairs of LoCoMo
against 60 other turns of the same conversation each, so its figures flatter both a little.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Final, Protocol, Self

from cachetools import LRUCache

from router.memory.texts.chunking import CHUNK_CHARACTERS, sections
from router.memory.texts.related_words import related_to
from router.memory.texts.words import TextWords, content_words, words_of
from router.numeric import logistic
from router.retrieval.encoders import Encoder
from router.text import STOPWORDS, stem, tokens

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

BIAS: Final = -6.5
COVERAGE: Final = 3.0
SOFT_COVERAGE: Final = 4.5
RELATED: Final = 4.5
NAMES: Final = 1.0
MISSING_NAMES: Final = -1.5
MISSING_NUMBERS: Final = -2.0
COSINE: Final = 4.0
NO_NAMES: Final = 0.5
"""The share of names for a query that has none: says nothing either way."""
LONGEST: Final = 10
"""Letters beyond which a word weighs no more."""

MAX_PARTS: Final = 50
"""Parts of a long text that are judged; 50 hold 80,000 characters."""
MAX_WORD_VECTORS: Final = 20_000
"""Vectors of words that are kept, 1 KB each with the bundled encoder."""
MAX_TEXT_VECTORS: Final = 4_096
"""The same of texts, which have at most 1,600 characters."""
COMPARED_WORDS: Final = 400
"""Words of a text that are compared with those of the query; a long text's later ones are not."""

_WORD: Final = re.compile(r"[^\W_][\w'.-]*")


class RelevanceModel(Protocol):
    """Scores contents against a query."""

    def of(self, query: str, contents: Sequence[str]) -> list[float]:
        """For each content the probability, in [0, 1], that it bears on the query."""
        ...


class Relevance:
    """Judges texts; see the module's text. As safe in threads as its encoder."""

    def __init__(self, encoder: Encoder) -> None:
        self._texts = _KeptVectors(encoder, MAX_TEXT_VECTORS)
        self._words = _KeptVectors(encoder, MAX_WORD_VECTORS) if encoder.static else None

    def of(self, query: str, contents: Sequence[str]) -> list[float]:
        """For each content the probability, in [0, 1], that it bears on the query. Of a long one
        it is that of its best section.

        Raises:
            EncoderError: the encoder cannot be reached or gave unusable vectors.
        """
        parts = [(n, part) for n, content in enumerate(contents) for part in parts_of(content)]
        best = [0.0] * len(contents)
        judged = self._of(query, [part for _, part in parts])
        for (number, _), probability in zip(parts, judged, strict=True):
            best[number] = max(best[number], probability)
        return best

    def _of(self, query: str, contents: Sequence[str]) -> list[float]:
        if not contents:
            return []
        vectors = self._texts.of([query, *contents])
        cosines = vectors[1:] @ vectors[0]
        words = _QueryWords.of(query)
        texts = [words_of(content) for content in contents]
        signals = [words.signal(text) for text in texts]
        if self._words is None or not words.words:
            soft = [coverage for coverage, _ in signals]
        else:
            nearest = self._nearest(words.words, [text.content for text in texts])
            soft = [
                words.soft_coverage(text, near) for text, near in zip(texts, nearest, strict=True)
            ]
        return [
            logistic(BIAS + signal + SOFT_COVERAGE * share + COSINE * float(cosine))
            for (_, signal), share, cosine in zip(signals, soft, cosines, strict=True)
        ]

    def _nearest(
        self, words: Sequence[str], texts: Sequence[Sequence[str]]
    ) -> list[Sequence[float]]:
        """For each text, for each word, the cosine of the nearest word of the text."""
        assert self._words is not None  # noqa: S101 - whoever calls this has seen to it
        cut = [dict.fromkeys(text[:COMPARED_WORDS]) for text in texts]
        place = {word: n for n, word in enumerate(dict.fromkeys(w for text in cut for w in text))}
        if not place:
            return [[0.0] * len(words) for _ in cut]
        cosines = self._words.of(words) @ self._words.of(list(place)).T
        return [
            cosines[:, [place[word] for word in text]].max(axis=1).tolist()
            if text
            else [0.0] * len(words)
            for text in cut
        ]


def parts_of(content: str) -> list[str]:
    """A content in the parts that are judged by themselves: the whole of a short one, the sections
    of a long one under their headings, ``MAX_PARTS`` at most."""
    if len(content) <= CHUNK_CHARACTERS:
        return [content]
    found = islice(sections(content), MAX_PARTS)
    parts = ["\n".join((*section.headings[-1:], section.text)) for section in found]
    return parts or [content[:CHUNK_CHARACTERS]]


@dataclass(frozen=True, slots=True)
class _QueryWords:
    """What is looked for in a text: stems with their weights, and those of names."""

    words: tuple[str, ...]
    weights: dict[str, float]
    names: frozenset[str]
    numbers: frozenset[str]
    related: dict[str, frozenset[str]]

    @classmethod
    def of(cls, query: str) -> Self:
        words = tuple(content_words(query))
        weights = {stem(word): 1.0 + min(len(word), LONGEST) / LONGEST for word in words}
        return cls(
            words,
            weights,
            names_in(query) & weights.keys(),
            frozenset(stem(word) for word in words if any(c.isdigit() for c in word)),
            related_to(weights),
        )

    def signal(self, text: TextWords) -> tuple[float, float]:
        """The coverage, in [0, 1], and what it, the related words and the names add up to."""
        if not self.weights:
            return 0.0, 0.0
        stored = text.bag.keys()
        held = self.weights.keys() & stored
        coverage = self._share(held)
        related = self._share(
            word
            for word, others in self.related.items()
            if word not in stored and not others.isdisjoint(text.bag)
        )
        names = len(held & self.names) / len(self.names) if self.names else NO_NAMES
        signal = COVERAGE * coverage + RELATED * related + NAMES * names
        if self.names:
            signal += MISSING_NAMES * (1 - names)
        if self.numbers:
            signal += MISSING_NUMBERS * len(self.numbers - held) / len(self.numbers)
        return coverage, signal

    def soft_coverage(self, text: TextWords, nearest: Sequence[float]) -> float:
        """The coverage with, for each word that is not held, its cosine to the nearest one."""
        total = gained = 0.0
        for word, near in zip(self.words, nearest, strict=True):
            weight = self.weights[stem(word)]
            total += weight
            gained += weight * (1.0 if stem(word) in text.bag else min(max(near, 0.0), 1.0))
        return gained / total

    def _share(self, words: Iterable[str]) -> float:
        return sum(self.weights[word] for word in words) / sum(self.weights.values())


class _KeptVectors:
    """Vectors of texts or words; those that were asked for lately are kept."""

    def __init__(self, encoder: Encoder, kept: int) -> None:
        self._encoder = encoder
        self._kept: LRUCache[str, NDArray[np.float32]] = LRUCache(kept)
        self._lock = threading.Lock()

    def of(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Their vectors, one a row."""
        import numpy as np

        with self._lock:
            known = {text: self._kept[text] for text in texts if text in self._kept}
        new = list(dict.fromkeys(text for text in texts if text not in known))
        if new:
            known |= dict(zip(new, self._encoder.encode(new), strict=True))
            with self._lock:
                self._kept.update((text, known[text]) for text in new)
        return np.stack([known[text] for text in texts])


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
