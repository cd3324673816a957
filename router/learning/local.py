"""What the examples say about one request: the local answer, and signals of how sure it is.

A ``LocalModel`` is a snapshot: a head over text features, and the vectors of its examples for the
look at the nearest. It never changes; a later one takes its place.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from io import BytesIO
from typing import Final, Self
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from router.learning.bound import LocalSignals
from router.learning.evidence import Example
from router.learning.head import Head
from router.learning.reach import Reach
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
        reach: what its examples cover and how far its probabilities hold; None where nobody has
            found out.
        answers: the skills of each of the head's classes.
        examples: how many examples it was fitted on.
        examples_of: how many name each skill alone.
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
        self.reach: Reach | None = None
        self.answers = tuple(skills_of(name) for name in head.classes)
        self.examples = len(labels)
        self._vectors = vectors
        self._labels = labels
        self._counts = np.bincount(labels, minlength=len(head.classes))
        self.examples_of = {
            skills[0]: int(count)
            for skills, count in zip(self.answers, self._counts, strict=True)
            if len(skills) == 1
        }

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

    def count(self, answer: int) -> int:
        """Number of examples of an answer, by its place."""
        return int(self._counts[answer])

    def scores(self, text: str, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """The head's score of every answer to a request, shape (answers,)."""
        return np.asarray(self.head.scores([text], vector[np.newaxis], nearest=False)[0])

    def to_bytes(self) -> bytes:
        """The model as ``from_bytes`` reads it: NumPy's own format, without any code in it."""
        reach = None if self.reach is None else self.reach.to_dict()
        about = {"classes": self.head.classes, "reach": reach}
        arrays = {item.name: getattr(self.head, item.name) for item in fields(self.head)[1:]}
        file = BytesIO()
        np.savez(
            file,
            allow_pickle=False,
            about=np.frombuffer(json.dumps(about).encode(), dtype=np.uint8),
            model_vectors=self._vectors,
            model_labels=self._labels,
            **arrays,
        )
        return file.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes, *, version: int) -> Self:
        """Raises ValueError when ``data`` is not of ``to_bytes``."""
        try:
            with np.load(BytesIO(data), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            about = json.loads(arrays.pop("about").tobytes())
            vectors, labels = arrays.pop("model_vectors"), arrays.pop("model_labels")
            model = cls(Head(tuple(about["classes"]), **arrays), vectors, labels, version)
            if about["reach"] is not None:
                model.reach = Reach.from_dict(about["reach"])
        except (OSError, KeyError, TypeError, BadZipFile) as error:
            raise ValueError(f"not a model: {error!r}") from error
        return model

    def answer(self, text: str, vector: NDArray[np.float32]) -> LocalAnswer:
        """The likeliest answer to a request; some 0.2 ms with a thousand examples.

        Args:
            text: the request.
            vector: of it, unit length.
        """
        logits = self.scores(text, vector).astype(np.float64)
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
