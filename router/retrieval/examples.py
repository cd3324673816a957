"""How near a request is to the examples of the skills: requests that each skill should serve.

A skill's own text says what it does in its author's words; an example says it in a user's words. So
each example has a vector of its own. For a request with vector q, a skill's examples e, their mean
m scaled to unit length, and b, the mean cosine of q to the own texts of all skills, the nearness is

    mean of the three largest cosine(q, e)  +  cosine(q, m)  -  2 b  +  WORDING_WEIGHT p  +  t  -  a

* The three nearest examples remember single requests, and the mean generalises.
* p is the similarity of the request's and the examples' turns of phrase (``phrases.py``), which
  vectors do not hold.
* t distinguishes the skill from similar ones (``contrast.py``). It is at most 0, and 0 for a
  request of several clauses.
* a is the mean cosine of two examples of the skill, minus that over all skills. A skill for many
  different tasks has examples that are less similar to each other, and a request for it is less
  near to them, though it is just as right.

A skill without examples has no such value. It gets a *default*: the nearness of the nearest skill
with examples, at most ``MAX_DEFAULT_NEARNESS``. So similar skills that have examples do not take
its requests, and its own text decides.

One or two examples show only some of the ways in which people ask. So the nearness of n examples
has the weight

    (n / FULL_WEIGHT_COUNT)^FEW_EXPONENT, and at most 1,

and the default has the rest. With full weight, one example for each of 574 skills lost 6 points of
hit@1 on direct requests, and 19 on terse ones, compared with no examples. An example that an LLM
wrote for another version of the skill (a stale one) counts as ``STALE_COUNT`` examples.
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
WORDING_WEIGHT: Final = 4.5
FEW_PAIRS: Final = 10
"""The mean cosine over all skills counts like this many pairs of a skill's own examples, because
the few pairs of two or three examples estimate it badly. Two examples are counted as two pairs."""
MAX_DEFAULT_NEARNESS: Final = 1.1
"""About half of the requests are at least this near to the examples of a skill that serves them."""
QUANTISED_FROM: Final = 50_000
"""From this many examples on, vectors are kept as 8-bit integers, in a quarter of the memory. An
index that once had so many keeps integers. Only in this may it differ from one built from
nothing."""
QUANTISATION_SCALE: Final = 127.0
"""The integer that stands for 1."""
FULL_WEIGHT_COUNT: Final = 8
"""From this many examples on, a skill's examples have the weight 1."""
FEW_EXPONENT: Final = 1.3
"""Above 1: fewer examples count less than in proportion. Between 1 and 2 little changes."""
STALE_COUNT: Final = 0.5
"""How many examples one counts as that was written for another version of its skill. In the develop
catalogs of ``benchmarks/trades.py``, with stale requests for a quarter of the skills, .75 of what
was asked was routed right where the stale ones still fitted, and .68 where they were those of
another skill. That is .80 and .60 if they count in full, and .69 without them."""
_EMPTY: Final = -1000.0
"""Fills the places of the table for which a skill has no example; it is below any product."""


class Nearness(NamedTuple):
    """How near some skills' examples are to some texts; both have the shape (texts, skills).

    Attributes:
        nearness: see the module's docstring; 0 for all where no skill has examples.
        closest: the cosine of the nearest example; -1 for a skill without examples.
    """

    nearness: NDArray[np.float64]
    closest: NDArray[np.float32]


class ExampleIndex:
    """The examples of all skills. Immutable: ``edited`` gives the next index.

    Attributes:
        count: number of examples of each skill, shape (skills,).
        weight: the weight of each skill's examples, in [0, 1]; 0 for a skill without examples.
        holders: positions of the skills that have examples, ascending.
        means: for each of the holders the mean of its examples, unit length.
    """

    def __init__(self) -> None:
        """The index of no skills."""
        self.count: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self.weight: NDArray[np.float64] = np.zeros(0)
        self._stale = self.count
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
        """The edited index; ``vectors`` returns the vectors of texts, of unit length, one row
        each."""
        after = copy(self)
        new = [document for document in edit.added if document.examples]
        added = np.array([len(document.examples) for document in edit.added], dtype=np.intp)
        after.count = edit.carried(self.count, added)
        stale = np.array([document.stale for document in edit.added], dtype=np.intp)
        after._stale = edit.carried(self._stale, stale)
        full = after.count - (1 - STALE_COUNT) * after._stale
        after.weight = np.minimum(full / FULL_WEIGHT_COUNT, 1) ** FEW_EXPONENT
        after.holders = np.flatnonzero(after.count)
        after._start = np.concatenate(([0], np.cumsum(after.count)))
        if not new and after._start[-1] == self._start[-1]:
            return after  # no example was added or removed
        found, means, pair_cosines = self._rows[:0], self.means[:0], self._pair_cosines[:0]
        ends = np.cumsum(added)
        if new:
            found = vectors([text for document in new for text in document.examples])
            parts = np.split(found, ends[added > 0][:-1])
            sums = np.stack([rows.sum(axis=0) for rows in parts])
            means = unit(sums)
            # The square of a sum of unit vectors: 1 for each, and the cosine of each pair.
            pair_cosines = np.square(sums, dtype=np.float64).sum(axis=1) - added[added > 0]
        # The new rows follow the old ones. Find where each skill's examples are in them ...
        first = edit.carried(self._start[:-1], len(self._rows) + ends - added)
        order = np.repeat(first - after._start[:-1], after.count) + np.arange(after._start[-1])
        # ... and where the mean and the pair cosines of each skill with examples are.
        holder = edit.carried(
            np.cumsum(self.count > 0) - 1, len(self.means) + np.cumsum(added > 0) - 1
        )[after.holders]
        after._scale = QUANTISATION_SCALE if len(order) >= QUANTISED_FROM else self._scale
        before = self._rows
        if after._scale != self._scale:
            before = _quantised(before)
        if after._scale == QUANTISATION_SCALE:
            found = _quantised(found)
        after._rows = _joined(before, found).take(order, axis=0)
        after.means = _joined(self.means, means).take(holder, axis=0)
        after._pair_cosines = _joined(self._pair_cosines, pair_cosines).take(holder)
        counts_of_chosen = after.count[after.holders]
        pairs = counts_of_chosen * (counts_of_chosen - 1)
        typical = after._pair_cosines.sum() / max(pairs.sum(), 1)
        after._alikeness = (after._pair_cosines - pairs * typical) / (pairs + FEW_PAIRS)
        after._contrast = Contrast(after._rows, counts_of_chosen, after.means)
        profiles = [*self._profiles, *(document.phrases for document in new)]
        after._profiles = [profiles[place] for place in holder.tolist()]
        after._phrases = PhraseIndex(after._profiles)
        return after

    def nearness(
        self,
        words: Sequence[Sequence[str]],
        vectors: NDArray[np.float32],
        mean_cosines: NDArray[np.float32],
        among: NDArray[np.intp],
        *,
        single: bool = False,
    ) -> Nearness:
        """How near some skills' examples are to some texts.

        Args:
            words: the words of each text.
            vectors: of the texts, one row of unit length each.
            mean_cosines: b of each text (see the module's docstring).
            among: the positions of the skills.
            single: whether the only text is a request of a single clause.
        """
        nearness = np.zeros((len(vectors), len(among)))
        closest = np.full(nearness.shape, -1, dtype=np.float32)
        holders = np.flatnonzero(self.count[among])
        if not len(holders):
            return Nearness(nearness, closest)
        chosen = among[holders]
        counts_of_chosen = self.count[chosen]
        # The cosines of each skill are one row of a table. Its width is the largest count.
        column = np.arange(max(int(counts_of_chosen.max()), NEAREST))
        shape = len(vectors), len(counts_of_chosen), len(column)
        filled = np.flatnonzero(column < counts_of_chosen[:, np.newaxis])
        places = (self._start.take(chosen)[:, np.newaxis] + column).take(filled)
        rows = self._rows.take(places, axis=0).astype(np.float32, copy=False)
        table = np.full((len(vectors), shape[1] * shape[2]), _EMPTY, dtype=np.float32)
        for cosines, vector in zip(table, vectors, strict=True):
            cosines[filled] = rows @ vector  # BLAS is slow with a matrix of few columns
        nearest = np.partition(table.reshape(shape), -NEAREST)[..., -NEAREST:]
        total = np.where(nearest > _EMPTY, nearest, 0).sum(axis=2, dtype=np.float64) / self._scale
        owners = np.searchsorted(self.holders, chosen)
        means = (vectors @ self.means.take(owners, axis=0).T).astype(np.float64)
        wording = WORDING_WEIGHT * self._phrases.similarity(words, owners)
        offset = means - 2 * mean_cosines[:, np.newaxis] + wording - self._alikeness[owners]
        own_nearness = total / np.minimum(counts_of_chosen, NEAREST) + offset
        if single:
            own_nearness += self._contrast.adjustments(vectors, owners)
        default = default_nearness(own_nearness)[:, np.newaxis]
        nearness[:] = default
        nearness[:, holders] = default + self.weight[chosen] * (own_nearness - default)
        # Over a short last axis ``max`` takes five times as long.
        largest = reduce(np.maximum, nearest.T).T
        closest[:, holders] = largest / np.float32(self._scale)
        return Nearness(nearness, closest)

    def nearest(self, vector: NDArray[np.float32], place: int) -> tuple[int, float] | None:
        """The number of the example of one skill that is nearest to a request, and its cosine; None
        where the skill has no examples."""
        rows = self._rows[self._start[place] : self._start[place + 1]]
        if not len(rows):
            return None
        cosines = rows.astype(np.float32, copy=False) @ vector / np.float32(self._scale)
        best = int(cosines.argmax())
        return best, float(cosines[best])

    def approximate_nearness(
        self, vector: NDArray[np.float32], mean_cosine: float
    ) -> NDArray[np.float64]:
        """The nearness of all skills' examples to a request, shape (skills,), approximated from the
        means of the examples and b."""
        approximate_nearness = np.zeros(len(self.count))
        if len(self.holders):
            means = 2 * ((self.means @ vector).astype(np.float64) - mean_cosine)
            default = default_nearness(means)
            approximate_nearness[:] = default
            approximate_nearness[self.holders] = default + self.weight[self.holders] * (
                means - default
            )
        return approximate_nearness


def _quantised(rows: NDArray[np.float32]) -> NDArray[np.int8]:
    return np.asarray(np.rint(rows * QUANTISATION_SCALE), dtype=np.int8)


def _joined(before: NDArray[T], added: NDArray[T]) -> NDArray[T]:
    """Two tables as one. A table without rows may have another width."""
    return (
        np.concatenate([before, added])
        if len(before) and len(added)
        else max(before, added, key=len)
    )


def default_nearness(own_nearness: NDArray[np.float64]) -> NDArray[np.float64]:
    """The nearness of skills without examples, from that of the others (the last axis)."""
    return np.asarray(own_nearness.max(axis=-1).clip(max=MAX_DEFAULT_NEARNESS))
