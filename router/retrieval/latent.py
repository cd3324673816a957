"""Latent semantic similarity, learnt from the catalog itself.

Words that occur in the same skills come to lie close together ("slides" and "pptx"), so a request
finds a skill whose text says the same in other words, in the catalog's own jargon, which no general
encoder knows. Truncated SVD of the documents' BM25 rows: Deerwester et al., "Indexing by latent
semantic analysis" (1990). It is computed from the Gram matrix of the documents, or of an even
sample of very many, and costs a second or two; the others are then projected, block by block.

Computing the axes is most of the work of a reload, and one skill of many hardly moves them. So a
space is kept while few skills differ from those that it was computed from, and these few are folded
in: projected onto the axes as they are. What an index finds depends on its skills and on the space,
and on no edit in between; ``SkillIndex.settled`` computes the space anew once it is quiet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from router.retrieval.candidates import EVERYTHING, Positions
from router.retrieval.documents import SkillDocument
from router.retrieval.lexical import IDF_POWER, LexicalIndex

DIMENSIONS: Final = 80
K1: Final = 3.0
MAX_BASIS: Final = 1_500
"""Documents that the axes are computed from; the eigenvalue problem is cubic in it."""
SMALL_CATALOG: Final = 20
"""Up to this many skills, terms of a single skill are kept: most terms are such terms there."""
FOLDED_SHARE: Final = 0.04
"""Of the skills, at most so many are folded in. It is none of a small catalog, where one skill
counts for much and a new space costs little."""


@dataclass(frozen=True, slots=True, eq=False)
class LatentSpace:
    """Axes, and what they were computed from.

    Attributes:
        terms: the stem of each row of ``axes``.
        axes: a column each, orthonormal, shape (terms, dimensions).
        documents: what the axes were computed from, by name.
        vectors: the unit vectors of ``documents``, in their order, shape (documents, dimensions).
    """

    terms: tuple[str, ...]
    axes: NDArray[np.float32]
    documents: Mapping[str, SkillDocument]
    vectors: NDArray[np.float32]

    @classmethod
    def of(cls, lexical: LexicalIndex) -> Self:
        """The space of an index's documents."""
        basis = _spread(lexical.size, MAX_BASIS)
        in_basis = np.isin(lexical.document, basis)
        occurs = np.bincount(lexical.term[in_basis], minlength=len(lexical.document_frequency)) > 0
        # A term of one skill links it to nothing, and there are very many of them; one that the
        # basis lacks has no part in any axis.
        least = 2 if lexical.size > SMALL_CATALOG else 1
        linking = (occurs & (lexical.document_frequency >= least)).tolist()
        # By stem, so that the space does not depend on how the terms came to be numbered.
        terms = tuple(sorted(term for term, n in lexical.vocabulary.items() if linking[n]))
        rows = _Rows(lexical, terms)
        sample = rows.of(basis)
        # The product of an array with itself takes half the time of one with its copy.
        eigenvalues, vectors = np.linalg.eigh(_product(sample, sample.T))
        count = max(1, min(DIMENSIONS, len(sample) - 1))
        singular = np.sqrt(np.maximum(eigenvalues[::-1][:count], 1e-6))
        axes = _product(sample.T, vectors[:, ::-1][:, :count]) / singular
        projected = (
            [_product(sample, axes)]
            if lexical.size <= MAX_BASIS
            # The rows of a hundred thousand documents at once would take gigabytes.
            else [_product(rows.of(block), axes) for block in _blocks(lexical.size, MAX_BASIS)]
        )
        return cls(terms, axes, lexical.documents, _unit(np.concatenate(projected)))


class LatentIndex:
    """The documents and the terms of a lexical index in a space of few dimensions. Immutable.

    Attributes:
        documents: unit vectors, shape (size, dimensions).
        space: what they are vectors of.
        folded: names of the skills by which the documents differ from those of the space.
    """

    def __init__(self, lexical: LexicalIndex, *, space: LatentSpace | None = None) -> None:
        """Take the documents into a space; into their own when it is None or too far from them."""
        names = list(lexical.documents)
        folded = frozenset(names) if space is None else _differing(lexical, space)
        if space is None or len(folded) > FOLDED_SHARE * lexical.size:
            space, folded = LatentSpace.of(lexical), frozenset()
        rows = _Rows(lexical, space.terms)
        self.space = space
        self.folded = folded
        self._row = rows.of_term
        self._weight = lexical.idf**IDF_POWER
        self.documents = space.vectors
        if space.documents is lexical.documents:
            return
        place = {name: number for number, name in enumerate(space.documents)}
        self.documents = space.vectors[[place.get(name, 0) for name in names]]
        new = np.array([n for n, name in enumerate(names) if name in folded], dtype=np.intp)
        self.documents[new] = _unit(_product(rows.of(new), space.axes))

    def query(self, terms: Sequence[int]) -> NDArray[np.float64]:
        """The sum of some terms' vectors, shape (dimensions,); its length says how much of them
        the space can express."""
        known = [term for term in terms if self._row[term] >= 0]
        vectors = self.space.axes[self._row[known]] * self._weight[known, np.newaxis]
        total: NDArray[np.float64] = vectors.sum(axis=0)
        return total

    def similarities(
        self, query: NDArray[np.float64], among: Positions = EVERYTHING
    ) -> NDArray[np.float64]:
        """Cosine of some documents to a query, shape (documents,); zeros for an empty query.
        Several queries, shape (n, dimensions), give (n, documents)."""
        return _product(_unit(query), self.documents[among].T).astype(np.float64)


class _Rows:
    """The documents of a lexical index as rows of what their terms weigh.

    Attributes:
        of_term: the column of each term of the index, -1 for a term that has none.
    """

    def __init__(self, lexical: LexicalIndex, terms: Sequence[str]) -> None:
        """Rows with a column for each of ``terms``, whether the index has that term or not."""
        numbers = np.array([lexical.vocabulary.get(term, -1) for term in terms], dtype=np.intp)
        held = np.flatnonzero(numbers >= 0)
        self.of_term = np.full(len(lexical.idf), -1)
        self.of_term[numbers[held]] = held
        self._width = len(terms)
        self._lexical = lexical

    def of(self, documents: NDArray[np.intp]) -> NDArray[np.float32]:
        """The rows of some documents, shape (documents, terms)."""
        lexical = self._lexical
        place = np.full(lexical.size, -1)
        place[documents] = np.arange(len(documents))
        holder = place[lexical.document]
        postings = np.flatnonzero(holder >= 0)
        holder = holder[postings]
        values = lexical.saturated(K1, postings)
        lengths = np.sqrt(np.bincount(holder, values**2, minlength=len(documents)))
        values /= np.maximum(lengths[holder], 1e-9)
        column = self.of_term[lexical.term[postings]]
        inside = column >= 0
        rows = np.zeros((len(documents), self._width), dtype=np.float32)
        rows[holder[inside], column[inside]] = values[inside]
        return rows


def _differing(lexical: LexicalIndex, space: LatentSpace) -> frozenset[str]:
    """Names that do not stand for the same document on both sides."""
    new, old = lexical.documents, space.documents
    return frozenset(name for name in new.keys() | old.keys() if new.get(name) is not old.get(name))


def _spread(size: int, limit: int) -> NDArray[np.intp]:
    """All positions, or ``limit`` of them at equal distances."""
    return np.unique(np.linspace(0, max(size - 1, 0), min(size, limit)).astype(np.intp))


def _blocks(size: int, limit: int) -> list[NDArray[np.intp]]:
    """All positions, in runs of ``limit``."""
    return [np.arange(at, min(at + limit, size)) for at in range(0, size, limit)]


def _product(left: NDArray[np.float32], right: NDArray[np.float32]) -> NDArray[np.float32]:
    """The matrix product. On some processors BLAS sets the flag for an invalid operation though all
    values are finite, so the flag is ignored and the result is checked instead.

    Raises:
        FloatingPointError: the result holds an infinity or NaN.
    """
    with np.errstate(invalid="ignore"):
        product = np.asarray(left @ right)
    if not np.isfinite(product).all():
        raise FloatingPointError("a product of the latent space is not finite")
    return product


def _unit(vectors: NDArray[np.floating]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-9), dtype=np.float32)
