"""The local model: its answer to one request, and the signals from which the risk is estimated.

A ``LocalModel`` is a head with the number of examples of each answer. It is immutable; a later
model replaces it.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from io import BytesIO
from typing import Final, Self
from zipfile import ZIP_STORED, ZipFile

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from router.learning.calibration import Vector
from router.learning.coverage import ExampleCoverage
from router.learning.evidence import Example
from router.learning.features import BUCKETS
from router.learning.head import Head, energy
from router.learning.words import WordCounts
from router.numeric import log_odds
from router.text import tokens

MAX_RANKED: Final = 5
_JOINT: Final = " + "
"""Joins the names in an answer of several skills. No name contains it."""
_WORDS: Final = "words_"
"""The prefix of the parts of ``WordCounts`` in a model's file."""
_MAX_COUNT: Final = 1 << 31
"""Counts in a file must be below this, so that their sum fits into 64 bits."""
_MIN_ODDS_PROBABILITY: Final = 1e-4
"""For the risk model, probabilities nearer to 0 or 1 than this are all the same."""


def answer_of(skills: Sequence[str]) -> str:
    """One name for a set of skills; the empty name stands for "no skill fits"."""
    return _JOINT.join(sorted(skills))


def skills_of(answer: str) -> tuple[str, ...]:
    """The skills of an answer."""
    return tuple(answer.split(_JOINT)) if answer else ()


@dataclass(frozen=True, slots=True)
class LocalSignals:
    """The signals of a local answer, from which the risk model estimates whether it is wrong.

    Attributes:
        energy: the energy of the head's scores: high for a request that is similar to an example.
        margin: the difference of the two best scores.
        probability: the softmax probability of the best answer, in [0, 1].
        agreeing: the cosine to the nearest example of the best answer, in [-1, 1].
        disagreeing: the cosine to the nearest example of any other answer.
        examples: the number of examples of the best answer.
        evidence: the number of all examples.
        words: the number of words of the request.
    """

    energy: float
    margin: float
    probability: float
    agreeing: float
    disagreeing: float
    examples: int
    evidence: int
    words: int

    def vector(self) -> Vector:
        """The input of the risk model, shape (10,).

        The meaning of a margin or a probability changes with the number of examples, so their
        products with it are signals, too. Without them, risks were nearly twice as high as the true
        error rates.
        """
        size = math.log1p(self.evidence)
        odds = log_odds(self.probability, least=_MIN_ODDS_PROBABILITY)
        return np.asarray(
            (
                self.energy,
                self.margin,
                odds,
                self.agreeing,
                self.agreeing - self.disagreeing,
                math.log1p(self.examples),
                size,
                math.log1p(self.words),
                self.margin * size,
                odds * size,
            )
        )


@dataclass(frozen=True, slots=True)
class LocalAnswer:
    """The local model's answer to one request, before the risk is known.

    Attributes:
        answer: the likeliest answer; see ``answer_of``.
        signals: the signals for its risk.
        ranked: the likeliest answers with the head's probabilities, best first.
    """

    answer: str
    signals: LocalSignals
    ranked: tuple[tuple[str, float], ...]

    @property
    def skills(self) -> tuple[str, ...]:
        """The skills of the answer; empty when no skill is right."""
        return skills_of(self.answer)


class LocalModel:
    """A head, with counts of its examples. Immutable once it is in use.

    Attributes:
        head: scores every answer.
        version: increases with every model of a router.
        coverage: estimates whether a request is covered by the examples; None where it is not
            fitted.
        answers: the skills of each of the head's classes.
        examples: the number of examples that it was fitted to.
        evidence_digest: a digest of these examples.
        examples_of: for each skill, the number of examples that name it alone.
    """

    def __init__(self, head: Head, counts: NDArray[np.intp], version: int) -> None:
        """``counts`` are the numbers of examples of each of the head's answers."""
        self.head = head
        self.version = version
        self.coverage: ExampleCoverage | None = None
        self.evidence_digest = ""
        self.answers = tuple(skills_of(name) for name in head.classes)
        self.examples = int(counts.sum())
        self.examples_of = {
            skills[0]: int(count)
            for skills, count in zip(self.answers, counts, strict=True)
            if len(skills) == 1
        }
        self._counts = counts

    @classmethod
    def fit(
        cls, examples: Sequence[Example], vectors: NDArray[np.float32], *, version: int
    ) -> Self | None:
        """Fit a model to labels; None where they name fewer than two answers.

        Args:
            examples: the labels. Those that say that a skill is wrong are ignored.
            vectors: of their texts, shape (len(examples), dimension), of unit length.
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
        number = [counts[answer] for answer in head.classes]
        return cls(head, np.asarray(number, dtype=np.intp), version)

    def count(self, answer: int) -> int:
        """The number of examples of an answer, given by its place."""
        return int(self._counts[answer])

    def scores(self, text: str, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """The head's score of every answer to a request, shape (answers,)."""
        return self.head.score_one(text, vector)[0]

    def to_bytes(self) -> bytes:
        """The model as bytes for ``from_bytes``: NumPy's own format, which cannot hold code."""
        coverage = None if self.coverage is None else asdict(self.coverage)
        about = {
            "classes": self.head.classes,
            "evidence": self.evidence_digest,
            "coverage": coverage,
        }
        arrays = {item.name: getattr(self.head, item.name) for item in fields(self.head)[1:-1]}
        words = {f"{_WORDS}{name}": part for name, part in self.head.words._asdict().items()}
        file = BytesIO()
        np.savez(
            file,
            allow_pickle=False,
            about=np.frombuffer(json.dumps(about).encode(), dtype=np.uint8),
            counts=self._counts,
            **arrays,
            **words,
        )
        return file.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes, *, version: int, dimension: int | None = None) -> Self:
        """Read a model. Checks everything, because the data may come from another process, and a
        bad model would fail later, in the middle of a request.

        Args:
            dimension: of the encoder's vectors; None where it is not known.

        Raises:
            ValueError: ``data`` is no model, or one for vectors of another dimension.
        """
        try:
            with ZipFile(BytesIO(data)) as parts:
                if any(part.compress_type != ZIP_STORED for part in parts.infolist()):
                    raise ValueError("not a model: it is compressed")
            with np.load(BytesIO(data), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            about = json.loads(arrays.pop("about").tobytes())
            counts = arrays.pop("counts")
            words = WordCounts(*(arrays.pop(f"{_WORDS}{name}") for name in WordCounts._fields))
            head = Head(tuple(map(str, about["classes"])), **arrays, words=words)
            _check(head, counts)
            if dimension not in (None, head.examples.shape[1]):
                raise ValueError("a model of vectors of another dimension")
            model = cls(head, counts, version)
            model.evidence_digest = str(about["evidence"])
            if about["coverage"] is not None:
                model.coverage = TypeAdapter(ExampleCoverage).validate_python(about["coverage"])
        except ValueError:
            raise
        except Exception as error:  # zipfile and NumPy may raise anything for a bad archive
            raise ValueError(f"not a model: {error!r}") from error
        return model

    def answer(self, text: str, vector: NDArray[np.float32]) -> LocalAnswer:
        """The likeliest answer to a request, whose vector has unit length. Takes some 0.1 ms with a
        thousand examples."""
        scores, nearest = self.head.score_one(text, vector)
        order = np.argsort(-scores)[:MAX_RANKED].tolist()
        best, second = order[:2]
        total = float(energy(scores))
        shares = np.exp(scores[order] - total).tolist()
        agreeing = float(nearest[best])
        nearest[best] = -1.0
        signals = LocalSignals(
            energy=total,
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


def _check(head: Head, counts: NDArray[np.intp]) -> None:
    """Raises ValueError where the parts of a model do not fit together."""
    answers, (examples, dimension) = len(head.classes), head.examples.shape
    numbers = (head.weights, head.bias, head.examples)
    if (
        answers < 2
        or len(set(head.classes)) != answers
        or any(part.dtype != np.float32 for part in numbers)
        or not head.starts.dtype == counts.dtype == np.intp
        or not head.bias.shape == head.starts.shape == counts.shape == (answers,)
        or head.weights.shape != (dimension + BUCKETS, answers)
        or (head.starts < 0).any()
        or not (head.starts[0] == 0 and (np.diff(head.starts, append=examples) > 0).all())
        or not ((counts > 0) & (counts < _MAX_COUNT)).all()
        or not head.words.fits(answers)
        or not all(np.isfinite(part).all() for part in numbers)
    ):
        raise ValueError("a model whose parts do not fit together")
