"""Decides from one ranking of a request, or of a part of it.

A skill that the request names outright is loaded. Otherwise the best match is loaded where two
probabilities are high enough: that some skill fits the request, and that the best match is a right
one (``likelihood.py``). The setting ``vector.caution`` says what is high enough.

A request of several clauses may need several skills (``further.py``). Where its clauses ask for
different things, the whole request may be similar to no skill. Then one clause that would be routed
by itself is enough, if another clause probably asks for another skill.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from router.learning.stage_calibrations import ENCODER_FAULT
from router.result import Decision, Evidence
from router.retrieval.matches import Match, Ranking
from router.settings.settings import CAUTIONS
from router.stages.further import MAX_CANDIDATES, further
from router.stages.likelihood import Likelihood
from router.stages.reply import is_courtesy

DEFAULT_CAUTION: Final = CAUTIONS["balanced"]
"""The caution where the settings name none: the least probability that a loaded skill is right."""
CLARIFY_SHARE: Final = 0.6
"""Where the probability that some skill fits is too low for a route, but at least this share of
what a route needs, the router asks the user. Below that, it abstains."""
TIE_MARGIN: Final = 0.002
"""Where the two best scores differ by less than this, the router asks which skill is meant."""
OTHER_CLAUSE_SHARE: Final = 0.8
"""A clause counts as asking for another skill where that skill is right with at least this share of
the caution. Of the routes by a single clause, 58% are right with this condition and the one that
the skill is among the two best matches of the whole request, and 34% without both (21 catalogs,
plain and enriched)."""
MAX_SELECTED: Final = 3
BY_WORDS_CONFIDENCE: Final = 0.45
"""The highest confidence in loading nothing while the encoder is down. Words that a skill has are
as good a sign as ever, and words that none has say little. Over the 22 catalogs of
``benchmarks/trades.py``, 95% of the routes by words alone are right without examples, and 97% with
them; where no route is given, loading nothing is right in 28% and 33% of the cases, and of those
that would abstain in 41% and 46%."""
NAMED_CONFIDENCE: Final = 0.98
"""The confidence in a skill that the request names outright."""

MAX_SHOWN_TERMS: Final = 8
_INSTRUCTS_THE_ROUTER: Final = re.compile(
    r"\b(?:ignore|disregard|forget|override|bypass)\b[^.\n]{0,20}"
    r"\b(?:your|previous|prior|above|earlier|preceding)\b[^.\n]{0,20}"
    r"\b(?:instructions?|rules?|prompts?|guidelines?|polic(?:y|ies)|restrictions?)\b"
    r"|\b(?:ignore|disregard|forget)\b[^.\n]{0,10}"
    r"\byou(?:.ve been| have been| were) (?:told|taught)\b"
    r"|\byour system prompt\b"
    r"|\byou are now (?:an? |the )?(?:\w*gpt|unrestricted|jailbroken)\b"
    r"|</(?:system|request|skills?|instructions?)>[^<\n]{0,20}<"
    r"|<(?P<role>system|assistant|developer|instructions?)>[^<]{10,500}</(?P=role)>"
    r"|^[^\S\n]*assistant\s*:"
    r"|^[^\S\n]*(?:system|developer)\s*:\s*(?:you|always|never|from now on)\b"
    r"|\b(?:call|load|select|choose|pick|answer with) (?:every|all(?: the| your)?) "
    r"(?:skill|tool)s?\b"
    r"|\broute (?:this|it|everything) to \S{1,100} (?:no matter|regardless)\b",
    re.IGNORECASE | re.MULTILINE,
)
"""Text that pretends to speak for the system, or tells the router which skills to choose for any
request. A name of a skill in such a text does not count, unless the request begins with it."""

INSTRUCTED_CONFIDENCE: Final = 0.9


def instructs_the_router(text: str) -> bool:
    """Whether a text tries to instruct the router, which no request does."""
    return _INSTRUCTS_THE_ROUTER.search(text) is not None


@dataclass(frozen=True, slots=True)
class RetrievalDecision:
    """The decision of retrieval.

    Attributes:
        decision: route, clarify or abstain.
        selected: the skills to load; empty unless ``decision`` is ROUTE.
        confidence: estimated probability, in (0, 1], that the decision is right.
        reason: one sentence for the user.
        evidence: the figures behind the decision, for the trace.
        matches: the best matches, best first; empty where no skill shall be suggested.
        microseconds: time spent.
        text_read: the text that was ranked: the request, behind its context where it was read in
            one; empty where there was no history.
    """

    decision: Decision
    selected: tuple[str, ...]
    confidence: float
    reason: str
    evidence: Evidence
    matches: tuple[Match, ...] = ()
    microseconds: float = 0.0
    text_read: str = ""

    @property
    def ranked(self) -> tuple[str, ...]:
        """The names of ``matches``."""
        return tuple(match.name for match in self.matches)

    @property
    def names_skills(self) -> bool:
        """Whether the request names the selected skills outright."""
        return self.evidence.get("named") is True

    @property
    def refused(self) -> tuple[str, ...]:
        """The skills that the request says it does not want."""
        refused = self.evidence.get("refused")
        return refused if isinstance(refused, tuple) else ()

    @property
    def by_words_alone(self) -> bool:
        """Whether the request, or a part of it, could not be encoded, so that its words alone were
        compared. Such a decision is given, but not kept: the encoder may soon be back."""
        return ENCODER_FAULT in self.evidence

    @property
    def fits(self) -> float | None:
        """Estimated probability that some skill fits, in (0, 1); None where none was estimated:
        there is no skill, or the request has no word or tries to instruct the router."""
        fits = self.evidence.get("fits")
        return fits if isinstance(fits, float) else None


def decide_from_ranking(
    request: str, ranking: Ranking, *, caution: float = DEFAULT_CAUTION
) -> RetrievalDecision:
    """Decide from the ranking of a request; see ``decide``."""
    if not ranking.matches:
        return RetrievalDecision(Decision.ABSTAIN, (), 1.0, "there is no skill to choose from", {})
    if instructs_the_router(request) and not _begins_with_name(request, ranking.named):
        reason = "the request tries to instruct the router"
        decided = RetrievalDecision(Decision.ABSTAIN, (), INSTRUCTED_CONFIDENCE, reason, {})
    elif ranking.wordless:  # punctuation has a vector, too, and some skill is always nearest to it
        decided = RetrievalDecision(Decision.ABSTAIN, (), 1.0, "the request has no word", {})
    elif ranking.named:
        decided = _with_clauses(_of_named(ranking), ranking, caution)
    else:
        decided = _with_clauses(_of_best(ranking, caution), ranking, caution)
        if decided.decision is Decision.CLARIFY and is_courtesy(request):
            confidence, reason = 1 - (decided.fits or 0.0), "no skill fits thanks or a greeting"
            decided = RetrievalDecision(Decision.ABSTAIN, (), confidence, reason, decided.evidence)
    if ranking.fault and not ranking.wordless:
        return _by_words_alone(decided, ranking)
    return replace(decided, matches=ranking.matches[:MAX_CANDIDATES])


def _by_words_alone(decided: RetrievalDecision, ranking: Ranking) -> RetrievalDecision:
    """The decision where the request could not be encoded: it says so, and is no surer than words
    allow. Skills that have no word of the request are in no order, and are not suggested."""
    matches = tuple(
        match for match in ranking.matches if match.terms or match.name in decided.selected
    )
    confidence, reason = decided.confidence, decided.reason
    if decided.fits is not None and not decided.selected:
        confidence = min(confidence, BY_WORDS_CONFIDENCE)
        if not matches:
            decided = replace(decided, decision=Decision.ABSTAIN)
            reason = "no skill has a word of the request"
    return replace(
        decided,
        confidence=confidence,
        reason=f"{reason}; by words alone, because the encoder fails",
        evidence={**decided.evidence, ENCODER_FAULT: ranking.fault},
        matches=matches[:MAX_CANDIDATES],
    )


def _begins_with_name(request: str, named: Sequence[str]) -> bool:
    """Whether a request begins with one of some names, marked as "/git"."""
    first = request.split(maxsplit=1)[:1]
    return (
        bool(first) and first[0][:1] == "/" and first[0][1:].casefold() in map(str.casefold, named)
    )


def _of_named(ranking: Ranking) -> RetrievalDecision:
    selected = ranking.named[:MAX_SELECTED]
    likelihood = Likelihood.of(ranking)
    reason = f"the request names {' and '.join(selected)}"
    evidence = {"fits": max(likelihood.fits, NAMED_CONFIDENCE), "named": True, **likelihood.signals}
    return RetrievalDecision(Decision.ROUTE, selected, NAMED_CONFIDENCE, reason, evidence)


def _of_best(ranking: Ranking, caution: float) -> RetrievalDecision:
    best = ranking.matches[0]
    likelihood = Likelihood.of(ranking)
    fits, right = likelihood.fits, likelihood.right
    evidence: Evidence = {"fits": fits, "right": right, **likelihood.signals}
    shown = best.shown(MAX_SHOWN_TERMS)
    if fits < CLARIFY_SHARE * _least_fit(caution) and not ranking.foreign:
        only = "only " if best.terms else ""  # without terms, ``shown`` is "meaning alone"
        reason = f"no skill fits; the nearest, {best.name}, matches {only}on {shown}"
        return RetrievalDecision(Decision.ABSTAIN, (), 1 - fits, reason, evidence)
    least = _least_fit if ranking.background is not None else _least_fit_without_background
    sure = fits >= least(caution) and right >= caution
    if ranking.foreign and not sure:
        reason = (
            f"no skill fits; the nearest, {best.name}, has no word of the request, which is hardly "
            "English, and the encoder knows English alone"
        )
        return RetrievalDecision(Decision.ABSTAIN, (), 1 - fits, reason, evidence)
    if len(ranking.matches) > 1 and ranking.lead < TIE_MARGIN:
        reason = f"{best.name} and {ranking.matches[1].name} fit equally well"
        return RetrievalDecision(Decision.CLARIFY, (), 1 - fits / 2, reason, evidence)
    if not sure:
        reason = f"{best.name} may fit ({shown}), but not surely enough to load it"
        return RetrievalDecision(Decision.CLARIFY, (), 1 - right, reason, evidence)
    reason = f"{best.name} matches on {shown}"
    return RetrievalDecision(Decision.ROUTE, (best.name,), right, reason, evidence)


def _with_clauses(decided: RetrievalDecision, whole: Ranking, caution: float) -> RetrievalDecision:
    """Add the skills that single clauses ask for. Where the whole request gives no route, because
    its clauses ask for different things, one clause may give it."""
    if not decided.selected:
        decided = _of_clause(decided, whole, caution)
    if not decided.selected:
        return decided
    wanted = further(whole, decided.selected[0], caution)
    others = [name for name in wanted if name not in decided.selected]
    names = tuple(others[: MAX_SELECTED - len(decided.selected)])
    if not names:
        return decided
    return with_more(decided, names, wanted[names[-1]])


def with_more(
    decided: RetrievalDecision, names: tuple[str, ...], least: float
) -> RetrievalDecision:
    """A route, with further skills for clauses of their own; ``least`` is the confidence in the
    least sure one."""
    more = (*_further_skills(decided), *names)
    asks = "one clause asks for" if len(names) == 1 else "clauses ask for"
    return replace(
        decided,
        selected=(*decided.selected, *names),
        confidence=min(decided.confidence, least),
        reason=f"{decided.reason}; {asks} {' and '.join(names)}",
        evidence={**decided.evidence, "clauses": more},
    )


def _further_skills(decided: RetrievalDecision) -> tuple[str, ...]:
    more = decided.evidence.get("clauses")
    return more if isinstance(more, tuple) else ()


def _of_clause(decided: RetrievalDecision, whole: Ranking, caution: float) -> RetrievalDecision:
    """A route to the skill of one clause, or ``decided`` where there is none.

    The skill must be one of the two best matches of the whole request, and another clause must
    probably ask for another skill. Without these conditions, a clause of a request for one skill,
    or for none, would be similar to some skill by chance.
    """
    by_clause = []
    for clause in whole.clauses:
        likelihood = Likelihood.of(clause.ranking)
        by_clause.append((likelihood.right, likelihood.fits, clause.ranking.matches[0].name))
    best = {match.name for match in whole.matches[:2]}
    sure = [
        (right, fits, name)
        for right, fits, name in by_clause
        if right >= caution and fits >= _least_fit_without_background(caution) and name in best
    ]
    if not sure:
        return decided
    confidence, fit, chosen = max(sure)
    if not any(
        right >= OTHER_CLAUSE_SHARE * caution and fits >= caution and name != chosen
        for right, fits, name in by_clause
    ):
        return decided
    evidence = {**decided.evidence, "fits": fit, "right": confidence}
    reason = f"one clause asks for {chosen}"
    return RetrievalDecision(Decision.ROUTE, (chosen,), confidence, reason, evidence)


def _least_fit(caution: float) -> float:
    """The least probability that some skill fits, for a route: a quarter of the way from the
    caution to 1. For requests that were compared with the background."""
    return (1 + 3 * caution) / 4


def _least_fit_without_background(caution: float) -> float:
    """The same without that comparison: half of the way, because the estimate is less certain."""
    return (1 + caution) / 2
