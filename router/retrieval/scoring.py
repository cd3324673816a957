"""How well the skills fit a request, by three sources.

The sources are the wording of a skill's own text (BM25F), its meaning (the encoder's vectors), and
how near the skill's examples are. Their scores are added up.

Scores come in three steps. Of more than ``EXHAUSTIVE`` skills only the best by words and the
nearest by vectors are candidates; the nearest are searched roughly, in the few directions in which
the vectors differ most (their principal axes). The candidates get a quick score. And the
``BY_SCORE`` best of them are scored in full, with each example and for each clause of the request.
``benchmarks/catalog_size.py`` measures what it saves, and how often it misses the best skill.
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
"""What the three sources count in a score. BM25F is divided by the length of the request, so it has
the scale of a cosine, and a weighted sum keeps how much better the first is than the second, which
rank fusion throws away. The weights were chosen on whole catalogs with two encoders; near them
little changes. ``benchmarks/enrichment.py`` shows what each source adds."""
EXHAUSTIVE: Final = 12_000
"""Up to this many skills, all are candidates. Over 10,000, a request then takes .5 ms more, an edit
a third of its time, and the catalog an eighth less memory."""
BY_WORDS: Final = 1_000
BY_VECTORS: Final = 1_000
"""How many candidates each source gives."""
ROUGH_DIMENSIONS: Final = 64
SAMPLE: Final = 5_000
"""The axes are computed from this many vectors."""
BY_SCORE: Final = 64
"""This many skills are scored in full: with their examples one by one, and for each clause."""
STEP: Final = 32
"""One score in this many is looked at to estimate where the best ones begin."""

Positions: TypeAlias = slice | NDArray[np.intp]
"""Positions of some skills in the arrays of all of them."""
EVERYTHING: Final = slice(None)


class Scored(NamedTuple):
    """Some skills scored for one or more texts. The tables have one row for each text and one
    column for each skill.

    Attributes:
        positions: the skills.
        score, lexical, cosine, examples: as in ``Match``.
        closest: the cosine of the nearest text of each skill, its own or an example.
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
    """What the skills of one catalog are scored by. Immutable: ``edited`` gives the next one.

    Attributes:
        lexical: their words.
        examples: of each.
        mean: of the vectors of their own texts.
    """

    def __init__(self) -> None:
        """Of no skills."""
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
        of_examples: Callable[[Sequence[str]], NDArray[np.float32]],
    ) -> Self:
        """Those after a step.

        Args:
            vectors: of the added skills, unit length.
            of_examples: gives the vectors of examples.
        """
        after = copy(self)
        after._positions = np.arange(len(edit.kept))
        if len(edit.kept):
            after._vectors = edit.carried(self._vectors, vectors)
            after.mean = after._vectors.mean(axis=0, dtype=np.float64).astype(np.float32)
        else:  # the vectors of no skills do not tell how long they would be
            after._vectors, after.mean = np.zeros((0, 0), np.float32), np.zeros(0, np.float32)
        after.examples = self.examples.edited(edit, of_examples)
        after.lexical = self.lexical.edited(edit)
        after._rough = None
        if len(edit.kept) > EXHAUSTIVE and not edit.more:
            after._rough = after._rough_vectors()
        return after

    def best(
        self, asked: ReadRequest, allowed: Positions, wanted: Sequence[int], limit: int
    ) -> Scored:
        """The skills that may be among the best for a request, scored in full; for its clauses too,
        unless it names skills.

        Args:
            allowed: the positions of those that may be chosen.
            wanted: the positions of those that it names, which are scored in any case.
            limit: how many matches will be given.
        """
        postings = self.lexical.postings(asked.texts[0].numbers)
        pool = self._best_of(asked, postings, allowed, wanted, limit)
        return self._scored(asked, 1 if wanted else len(asked.texts), postings, pool)

    def of(self, asked: ReadRequest, positions: NDArray[np.intp]) -> NDArray[np.float64]:
        """The scores of some skills for a whole request."""
        postings = self.lexical.postings(asked.texts[0].numbers)
        whole: NDArray[np.float64] = self._scored(asked, 1, postings, positions).score[0]
        return whole

    def _scored(
        self, asked: ReadRequest, read: int, postings: Postings, pool: NDArray[np.intp]
    ) -> Scored:
        """Some skills scored in full for the first ``read`` texts of a request; ``postings`` are of
        the terms of the whole, and its clauses have no others."""
        texts, vectors = asked.texts[:read], asked.vectors[:read]
        contributions = postings.contributions(pool)
        row_of = {number: row for row, number in enumerate(texts[0].numbers)}
        terms = np.zeros((len(texts), len(row_of)))
        for row, text in enumerate(texts):
            held = [row_of[number] for number in text.numbers if number in row_of]
            terms[row, held] = 1 / text.length
        lexical = terms @ contributions
        cosine = (vectors @ self._vectors.take(pool, axis=0).T).astype(np.float64)
        near, example = self.examples.near(
            [text.spoken for text in texts],
            vectors,
            vectors @ self.mean,
            pool,
            single=len(asked.texts) == 1,
        )
        score = _fused(lexical, cosine, near)
        closest = np.maximum(cosine, example)
        return Scored(pool, score, lexical, cosine, near, closest, contributions)

    def _best_of(
        self,
        asked: ReadRequest,
        postings: Postings,
        allowed: Positions,
        wanted: Sequence[int],
        limit: int,
    ) -> NDArray[np.intp]:
        """The positions of the skills to score in full, ascending: those with the best quick
        scores, which read only the means of the examples, and those at the positions ``wanted``."""
        matched, vector = postings.scores(), asked.vectors[0]
        if isinstance(allowed, slice):
            allowed = self._candidates(matched, vector, wanted)
        positions = self._positions[allowed]
        keep = max(limit, BY_SCORE)
        if len(positions) <= keep:
            return positions
        cosine = (self._vectors[allowed] @ vector).astype(np.float64)
        near = self.examples.about(vector, float(self.mean @ vector))[allowed]
        score = _fused(matched[allowed] / asked.texts[0].length, cosine, near)
        if wanted:
            score[np.isin(positions, wanted)] = np.inf
        chosen = (-score).argpartition(keep)[:keep]
        chosen.sort()
        return positions[chosen]

    def _candidates(
        self, matched: NDArray[np.float64], vector: NDArray[np.float32], wanted: Sequence[int]
    ) -> Positions:
        """The skills to score for a request: all, or of many the best by words and by vectors, and
        those at the positions ``wanted``."""
        if self._rough is None:
            return EVERYTHING
        chosen = np.zeros(len(self._positions), dtype=bool)
        chosen[highest(matched, BY_WORDS)] = True
        chosen[self._rough.nearest(vector)] = True
        chosen[list(wanted)] = True
        found = np.flatnonzero(chosen)
        # A request that is like nothing at all still gets a ranking.
        return found if len(found) >= BY_SCORE else np.union1d(found, self._positions[:EXHAUSTIVE])

    def _rough_vectors(self) -> RoughVectors:
        """For each skill the part of its score that is linear in the request's vector."""
        table = DENSE_WEIGHT * self._vectors
        if len(self.examples.holders):
            holders = self.examples.holders
            weight = self.examples.weight[holders, np.newaxis].astype(np.float32)
            table[holders] += 2 * weight * self.examples.means
        return RoughVectors(table)


def _fused(
    lexical: NDArray[np.float64], dense: NDArray[np.float64], examples: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The scores of skills from those by the three sources, all of one shape."""
    return LEXICAL_WEIGHT * lexical + DENSE_WEIGHT * dense + EXAMPLES_WEIGHT * examples


class RoughVectors:
    """Vectors in few dimensions. Immutable."""

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        sample = vectors[:: max(1, len(vectors) // SAMPLE)]
        _, axes = np.linalg.eigh(sample.T @ sample)
        self._axes = axes[:, -ROUGH_DIMENSIONS:].copy("K")  # a view would keep all of them
        self._rough: NDArray[np.float32] = vectors @ self._axes

    def nearest(self, vector: NDArray[np.float32]) -> NDArray[np.intp]:
        """Positions of about the ``BY_VECTORS`` vectors with the largest product."""
        return highest(self._rough @ (vector @ self._axes), BY_VECTORS)


def highest(scores: NDArray[np.floating], count: int) -> NDArray[np.intp]:
    """Positions of about the ``count`` highest scores; of positive ones only."""
    sample = scores[::STEP]
    rank = max(1, min(count // STEP, len(sample)))
    threshold = max(np.partition(sample, -rank)[-rank], np.finfo(scores.dtype).tiny)
    found = np.flatnonzero(scores >= threshold)
    if len(found) <= 2 * count:
        return found
    return found[np.argpartition(scores[found], -count)[-count:]]  # very many are equal
