"""What the examples say about one request: the local answer, and signals of how sure it is.

A ``LocalModel`` is a snapshot: a head, and how many examples speak for each of its answers. It
never changes; a later one takes its place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from router.learning.bound import LocalSignals
from router.learning.calibration import Calibrator
from router.learning.evidence import Example
from router.learning.head import Head, energy
from router.text import tokens

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
    """A head with what it was fitted on. Immutable once it serves.

    Attributes:
        head: scores every answer.
        version: rises with every model of a router.
        calibrator: how far its probabilities hold; None where nobody has found out.
        examples: how many examples it was fitted on.
    """

    def __init__(self, head: Head, counts: NDArray[np.intp], version: int) -> None:
        """A model that serves ``head``; ``counts`` are the examples of each of its answers."""
        self.head = head
        self.version = version
        self.calibrator: Calibrator | None = None
        self.examples = int(counts.sum())
        self._counts = counts

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
        counts = Counter(answers)
        return cls(head, np.asarray([counts[answer] for answer in head.classes]), version)

    def answer(self, text: str, vector: NDArray[np.float32]) -> LocalAnswer:
        """The likeliest answer to a request; some 0.1 ms with a thousand examples.

        Args:
            text: the request.
            vector: of it, unit length.
        """
        scores, nearest = self.head.look(text, vector)
        order = np.argsort(-scores)[:MAX_RANKED].tolist()
        best, second = order[:2]
        inside = float(energy(scores))
        shares = np.exp(scores[order] - inside).tolist()
        agreeing = float(nearest[best])
        nearest[best] = -1.0
        signals = LocalSignals(
            score=inside,
            margin=float(scores[best] - scores[second]),
            probability=shares[0],
            agreeing=agreeing,
            disagreeing=float(nearest.max()),
            examples=int(self._counts[best]),
            evidence=self.examples,
            words=len(tokens(text)),
        )
        classes = self.head.classes
        ranked = tuple((classes[i], share) for i, share in zip(order, shares, strict=True))
        return LocalAnswer(classes[best], signals, ranked)
