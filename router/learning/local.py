"""What the examples say about one request: the local answer, and signals of how sure it is.

A ``LocalModel`` is a snapshot: a head over text features, and the vectors of its examples for the
look at the nearest. It never changes; a later one takes its place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from router.learning.bound import LocalSignals
from router.learning.calibration import Calibrator
from router.learning.evidence import Example
from router.learning.head import Head
from router.text import tokens

NEIGHBOURS: Final = 10
MAX_RANKED: Final = 5
_JOINT: Final = " + "
"""Between the names of an answer of several skills. Names hold no spaces around a plus sign."""


def answer_of(skills: Sequence[str]) -> str:
    """One name for a set of skills; the empty name says that no skill is right."""
    return _JOINT.join(sorted(skills))


def skills_of(answer: str) -> tuple[str, ...]:
    """The skills of an answer."""
    return tuple(answer.split(_JOINT)) if answer else ()


@dataclass(frozen=True, slots=True)
class LocalAnswer:
    """What the examples say about one request.

    Attributes:
        answer: the likeliest answer; see ``answer_of``.
        signals: what it rests on.
        ranked: the likeliest answers with their probability by the head, best first.
    """

    answer: str
    signals: LocalSignals
    ranked: tuple[tuple[str, float], ...]

    @property
    def skills(self) -> tuple[str, ...]:
        """The skills of the answer; empty when no skill is right."""
        return skills_of(self.answer)


class LocalModel:
    """A head with the examples that it was fitted on. Immutable once it serves.

    Attributes:
        version: rises with every model of a router.
        calibrator: how far its probabilities hold; None where nobody has found out.
        examples: how many examples it was fitted on.
    """

    def __init__(
        self,
        head: Head,
        vectors: NDArray[np.float32],
        labels: NDArray[np.intp],
        version: int,
    ) -> None:
        self.head = head
        self.version = version
        self.calibrator: Calibrator | None = None
        self.examples = len(labels)
        self._vectors = vectors
        self._labels = labels
        self._counts = np.bincount(labels, minlength=len(head.classes))

    @classmethod
    def fit(
        cls,
        examples: Sequence[Example],
        vectors: NDArray[np.float32],
        *,
        version: int,
    ) -> Self | None:
        """A model of labels that say what is right; None when they name fewer than two answers.

        Args:
            examples: labels, of which those that say what is wrong are passed over.
            vectors: of their texts, shape (len(examples), dimension), unit length.
            version: of the new model.
        """
        kept = [number for number, example in enumerate(examples) if example.right]
        answers = [answer_of(examples[number].skills) for number in kept]
        if len(set(answers)) < 2:
            return None
        head = Head.fit(
            [examples[number].text for number in kept],
            answers,
            vectors[kept],
            weights=[examples[number].weight for number in kept],
        )
        place = {name: number for number, name in enumerate(head.classes)}
        labels = np.asarray([place[answer] for answer in answers], dtype=np.intp)
        return cls(head, np.ascontiguousarray(vectors[kept]), labels, version)

    def answer(self, text: str, vector: NDArray[np.float32]) -> LocalAnswer:
        """The likeliest answer to a request; some 0.2 ms with a thousand examples.

        Args:
            text: the request.
            vector: of it, unit length.
        """
        logits = self.head.scores([text], vector[np.newaxis], nearest=False)[0].astype(np.float64)
        order = np.argsort(-logits)[:MAX_RANKED]
        top = float(logits[order[0]])
        shares = np.exp(logits - top)
        total = float(shares.sum())
        shares /= total
        best = int(order[0])
        similar = self._vectors @ vector
        agrees = self._labels == best
        near = np.argpartition(-similar, min(NEIGHBOURS, len(similar)) - 1)[:NEIGHBOURS]
        closeness = np.maximum(similar[near], 0.0)
        weight = float(closeness.sum())
        signals = LocalSignals(
            # How much of anything known there is in the request: 0.5 at a log-sum-exp of 0.
            score=1 / (1 + math.exp(-min(max(top + math.log(total), -30.0), 30.0))),
            margin=float(top - logits[order[1]]),
            probability=float(shares[best]),
            agreeing=float(similar[agrees].max(initial=-1.0)),
            disagreeing=float(similar[~agrees].max(initial=-1.0)),
            vote=float(closeness[agrees[near]].sum()) / weight if weight > 0 else 0.0,
            examples=int(self._counts[best]),
            evidence=self.examples,
            words=len(tokens(text)),
        )
        ranked = tuple((self.head.classes[i], float(shares[i])) for i in order)
        return LocalAnswer(self.head.classes[best], signals, ranked)
