"""The scores of the skills for a request: a weighted sum of three.

The three are the lexical score of a skill's own text (BM25F), the cosine of the vectors of the
request and that text, and how near the skill's examples are.

They are computed in three steps. In catalogs of more than ``MAX_EXHAUSTIVE`` skills, only the best
by lexical score and the nearest by vector are candidates; the nearest are searched approximately,
in the few principal axes of the vectors. Each candidate gets an approximate score. The
``FULLY_SCORED`` best of them are scored in full: with each single example, and for each clause of
the request. ``benchmarks/catalog_size.py`` measures what this saves, and how often it misses the
best skill.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from typing import Final, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from router.retrieval.documents import Edit
from router.retrieval.examples import ExampleIndex
from router.retrieval.lexical import LexicalIndex
from router.retrieval.postings import Postings
from router.retrieval.reader import ReadRequest

LEXICAL_WEIGHT: Final = 1.0
DENSE_WEIGHT: Final = 1.5
EXAMPLES_WEIGHT: Final = 1.0
"""The weights of the three scores. BM25F is divided by the norm of the request, so that it has the
scale of a cosine. A weighted sum keeps the distance between the best and the second-best skill,
which rank fusion would lose and the decision needs. The weights were chosen on whole catalogs with
two encoders; near them little changes. ``benchmarks/enrichment.py`` shows what each score adds."""
MAX_EXHAUSTIVE: Final = 12_000
"""Up to this many skills, all are candidates. For 10,000 skills this makes a request .5 ms slower,
an edit three times as fast, and takes an eighth less memory."""
LEXICAL_CANDIDATES: Final = 1_000
VECTOR_CANDIDATES: Final = 1_000
"""The number of candidates by lexical score, and by vector."""
ROUGH_DIMENSIONS: Final = 64
AXES_SAMPLE: Final = 5_000
"""The principal axes are computed from this many vectors."""
FULLY_SCORED: Final = 64
"""The number of skills that are scored in full."""
SAMPLE_STEP: Final = 32
"""``highest`` estimates its threshold from one in this many scores."""

Positions: TypeAlias = slice | NDArray[np.intp]
"""The positions of some skills in the arrays over all skills."""
ALL_SKILLS: Final = slice(None)


class Scored(NamedTuple):
    """The scores of some skills for one or more texts. The tables have one row for each text and
    one column for each skill.

    Attributes:
        positions: the positions of the skills.
        score, lexical, cosine, examples: as in ``Match``.
        closest: the cosine of each skill's nearest text, which is its own text or an example.
        contributions: of each term of the first text, shape (terms, skills).
    """

    positions: NDArray[np.intp]
    score: NDArray[np.float64]
    lexical: NDArray[np.float64]
    cosine: NDArray[np.float64]
    examples: NDArray[np.float64]
    closest: NDArray[np.float64]
    contributions: NDArray[np.float64]


class SkillScores:
    """Computes the scores of one catalog's skills. Immutable: ``edited`` gives the next one.

    Attributes:
        lexical: the postings of the skills' own texts.
        examples: the skills' examples.
        mean: the mean of the vectors of the skills' own texts.
    """

    def __init__(self) -> None:
        """For a catalog without skills."""
        self.lexical = LexicalIndex()
        self.examples = ExampleIndex()
        self.mean: NDArray[np.float32] = np.zeros(0, dtype=np.float32)
        self._vectors: NDArray[np.float32] = np.zeros((0, 0), dtype=np.float32)
        self._positions: NDArray[np.intp] = np.arange(0)
        self._rough: RoughVectors | None = None

    def edited(
        self,
        edit: Edit,
        vectors: NDArray[np.float32],
        example_vectors: Callable[[Sequence[str]], NDArray[np.float32]],
    ) -> Self:
        """The scores of the edited index.

        Args:
            vectors: the vectors of the added skills, of unit length.
            example_vectors: returns the vectors of examples.
        """
        after = copy(self)
        after._positions = np.arange(len(edit.kept))
        if len(edit.kept):
            after._vectors = edit.carried(self._vectors, vectors)
            after.mean = after._vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
        else:  # without skills, the dimension of the vectors is unknown
            after._vectors, after.mean = np.zeros((0, 0), np.float32), np.zeros(0, np.float32)
        after.examples = self.examples.edited(edit, example_vectors)
        after.lexical = self.lexical.edited(edit)
        after._rough = None
        if len(edit.kept) > MAX_EXHAUSTIVE and not edit.more:
            after._rough = after._rough_vectors()
        return after

    def best(
        self, request: ReadRequest, allowed: Positions, named: Sequence[int], limit: int
    ) -> Scored:
        """The full scores of the skills that may be the best for a request; also for its clauses,
        unless the request names skills.

        Args:
            allowed: the positions of the skills that may be chosen.
            named: the positions of the skills that the request names, which are always scored.
            limit: how many matches will be returned.
        """
        postings = self.lexical.postings(request.texts[0].term_numbers)
        positions = self._choose(request, postings, allowed, named, limit)
        return self._score_in_full(request, 1 if named else len(request.texts), postings, positions)

    def closest(self, vector: NDArray[np.float32], position: int) -> float:
        """The cosine of a vector and the nearest text of one skill; see ``Scored.closest``."""
        own = float(self._vectors[position] @ vector)
        example = self.examples.nearest(vector, position)
        return own if example is None else max(own, example[1])

    def scores_of(self, request: ReadRequest, positions: NDArray[np.intp]) -> NDArray[np.float64]:
        """The full scores of some skills for a whole request."""
        postings = self.lexical.postings(request.texts[0].term_numbers)
        whole: NDArray[np.float64] = self._score_in_full(request, 1, postings, positions).score[0]
        return whole

    def _score_in_full(
        self, request: ReadRequest, text_count: int, postings: Postings, positions: NDArray[np.intp]
    ) -> Scored:
        """The full scores of some skills for the first ``text_count`` texts of a request.
        ``postings`` are those of the whole request, whose terms include those of the clauses."""
        texts, vectors = request.texts[:text_count], request.vectors[:text_count]
        contributions = postings.contributions(positions)
        row_of = {number: row for row, number in enumerate(texts[0].term_numbers)}
        terms = np.zeros((len(texts), len(row_of)))
        for row, text in enumerate(texts):
            held = [row_of[number] for number in text.term_numbers if number in row_of]
            terms[row, held] = 1 / text.norm
        lexical = terms @ contributions
        cosine = (vectors @ self._vectors.take(positions, axis=0).T).astype(np.float64)
        examples, nearest_example = self.examples.nearness(
            [text.words for text in texts],
            vectors,
            vectors @ self.mean,
            positions,
            single=len(request.texts) == 1,
        )
        score = _fused(lexical, cosine, examples)
        closest = np.maximum(cosine, nearest_example)
        return Scored(positions, score, lexical, cosine, examples, closest, contributions)

    def _choose(
        self,
        request: ReadRequest,
        postings: Postings,
        allowed: Positions,
        named: Sequence[int],
        limit: int,
    ) -> NDArray[np.intp]:
        """The positions of the skills to score in full, ascending: those with the best approximate
        scores, which use only the means of the examples, and the named ones."""
        lexical, vector = postings.scores(), request.vectors[0]
        if isinstance(allowed, slice):
            allowed = self._candidates(lexical, vector, named)
        positions = self._positions[allowed]
        keep = max(limit, FULLY_SCORED)
        if len(positions) <= keep:
            return positions
        cosine = (self._vectors[allowed] @ vector).astype(np.float64)
        examples = self.examples.approximate_nearness(vector, float(self.mean @ vector))[allowed]
        score = _fused(lexical[allowed] / request.texts[0].norm, cosine, examples)
        if named:
            score[np.isin(positions, named)] = np.inf
        chosen = (-score).argpartition(keep)[:keep]
        chosen.sort()
        return positions[chosen]

    def _candidates(
        self, lexical: NDArray[np.float64], vector: NDArray[np.float32], named: Sequence[int]
    ) -> Positions:
        """The candidates for a request: all skills or, in large catalogs, the best by lexical
        score, the nearest by vector, and the named ones."""
        if self._rough is None:
            return ALL_SKILLS
        chosen = np.zeros(len(self._positions), dtype=bool)
        chosen[highest(lexical, LEXICAL_CANDIDATES)] = True
        chosen[self._rough.nearest(vector)] = True
        chosen[list(named)] = True
        found = np.flatnonzero(chosen)
        # A request that is similar to no skill still gets a ranking.
        return (
            found
            if len(found) >= FULLY_SCORED
            else np.union1d(found, self._positions[:MAX_EXHAUSTIVE])
        )

    def _rough_vectors(self) -> RoughVectors:
        """For each skill, the vector whose product with a request's vector is the part of the
        approximate score that depends on that vector."""
        table = DENSE_WEIGHT * self._vectors
        if len(self.examples.holders):
            holders = self.examples.holders
            weight = self.examples.weight[holders, np.newaxis].astype(np.float32)
            table[holders] += 2 * weight * self.examples.means
        return RoughVectors(table)


def _fused(
    lexical: NDArray[np.float64], dense: NDArray[np.float64], examples: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The weighted sum of the three scores, which have the same shape."""
    return LEXICAL_WEIGHT * lexical + DENSE_WEIGHT * dense + EXAMPLES_WEIGHT * examples


class RoughVectors:
    """Vectors projected on their principal axes, for approximate search. Immutable."""

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        sample = vectors[:: max(1, len(vectors) // AXES_SAMPLE)]
        _, axes = np.linalg.eigh(sample.T @ sample)
        self._axes = axes[:, -ROUGH_DIMENSIONS:].copy("K")  # a view would keep all of them
        self._rough: NDArray[np.float32] = vectors @ self._axes

    def nearest(self, vector: NDArray[np.float32]) -> NDArray[np.intp]:
        """Positions of about the ``VECTOR_CANDIDATES`` vectors with the largest product."""
        return highest(self._rough @ (vector @ self._axes), VECTOR_CANDIDATES)


def highest(scores: NDArray[np.floating], count: int) -> NDArray[np.intp]:
    """The positions of about the ``count`` highest scores, without those that are not positive. The
    threshold is estimated from a sample, which is faster than a partition of all scores."""
    sample = scores[::SAMPLE_STEP]
    rank = max(1, min(count // SAMPLE_STEP, len(sample)))
    threshold = max(np.partition(sample, -rank)[-rank], np.finfo(scores.dtype).tiny)
    found = np.flatnonzero(scores >= threshold)
    if len(found) <= 2 * count:
        return found
    # Very many equal scores reach the threshold.
    return found[np.argpartition(scores[found], -count)[-count:]]
