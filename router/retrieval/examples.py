"""The examples of the skills: requests that each should serve, as evidence of meaning.

A skill's own text says what it does, in its author's words; an example says it in a user's. So each
example has a vector of its own, and a request is near a skill when it is near some of its examples.
For a request with vector q, a skill's examples e, their mean m scaled to unit length, and b, the
mean cosine of q to the own texts of all skills,

    near = mean of the three largest cosine(q, e)  +  cosine(q, m)  -  2 b  +  WORDING p

where p says how alike the wording of the request and of the examples is (``phrases.py``). The three
nearest remember, the mean generalises, and phrases hold what vectors lose.

Of a skill without examples nobody knows how near they would be. It gets the benefit of the doubt:
as near as the nearest of the others, at most ``FAIR``. So skills without examples are not starved
by their neighbours that have some, and are told from them by what each says of itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from router.retrieval.documents import SkillDocument
from router.retrieval.phrases import PhraseIndex

NEAREST: Final = 3
WORDING: Final = 4.5
FAIR: Final = 1.1
"""Half of the requests are about as near to the examples of a skill that serves them."""
QUANTISED_FROM: Final = 50_000
"""From so many examples on, vectors are kept as 8-bit integers, a quarter of the memory."""
_TAKEN: Final = -1000.0
"""Below any product."""


class ExampleIndex:
    """The examples of all skills, by skill. Immutable.

    Attributes:
        count: number of examples of each skill, shape (skills,).
        holders: positions of the skills that have examples, ascending.
        means: for each of the holders the mean of its examples, unit length.
    """

    def __init__(
        self,
        documents: Sequence[SkillDocument],
        vectors: Callable[[Sequence[str]], NDArray[np.float32]],
        *,
        dimensions: int,
        previous: ExampleIndex | None = None,
        kept: NDArray[np.intp] | None = None,
    ) -> None:
        """Index the examples of documents.

        Args:
            documents: the skills, in their order.
            vectors: from texts to their unit vectors, one row each.
            dimensions: of the vectors.
            previous: an index of other documents, whose vectors are used again.
            kept: for each document its place in ``previous``, see ``kept_places``.
        """
        self._documents = tuple(documents)
        self.count = np.array([len(d.examples) for d in documents], dtype=np.intp)
        self.holders = np.flatnonzero(self.count)
        self._start = np.concatenate(([0], np.cumsum(self.count)))
        total = int(self._start[-1])
        quantised = total >= QUANTISED_FROM
        self._scale = 127.0 if quantised else 1.0
        self._rows: NDArray[Any] = np.zeros(
            (total, dimensions), np.int8 if quantised else np.float32
        )
        self.means = np.zeros((len(self.holders), dimensions), dtype=np.float32)
        new: list[tuple[int, int]] = []
        for number, place in enumerate(self.holders.tolist()):
            before = -1 if kept is None else int(kept[place])
            if previous is not None and before >= 0 and previous._scale == self._scale:
                self._rows[self._of(place)] = previous._rows[previous._of(before)]
                self.means[number] = previous.means[np.searchsorted(previous.holders, before)]
            else:
                new.append((number, place))
        texts = [text for _, place in new for text in documents[place].examples]
        found = vectors(texts) if texts else np.zeros((0, dimensions), np.float32)
        owners = [documents[place] for place in self.holders.tolist()]
        self._phrases: PhraseIndex = (
            previous._phrases
            if previous is not None and previous._owners == owners
            else PhraseIndex([document.phrases for document in owners])
        )
        self._owners: list[SkillDocument] = owners
        at = 0
        for number, place in new:
            rows = found[at : at + len(documents[place].examples)]
            at += len(rows)
            self._rows[self._of(place)] = np.rint(rows * self._scale) if quantised else rows
            mean = rows.mean(axis=0)
            self.means[number] = mean / max(float(np.linalg.norm(mean)), 1e-9)

    def near(
        self,
        spoken: Sequence[Sequence[str]],
        vectors: NDArray[np.float32],
        background: NDArray[np.float32],
        among: NDArray[np.intp],
    ) -> NDArray[np.float64]:
        """How near some skills' examples are to some texts, shape (texts, skills); see the
        module's formula.

        Args:
            spoken: the words of each text.
            vectors: of the texts, one row of unit length each.
            background: b of each text, the mean cosine to the own texts of all skills.
            among: the positions of the skills. All are 0 where none of them has examples.
        """
        near = np.zeros((len(vectors), len(among)))
        holders = np.flatnonzero(self.count[among])
        if not len(holders):
            return near
        chosen = among[holders]
        held = self.count[chosen]
        # Each skill's cosines lie in one row of a table, which is as wide as the largest needs.
        column = np.arange(max(int(held.max()), NEAREST))
        filled = column < held[:, np.newaxis]
        places = (self._start[chosen, np.newaxis] + column)[filled]
        rows = self._rows.take(places, axis=0).astype(np.float32, copy=False)
        table = np.full((len(vectors), filled.size), _TAKEN, dtype=np.float32)
        # One product for each text: BLAS is slow with a matrix of few columns.
        table[:, np.flatnonzero(filled)] = [rows @ vector for vector in vectors]
        cosines = table.reshape(len(vectors), *filled.shape)
        nearest = np.partition(cosines, -NEAREST)[..., -NEAREST:]
        total = np.where(nearest > _TAKEN, nearest, 0).sum(axis=2, dtype=np.float64) / self._scale
        owners = np.searchsorted(self.holders, chosen)
        means = (vectors @ self.means[owners].T).astype(np.float64)
        wording = WORDING * self._phrases.near(spoken, owners)
        offset = means - 2 * background[:, np.newaxis] + wording
        known = total / np.minimum(held, NEAREST) + offset
        near[:] = doubtful(known)[:, np.newaxis]
        near[:, holders] = known
        return near

    def nearest(self, vector: NDArray[np.float32], place: int) -> tuple[str, float] | None:
        """The example of one skill that is nearest to a request, and its cosine; None when the
        skill has no examples."""
        rows = self._rows[self._of(place)]
        if not len(rows):
            return None
        cosines = rows.astype(np.float32, copy=False) @ vector / np.float32(self._scale)
        best = int(cosines.argmax())
        return self._documents[place].examples[best], float(cosines[best])

    def about(self, vector: NDArray[np.float32], background: float) -> NDArray[np.float64]:
        """A guess at how near the examples of all skills are to a request, shape (skills,), from
        the means alone."""
        about = np.zeros(len(self.count))
        if len(self.holders):
            means = 2 * ((self.means @ vector).astype(np.float64) - background)
            about[:] = doubtful(means)
            about[self.holders] = means
        return about

    def _of(self, place: int) -> slice:
        return slice(self._start[place], self._start[place + 1])


def doubtful(known: NDArray[np.float64]) -> NDArray[np.float64]:
    """How near the examples of a skill that has none are taken to be, by how near those of others
    are along the last axis."""
    return np.asarray(known.max(axis=-1).clip(max=FAIR))
