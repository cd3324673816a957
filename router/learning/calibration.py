"""Calibration: turns confidences and signals into probabilities, from observed outcomes.

There are two models. ``Calibration`` maps the raw confidence of one stage to P(right), by a
monotone function. ``RiskModel`` maps the signals of a local answer to P(wrong), for the error bound
(``bound.py``).

How overfitting is avoided:

* The confidence of a pair (confidence, right) was always given before the outcome was known.
* The prior of Platt's logistic is the identity. Without pairs, the confidence stays as it is, and a
  few pairs change little.
* Figures about a fit (``held_out``) come from 5-fold cross-fitting, never from the fitted pairs.
* Isotonic regression can take any monotone shape, but needs many pairs. It is tried from
  ``ISOTONIC_PAIRS`` on, its blocks are drawn towards Platt's curve, and it is used only where its
  cross-fitted log loss is lower.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import TypeAdapter

from router.learning.metrics import expected_calibration_error
from router.result import Number, Probability

MIN_PAIRS: Final = 20
"""With fewer outcomes, a confidence stays raw and is marked as not calibrated."""
ISOTONIC_PAIRS: Final = 300
MAX_PAIRS: Final = 4_000
"""Only the newest pairs are kept; older ones are of earlier skills and labels."""

GROWTH: Final = 1.1
"""The next fit is due when the number of pairs has grown by this factor."""

FOLDS: Final = 5

_PRIOR_PRECISION: Final = 4.0
"""The precision of the prior of Platt's slope and offset, which is the identity. It has the weight
of about a dozen pairs."""
_BLOCK_PRIOR_PAIRS: Final = 5.0
"""The number of imagined pairs on Platt's curve that are added to every isotonic block."""
_RISK_WEIGHT_PRECISION: Final = 2.0
"""The precision of the prior of a risk model's weights, whose mean is 0, for standardised
signals."""

_FLOOR_PRIOR: Final = (1.0, 100.0)
"""The prior of the floor, as imagined wrong and right answers."""

_MIN_PROBABILITY: Final = 1e-4
"""Probabilities are clipped to this distance from 0 and 1."""
_MAX_DEVIATIONS: Final = 4.0
"""Signals are clipped to this many standard deviations, so that an outlier gives no extreme
risk."""

_NEWTON_STEPS: Final = 25

Vector = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Curve:
    """A monotone map from raw confidence to P(right).

    Attributes:
        slope: the slope of Platt's logistic over the logit of the raw confidence; at least 0.
        offset: the offset of the same logistic.
        knots: the raw confidences of the isotonic blocks, ascending; empty for Platt.
        levels: P(right) at the knots, ascending; linear between them.
    """

    slope: Number
    offset: Number
    knots: tuple[Number, ...] = ()
    levels: tuple[Probability, ...] = ()

    def __post_init__(self) -> None:
        """Raises ValueError where knots and levels have different lengths."""
        if len(self.knots) != len(self.levels):
            raise ValueError(f"{len(self.levels)} levels for {len(self.knots)} knots")

    def apply(self, raw: Vector) -> Vector:
        """P(right) of many raw confidences in [0, 1]."""
        if self.knots:
            return np.interp(raw, self.knots, self.levels)
        return _clipped(_sigmoid(self.slope * _logit(raw) + self.offset))


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrator(_Curve):
    """A curve that was fitted to outcomes.

    Attributes:
        method: the kind of curve.
        pairs: the number of outcomes that it was fitted to.
        held_out_error: the expected calibration error, cross-fitted.
    """

    method: Literal["platt", "isotonic"]
    pairs: int
    held_out_error: Number

    @classmethod
    def fit(cls, confidences: Sequence[float], right: Sequence[bool]) -> Calibrator:
        """The better of Platt and isotonic regression, by cross-fitted log loss.

        Args:
            confidences: raw, in [0, 1]; at least ``MIN_PAIRS`` of them.
            right: the outcome of each.

        Raises:
            ValueError: fewer pairs than that, or different lengths.
        """
        raw = np.asarray(confidences, dtype=np.float64)
        outcome = np.asarray(right, dtype=np.float64)
        if len(raw) != len(outcome) or len(raw) < MIN_PAIRS:
            raise ValueError(f"{len(raw)} confidences, {len(outcome)} outcomes: too few to fit")
        platt = _cross_fit(raw, outcome, lambda x, y: _platt(x, y).apply)
        chosen, held_out = _platt(raw, outcome), platt
        if len(raw) >= ISOTONIC_PAIRS:
            isotonic = _cross_fit(raw, outcome, lambda x, y: _isotonic(x, y).apply)
            if _log_loss(isotonic, outcome) < _log_loss(platt, outcome):
                chosen, held_out = _isotonic(raw, outcome), isotonic
        error = expected_calibration_error(held_out.tolist(), [bool(value) for value in outcome])
        method: Literal["platt", "isotonic"] = "isotonic" if chosen.knots else "platt"
        return cls(**asdict(chosen), method=method, pairs=len(raw), held_out_error=error)

    def __call__(self, confidence: float) -> float:
        """P(right) of one raw confidence in [0, 1]."""
        return float(self.apply(np.asarray([confidence], dtype=np.float64))[0])


class Calibration:
    """The calibration of one stage, which collects outcomes and is fitted again and again.

    ``observe`` only stores an outcome. A fit takes up to tens of milliseconds, so whenever one is
    ``due``, call the result of ``fitting`` in a thread, and give its result to ``adopt``.

    Attributes:
        calibrator: the current curve; None before the first fit.
    """

    __slots__ = ("_fitted_at", "_pairs", "_seen", "calibrator")

    def __init__(self) -> None:
        self._pairs: deque[tuple[float, bool]] = deque(maxlen=MAX_PAIRS)
        self._seen = 0
        self.drop()

    def drop(self) -> None:
        """Forget all outcomes, because they are of other skills than the current ones."""
        self._pairs.clear()
        self._seen = 0
        self._fitted_at = 0
        self.calibrator: Calibrator | None = None

    @property
    def outcomes(self) -> int:
        """The number of outcomes in memory."""
        return len(self._pairs)

    def observe(self, raw: float, *, right: bool) -> None:
        """Store the outcome of an answer: its raw confidence, and whether it was right.

        Raises:
            ValueError: ``raw`` lies outside [0, 1].
        """
        if not 0 <= raw <= 1:
            raise ValueError(f"a raw confidence of {raw}")
        self._pairs.append((raw, right))
        self._seen += 1

    @property
    def due(self) -> bool:
        """Whether there are enough new outcomes to fit again."""
        return self._seen >= max(MIN_PAIRS, self._fitted_at * GROWTH)

    def fitting(self) -> Callable[[], Calibrator]:
        """The next fit of the outcomes so far, as a function to call in a thread."""
        raws, outcomes = zip(*self._pairs, strict=True)
        self._fitted_at = self._seen
        return lambda: Calibrator.fit(raws, outcomes)

    def adopt(self, calibrator: Calibrator) -> None:
        """Use the result of a fit, unless the outcomes were dropped meanwhile."""
        if self._fitted_at:
            self.calibrator = calibrator

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; ``from_dict`` reads them back."""
        return {
            "pairs": [[raw, right] for raw, right in self._pairs],
            "seen": self._seen,
            "fitted_at": self._fitted_at,
            "calibrator": None if self.calibrator is None else asdict(self.calibrator),
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Calibration:
        """Raises KeyError, TypeError or ValueError when ``state`` is not of ``to_dict``."""
        calibration = cls()
        calibration._pairs.extend((float(raw), bool(right)) for raw, right in state["pairs"])
        calibration._seen = int(state["seen"])
        calibration._fitted_at = int(state["fitted_at"])
        if state["calibrator"] is not None:
            calibration.calibrator = TypeAdapter(Calibrator).validate_python(state["calibrator"])
        return calibration


@dataclass(frozen=True, slots=True)
class RiskModel:
    """P(wrong) of a local answer from a vector of signals.

    It is L2-regularised logistic regression with a floor: with the probability ``floor`` an answer
    is wrong whatever the signals are (false labels, ambiguous requests), otherwise with that of the
    logistic. Without a floor, a few errors with low risk would flatten the whole curve, and the
    answers with the lowest risk would look safer than they are.

    Attributes:
        means: the means of the signals, shape (signals,).
        scales: their standard deviations.
        floor: the least P(wrong).
        weights: the offset, then one weight for each standardised signal.
        held_out: P(wrong) of every fitted pair, in their order, by the model of the folds that do
            not hold the pair. Not stored with the model.
    """

    means: Vector
    scales: Vector
    floor: float
    weights: Vector
    held_out: Vector

    @classmethod
    def fit(cls, signals: Vector, wrong: NDArray[np.bool_]) -> RiskModel:
        """Fit to signals of shape (pairs, signals), which were taken before the outcomes."""
        means = signals.mean(axis=0)
        scales = signals.std(axis=0) + 1e-9
        x = np.clip((signals - means) / scales, -_MAX_DEVIATIONS, _MAX_DEVIATIONS)
        y = wrong.astype(np.float64)
        floor, weights = _risk_fit(x, y)
        held_out = _cross_fit(
            x, y, lambda some, of: _risk_function(*_risk_fit(some, of, start=(floor, weights)))
        )
        return cls(means, scales, floor, weights, held_out)

    def risks(self, signals: Vector) -> Vector:
        """P(wrong) for signals of shape (rows, signals)."""
        x = np.clip((signals - self.means) / self.scales, -_MAX_DEVIATIONS, _MAX_DEVIATIONS)
        return _risk_function(self.floor, self.weights)(x)

    def risk(self, signals: Vector) -> float:
        """P(wrong) for one vector of signals."""
        return float(self.risks(signals[None, :])[0])

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; ``from_dict`` reads them back."""
        return {
            "means": self.means.tolist(),
            "scales": self.scales.tolist(),
            "floor": self.floor,
            "weights": self.weights.tolist(),
        }

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> RiskModel:
        """Raises KeyError, TypeError or ValueError when ``state`` is not of ``to_dict``."""
        means, scales, weights = (
            np.asarray(state[name], dtype=np.float64) for name in ("means", "scales", "weights")
        )
        if not means.shape == scales.shape == (len(weights) - 1,):
            raise ValueError("a risk model whose parts do not fit together")
        return cls(means, scales, float(state["floor"]), weights, np.empty(0))


def _platt(raw: Vector, right: Vector) -> _Curve:
    """Logistic regression on the logit, with the identity (slope 1, offset 0) as its prior."""
    design = np.stack([np.ones_like(raw), _logit(raw)], axis=1)
    precision = np.full(2, _PRIOR_PRECISION)
    offset, slope = _logistic(design, right, prior=np.asarray([0.0, 1.0]), precision=precision)
    if slope < 0:  # a higher confidence must never give a lower probability
        slope = 0.0
        (offset,) = _logistic(design[:, :1], right, prior=np.zeros(1), precision=precision[:1])
    return _Curve(slope=float(slope), offset=float(offset))


def _isotonic(raw: Vector, right: Vector) -> _Curve:
    """Isotonic regression by pool-adjacent-violators (Ayer et al., 1955); Platt's curve is its
    prior."""
    platt = _platt(raw, right)
    order = np.argsort(raw, kind="stable")
    expected = platt.apply(raw[order])
    blocks: list[tuple[float, int, float, float]] = []  # sum of outcomes, pairs, of raw, of Platt
    for x, y, p in zip(raw[order].tolist(), right[order].tolist(), expected.tolist(), strict=True):
        block = (y, 1, x, p)
        # Equal confidences are always one block.
        while blocks and (
            blocks[-1][0] * block[1] >= block[0] * blocks[-1][1]
            or blocks[-1][2] * block[1] == block[2] * blocks[-1][1]
        ):
            last = blocks.pop()
            block = (last[0] + block[0], last[1] + block[1], last[2] + block[2], last[3] + block[3])
        blocks.append(block)
    sums, counts, raws, platts = (np.asarray(column) for column in zip(*blocks, strict=True))
    levels = (sums + _BLOCK_PRIOR_PAIRS * platts / counts) / (counts + _BLOCK_PRIOR_PAIRS)
    levels = _clipped(np.maximum.accumulate(levels))
    knots = tuple((raws / counts).tolist())
    return replace(platt, knots=knots, levels=tuple(levels.tolist()))


def _risk_fit(
    x: Vector, wrong: Vector, *, start: tuple[float, Vector] | None = None
) -> tuple[float, Vector]:
    """The most probable floor and weights, by Fisher scoring."""
    # Add one imagined pair of each outcome at the mean of the signals. After n right answers in a
    # row the risk is then about 1 / n (Laplace's rule of succession), and not 0.
    x = np.concatenate([x, np.zeros((2, x.shape[1]))])
    y = np.append(wrong, (0.0, 1.0))
    design = np.concatenate([np.ones((len(x), 1)), x], axis=1)
    precision = np.full(design.shape[1], _RISK_WEIGHT_PRECISION)
    precision[0] = 1e-3  # next to no prior for the offset
    errors, rights = _FLOOR_PRIOR

    # ``parts`` is the logit of the floor, followed by the weights.
    def loss(parts: Vector) -> float:
        floor, weights = _sigmoid(parts[0]), parts[1:]
        risk = _clipped(floor + (1 - floor) * _sigmoid(design @ weights))
        prior = errors * np.log(floor) + rights * np.log1p(-floor)
        return float(_log_loss(risk, y) - prior + 0.5 * (precision * weights**2).sum())

    def step(parts: Vector) -> Vector:
        floor, weights = float(_sigmoid(parts[0])), parts[1:]
        logistic = _sigmoid(design @ weights)
        risk = _clipped(floor + (1 - floor) * logistic)
        slopes = np.concatenate(
            [
                ((1 - logistic) * floor * (1 - floor))[:, None],
                ((1 - floor) * logistic * (1 - logistic))[:, None] * design,
            ],
            axis=1,
        )
        information = slopes / (risk * (1 - risk))[:, None]
        pull = np.append((errors + rights) * floor - errors, precision * weights)
        curvature = np.append((errors + rights) * floor * (1 - floor), precision)
        return np.linalg.solve(
            information.T @ slopes + np.diag(curvature), information.T @ (risk - y) + pull
        )

    floor, weights = start or (errors / (errors + rights), np.zeros(len(precision)))
    found = _minimise(np.append(_logit(np.asarray(floor)), weights), loss, step, tolerance=1e-6)
    return float(_sigmoid(found[0])), found[1:]


def _risk_function(floor: float, weights: Vector) -> Callable[[Vector], Vector]:
    return lambda x: _clipped(floor + (1 - floor) * _sigmoid(weights[0] + x @ weights[1:]))


def _cross_fit(
    x: Vector, y: Vector, fit: Callable[[Vector, Vector], Callable[[Vector], Vector]]
) -> Vector:
    """The prediction for each row by a model that was fitted to the other folds. Neighbouring rows
    are in different folds, so that each fold spans the whole time of the rows."""
    fold = np.arange(len(y)) % FOLDS
    out = np.empty(len(y))
    for number in range(FOLDS):
        inside = fold == number
        out[inside] = fit(x[~inside], y[~inside])(x[inside])
    return out


def _logistic(design: Vector, y: Vector, *, prior: Vector, precision: Vector) -> Vector:
    """Most probable weights of a logistic regression with a Gaussian prior, by Newton's method."""

    def loss(weights: Vector) -> float:
        z = design @ weights
        fit = np.logaddexp(0.0, z) - y * z
        return float(fit.sum() + 0.5 * (precision * (weights - prior) ** 2).sum())

    def step(weights: Vector) -> Vector:
        p = _sigmoid(design @ weights)
        gradient = design.T @ (p - y) + precision * (weights - prior)
        hessian = (design * (p * (1 - p))[:, None]).T @ design + np.diag(precision)
        return np.asarray(np.linalg.solve(hessian, gradient), dtype=np.float64)

    return _minimise(prior, loss, step, tolerance=1e-9)


def _minimise(
    start: Vector,
    loss: Callable[[Vector], float],
    step: Callable[[Vector], Vector],
    *,
    tolerance: float,
) -> Vector:
    """The minimum of the loss, by Newton steps that are halved until they improve it."""
    place, current = start, loss(start)
    for _ in range(_NEWTON_STEPS):
        whole, scale = step(place), 1.0
        while scale > 1e-3 and loss(place - scale * whole) > current:
            scale /= 2
        place = place - scale * whole
        previous, current = current, loss(place)
        if abs(previous - current) < tolerance * (1 + abs(current)):
            break
    return place


def _sigmoid(z: Vector | float) -> Vector:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * z)), dtype=np.float64)


def _logit(p: Vector) -> Vector:
    p = _clipped(p)
    return np.log(p) - np.log1p(-p)


def _clipped(p: Vector) -> Vector:
    return np.clip(p, _MIN_PROBABILITY, 1 - _MIN_PROBABILITY)


def _log_loss(p: Vector, y: Vector) -> float:
    return -float(np.where(y > 0.5, np.log(p), np.log1p(-p)).sum())
