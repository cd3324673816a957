"""Latent semantic similarity, learnt from the catalog itself.

Words that occur in the same skills come to lie close together ("slides" and "pptx"), so a request
finds a skill whose text says the same in other words, in the catalog's own jargon, which no general
encoder knows. Truncated SVD of the documents' BM25 rows: Deerwester et al., "Indexing by latent
semantic analysis" (1990). It is computed from the documents' Gram matrix, whose side is the number
of skills, and costs a fraction of a second.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.retrieval.lexical import IDF_POWER, LexicalIndex

DIMENSIONS: Final = 80
K1: Final = 3.0
MAX_BASIS: Final = 1_500
"""Documents that the axes are computed from; the eigenvalue problem is cubic in it."""
SMALL_CATALOG: Final = 20
"""Up to this many skills, terms of a single skill are kept: most terms are such terms there."""


class LatentIndex:
    """The documents and the terms of a lexical index in a space of few dimensions. Immutable.

    Attributes:
        documents: unit vectors, shape (size, dimensions).
    """

    def __init__(self, lexical: LexicalIndex) -> None:
        values = lexical.saturated(K1)
        lengths = np.sqrt(np.bincount(lexical.document, values**2, minlength=lexical.size))
        values = values / np.maximum(lengths[lexical.document], 1e-9)
        # A term of one skill links it to nothing, and there are very many of them.
        least = 2 if lexical.size > SMALL_CATALOG else 1
        frequency = lexical.document_frequency.tolist()
        # By stem, so that the space does not depend on how the terms came to be numbered.
        terms = sorted(term for term, n in lexical.vocabulary.items() if frequency[n] >= least)
        kept = np.array([lexical.vocabulary[term] for term in terms], dtype=np.intp)
        self._row = np.full(len(frequency), -1)
        self._row[kept] = np.arange(len(kept))
        inside = self._row[lexical.term] >= 0
        matrix = np.zeros((lexical.size, len(kept)), dtype=np.float32)
        matrix[lexical.document[inside], self._row[lexical.term[inside]]] = values[inside]
        # The product of an array with itself takes half the time of one with its copy.
        basis = matrix if lexical.size <= MAX_BASIS else matrix[_spread(lexical.size, MAX_BASIS)]
        eigenvalues, vectors = np.linalg.eigh(basis @ basis.T)
        count = max(1, min(DIMENSIONS, len(basis) - 1))
        singular = np.sqrt(np.maximum(eigenvalues[::-1][:count], 1e-6))
        axes = (basis.T @ vectors[:, ::-1][:, :count]) / singular  # (terms, count), orthonormal
        self.documents = _unit(matrix @ axes)
        self._terms = axes * (lexical.idf[kept] ** IDF_POWER)[:, np.newaxis]

    def query(self, terms: Sequence[int]) -> NDArray[np.float64]:
        """The sum of some terms' vectors, shape (dimensions,); its length says how much of them
        the space can express."""
        rows = [row for row in self._row[list(terms)] if row >= 0]
        total: NDArray[np.float64] = self._terms[rows].sum(axis=0)
        return total

    def similarities(self, query: NDArray[np.float64]) -> NDArray[np.float64]:
        """Cosine of every document to a query, shape (size,); zeros for an empty query. Several
        queries, shape (n, dimensions), give (n, size)."""
        similarities: NDArray[np.float64] = _unit(query) @ self.documents.T
        return similarities


def _spread(size: int, limit: int) -> NDArray[np.intp]:
    """All positions, or ``limit`` of them at equal distances."""
    return np.unique(np.linspace(0, max(size - 1, 0), min(size, limit)).astype(np.intp))


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: NDArray[np.float64] = vectors / np.maximum(lengths, 1e-9)
    return scaled
