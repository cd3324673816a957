"""The error bound: decides whether a request is answered locally or by the LLM, so that the share
of wrong answers over all traffic stays within ``max_error``.

In short: the local model gives a request a *local answer*, and a risk model estimates its *risk*,
the probability that it is wrong. Answers with a low risk are given; the other requests go to the
LLM. The total risk is kept like a bank account: each request pays in an allowance of ``max_error``
(0.01 allows one wrong answer in 100 requests), and each local answer takes out its expected cost. A
local answer that would overdraw the account is not given.

**The cost of an answer.** Its risk comes from a ``RiskModel``, which is fitted to *outcomes*:
whether earlier local answers were right, according to the LLM or a person. The risks may be too
high or too low, so they are corrected. In each of a few bands of risk, k held-out answers were
wrong where the model expected R, and a risk r in that band costs

    c = r (k + a) / (R + a)

where a is a prior: it counts like a errors that came as expected.

A new risk model is also applied to earlier local answers, but only to those among the last
``REVALUED_REQUESTS`` requests. So a drift counts even before an alarm shows it. After that, the
risk of an answer is final: a later model is fitted mostly to requests that earlier models found
risky, and knows less about an old answer than the model that gave it. Where each new model was
applied to all answers, U jumped: for hundreds of requests too few were answered locally, and then
too many.

**The balance of the account.** With S_b the sum of the costs of band b over the local answers among
the last ``WINDOW`` requests, and S the sum of all bands, the upper limit of the number of errors is

    U = S + z sqrt(S + (sum_b S_b / sqrt(k_b + a))^2)

The assumptions: errors are rare and independent given their risks, and the true risks of a band are
the model's risks times one unknown factor. With a Gamma(a, a) prior and k errors where R were
expected, this factor has the posterior Gamma(k + a, R + a) (Gelman et al., Bayesian Data Analysis,
2.6). So the number of errors has the mean S and, under the root, a variance of two parts: that of
rare events (Poisson), and the uncertainty of the factors. The factors are treated as fully
correlated, because they correct the same model; treated as independent, twice as many streams came
above the bound. U is the upper end of the normal approximation. z is the two-sided quantile of the
confidence, which leaves a margin for errors in the shape of the model.

**Several processes** that share their outcomes (``pool``) have one account each. The standard
deviation of a sum is less than the sum of the standard deviations: if each of four processes held a
reserve of z sqrt(S), together they would hold twice as much as one process for the same requests.
So each holds its part of the reserve for the sum. With w its share of all requests,

    U = S + z sqrt(w S + (sum_b S_b / sqrt(k_b + a))^2)

When U of each process is within its allowance, U of all together is within theirs, however
unequally they spend: the pairs (S / w, sum over the bands / w) whose U is within an allowance are a
convex set, and the pair of all processes is the mean of theirs, weighted by w. The number of
requests of the other processes is estimated from their outcomes, each of which stands for 1 /
propensity requests. ``HORIZON``, ``REVALUED_REQUESTS`` and ``AUDIT_DECAY`` count the requests of
all processes.

The limit holds at one moment, under these assumptions. Without a model, far more audits would be
needed: to show at 95% confidence that 40 errors are fewer than 80 succeeds in 7 of 10 cases when
every fifth local answer is audited. Where the assumptions fail, above all by drift, see below and
the simulations in ``tests/learning``.

**When a local answer is given.** Both conditions must hold:

* Its risk is at most the *threshold*: the highest threshold with which traffic like the most recent
  would use ``PLANNED_SHARE`` of the allowance, ``HORIZON`` requests from now. So the allowance is
  spent evenly, on the requests where an error is least probable, and not on those that come first.
* U, with this answer, is within the allowance. To compare S instead of U, with refits twice as
  often, saved 1.5 points more calls, and broke the bound on 3 of 50 drifting streams. Where U is
  above the allowance already, an answer may still raise it by ``MAX_OVERDRAFT_STEP`` of what its
  request pays in.

So no answer brings U above the allowance; only a new estimate of earlier answers can do that. Each
request then pays in at least twice what its answer adds, so that the account recovers, at the
latest when the earlier answers have left the window. If no local answer were given meanwhile,
hundreds of requests in a row would go to the LLM, and then risky ones would be answered from the
allowance that had accumulated.

**Audits.** Outcomes that cost nothing extra are those of risky requests, which go to the LLM
anyway. To know the error of the answers that are given, a random share of them is *audited*: the
LLM is asked in the background, too. The share falls from ``AUDIT_START`` to ``AUDIT_FLOOR``, and is
twice as high at the threshold, where an outcome says most.

**Drift** shows in outcomes that are worse than their risks. It is detected by two cumulative sums
(Page, 1954) of the log likelihood ratio, against odds that are 3 and 30 times as high. When a sum
passes its alarm level, all outcomes from before its rise are dropped, and the LLM is asked until
there are enough new ones. A drift of answers with a low risk can be seen only by audits.

One event loop owns an ``ErrorBound``; only the result of ``fitting`` is meant for a thread. Random
choices are a hash of seed and request number, so a replay makes the same decisions.
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
from router.learning.local import skills_of
from router.numeric import finite

MIN_EVIDENCE: Final = 150
"""No local answer is given before there are this many outcomes."""
GROWTH: Final = 1.05
"""The next fit is due when the number of outcomes has grown by this factor."""
MAX_OUTCOMES: Final = 8_000
"""Only the newest outcomes are kept."""

Z: Final = NormalDist().inv_cdf((1 + 0.95) / 2)
"""The two-sided quantile of the confidence with which the bound holds."""

WINDOW: Final = 10_000
"""The account covers this many requests. Older errors do not count any more, and neither does an
allowance that was not used."""
HORIZON: Final = 4_000
"""The threshold plans the use of the allowance this many requests ahead."""
PLANNED_SHARE: Final = 0.95
"""The share of the allowance that the threshold plans to use by then. The rest is a reserve,
because a new risk model moves U more than the traffic between two fits does."""
MAX_OVERDRAFT_STEP: Final = 0.5
"""The most that an answer may add to U while the account is overdrawn, in units of ``max_error``,
which is what its request pays in."""
RECENT: Final = 1_000
"""The risks of this many latest requests predict those of the traffic to come."""
REVALUED_REQUESTS: Final = 1_000
"""The risk of a local answer is final after this many further requests of all processes. 500 and
2,000 do about as well; with 0 a slow drift broke the bound."""
RETUNE_EVERY: Final = 25
"""The threshold is set again after this many requests."""

RISK_CAP: Final = 10.0
"""The threshold is never higher than this, in units of ``max_error``."""

BANDS: Final = (0.5, 2.0, 5.0, RISK_CAP)
"""The upper edges of the bands of risk, in units of ``max_error``."""

PRIOR_ERRORS: Final = 8.0
"""a of the module's docstring."""

OUTCOMES_AFTER_CHANGE: Final = 10
"""After a skill has changed, no local answer names it before there are this many new outcomes."""

AUDIT_START: Final = 0.10
AUDIT_FLOOR: Final = 0.02
AUDIT_DECAY: Final = 300.0
"""After about this many local answers the audited share begins to fall, as 1 / sqrt."""

DRIFT_ALARMS: Final = {3.0: 14.0, 30.0: 10.0}
"""For each odds ratio, the alarm level of its sum. If the risks were exact, a level h would give a
false alarm at most every e^h outcomes on average."""

_DECIMALS: Final = 5
"""The decimal places of stored signals."""
_STATE_VERSION: Final = 4
"""The version of the stored state. Change it when its form or the meaning of a signal changes."""


@dataclass(frozen=True, slots=True)
class BoundDecision:
    """Whether one request may be answered locally, and why.

    Attributes:
        local: whether the local answer is given; otherwise the LLM is asked.
        audit: whether the LLM shall be asked in the background about a local answer that is given.
        risk: P(the local answer is wrong); None without a local answer or a risk model.
        bound: the upper limit of the share of errors so far, this answer included.
        evidence_count: the number of outcomes that the risk model was fitted to.
        reason: one sentence for the trace.
        propensity: the probability that the outcome becomes known: 1 where the LLM is asked, the
            audited share for a local answer.
        request: the number of the request, from 1.
        answer: the local answer; None without one.
        signals: the signals of the local answer at the time of the decision.
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
    """A risk model and the outcomes that it was fitted to, ``wrong`` or not. An epoch ends whenever
    outcomes are dropped."""

    epoch: int
    wrong: NDArray[np.bool_]
    model: RiskModel


@dataclass(frozen=True, slots=True)
class BoundStatus:
    """The state of the account, for ``status`` commands and plots.

    Attributes:
        requests: the number of requests in the window.
        local: how many of them were answered locally.
        error_limit: U / requests.
        threshold: the largest risk with which an answer is given.
        outcomes: the number of outcomes in memory.
        audits: how many of them are of audited answers.
        audited_error: the share of wrong local answers, estimated from the audits by inverse
            propensity (Horvitz and Thompson, 1952; normalised as by Hájek); None without audits.
        drifts: the number of drift alarms so far.
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
class _AccountEntry:
    """A local answer on the account. Without signals, its risk is final."""

    request: int
    risk: float
    signals: Vector | None


@dataclass(slots=True)
class _DriftSum:
    """One cumulative sum, and the number of outcomes since it was last zero."""

    odds: float
    value: float = 0.0
    length: int = 0

    def add(self, risk: float, *, wrong: bool) -> None:
        drifted = self.odds * risk / (1 + (self.odds - 1) * risk)
        ratio = drifted / risk if wrong else (1 - drifted) / (1 - risk)
        self.value = max(0.0, self.value + math.log(ratio))
        self.length = self.length + 1 if self.value > 0 else 0


class ErrorBound:
    """Decides whether requests are answered locally, and learns from the outcomes.

    Args:
        max_error: the largest share of wrong answers over all traffic, in [0, 1); wrong means other
            than the LLM's answer. With 0, nothing is answered locally.
        seed: of the random choice of audits.

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
        self._account: deque[_AccountEntry] = deque()
        self._spent = np.zeros(len(BANDS))
        self._recent: deque[Vector] = deque(maxlen=RECENT)
        self._recent_risks: deque[float] = deque(maxlen=RECENT)
        self._epoch = 0
        self._drifts = 0
        self._missing_outcomes: dict[str, int] = {}
        self._other_requests = 0.0
        self._restart(keep=0)

    def _restart(self, *, keep: int) -> None:
        """Drop all but the newest ``keep`` outcomes. Nothing is answered locally until a new
        fit."""
        self._outcomes = deque(list(self._outcomes)[len(self._outcomes) - keep :], MAX_OUTCOMES)
        self._model: RiskModel | None = None
        self._fitted_on = 0
        self._new_outcomes = keep
        self._threshold = 0.0
        self._since_audit_start = 0
        self._reset_correction()

    def _reset_correction(self) -> None:
        """Forget how far the risks were right: begin the correction of each band anew."""
        self._epoch += 1
        self._wrong_by_band = np.zeros(len(BANDS))
        self._expected_by_band = np.zeros(len(BANDS))
        self._correction_from = len(self._outcomes)
        self._drift = [_DriftSum(odds) for odds in DRIFT_ALARMS]

    # Deciding

    def decide(self, signals: Vector | None, *, answer: str | None = None) -> BoundDecision:
        """Decide one request. Call this once for each request that no cache has answered.

        Args:
            signals: ``LocalSignals.vector()`` of the local answer; None without one.
            answer: the local answer; see ``answer_of``.
        """
        self._request += 1
        if self._request > WINDOW:
            self._other_requests *= 1 - 1 / WINDOW
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
        if not self._missing_outcomes.keys().isdisjoint(skills_of(answer)):
            reason = "Too few outcomes since its skill has changed."
            return self._ask(reason, risk, answer, signals)
        if risk > self._threshold:
            reason = f"A risk of {risk:.2%} is above the threshold of {self._threshold:.2%}."
            return self._ask(reason, risk, answer, signals)
        before = self._limit(self._spent)
        self._spend(risk)
        after, allowance = self._limit(self._spent), self._allowance(0)
        repays = before > allowance and after - before <= MAX_OVERDRAFT_STEP * self.max_error
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
        self._account.append(_AccountEntry(self._request, risk, signals))
        self._since_audit_start += 1
        since_start = self._since_audit_start / self._own_share
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
        """The costs of answers with these risks, each in the row of its band: shape (bands,
        answers)."""
        edges = self.max_error * np.asarray(BANDS[:-1])
        band = np.searchsorted(edges, risks)
        costs = np.zeros((len(BANDS), len(risks)))
        ratio = (self._wrong_by_band + PRIOR_ERRORS) / (self._expected_by_band + PRIOR_ERRORS)
        costs[band, np.arange(len(risks))] = risks * ratio[band]
        return costs

    def _spend(self, risk: float, *, sign: int = 1) -> None:
        self._spent += sign * self._costs(np.asarray([risk]))[:, 0]

    def _limit(self, spent: Vector) -> Vector:
        """U of the module's docstring, for amounts of shape (bands, ...)."""
        total = np.maximum(spent.sum(axis=0), 0.0)
        unknown = (spent.T / np.sqrt(self._wrong_by_band + PRIOR_ERRORS)).T.sum(axis=0)
        return np.asarray(total + Z * np.sqrt(self._own_share * total + unknown**2))

    @property
    def _own_share(self) -> float:
        """w of the module's docstring."""
        own = max(1, min(self._request, WINDOW))
        return own / (own + self._other_requests)

    def _allowance(self, ahead: int) -> float:
        return self.max_error * min(self._request + ahead, WINDOW)

    def _error_limit(self) -> float:
        if not self._request:
            return 0.0
        errors = float(self._limit(self._spent))
        return min(1.0, errors / min(self._request, WINDOW))

    def _retune(self) -> None:
        """Set the threshold: the highest at which the planned costs are within the allowance."""
        if not self._recent:
            return
        horizon = math.ceil(HORIZON * self._own_share)
        last = self._request + horizon - WINDOW
        leaving = [
            entry.risk for entry in takewhile(lambda entry: entry.request <= last, self._account)
        ]
        staying = self._spent - self._costs(np.asarray(leaving)).sum(axis=1)
        risks = np.sort(np.fromiter(self._recent_risks, float))
        costs = np.cumsum(self._costs(risks), axis=1) * (horizon / len(self._recent))
        planned = self._limit(staying[:, None] + costs)
        affordable = planned <= PLANNED_SHARE * self._allowance(horizon)
        best = float(risks[affordable][-1]) if affordable.any() else 0.0
        self._threshold = min(best, RISK_CAP * self.max_error)

    # Learning

    def observe(self, decision: BoundDecision, *, right: bool) -> None:
        """Learn whether the local answer of a decision was right, according to the LLM.

        Decisions without a local answer are ignored. Outcomes may come late, in any order, or
        never, as when the LLM fails.
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
        if len(self._outcomes) == MAX_OUTCOMES:  # the oldest outcome will be dropped
            self._correction_from = max(0, self._correction_from - 1)
        self._outcomes.append(outcome)
        self._new_outcomes += 1
        for skill in skills_of(outcome.answer):
            if (missing := self._missing_outcomes.pop(skill, 0)) > 1:
                self._missing_outcomes[skill] = missing - 1
        if risk is None:
            return
        for drift in self._drift:
            drift.add(risk, wrong=outcome.wrong)
        alarmed = [drift.length for drift in self._drift if drift.value > DRIFT_ALARMS[drift.odds]]
        if alarmed:
            self._drop_before_drift(min(*alarmed, len(self._outcomes)))

    def outcome_of(self, decision: BoundDecision, *, right: bool) -> list[Any] | None:
        """An outcome for the ``pool`` of another process, as plain JSON types; None where the
        decision has no local answer."""
        if decision.signals is None or decision.answer is None:
            return None
        signals = _rounded(decision.signals)
        return [decision.answer, signals, right, decision.risk, decision.propensity]

    def pool(self, outcome: Sequence[Any]) -> None:
        """Learn from the outcome of another process with the same local model. It improves the risk
        model here, but is not on the account of this process.

        Raises:
            ValueError: ``outcome`` does not have the form of ``outcome_of``.
        """
        try:
            answer, signals, right, risk, propensity = outcome
            values = [finite(value) for value in signals]
        except TypeError as error:
            raise ValueError(f"not an outcome: {error}") from error
        known = len(self._outcomes[-1].signals) if self._outcomes else len(values)
        share, checked_risk = finite(propensity) or 0.0, finite(risk)
        if (
            None in values
            or len(values) != known
            or not 0 < share <= 1
            or (checked_risk is None and risk is not None)
        ):
            raise ValueError("not an outcome of these signals")
        self._other_requests += 1 / max(share, AUDIT_FLOOR / 2)  # no process audits less
        self._learn(
            _Outcome(self._request, str(answer), _vector(signals), not right, share),
            None if checked_risk is None else min(max(checked_risk, 1e-6), 1 - 1e-6),
        )

    def _drop_before_drift(self, outcomes: int) -> None:
        """Drop what was learnt before the newest ``outcomes``, which show a drift."""
        self._drifts += 1
        self._make_final(self._outcomes[-outcomes].request)
        self._restart(keep=outcomes)

    def _make_final(self, until: int) -> None:
        """Make the risks of the answers before that request final."""
        self._account = deque(
            spent if spent.request >= until else replace(spent, signals=None)
            for spent in self._account
        )

    @property
    def due(self) -> bool:
        """Whether there are enough new outcomes for a fit."""
        known = len(self._outcomes)
        grown = self._new_outcomes >= max(10, (GROWTH - 1) * self._fitted_on)
        return known >= MIN_EVIDENCE and grown and self.max_error > 0

    def fitting(self) -> Callable[[], FittedRisk]:
        """The next fit, as a function to call in a thread; give its result to ``adopt``. It takes
        some 50 ms for thousands of outcomes."""
        self._new_outcomes = 0
        epoch = self._epoch
        signals = np.stack([outcome.signals for outcome in self._outcomes])
        wrong = np.fromiter((outcome.wrong for outcome in self._outcomes), bool)
        return lambda: FittedRisk(epoch, wrong, RiskModel.fit(signals, wrong))

    def adopt(self, fitted: FittedRisk) -> bool:
        """Use a new risk model from now on, also for the newest answers on the account.

        Returns:
            False, without any effect, where outcomes were dropped since ``fitting``.
        """
        if fitted.epoch != self._epoch:
            return False
        self._model = fitted.model
        self._fitted_on = len(fitted.wrong)
        risks = fitted.model.held_out[self._correction_from :]
        edges = self.max_error * np.asarray((0.0, *BANDS))
        self._expected_by_band = np.histogram(risks, edges, weights=risks)[0]
        self._wrong_by_band = (
            np.histogram(risks[fitted.wrong[self._correction_from :]], edges)[0] * 1.0
        )
        self._revalue_recent(fitted.model)
        self._make_final(self._request - round(REVALUED_REQUESTS * self._own_share))
        self._account = deque(_revalued(self._account, fitted.model))
        self._recompute_spent()
        self._retune()
        return True

    def _revalue_recent(self, model: RiskModel) -> None:
        """Compute the risks of the recent requests anew. There may be none yet, with outcomes of
        other processes only."""
        risks = model.risks(np.stack(self._recent)).tolist() if self._recent else []
        self._recent_risks = deque(risks, RECENT)

    def _recompute_spent(self) -> None:
        self._spent = self._costs(np.asarray([entry.risk for entry in self._account])).sum(axis=1)

    def refit(self) -> None:
        """Call ``fitting`` and ``adopt``, for callers that may block."""
        self.adopt(self.fitting()())

    def catalog_changed(self, skills: Collection[str]) -> None:
        """These skills were added, changed or removed.

        The outcomes of the answers that name one are dropped, and no such answer is given until
        there are ``OUTCOMES_AFTER_CHANGE`` new ones. The other outcomes still train the risk model,
        but no longer its correction: U grows, and audits are frequent again, until new outcomes
        come.
        """
        self._missing_outcomes |= dict.fromkeys(skills, OUTCOMES_AFTER_CHANGE)
        changed = frozenset(skills)
        kept = [one for one in self._outcomes if changed.isdisjoint(skills_of(one.answer))]
        self._outcomes = deque(kept, MAX_OUTCOMES)
        if len(kept) < MIN_EVIDENCE:
            self._restart(keep=len(kept))
            return
        self._since_audit_start = 0
        self._reset_correction()
        self._recompute_spent()
        self._retune()

    def status(self) -> BoundStatus:
        """The state of the account."""
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
        """The state as plain JSON types for ``restore``; at most some 2 MB as text."""
        return {
            "version": _STATE_VERSION,
            "request": self._request,
            "others": self._other_requests,
            "outcomes": [
                [
                    entry.request,
                    entry.answer,
                    entry.wrong,
                    entry.propensity,
                    _rounded(entry.signals),
                ]
                for entry in self._outcomes
            ],
            "account": [
                [
                    entry.request,
                    entry.risk,
                    None if entry.signals is None else _rounded(entry.signals),
                ]
                for entry in self._account
            ],
            "recent": [_rounded(signals) for signals in self._recent],
            "model": None if self._model is None else self._model.to_dict(),
            "fitted_on": self._fitted_on,
            "unfitted": self._new_outcomes,
            "since_audit_start": self._since_audit_start,
            "wrong": self._wrong_by_band.tolist(),
            "expected": self._expected_by_band.tolist(),
            "doubted_at": self._correction_from,
            "drift": [[drift.odds, drift.value, drift.length] for drift in self._drift],
            "drifts": self._drifts,
            "unproven": self._missing_outcomes,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from the result of ``to_dict``, with this object's own settings.

        Raises:
            KeyError, TypeError, ValueError: ``state`` has another form. This object must then not
                be used any more.
        """
        if state["version"] != _STATE_VERSION:
            raise ValueError(f"a state of version {state['version']}")
        self._request = int(state["request"])
        others = finite(state["others"])
        if others is None or others < 0:
            raise ValueError("a number of requests of other processes that is none")
        self._other_requests = others
        self._outcomes.clear()
        for request, answer, wrong, propensity, signals in state["outcomes"]:
            self._outcomes.append(
                _Outcome(
                    int(request), str(answer), _vector(signals), bool(wrong), float(propensity)
                )
            )
        self._account = deque(
            _AccountEntry(int(request), float(risk), None if signals is None else _vector(signals))
            for request, risk, signals in state["account"]
        )
        self._recent = deque((_vector(signals) for signals in state["recent"]), RECENT)
        self._restart(keep=len(self._outcomes))
        self._fitted_on = int(state["fitted_on"])
        self._new_outcomes = int(state["unfitted"])
        self._since_audit_start = int(state["since_audit_start"])
        self._wrong_by_band = _vector(state["wrong"])
        self._expected_by_band = _vector(state["expected"])
        self._recompute_spent()
        self._correction_from = int(state["doubted_at"])
        self._drift = [_DriftSum(float(o), float(v), int(n)) for o, v, n in state["drift"]]
        self._drifts = int(state["drifts"])
        self._missing_outcomes = {str(skill): int(n) for skill, n in state["unproven"].items()}
        if state["model"] is not None:
            self._model = RiskModel.from_dict(state["model"])
            self._revalue_recent(self._model)
            self._retune()


def _revalued(account: Iterable[_AccountEntry], model: RiskModel) -> Iterator[_AccountEntry]:
    """The account with the risks of ``model``, where they are not final."""
    entries = list(account)
    rows = [spent.signals for spent in entries if spent.signals is not None]
    risks = iter(model.risks(np.stack(rows)).tolist() if rows else ())
    for spent in entries:
        yield (
            spent
            if spent.signals is None
            else _AccountEntry(spent.request, next(risks), spent.signals)
        )


def _rounded(signals: Vector) -> list[float]:
    return [round(value, _DECIMALS) for value in signals.tolist()]


def _vector(values: Iterable[float]) -> Vector:
    return np.asarray([float(value) for value in values], dtype=np.float64)
