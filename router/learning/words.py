"""How often the examples of each answer have a word: naive Bayes beside the head's regression.

A regression over a thousand buckets of words must share each of its weights between many words, and
learns of a rare one next to nothing. Counts do not: each stem, pair of stems and letter sequence
(``features.Terms``) has its own, and they are made in one pass. With n_tc examples of answer c that
have term t, n_c examples of c, and p_t the share of all examples that have t, the answers differ by

    log (n_tc + STRENGTH p_t) / ((n_c + STRENGTH) p_t)
        = log STRENGTH / (n_c + STRENGTH)  +  log(1 + n_tc / (STRENGTH p_t)),

where STRENGTH examples that are like all others keep few from saying too much. The second part is 0
for the many answers that never had the term, so only the others are kept. The score of an answer is
the mean of this over the terms of the request that any example has, each weighed as in the head's
rows. Where answers have ENOUGH examples on average it counts in full, where they have FEW or fewer
not at all: a word that came once would seem to decide.

It gained 1.6 points of nDCG@5 over MetaTool, with 59 queries a tool, and 0.3 and 0.4 points of
accuracy over CLINC150 and BANKING77, for a sixth of the fit's time. Four times the buckets gave the
head a point over MetaTool, for three times the fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from router.learning.features import Terms
from router.retrieval.postings import Postings

WIDTH: Final = 1 << 16
"""Different terms, by their hash."""
STRENGTH: Final = 20.0
FEW: Final = 10
ENOUGH: Final = 30


class WordCounts(NamedTuple):
    """What each term says for each answer that has it.

    Attributes:
        starts: those of term t stand at ``starts[t]:starts[t + 1]``; shape (WIDTH + 1,), and empty
            where there are too few examples, for it would be most of a kept model.
        answers: the places of the answers.
        gains: the second part of the formula.
        absent: the first part, shape (answers,).
    """

    starts: NDArray[np.int32]
    answers: NDArray[np.int32]
    gains: NDArray[np.float32]
    absent: NDArray[np.float32]

    @classmethod
    def of(
        cls, found: Sequence[Terms], answers: NDArray[np.intp], counts: NDArray[np.floating]
    ) -> Self:
        """Count the terms of each example by the places of their answers; each example counts as
        much as ``counts`` says."""
        size = int(answers.max()) + 1
        weight = min((len(found) / size - FEW) / (ENOUGH - FEW), 1)
        if weight <= 0:
            return cls._of_none(size)
        lengths = [len(terms.codes) for terms in found]
        terms = np.concatenate([terms.codes for terms in found]) % WIDTH
        weights = np.repeat(counts, lengths)
        pairs, place = np.unique(terms * size + np.repeat(answers, lengths), return_inverse=True)
        both = np.bincount(place, weights, len(pairs))
        term = pairs // size
        share = np.bincount(term, both, WIDTH) / counts.sum()
        starts = np.searchsorted(term, np.arange(WIDTH + 1)).astype(np.int32)
        absent = -np.log1p(np.bincount(answers, counts) / STRENGTH)
        return cls(
            starts,
            (pairs % size).astype(np.int32),
            (weight * np.log1p(both / (STRENGTH * share[term]))).astype(np.float32),
            (weight * absent).astype(np.float32),
        )

    @classmethod
    def _of_none(cls, size: int) -> Self:
        none, gains = np.zeros(0, dtype=np.int32), np.zeros(0, dtype=np.float32)
        return cls(none, none, gains, np.zeros(size, dtype=np.float32))

    def scores(self, terms: Terms) -> NDArray[np.float32]:
        """The score of each answer to a request with these terms; shape (answers,)."""
        if not len(self.starts):
            return self.absent
        places = terms.codes % WIDTH
        shares = np.square(terms.values)
        shares *= self.starts[places + 1] > self.starts[places]
        shares /= max(float(shares.sum()), 1e-9)
        held = Postings.of(places, self.starts, self.answers, self.gains, len(self.absent))
        gained = np.bincount(held.skills, held.values * shares[held.terms], len(self.absent))
        return np.asarray(gained + shares.sum() * self.absent, dtype=np.float32)

    def fits(self, answers: int) -> bool:
        """Whether these are counts of so many answers whose parts fit together."""
        numbers = (np.int32, np.int32, np.float32, np.float32)
        if any(part.dtype != kind for part, kind in zip(self, numbers, strict=True)):
            return False
        if self.starts.shape == (0,):
            return all(map(np.array_equal, self, self._of_none(answers)))
        return (
            self.starts.shape == (WIDTH + 1,)
            and self.absent.shape == (answers,)
            and self.answers.shape == self.gains.shape == (self.starts[-1],)
            and self.starts[0] == 0
            and bool((self.starts >= 0).all() and (np.diff(self.starts) >= 0).all())
            and bool(((self.answers >= 0) & (self.answers < answers)).all())
            and bool(np.isfinite(self.gains).all() and np.isfinite(self.absent).all())
        )
