"""Stage 4: decide from retrieval alone, or weigh a weak LLM answer against it.

Whether anything in the catalog fits is a logistic function of four scale-free signals of the best
match. Its few coefficients were fitted once, by cross-validation over skills, on labelled requests
over large and small catalogs, and rounded (``benchmarks/skill_requests.py`` measures them); nothing
has a floor, so any request can be refused. Until a deployment has labels of its own the outcome is
an estimate, and results say ``calibrated: false``.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from router.result import Candidate, Decision, Evidence, Outcome, Stage, StageTrace
from router.retrieval.index import Match, Ranking, SkillIndex

ROUTE: Final = 0.58
"""Least probability at which the best match is loaded."""
SURE: Final = 0.7
"""Below it the best match must also lead ..."""
LEAD: Final = 0.02
"""... by this much, in fused score."""
TWINS: Final = 0.002
"""A smaller lead is none, however sure it is that something fits."""
CLARIFY: Final = 0.3
"""Least probability at which the best matches are offered; below it nothing fits."""

FIT: Final = {"score": 1.0, "evidence": 2.0, "latent_mass": 15.0, "asks_a_fact": -1.0}
FIT_SIZE: Final = -0.13
"""For each unit of ln(number of skills): the best of many is good by chance."""
FIT_BIAS: Final = -2.57
"""Log-odds that something fits: the bias, the size term, and each signal times its weight."""

RIGHT_LEAD: Final = 0.8
RIGHT_FIT: Final = 0.4
RIGHT_BIAS: Final = 1.5
"""Log-odds that the selection is right, once it is made: the logarithm of the lead and the log-odds
that something fits, each times its weight, plus the bias. Fitted like the rest."""

MAX_CANDIDATES: Final = 10
MAX_SHOWN_TERMS: Final = 8

_SPEAKS_TO_THE_ROUTER: Final = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\b[^.\n]{0,20}"
    r"\b(?:your|previous|prior|above|earlier|preceding)\b[^.\n]{0,20}"
    r"\b(?:instructions?|rules?|prompts?|guidelines?|polic(?:y|ies)|restrictions?)\b"
    r"|\byou are now (?:an? |the )?(?:\w*gpt|unrestricted|jailbroken)\b"
    r"|</(?:system|request|skills?|instructions?)>[^<\n]{0,20}<"
    r"|^[^\S\n]*assistant\s*:",
    re.IGNORECASE | re.MULTILINE,
)
"""Attempts to instruct whoever reads the request. Loading a skill because such a text names it is
what its author wants. Developers quote logs, markup and prompts, so few forms count."""
NOT_SPOKEN_TO: Final = 0.9
"""Confidence of abstaining from such a request."""

_ASKS_A_FACT: Final = re.compile(
    r"\s*(?:who|what|when|where|which|why|how (?:much|many|long|old|far|tall|do i|do you))\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class LocalDecision:
    """What retrieval alone would answer.

    Attributes:
        decision: route, clarify or abstain.
        selected: the skills to load; empty unless ``decision`` is ROUTE.
        ranked: the names of the best matches, best first.
        confidence: estimated probability, in (0, 1], that the decision is right.
        reason: one sentence for a person.
        evidence: what the decision rests on.
        candidates: the best matches with what they are made of.
        microseconds: time spent.
    """

    decision: Decision
    selected: tuple[str, ...]
    ranked: tuple[str, ...]
    confidence: float
    reason: str
    evidence: Evidence
    candidates: tuple[Candidate, ...]
    microseconds: float

    @property
    def fits(self) -> float | None:
        """Estimated probability that the best match fits, in (0, 1); None where nothing was
        weighed: there is no skill, or the request tries to instruct the router."""
        fits = self.evidence.get("fits")
        return fits if isinstance(fits, float) else None

    def trace(self, outcome: Outcome, reason: str | None = None) -> StageTrace:
        """The stage's entry for the result."""
        return StageTrace(
            Stage.VECTOR,
            outcome,
            self.reason if reason is None else reason,
            self.microseconds,
            self.evidence,
            self.candidates,
        )


async def decide(
    request: str,
    index: SkillIndex,
    *,
    among: Sequence[str] | None = None,
    clock: Callable[[], float] = time.perf_counter,
) -> LocalDecision:
    """Rank the skills for a request and decide what to do about the best ones.

    Raises:
        EncoderError: the request cannot be encoded.
    """
    began = clock()
    ranking = await index.rank(request, among=among, limit=MAX_CANDIDATES)
    decided = judge(request, ranking)
    evidence = decided.evidence
    if among is not None:
        allowed = frozenset(among)
        left_out = sum(skill.name not in allowed for skill in index.catalog.routable)
        evidence = {**evidence, "left_out": left_out}
    return replace(decided, evidence=evidence, microseconds=(clock() - began) * 1e6)


def judge(request: str, ranking: Ranking) -> LocalDecision:
    """Decide what to do about the best of a ranking."""
    decision, selected, confidence, reason, evidence = _judge(request, ranking)
    matches = ranking.matches[:MAX_CANDIDATES]
    return LocalDecision(
        decision=decision,
        selected=selected,
        ranked=tuple(match.name for match in matches),
        confidence=confidence,
        reason=reason,
        evidence=evidence,
        candidates=tuple(_candidate(match) for match in matches),
        microseconds=0.0,
    )


def _judge(
    request: str, ranking: Ranking
) -> tuple[Decision, tuple[str, ...], float, str, Evidence]:
    if not ranking.matches:
        return Decision.ABSTAIN, (), 1.0, "there is no skill to choose from", {}
    if _SPEAKS_TO_THE_ROUTER.search(request):
        return Decision.ABSTAIN, (), NOT_SPOKEN_TO, "the request tries to instruct the router", {}
    best = ranking.matches[0]
    second = ranking.second if ranking.second_log_odds > 0 else None
    lead = _lead(ranking.matches, second)
    signals = {
        "score": best.score,
        "evidence": ranking.evidence,
        "latent_mass": ranking.latent_mass,
        "asks_a_fact": float(bool(_ASKS_A_FACT.match(request))),
    }
    log_odds = FIT_BIAS + FIT_SIZE * math.log(ranking.size)
    log_odds += sum(FIT[name] * value for name, value in signals.items())
    fits = _probability(log_odds)
    evidence = {"fits": fits, "lead": lead, **signals}
    shown = ", ".join(best.terms[:MAX_SHOWN_TERMS]) or "meaning alone"
    if fits < CLARIFY:
        reason = f"no skill fits; the nearest, {best.name}, matches only on {shown}"
        return Decision.ABSTAIN, (), 1 - fits, reason, evidence
    if fits < ROUTE:
        reason = f"{best.name} may fit ({shown}), but not surely enough to load it"
        return Decision.CLARIFY, (), 1 - fits, reason, evidence
    rivals = len(ranking.matches) > 1 and second is None
    if rivals and lead < (LEAD if fits < SURE else TWINS):
        reason = f"{best.name} and {ranking.matches[1].name} fit equally well"
        return Decision.CLARIFY, (), 1 - fits / 2, reason, evidence  # either is right half the time
    selected = (best.name,) if second is None else (best.name, second.name)
    reason = f"{best.name} matches on {shown}"
    if second is not None:
        evidence["second_log_odds"] = ranking.second_log_odds
        reason += f"; {second.name} serves the part that it leaves open"
    right = RIGHT_LEAD * math.log(lead + LEAD) + RIGHT_FIT * log_odds + RIGHT_BIAS
    return Decision.ROUTE, selected, _probability(right), reason, evidence


def _lead(matches: Sequence[Match], second: Match | None) -> float:
    """How far the best match is ahead of the best one that is not selected."""
    rivals = (match.score for match in matches[1:] if match is not second)
    # A lone skill may have a score below zero, with a logarithm to follow.
    return max(0.0, matches[0].score - max(rivals, default=0.0))


def _probability(log_odds: float) -> float:
    return 1 / (1 + math.exp(-log_odds))


def _candidate(match: Match) -> Candidate:
    return Candidate(
        match.name,
        match.score,
        {
            "lexical": match.lexical,
            "latent": match.latent,
            "cosine": match.cosine,
            "terms": match.terms[:MAX_SHOWN_TERMS],
        },
    )
