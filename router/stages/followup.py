"""Follow-ups: requests that cannot be understood without the turns before them.

"do it again" and "and in German?" do not say which skill they need. Such a request is given a
*context*: the latest turn of the user that has content, also the turn before it if that turn is a
follow-up itself, and the beginning of the assistant's latest answer. Retrieval ranks the request
alone and in this context (``retrieval.py``). A request that is no follow-up gets no context:
conversations change their subject, and the earlier turns would then mislead.

Why the assistant's answer: the earlier turn is about something that has been done, and the
follow-up often wants something else. The answer names the things that it is about: "How wet is bed
14?", "Substrate 48 percent, your target is 62, valve group 5.", "One run on that then." Over
fifteen catalogs of ``benchmarks/trades.py`` with examples, 24 of 60 follow-ups were routed right
when the turn was joined to the request, 28 when the clauses of the turn could ask for no skill of
their own, and 41 with the answer, and half of the vector's weight for the request. The answer may
quote text from anywhere. So its length is bounded, and it is used only together with a turn of the
user, or where the user consents to what it asks. Names of skills are removed from it: "Created with
create_invoice." and "create_invoice or void_invoice?" are about what was done or could be done, and
not about what is wanted next.

Who says "yes please" to "Three carriers sail on Friday. Shall I book one?" wants what is offered,
and not the list of carriers again. So this question takes the place of the request: it is ranked
alone, and, where that gives no route, in the context. Of 118 such consents, written for the same
catalogs and others, 52 were routed right and 11 wrong when the request was read with the turn and
the answer; with the question, 103 are right and 6 wrong.

A request that asks for nothing gets no context (``reply.py``): thanks, comments, and a "no" to an
offer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from router.request import Request
from router.result import Evidence
from router.retrieval.names import SkillNames
from router.stages.reply import (
    MAX_ANSWER_CHARACTERS,
    answer_before,
    asks,
    asks_for_nothing,
    consents,
    latest_answer,
    offer_before,
    question_consented_to,
    says_nothing,
)
from router.stages.standing_alone import stands_alone, why_not_alone

MAX_TURNS: Final = 2
MAX_TURN_CHARACTERS: Final = 2_000
MAX_SHOWN_CHARACTERS: Final = 500

_NO_NAMES: Final = SkillNames()


@dataclass(frozen=True, slots=True)
class RequestInContext:
    """A request with the context in which retrieval ranks it.

    Attributes:
        text: the request.
        context: the earlier turns, where the request is a follow-up; else empty.
        turns: how many turns of the user are in the context.
        has_answer: whether the assistant's latest answer is in the context. Without a turn of the
            user it is its end, which asks what the request consents to.
        question: the sentence of the assistant that the request consents to, where that sentence
            says what is offered; else empty.
    """

    text: str
    context: str = ""
    turns: int = 0
    has_answer: bool = False
    question: str = ""

    @property
    def only_consents(self) -> bool:
        """Whether the request says nothing but yes to the question."""
        return bool(self.question) and consents(self.text)

    @property
    def asked(self) -> str:
        """What is asked for: where the request consents to a question, what that question offers,
        and what the request says besides."""
        if not self.question:
            return self.text
        if self.only_consents:
            return self.question
        return f"{self.question}\n{self.text}"

    @property
    def whole(self) -> str:
        """The context and the question, if there are such, and the request."""
        question = "" if self.question in self.context else self.question
        return "\n".join(part for part in (self.context, question, self.text) if part)

    def readings(self) -> Iterator[RequestInContext]:
        """The ways to read the request with what was said before, in the order in which they are
        tried: as what the question offers, as that in the context, and as itself in the context."""
        if self.question:
            yield replace(self, context="", turns=0, has_answer=False)
            yield self
        if self.context:
            yield replace(self, question="")

    @property
    def evidence(self) -> Evidence:
        """What was ranked, for the trace."""
        text = self.whole
        shown = text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}…"
        return {"turns_read": self.turns, "text_read": shown}

    @property
    def note(self) -> str:
        """What the request was read with, for the user; empty where it was read alone."""
        what = [
            *(["an earlier turn of the user"] if self.turns == 1 else []),
            *(["what the user said before"] if self.turns > 1 else []),
            *(["the assistant's question"] if self.question else []),
            *(["the assistant's answer"] if self.has_answer and not self.question else []),
        ]
        return f"; read with {' and '.join(what)}" if what else ""

    def explained(self, reason: str) -> str:
        """The reason of a decision, and what the request was read with and why."""
        if not self.note:
            return reason
        why = "it answers that" if self.question else why_not_alone(self.text)
        return f"{reason}{self.note}, because {why}"


def in_context(request: Request, names: SkillNames = _NO_NAMES) -> RequestInContext:
    """The request, with its context where it is a follow-up. ``names`` are removed from the
    assistant's answer: it often says which tool was used, or asks which one is meant."""
    if asks_for_nothing(request):
        return RequestInContext(request.text)
    answer = latest_answer(request)
    earlier = [turn.text[:MAX_TURN_CHARACTERS] for turn in request.history if turn.role == "user"]
    end, question, before = "", "", answer_before(request)
    if asks(before) or offer_before(request):
        end = names.removed_from(before.rstrip()[-MAX_ANSWER_CHARACTERS:])
        question = question_consented_to(request.text, before, names)
    parts = [request.text]
    while earlier and len(parts) <= MAX_TURNS and not stands_alone(parts[0]):
        turn = earlier.pop()
        if not says_nothing(turn):
            parts.insert(0, turn)
    context = parts[:-1]
    if not context:
        if end and consents(request.text):
            return RequestInContext(request.text, end, has_answer=True, question=question)
        return RequestInContext(request.text)
    turns = len(context)
    if answer is not None:
        context.append(names.removed_from(answer[:MAX_ANSWER_CHARACTERS]))
    return RequestInContext(request.text, "\n".join(context), turns, answer is not None, question)


def reading_behind(request: Request, reason: str, names: SkillNames) -> RequestInContext:
    """How a request was read for an earlier decision, found out from the decision's reason. Caches
    do not store it, because it would put the conversation into their files."""
    for reading in in_context(request, names).readings():
        if f"{reading.note}, because " in reason:
            return reading
    return RequestInContext(request.text)
