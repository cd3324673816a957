"""What the examples say about one request: the local answer, and signals of how sure it is.

A ``LocalModel`` is a snapshot: a head, and how many examples speak for each of its answers. It
never changes; a later one takes its place.
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
"""It joins the names of an answer of several skills. Names hold no spaces around a plus sign."""
_WORDS: Final = "words_"
"""Before the names of the parts of ``WordCounts`` in a model's file."""
_MAX_COUNT: Final = 1 << 31
"""A count in a file is below this, so that the sum of all is a 64-bit number."""
_SURE: Final = 1e-4
"""Surer probabilities tell the risk model no more."""


def answer_of(skills: Sequence[str]) -> str:
    """One name for a set of skills; the empty name says that no skill is right."""
    return _JOINT.join(sorted(skills))


def skills_of(answer: str) -> tuple[str, ...]:
    """The skills of an answer."""
    return tuple(answer.split(_JOINT)) if answer else ()


@dataclass(frozen=True, slots=True)
class LocalSignals:
    """What the local decision knows about its best answer before anybody tells it the truth.

    Attributes:
        score: the energy of the head's scores: high for a request that is like any example.
        margin: lead over the second best.
        probability: of the best answer among all, softmax, in [0, 1].
        agreeing: cosine to the nearest example of that answer, in [-1, 1].
        disagreeing: cosine to the nearest example of any other.
        examples: number of examples of that answer.
        evidence: number of all examples.
        words: number of words of the request.
    """

    score: float
    margin: float
    probability: float
    agreeing: float
    disagreeing: float
    examples: int
    evidence: int
    words: int

    def vector(self) -> Vector:
        """As the risk model takes them, shape (10,).

        What a margin or a probability is worth changes as the examples grow. Without the products
        that say so, risks were nearly twice as high as what came true.
        """
        size = math.log1p(self.evidence)
        odds = log_odds(self.probability, least=_SURE)
        return np.asarray(
            (
                self.score,
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
        coverage: what its examples cover and how far its probabilities hold; None where that is
            not known.
        answers: the skills of each of the head's classes.
        examples: how many examples it was fitted on.
        evidence_digest: of them.
        examples_of: how many name each skill alone.
    """

    def __init__(self, head: Head, counts: NDArray[np.intp], version: int) -> None:
        """A model that serves ``head``; ``counts`` are the examples of each of its answers."""
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
        """A model of labels that say what is right; None when they name fewer than two answers.

        Args:
            examples: labels, of which those that say what is wrong are passed over.
            vectors: of their texts, shape (len(examples), dimension), unit length.
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
        """Number of examples of an answer, by its place."""
        return int(self._counts[answer])

    def scores(self, text: str, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """The head's score of every answer to a request, shape (answers,)."""
        return self.head.look(text, vector)[0]

    def to_bytes(self) -> bytes:
        """The model as ``from_bytes`` reads it: NumPy's own format, without any code in it."""
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
        """Raises ValueError when ``data`` is not of ``to_bytes``: it may be another process's, and
        what is compressed or does not fit together could fail later, in the middle of a request.
        The dimension of the encoder's vectors is compared where it is known."""
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
        except Exception as error:  # whatever an archive can do to zipfile and NumPy
            raise ValueError(f"not a model: {error!r}") from error
        return model

    def answer(self, text: str, vector: NDArray[np.float32]) -> LocalAnswer:
        """The likeliest answer to a request with this vector, of unit length; takes some 0.1 ms
        with a thousand examples."""
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
