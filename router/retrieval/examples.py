"""How near a request is to the examples of the skills: requests that each skill should serve.

A skill's own text says what it does, in its author's words; an example says it in a user's. So each
example has a vector of its own. For a request with vector q, a skill's examples e, their mean m
scaled to unit length, and b, the mean cosine of q to the own texts of all skills,

    near = mean of the three largest cosine(q, e)  +  cosine(q, m)  -  2 b  +  WORDING p  +  t  -  a

* The three nearest examples remember single requests, and the mean generalises.
* p says how alike the wording of the request and of the examples is (``phrases.py``). Phrases hold
  what vectors lose.
* t tells the skill from its neighbours (``contrast.py``); it is 0 for a request of several clauses.
* a is how much more alike the skill's examples are than those of other skills: the mean cosine of
  two of its examples, less that over all skills. A request for a skill of many sides is less near
  to each of its examples than one for a skill of a single purpose, and is just as right.

Nobody knows how near the examples of a skill would be that has none. It gets the benefit of the
doubt: it counts as near as the nearest of the others, at most ``MAX_BENEFIT``. So its neighbours
that have examples do not take its requests, and its own text decides.

One or two examples show only some of the ways in which people ask. So of n examples the nearness
counts with the weight

    (n / ENOUGH)^FEW_EXPONENT, and 1 from ENOUGH on,

and the benefit of the doubt with the rest. Where few counted as much as many, one example for each
of 574 skills lost 6 points of hit@1 on direct requests, and 19 on terse ones, against none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import reduce
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from router.retrieval.contrast import Contrast
from router.retrieval.documents import Edit, T
from router.retrieval.encoders import unit
from router.retrieval.phrases import PhraseIndex, no_phrases

NEAREST: Final = 3
WORDING: Final = 4.5
FEW_PAIRS: Final = 10
"""Two or three examples do not tell how alike a skill's requests are. So the mean over all skills
is added like this many pairs of its own. Two examples are two pairs: each with the other."""
MAX_BENEFIT: Final = 1.1
"""About half of the requests are at least this near to the examples of a skill that serves them."""
QUANTISED_FROM: Final = 50_000
"""From this many examples on, vectors are kept as 8-bit integers, a quarter of the memory. An index
that has held so many keeps them so: the one way in which it may differ from an index made anew."""
QUANTISED: Final = 127.0
"""The integer of 1."""
ENOUGH: Final = 8
"""From this many examples on, they count in full."""
FEW_EXPONENT: Final = 1.3
"""Above 1: fewer examples count less than in proportion. Between 1 and 2 little changes."""
_EMPTY: Final = -1000.0
"""Fills the table where a skill has fewer examples than another; it is below any product."""


class Nearness(NamedTuple):
    """How near some skills' examples are to some texts; both have the shape (texts, skills).

    Attributes:
        near: by the module's formula; 0 everywhere where no skill has examples.
        closest: the cosine of the nearest example; -1 for a skill without examples.
    """

    near: NDArray[np.float64]
    closest: NDArray[np.float32]


class ExampleIndex:
    """The examples of all skills, by skill. Immutable: ``edited`` gives the next index.

    Attributes:
        count: number of examples of each skill, shape (skills,).
        weight: how much they count, in [0, 1]; 0 for a skill without examples.
        holders: positions of the skills that have examples, ascending.
        means: for each of the holders the mean of its examples, unit length.
    """

    def __init__(self) -> None:
        """The examples of no skills."""
        self.count: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self.weight: NDArray[np.float64] = np.zeros(0)
        self.holders = self.count
        self.means: NDArray[np.float32] = np.zeros((0, 0), dtype=np.float32)
        self._start: NDArray[np.intp] = np.zeros(1, dtype=np.intp)
        self._pair_cosines: NDArray[np.float64] = np.zeros(0)
        self._alikeness = self._pair_cosines
        self._rows: NDArray[Any] = self.means
        self._scale = 1.0
        self._contrast = Contrast(self.means, self.count, self.means)
        self._profiles: list[bytes] = []
        self._phrases = no_phrases()

    def edited(
        self, edit: Edit, vectors: Callable[[Sequence[str]], NDArray[np.float32]]
    ) -> ExampleIndex:
        """The index after a step; ``vectors`` gives the unit vectors of texts, one row each."""
        after = copy(self)
        new = [document for document in edit.added if document.examples]
        added = np.array([len(document.examples) for document in edit.added], dtype=np.intp)
        after.count = edit.carried(self.count, added)
        after.weight = np.minimum(after.count / ENOUGH, 1) ** FEW_EXPONENT
        after.holders = np.flatnonzero(after.count)
        after._start = np.concatenate(([0], np.cumsum(after.count)))
        if not new and after._start[-1] == self._start[-1]:
            return after  # no example came, and none went
        found, means, pair_cosines = self._rows[:0], self.means[:0], self._pair_cosines[:0]
        ends = np.cumsum(added)
        if new:
            found = vectors([text for document in new for text in document.examples])
            parts = np.split(found, ends[added > 0][:-1])
            sums = np.stack([rows.sum(axis=0) for rows in parts])
            means = unit(sums)
            # The square of a sum of unit vectors: 1 for each, and the cosine of each pair.
            pair_cosines = np.square(sums, dtype=np.float64).sum(axis=1) - added[added > 0]
        # New rows stand behind the old ones. Where each skill's examples are there ...
        first = edit.carried(self._start[:-1], len(self._rows) + ends - added)
        order = np.repeat(first - after._start[:-1], after.count) + np.arange(after._start[-1])
        # ... and where each holder's mean and sum are.
        holder = edit.carried(
            np.cumsum(self.count > 0) - 1, len(self.means) + np.cumsum(added > 0) - 1
        )[after.holders]
        after._scale = QUANTISED if len(order) >= QUANTISED_FROM else self._scale
        before = self._rows
        if after._scale != self._scale:
            before = _quantised(before)
        if after._scale == QUANTISED:
            found = _quantised(found)
        after._rows = _joined(before, found).take(order, axis=0)
        after.means = _joined(self.means, means).take(holder, axis=0)
        after._pair_cosines = _joined(self._pair_cosines, pair_cosines).take(holder)
        held = after.count[after.holders]
        pairs = held * (held - 1)
        typical = after._pair_cosines.sum() / max(pairs.sum(), 1)
        after._alikeness = (after._pair_cosines - pairs * typical) / (pairs + FEW_PAIRS)
        after._contrast = Contrast(after._rows, held, after.means)
        profiles = [*self._profiles, *(document.phrases for document in new)]
        after._profiles = [profiles[place] for place in holder.tolist()]
        after._phrases = PhraseIndex(after._profiles)
        return after

    def near(
        self,
        spoken: Sequence[Sequence[str]],
        vectors: NDArray[np.float32],
        mean_cosines: NDArray[np.float32],
        among: NDArray[np.intp],
        *,
        single: bool = False,
    ) -> Nearness:
        """How near some skills' examples are to some texts.

        Args:
            spoken: the words of each text.
            vectors: of the texts, one row of unit length each.
            mean_cosines: b of each text.
            among: the positions of the skills.
            single: there is one text, and it is a request of a single clause.
        """
        near = np.zeros((len(vectors), len(among)))
        closest = np.full(near.shape, -1, dtype=np.float32)
        holders = np.flatnonzero(self.count[among])
        if not len(holders):
            return Nearness(near, closest)
        chosen = among[holders]
        held = self.count[chosen]
        # Each skill's cosines lie in one row of a table, which is as wide as the largest needs.
        column = np.arange(max(int(held.max()), NEAREST))
        shape = len(vectors), len(held), len(column)
        filled = np.flatnonzero(column < held[:, np.newaxis])
        places = (self._start.take(chosen)[:, np.newaxis] + column).take(filled)
        rows = self._rows.take(places, axis=0).astype(np.float32, copy=False)
        table = np.full((len(vectors), shape[1] * shape[2]), _EMPTY, dtype=np.float32)
        for cosines, vector in zip(table, vectors, strict=True):
            cosines[filled] = rows @ vector  # BLAS is slow with a matrix of few columns
        nearest = np.partition(table.reshape(shape), -NEAREST)[..., -NEAREST:]
        total = np.where(nearest > _EMPTY, nearest, 0).sum(axis=2, dtype=np.float64) / self._scale
        owners = np.searchsorted(self.holders, chosen)
        means = (vectors @ self.means.take(owners, axis=0).T).astype(np.float64)
        wording = WORDING * self._phrases.near(spoken, owners)
        offset = means - 2 * mean_cosines[:, np.newaxis] + wording - self._alikeness[owners]
        known = total / np.minimum(held, NEAREST) + offset
        if single:
            known += self._contrast.of(vectors, owners)
        benefit = benefit_of_doubt(known)[:, np.newaxis]
        near[:] = benefit
        near[:, holders] = benefit + self.weight[chosen] * (known - benefit)
        # Over a short last axis ``max`` takes five times as long.
        largest = reduce(np.maximum, nearest.T).T
        closest[:, holders] = largest / np.float32(self._scale)
        return Nearness(near, closest)

    def nearest(self, vector: NDArray[np.float32], place: int) -> tuple[int, float] | None:
        """Which example of one skill is nearest to a request, and its cosine; None when the skill
        has no examples."""
        rows = self._rows[self._start[place] : self._start[place + 1]]
        if not len(rows):
            return None
        cosines = rows.astype(np.float32, copy=False) @ vector / np.float32(self._scale)
        best = int(cosines.argmax())
        return best, float(cosines[best])

    def about(self, vector: NDArray[np.float32], mean_cosine: float) -> NDArray[np.float64]:
        """A guess at how near the examples of all skills are to a request, shape (skills,), from
        the means alone and b."""
        about = np.zeros(len(self.count))
        if len(self.holders):
            means = 2 * ((self.means @ vector).astype(np.float64) - mean_cosine)
            benefit = benefit_of_doubt(means)
            about[:] = benefit
            about[self.holders] = benefit + self.weight[self.holders] * (means - benefit)
        return about


def _quantised(rows: NDArray[np.float32]) -> NDArray[np.int8]:
    return np.asarray(np.rint(rows * QUANTISED), dtype=np.int8)


def _joined(before: NDArray[T], added: NDArray[T]) -> NDArray[T]:
    """Two tables as one. The table of no rows does not know how wide it would be."""
    return (
        np.concatenate([before, added])
        if len(before) and len(added)
        else max(before, added, key=len)
    )


def benefit_of_doubt(known: NDArray[np.float64]) -> NDArray[np.float64]:
    """How near a skill without examples is taken to be, from how near the examples of the others
    are (the last axis)."""
    return np.asarray(known.max(axis=-1).clip(max=MAX_BENEFIT))
