"""Answer locally, or ask the LLM? Whichever keeps the error over all traffic within a bound.

In short: the learnt examples give a request a *local answer*, and a model says how probable it is
that this answer is wrong, its *risk*. Answers of small risk are given, the other requests go to the
LLM. How much risk may be taken is kept like the account of a household: each request pays in an
allowance of ``max_error`` (0.01 lets one request in 100 be answered wrongly), and each local answer
takes out what it is expected to cost. Nothing is given that would overdraw the account.

**What an answer costs.** Its risk comes from a ``RiskModel``, which is fitted on *outcomes*: what
the LLM or a person said of earlier local answers. The model may be too bold or too careful, so its
word is corrected by experience. In each of a few bands of risk, k answers turned out wrong where
the model had expected R (both held out), and a risk r of that band costs

    c = r (k + a) / (R + a)

where a says how much the model's own word counts, in errors.

A later model values an answer anew while the answer is among the last ``REVALUED`` requests: so a
drift is taken into account that no alarm has shown yet. After that, its risk is final: a later
model is fitted mostly on requests that earlier ones found risky, and knows less about an old answer
than the one that gave it. Where each refit valued all answers anew, U jumped, and for hundreds of
requests too little was answered locally, and then too much.

**What is on the account.** With S_b the sum of the costs of band b over the local answers among the
last ``WINDOW`` requests, and S of all bands, the number of errors among them is taken to stay below

    U = S + z sqrt(S + (sum_b S_b / sqrt(k_b + a))^2)

Why: errors are taken as rare and independent given their risks, and the true risks of a band as one
unknown multiple of the model's. With a Gamma(a, a) prior, that multiple has, after k errors where R
were expected, the posterior Gamma(k + a, R + a) (Gelman et al., Bayesian Data Analysis, 2.6). So
the number of errors has the mean S and the variance under the root: the spread of rare events, and
what is not known about the multiples. These are taken to err together, because they correct one
model; taken as independent, twice as many streams came above the bound. U is the upper end of the
normal approximation. z is the two-sided quantile of the confidence, so half of what it leaves open
remains for errors in the model's shape.

**Several processes** that share their outcomes (``pool``) have an account each. The spread of a sum
of rare events is less than the sum of their spreads: if each of four kept back z sqrt(S), that
would be twice as much as one process keeps back for the same requests. So each keeps back its part
of the spread of the sum. With w the part of all requests that it gets,

    U = S + z sqrt(w S + (sum_b S_b / sqrt(k_b + a))^2)

When this stays within the allowance of each, U of all stays within that of all, however unequally
they spend: the pairs (S / w, sum over the bands / w) whose U stays within an allowance are a convex
set, and the pair of all is the mean of theirs, weighted by w. The requests of the others are
estimated from their outcomes, each of which stands for 1 / propensity requests. ``HORIZON``,
``REVALUED`` and ``AUDIT_DECAY`` count the requests of all processes.

This holds for one moment, under those assumptions. Without a model it would cost far more audits:
to show at 95% confidence that 40 errors are fewer than 80 succeeds in 7 of 10 cases when every
fifth local answer is audited. What the assumptions miss, drift above all, is watched for below, and
tried in ``tests/learning``.

**When an answer is given.** Both must hold:

* its risk is at most the *threshold*: the highest with which traffic like the most recent would
  bring U to ``PLANNED`` of the allowance ``HORIZON`` requests from now. So what is left over is
  spent evenly, on the requests where an error is least probable, and not on the first that come;
* U with this answer stays within the allowance so far. To stop at S in place of U, with refits
  twice as often, saved 1.5 points more, and broke the bound on 3 of 50 drifting streams. Where U is
  above the allowance already, the answer may raise it by ``REPAYING`` of what its request pays in.

So no answer brings U above the allowance; only a new estimate of earlier answers can. Each request
after it pays in at least twice what its answer adds, so the account is level again at the latest
when what was given before has left the window. If nothing were answered locally meanwhile, hundreds
of requests in a row would go to the LLM, and then risky ones would be answered from the allowance
that had gathered.

**Audits.** What decides is never measured on what it was fitted on, but the outcomes that come for
free are those of risky requests. So a random share of the local answers is *audited*: the LLM is
asked anyway, in the background. The share decays from ``AUDIT_START`` to ``AUDIT_FLOOR`` and is
twice as high at the threshold, where an outcome says most.

**Drift** shows in outcomes that are worse than their risks: two cumulative sums (Page, 1954) of the
log likelihood ratio, against odds that are 3 and 30 times as high. When one passes its alarm level,
everything from before its rise is dropped, and the LLM is asked until there is enough evidence
again. A drift that touches confident answers alone can be seen only by audits.

One event loop owns an ``ErrorBound``; only what ``fitting`` gives is meant for a thread. Randomness
is a hash of seed and request number, so a replay decides the same.
"""

from __future__ import annotations

import hashlib
import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from statistics import NormalDist
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from router.learning.calibration import RiskModel, Vector
from router.numeric import finite

MIN_EVIDENCE: Final = 150
"""Outcomes before the first local answer."""
GROWTH: Final = 1.05
"""A refit is due again when there are this many times the outcomes of the last one."""
MAX_OUTCOMES: Final = 8_000
"""The newest are kept."""

Z: Final = NormalDist().inv_cdf((1 + 0.95) / 2)
"""Two-sided quantile of the confidence with which the bound holds."""

WINDOW: Final = 10_000
"""Requests over which the account runs; an error older than that is forgotten, and so is an
allowance that was not used."""
HORIZON: Final = 4_000
PLANNED: Final = 0.95
"""The share of the allowance that the threshold plans to use by then. A refit moves U by more than
the traffic between two refits does; what is kept back takes that up."""
REPAYING: Final = 0.5
"""What an answer may add to U while the account is overdrawn, in units of ``max_error``, which is
what its request pays in."""
RECENT: Final = 1_000
"""Requests whose risks stand for the traffic to come."""
REVALUED: Final = 1_000
"""Requests of all processes after which the risk of a local answer is final. 500 and 2,000 do about
as well; with 0 a slow drift broke the bound."""
RETUNE_EVERY: Final = 25
"""Requests between two settings of the threshold."""

RISK_CAP: Final = 10.0
"""No answer riskier than this times ``max_error`` is local, however full the account."""

BANDS: Final = (0.5, 2.0, 5.0, RISK_CAP)
"""Upper edges of the bands of risk, in units of ``max_error``."""

PRIOR_ERRORS: Final = 8.0

PROVING: Final = 10
"""Outcomes of a changed skill's answers before one of them is local again."""

AUDIT_START: Final = 0.10
AUDIT_FLOOR: Final = 0.02
AUDIT_DECAY: Final = 300.0
"""Local answers after which the audited share begins to fall, as 1 / sqrt."""

DRIFT_ALARMS: Final = {3.0: 14.0, 30.0: 10.0}
"""Odds ratio of the drift: alarm level of its sum. Were the risks exact, a level h would bring a
false alarm at most every e^h outcomes."""

_PLACES: Final = 5
"""Decimal places of stored signals."""
_STATE: Final = 3
"""Version of the stored state; another one where the signals have another meaning."""


@dataclass(frozen=True, slots=True)
class BoundDecision:
    """Whether one request may be answered locally, and why.

    Attributes:
        local: answer locally; otherwise ask.
        audit: answer locally, then ask in the background and ``observe`` what comes.
        risk: P(the local answer is wrong); None without a local answer or a risk model.
        bound: upper limit of the share of errors over the traffic so far, this answer included.
        evidence_count: outcomes that the risk was fitted on.
        reason: one sentence for the trace.
        propensity: probability with which the outcome of this request becomes known: 1 for
            one that is asked, the audited share for a local one.
        request: number of the request, from 1.
        answer: the local answer; None without one.
        signals: as they were when it was decided.
    """

    local: bool
    audit: bool
    risk: float | None
    bound: float
    evidence_count: int
    reason: str
    propensity: float
    request: int
    answer: str | None
    signals: Vector | None


@dataclass(frozen=True, slots=True)
class FittedRisk:
    """A risk model, and what it was fitted on: the outcomes of one epoch, ``wrong`` or not."""

    epoch: int
    wrong: NDArray[np.bool_]
    model: RiskModel


@dataclass(frozen=True, slots=True)
class BoundStatus:
    """The account, for ``status`` commands and plots.

    Attributes:
        requests: requests in the window.
        local: how many of them were answered locally.
        error_limit: U / requests.
        threshold: largest risk that is answered locally now.
        outcomes: how many are in memory.
        audits: outcomes of audited answers among them.
        audited_error: share of wrong local answers, estimated from the audits by inverse
            propensity (Horvitz and Thompson, 1952; normalised as by Hájek); None without.
        drifts: alarms so far.
    """

    requests: int
    local: int
    error_limit: float
    threshold: float
    outcomes: int
    audits: int
    audited_error: float | None
    drifts: int


@dataclass(frozen=True, slots=True)
class _Outcome:
    request: int
    answer: str
    signals: Vector
    wrong: bool
    propensity: float


@dataclass(frozen=True, slots=True)
class _Spent:
    """A local answer on the account. Without signals its risk is final."""

    request: int
    risk: float
    signals: Vector | None


@dataclass(slots=True)
class _DriftSum:
    """One cumulative sum and how many outcomes ago it left zero."""

    odds: float
    value: float = 0.0
    length: int = 0

    def add(self, risk: float, *, wrong: bool) -> None:
        drifted = self.odds * risk / (1 + (self.odds - 1) * risk)
        ratio = drifted / risk if wrong else (1 - drifted) / (1 - risk)
        self.value = max(0.0, self.value + math.log(ratio))
        self.length = self.length + 1 if self.value > 0 else 0


class ErrorBound:
    """Decides request by request; learns from the outcomes.

    Args:
        max_error: largest share of wrong answers over all traffic, relative to what the LLM would
            have said, in [0, 1). 0: never local.
        seed: of the audits.

    Raises:
        ValueError: ``max_error`` is outside its range.
    """

    def __init__(self, max_error: float, *, seed: int = 0) -> None:
        if not 0 <= max_error < 1:
            raise ValueError(f"max_error {max_error}")
        self.max_error = max_error
        self.seed = seed
        self._request = 0
        self._outcomes: deque[_Outcome] = deque(maxlen=MAX_OUTCOMES)
        self._account: deque[_Spent] = deque()
        self._spent = np.zeros(len(BANDS))
        self._recent: deque[Vector] = deque(maxlen=RECENT)
        self._recent_risks: deque[float] = deque(maxlen=RECENT)
        self._epoch = 0
        self._drifts = 0
        self._unproven: dict[str, int] = {}
        self._others = 0.0
        self._forget(keep=0)

    def _forget(self, *, keep: int) -> None:
        """Only the newest ``keep`` outcomes count from now on; nothing is local until a refit."""
        self._outcomes = deque(list(self._outcomes)[len(self._outcomes) - keep :], MAX_OUTCOMES)
        self._model: RiskModel | None = None
        self._fitted_on = 0
        self._unfitted = keep
        self._threshold = 0.0
        self._since_audit_start = 0
        self._doubt()

    def _doubt(self) -> None:
        """What was known about how well the risks hold is not known any more."""
        self._epoch += 1
        self._wrong = np.zeros(len(BANDS))
        self._expected = np.zeros(len(BANDS))
        self._doubted_at = len(self._outcomes)
        self._drift = [_DriftSum(odds) for odds in DRIFT_ALARMS]

    # Deciding

    def decide(self, signals: Vector | None, *, answer: str | None = None) -> BoundDecision:
        """Call once per request that no cache has answered, before the LLM.

        Args:
            signals: of the local answer, each with the same meaning every time, such as
                ``LocalSignals.vector()``; None when there is no local answer.
            answer: name of the local answer.
        """
        self._request += 1
        if self._request > WINDOW:
            self._others *= 1 - 1 / WINDOW
        while self._account and self._account[0].request <= self._request - WINDOW:
            self._spend(self._account.popleft().risk, sign=-1)
        if signals is None or answer is None or self.max_error == 0:
            reason = "The bound is off." if self.max_error == 0 else "There is no local answer."
            return self._ask(reason, None, None, None)
        self._recent.append(signals)
        if self._model is None:
            reason = f"{len(self._outcomes)} of {MIN_EVIDENCE} outcomes to judge by."
            return self._ask(reason, None, answer, signals)
        risk = self._model.risk(signals)
        self._recent_risks.append(risk)
        if self._request % RETUNE_EVERY == 0:
            self._retune()
        if answer in self._unproven:
            reason = "Too few outcomes since its skill has changed."
            return self._ask(reason, risk, answer, signals)
        if risk > self._threshold:
            reason = f"A risk of {risk:.2%} is above the threshold of {self._threshold:.2%}."
            return self._ask(reason, risk, answer, signals)
        before = self._limit(self._spent)
        self._spend(risk)
        after, allowance = self._limit(self._spent), self._allowance(0)
        repays = before > allowance and after - before <= REPAYING * self.max_error
        if after > allowance and not repays:
            self._spend(risk, sign=-1)
            return self._ask("The error allowance is used up for now.", risk, answer, signals)
        return self._local(risk, answer, signals)

    def _ask(
        self, reason: str, risk: float | None, answer: str | None, signals: Vector | None
    ) -> BoundDecision:
        return BoundDecision(
            local=False,
            audit=False,
            risk=risk,
            bound=self._error_limit(),
            evidence_count=self._fitted_on,
            reason=reason,
            propensity=1.0,
            request=self._request,
            answer=answer,
            signals=signals,
        )

    def _local(self, risk: float, answer: str, signals: Vector) -> BoundDecision:
        self._account.append(_Spent(self._request, risk, signals))
        self._since_audit_start += 1
        since_start = self._since_audit_start / self._part
        share = AUDIT_START / math.sqrt(1 + since_start / AUDIT_DECAY)
        share = max(share, AUDIT_FLOOR) * (1 + risk / self._threshold) / 2
        audit = self._uniform() < share
        reason = f"A risk of {risk:.2%} is within the threshold of {self._threshold:.2%}"
        reason += "; audited." if audit else "."
        asked = self._ask(reason, risk, answer, signals)
        return replace(asked, local=True, audit=audit, propensity=share)

    def _uniform(self) -> float:
        text = f"{self.seed} {self._request}".encode()
        digest = hashlib.blake2b(text, digest_size=7).digest()
        return int.from_bytes(digest) / 2.0**56

    def _costs(self, risks: Vector) -> Vector:
        """What answers of these risks cost, by band: shape (bands, answers)."""
        edges = self.max_error * np.asarray(BANDS[:-1])
        band = np.searchsorted(edges, risks)
        costs = np.zeros((len(BANDS), len(risks)))
        ratio = (self._wrong + PRIOR_ERRORS) / (self._expected + PRIOR_ERRORS)
        costs[band, np.arange(len(risks))] = risks * ratio[band]
        return costs

    def _spend(self, risk: float, *, sign: int = 1) -> None:
        self._spent += sign * self._costs(np.asarray([risk]))[:, 0]

    def _limit(self, spent: Vector) -> Vector:
        """U of the module's docstring, for amounts of shape (bands, ...)."""
        total = np.maximum(spent.sum(axis=0), 0.0)
        unknown = (spent.T / np.sqrt(self._wrong + PRIOR_ERRORS)).T.sum(axis=0)
        return np.asarray(total + Z * np.sqrt(self._part * total + unknown**2))

    @property
    def _part(self) -> float:
        """w of the module's docstring."""
        own = max(1, min(self._request, WINDOW))
        return own / (own + self._others)

    def _allowance(self, ahead: int) -> float:
        return self.max_error * min(self._request + ahead, WINDOW)

    def _error_limit(self) -> float:
        if not self._request:
            return 0.0
        errors = float(self._limit(self._spent))
        return min(1.0, errors / min(self._request, WINDOW))

    def _retune(self) -> None:
        """Sets the threshold by what the recent requests would cost at each."""
        if not self._recent:
            return
        horizon = math.ceil(HORIZON * self._part)
        last = self._request + horizon - WINDOW
        leaving = [
            some.risk for some in takewhile(lambda some: some.request <= last, self._account)
        ]
        staying = self._spent - self._costs(np.asarray(leaving)).sum(axis=1)
        risks = np.sort(np.fromiter(self._recent_risks, float))
        costs = np.cumsum(self._costs(risks), axis=1) * (horizon / len(self._recent))
        planned = self._limit(staying[:, None] + costs)
        affordable = planned <= PLANNED * self._allowance(horizon)
        best = float(risks[affordable][-1]) if affordable.any() else 0.0
        self._threshold = min(best, RISK_CAP * self.max_error)

    # Learning

    def observe(self, decision: BoundDecision, *, right: bool) -> None:
        """What the LLM, a person or an audit said about the local answer of a decision.

        Decisions without a local answer teach nothing here. Outcomes may come late and in any
        order; one that never comes (the LLM failed) is not missed.
        """
        if decision.signals is None or decision.answer is None:
            return
        self._learn(
            _Outcome(
                decision.request,
                decision.answer,
                decision.signals,
                not right,
                decision.propensity,
            ),
            decision.risk,
        )

    def _learn(self, outcome: _Outcome, risk: float | None) -> None:
        if len(self._outcomes) == MAX_OUTCOMES:  # the oldest makes room
            self._doubted_at = max(0, self._doubted_at - 1)
        self._outcomes.append(outcome)
        self._unfitted += 1
        if (missing := self._unproven.pop(outcome.answer, 0)) > 1:
            self._unproven[outcome.answer] = missing - 1
        if risk is None:
            return
        for drift in self._drift:
            drift.add(risk, wrong=outcome.wrong)
        alarmed = [drift.length for drift in self._drift if drift.value > DRIFT_ALARMS[drift.odds]]
        if alarmed:
            self._drifted(min(*alarmed, len(self._outcomes)))

    def outcome_of(self, decision: BoundDecision, *, right: bool) -> list[Any] | None:
        """An outcome for another process's ``pool``, as plain JSON types; None without one."""
        if decision.signals is None or decision.answer is None:
            return None
        signals = _plain(decision.signals)
        return [decision.answer, signals, right, decision.risk, decision.propensity]

    def pool(self, outcome: Sequence[Any]) -> None:
        """What ``outcome_of`` gave in another process, about the same local model. It tells how far
        to trust local answers, and is on the account of that process alone.

        Raises:
            ValueError: it is not of ``outcome_of``.
        """
        try:
            answer, signals, right, risk, propensity = outcome
            values = [finite(value) for value in signals]
        except TypeError as error:
            raise ValueError(f"not an outcome: {error}") from error
        known = len(self._outcomes[-1].signals) if self._outcomes else len(values)
        share, told_risk = finite(propensity) or 0.0, finite(risk)
        if (
            None in values
            or len(values) != known
            or not 0 < share <= 1
            or (told_risk is None and risk is not None)
        ):
            raise ValueError("not an outcome of these signals")
        self._others += 1 / max(share, AUDIT_FLOOR / 2)  # no process audits less
        self._learn(
            _Outcome(self._request, str(answer), _vector(signals), not right, share),
            None if told_risk is None else min(max(told_risk, 1e-6), 1 - 1e-6),
        )

    def _drifted(self, outcomes: int) -> None:
        """The newest ``outcomes`` show another traffic than the rest."""
        self._drifts += 1
        self._settle(self._outcomes[-outcomes].request)
        self._forget(keep=outcomes)

    def _settle(self, until: int) -> None:
        """What was given before that request is not valued by what is learnt from now on."""
        self._account = deque(
            spent if spent.request >= until else replace(spent, signals=None)
            for spent in self._account
        )

    @property
    def due(self) -> bool:
        """Whether there is enough new evidence for a refit."""
        known = len(self._outcomes)
        grown = self._unfitted >= max(10, (GROWTH - 1) * self._fitted_on)
        return known >= MIN_EVIDENCE and grown and self.max_error > 0

    def fitting(self) -> Callable[[], FittedRisk]:
        """The next fit, as work for a thread; ``adopt`` takes what it gives. It takes some 50 ms
        for thousands of outcomes."""
        self._unfitted = 0
        epoch = self._epoch
        signals = np.stack([outcome.signals for outcome in self._outcomes])
        wrong = np.fromiter((outcome.wrong for outcome in self._outcomes), bool)
        return lambda: FittedRisk(epoch, wrong, RiskModel.fit(signals, wrong))

    def adopt(self, fitted: FittedRisk) -> bool:
        """Decides with the new model from now on, and values the newest answers by it.

        False, and nothing happens, when evidence was dropped since ``fitting``.
        """
        if fitted.epoch != self._epoch:
            return False
        self._model = fitted.model
        self._fitted_on = len(fitted.wrong)
        risks = fitted.model.held_out[self._doubted_at :]
        edges = self.max_error * np.asarray((0.0, *BANDS))
        self._expected = np.histogram(risks, edges, weights=risks)[0]
        self._wrong = np.histogram(risks[fitted.wrong[self._doubted_at :]], edges)[0] * 1.0
        self._value_recent(fitted.model)
        self._settle(self._request - round(REVALUED * self._part))
        self._account = deque(_valued(self._account, fitted.model))
        self._total()
        self._retune()
        return True

    def _value_recent(self, model: RiskModel) -> None:
        """The risks of the recent requests; there may be none yet where outcomes are pooled."""
        risks = model.risks(np.stack(self._recent)).tolist() if self._recent else []
        self._recent_risks = deque(risks, RECENT)

    def _total(self) -> None:
        self._spent = self._costs(np.asarray([some.risk for some in self._account])).sum(axis=1)

    def refit(self) -> None:
        """``fitting`` and ``adopt`` in one, for callers that may block."""
        self.adopt(self.fitting()())

    def catalog_changed(self, answers: Collection[str]) -> None:
        """Skills were added, changed or removed.

        Outcomes of these answers are dropped, and they are not given until there are ``PROVING``
        new ones. The others still tell risk from risk, but no longer how far to trust it: the
        limit widens and audits start afresh until new outcomes come in.
        """
        self._unproven |= dict.fromkeys(answers, PROVING)
        kept = [outcome for outcome in self._outcomes if outcome.answer not in answers]
        self._outcomes = deque(kept, MAX_OUTCOMES)
        if len(kept) < MIN_EVIDENCE:
            self._forget(keep=len(kept))
            return
        self._since_audit_start = 0
        self._doubt()
        self._total()
        self._retune()

    def status(self) -> BoundStatus:
        """The account now."""
        audits = [outcome for outcome in self._outcomes if outcome.propensity < 1]
        weight = math.fsum(1 / outcome.propensity for outcome in audits)
        wrong = math.fsum(1 / outcome.propensity for outcome in audits if outcome.wrong)
        return BoundStatus(
            requests=min(self._request, WINDOW),
            local=len(self._account),
            error_limit=self._error_limit(),
            threshold=self._threshold,
            outcomes=len(self._outcomes),
            audits=len(audits),
            audited_error=wrong / weight if audits else None,
            drifts=self._drifts,
        )

    # Keeping

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types; ``restore`` reads them back. At most some 2 MB as text."""
        return {
            "version": _STATE,
            "request": self._request,
            "others": self._others,
            "outcomes": [
                [some.request, some.answer, some.wrong, some.propensity, _plain(some.signals)]
                for some in self._outcomes
            ],
            "account": [
                [some.request, some.risk, None if some.signals is None else _plain(some.signals)]
                for some in self._account
            ],
            "recent": [_plain(signals) for signals in self._recent],
            "model": None if self._model is None else self._model.to_dict(),
            "fitted_on": self._fitted_on,
            "unfitted": self._unfitted,
            "since_audit_start": self._since_audit_start,
            "wrong": self._wrong.tolist(),
            "expected": self._expected.tolist(),
            "doubted_at": self._doubted_at,
            "drift": [[drift.odds, drift.value, drift.length] for drift in self._drift],
            "drifts": self._drifts,
            "unproven": self._unproven,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Goes on where ``to_dict`` was called, under this bound's own settings.

        Raises KeyError, TypeError or ValueError when ``state`` is not of ``to_dict``; then this
        bound must not be used.
        """
        if state["version"] != _STATE:
            raise ValueError(f"a state of version {state['version']}")
        self._request = int(state["request"])
        others = finite(state["others"])
        if others is None or others < 0:
            raise ValueError("a number of requests of other processes that is none")
        self._others = others
        self._outcomes.clear()
        for request, answer, wrong, propensity, signals in state["outcomes"]:
            self._outcomes.append(
                _Outcome(
                    int(request), str(answer), _vector(signals), bool(wrong), float(propensity)
                )
            )
        self._account = deque(
            _Spent(int(request), float(risk), None if signals is None else _vector(signals))
            for request, risk, signals in state["account"]
        )
        self._recent = deque((_vector(signals) for signals in state["recent"]), RECENT)
        self._forget(keep=len(self._outcomes))
        self._fitted_on = int(state["fitted_on"])
        self._unfitted = int(state["unfitted"])
        self._since_audit_start = int(state["since_audit_start"])
        self._wrong = _vector(state["wrong"])
        self._expected = _vector(state["expected"])
        self._total()
        self._doubted_at = int(state["doubted_at"])
        self._drift = [_DriftSum(float(o), float(v), int(n)) for o, v, n in state["drift"]]
        self._drifts = int(state["drifts"])
        self._unproven = {str(answer): int(n) for answer, n in state["unproven"].items()}
        if state["model"] is not None:
            self._model = RiskModel.from_dict(state["model"])
            self._value_recent(self._model)
            self._retune()


def _valued(account: Iterable[_Spent], model: RiskModel) -> Iterator[_Spent]:
    """The account with the risks that ``model`` gives, where they are not final."""
    entries = list(account)
    rows = [spent.signals for spent in entries if spent.signals is not None]
    risks = iter(model.risks(np.stack(rows)).tolist() if rows else ())
    for spent in entries:
        yield spent if spent.signals is None else _Spent(spent.request, next(risks), spent.signals)


def _plain(signals: Vector) -> list[float]:
    return [round(value, _PLACES) for value in signals.tolist()]


def _vector(values: Iterable[float]) -> Vector:
    return np.asarray([float(value) for value in values], dtype=np.float64)
