"""The trained model of the classifier: the probability of each kind of query.

It is a multinomial logistic regression over a query's cues and its vector. The weights are in a
file beside this one; ``benchmarks/classifier_training.py`` makes them. They were trained with the
bundled encoder, which is always used here, even if the rest of the router uses another one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from router.memory.model import QueryType
from router.numeric import log_odds, logistic

WEIGHTS_FILE: Final = "classifier_weights.npz"


class QueryKind(NamedTuple):
    """A kind of query: the type of its answer, and the layers that it needs, the primary first."""

    type: QueryType | None
    layers: tuple[str, ...]

    @property
    def primary(self) -> str | None:
        return self.layers[0] if self.layers else None


NOTHING: Final = QueryKind(None, ())
"""A query that no memory can answer: thanks, sums, nonsense, a poem."""


@dataclass(frozen=True, slots=True)
class ClassifierModel:
    """The learned weights.

    Attributes:
        kinds: what the columns of the weights stand for.
        vocabulary: the row of each known cue.
        cue_weights: shape (cues, kinds).
        vector_weights: shape (dimensions, kinds).
        constants: shape (kinds,).
        confidence: slope and intercept of a calibration: from the log-odds of the likeliest layer's
            share to the log-odds that this layer is right.
    """

    kinds: tuple[QueryKind, ...]
    vocabulary: dict[str, int]
    cue_weights: NDArray[np.float32]
    vector_weights: NDArray[np.float32]
    constants: NDArray[np.float32]
    confidence: tuple[float, float]

    @classmethod
    def load(cls) -> ClassifierModel:
        """The model that the package carries; some milliseconds."""
        with files("router.memory.query").joinpath(WEIGHTS_FILE).open("rb") as file:
            stored = np.load(file, allow_pickle=False)
            kinds = bytes(stored["kinds"]).decode().split("\n")
            cues = bytes(stored["cues"]).decode().split("\n")
            return cls(
                tuple(kind_named(name) for name in kinds),
                {cue: row for row, cue in enumerate(cues)},
                stored["cue_weights"].astype(np.float32),
                stored["vector_weights"].astype(np.float32),
                stored["constants"].astype(np.float32),
                (float(stored["confidence"][0]), float(stored["confidence"][1])),
            )

    def probabilities(
        self, cues: Iterable[str], vector: NDArray[np.float32]
    ) -> NDArray[np.float32]:
        """How likely each kind is, in the order of ``kinds``; sums to 1. Cues that it does not know
        count nothing. The vector is the bundled encoder's, of length 1."""
        scores = vector @ self.vector_weights + self.constants
        if known := [self.vocabulary[cue] for cue in cues if cue in self.vocabulary]:
            rows = self.cue_weights.take(known, axis=0)
            scores += np.add.reduce(rows) / math.sqrt(len(rows))
        powers = np.exp(scores - scores.max())
        return np.asarray(powers / powers.sum(), dtype=np.float32)

    def likeliest_layer(self, shares: NDArray[np.float32]) -> tuple[str | None, float]:
        """The likeliest primary layer (None for none), and its share of the probability."""
        layers: dict[str | None, float] = {}
        for kind, share in zip(self.kinds, shares.tolist(), strict=True):
            primary = kind.primary
            layers[primary] = layers.get(primary, 0.0) + share
        best = max(layers, key=layers.__getitem__)
        return best, layers[best]

    def confidence_of(self, share: float) -> float:
        """P(the likeliest layer is right), in (0, 1), given its share of the probability."""
        slope, intercept = self.confidence
        return logistic(slope * log_odds(share) + intercept)

    def speaking_for(self, kind: int, cues: Iterable[str]) -> list[str]:
        """The cues, of those given, that raise this kind above the average one; strongest first."""
        known = [cue for cue in cues if cue in self.vocabulary]
        if not known:
            return []
        rows = self.cue_weights[[self.vocabulary[cue] for cue in known]]
        gains = rows[:, kind] - rows.mean(axis=1)
        return [known[i] for i in np.argsort(-gains, kind="stable") if gains[i] > 0]


def kind_named(name: str) -> QueryKind:
    """The kind of a heading of the examples, such as ``planning: planning, project``."""
    if name == "none":
        return NOTHING
    query_type, _, layers = name.partition(": ")
    return QueryKind(QueryType(query_type), tuple(layers.split(", ")))
