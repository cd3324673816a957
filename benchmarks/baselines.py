"""Scores of documents for a request that need nothing but their texts.

Textbook BM25, the encoder alone, rank fusion of several; and how much of a document a request
expresses, which is for telling whether any document is meant.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from router.retrieval.encoders import Encoder
from router.text import STOPWORDS, stem, tokens

Floats = NDArray[np.floating[Any]]
Scores = Callable[[str], NDArray[np.float64]]
"""Of every document for one request."""


def bm25(texts: Sequence[str], *, k1: float = 1.2, b: float = 0.75) -> Scores:
    """Textbook BM25 with stems and stop words."""

    def terms(text: str) -> list[str]:
        return [stem(word) for word in tokens(text) if word not in STOPWORDS]

    bags = [Counter(terms(text)) for text in texts]
    lengths = [sum(bag.values()) for bag in bags]
    average = sum(lengths) / len(lengths)
    postings: dict[str, list[tuple[int, int]]] = {}
    for number, bag in enumerate(bags):
        for term, count in bag.items():
            postings.setdefault(term, []).append((number, count))

    def scores(request: str) -> NDArray[np.float64]:
        total = np.zeros(len(texts))
        for term in sorted(set(terms(request))):
            found = postings.get(term, [])
            weight = _idf(len(texts), len(found))
            for number, count in found:
                norm = k1 * (1 - b + b * lengths[number] / average)
                total[number] += weight * count * (k1 + 1) / (count + norm)
        return total

    return scores


def cosine(encoder: Encoder, texts: Sequence[str]) -> Scores:
    vectors = encoder.encode(texts)
    return lambda request: np.asarray(vectors @ encoder.encode([request])[0], dtype=np.float64)


def rank_fusion(*sources: Scores, k: int = 60) -> Scores:
    """Reciprocal rank fusion: Cormack, Clarke and Büttcher (SIGIR 2009)."""

    def scores(request: str) -> NDArray[np.float64]:
        ranks = [np.argsort(np.argsort(-source(request), kind="stable")) for source in sources]
        return np.asarray(sum(1 / (k + 1 + rank) for rank in ranks))

    return scores


def expressed(
    encoder: Encoder, texts: Sequence[str], requests: Sequence[str], among: Sequence[Sequence[int]]
) -> Floats:
    """How much of the wording of a text each request expresses: the mean cosine of each word of the
    text with the nearest word of the request, weighted by idf. The recall of BERTScore (Zhang et
    al., ICLR 2020), of single words out of context.

    Args:
        encoder: of the words.
        texts: what may be expressed.
        requests: what may express it.
        among: for each request the places of the texts that it is compared with; the figure is that
            of the best one.
    """
    worded, asked = [_wording(text) for text in texts], [_wording(text) for text in requests]
    words = {word: place for place, word in enumerate(dict.fromkeys(chain(*worded, *asked)))}
    vectors = encoder.encode(list(words))
    holders = Counter(chain.from_iterable({stem(word) for word in text} for text in worded))
    idf = np.array([_idf(len(texts), holders[stem(word)]) for word in words])
    places = [[words[word] for word in text] for text in worded]
    found = []
    for text, some in zip(asked, among, strict=True):
        said = vectors[[words[word] for word in text]]
        best = (
            np.average((said @ vectors[of].T).max(axis=0, initial=0.0), weights=idf[of])
            for of in (places[number] for number in some)
        )
        found.append(max(best))
    return np.array(found)


def _wording(text: str) -> list[str]:
    """The different words of a text; function words only where there are no others."""
    words = tokens(text)
    return list(dict.fromkeys([word for word in words if word not in STOPWORDS] or words))


def _idf(texts: int, holders: int) -> float:
    return math.log1p((texts - holders + 0.5) / (holders + 0.5))
