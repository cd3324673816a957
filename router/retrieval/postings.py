"""Postings: for each term, the skills that have it and what it counts there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray


class Postings(NamedTuple):
    """The postings of some terms, gathered for one request.

    Attributes:
        skills: for each posting, the position of its skill.
        terms: for each posting, the place of its term among the terms.
        values: what each posting adds to its skill's score.
        shape: number of terms, number of all skills.
    """

    skills: NDArray[np.int32]
    terms: NDArray[np.intp]
    values: NDArray[Any]
    shape: tuple[int, int]

    @classmethod
    def of(
        cls,
        terms: Sequence[int] | NDArray[np.intp],
        start: NDArray[np.integer],
        skills: NDArray[np.int32],
        values: NDArray[Any],
        size: int,
    ) -> Self:
        """Gather the postings of different terms.

        Args:
            start: the postings of term t are ``start[t]:start[t + 1]`` of all.
            skills: of all postings.
            values: of all postings.
            size: number of all skills.
        """
        chosen = np.asarray(terms, dtype=np.intp)
        first = start.take(chosen)
        count = start.take(chosen + 1) - first
        places = (first - count.cumsum() + count).repeat(count)
        places += np.arange(len(places))
        row = np.arange(len(chosen)).repeat(count)
        return cls(skills.take(places), row, values.take(places), (len(chosen), size))

    def scores(self) -> NDArray[np.float64]:
        """The sum of the values of each skill, shape (skills,)."""
        return np.bincount(self.skills, self.values, self.shape[1]).astype(np.float64, copy=False)

    def contributions(self, among: NDArray[np.intp]) -> NDArray[Any]:
        """What each term adds to the scores of some skills, shape (terms, skills)."""
        column = np.full(self.shape[1], -1)
        column[among] = np.arange(len(among))
        columns = column.take(self.skills)
        held = (columns >= 0).nonzero()[0]
        cells = self.terms.take(held) * len(among) + columns.take(held)
        table = np.zeros(self.shape[0] * len(among), dtype=self.values.dtype)
        table[cells] = self.values.take(held)
        return table.reshape(self.shape[0], len(among))
