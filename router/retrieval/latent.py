"""Latent semantic similarity, learnt from the catalog itself.

Words that occur in the same skills come to lie close together ("slides" and "pptx"), so a request
finds a skill whose text says the same in other words, in the catalog's own jargon, which no general
encoder knows. Truncated SVD of the documents' BM25 rows: Deerwester et al., "Indexing by latent
semantic analysis" (1990). It is computed from the Gram matrix of the documents, or of an even
sample of very many, and costs a second or two; the others are then projected, block by block.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.retrieval.candidates import EVERYTHING, Positions
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
        basis = _spread(lexical.size, MAX_BASIS)
        in_basis = np.isin(lexical.document, basis)
        occurs = np.bincount(lexical.term[in_basis], minlength=len(lexical.document_frequency)) > 0
        # A term of one skill links it to nothing, and there are very many of them; one that the
        # basis lacks has no part in any axis.
        least = 2 if lexical.size > SMALL_CATALOG else 1
        linking = (occurs & (lexical.document_frequency >= least)).tolist()
        # By stem, so that the space does not depend on how the terms came to be numbered.
        terms = sorted(term for term, number in lexical.vocabulary.items() if linking[number])
        kept = np.array([lexical.vocabulary[term] for term in terms], dtype=np.intp)
        self._row = np.full(len(linking), -1)
        self._row[kept] = np.arange(len(kept))
        inside = self._row[lexical.term] >= 0
        document, row = lexical.document[inside], self._row[lexical.term[inside]]
        values = values[inside]

        def matrix(documents: NDArray[np.intp]) -> NDArray[np.float32]:
            """The rows of some documents, shape (documents, kept terms)."""
            place = np.full(lexical.size, -1)
            place[documents] = np.arange(len(documents))
            some = place[document] >= 0
            rows = np.zeros((len(documents), len(kept)), dtype=np.float32)
            rows[place[document[some]], row[some]] = values[some]
            return rows

        sample = matrix(basis)
        # The product of an array with itself takes half the time of one with its copy.
        eigenvalues, vectors = np.linalg.eigh(sample @ sample.T)
        count = max(1, min(DIMENSIONS, len(sample) - 1))
        singular = np.sqrt(np.maximum(eigenvalues[::-1][:count], 1e-6))
        axes = (sample.T @ vectors[:, ::-1][:, :count]) / singular  # (terms, count), orthonormal
        projected = (
            [sample @ axes]
            if lexical.size <= MAX_BASIS
            # The rows of a hundred thousand documents at once would take gigabytes.
            else [matrix(block) @ axes for block in _blocks(lexical.size, MAX_BASIS)]
        )
        self.documents = _unit(np.concatenate(projected))
        self._terms = axes * (lexical.idf[kept] ** IDF_POWER)[:, np.newaxis]

    def query(self, terms: Sequence[int]) -> NDArray[np.float64]:
        """The sum of some terms' vectors, shape (dimensions,); its length says how much of them
        the space can express."""
        rows = [row for row in self._row[list(terms)] if row >= 0]
        total: NDArray[np.float64] = self._terms[rows].sum(axis=0)
        return total

    def similarities(
        self, query: NDArray[np.float64], among: Positions = EVERYTHING
    ) -> NDArray[np.float64]:
        """Cosine of some documents to a query, shape (documents,); zeros for an empty query.
        Several queries, shape (n, dimensions), give (n, documents)."""
        # In one precision: else the documents would be converted for every query.
        unit = _unit(query).astype(np.float32)
        return (unit @ self.documents[among].T).astype(np.float64)


def _spread(size: int, limit: int) -> NDArray[np.intp]:
    """All positions, or ``limit`` of them at equal distances."""
    return np.unique(np.linspace(0, max(size - 1, 0), min(size, limit)).astype(np.intp))


def _blocks(size: int, limit: int) -> list[NDArray[np.intp]]:
    """All positions, in runs of ``limit``."""
    return [np.arange(at, min(at + limit, size)) for at in range(0, size, limit)]


def _unit(vectors: NDArray[np.float64]) -> NDArray[np.float64]:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    scaled: NDArray[np.float64] = vectors / np.maximum(lengths, 1e-9)
    return scaled
