"""Follow-ups: requests that cannot be understood without what was said before.

"do it again" and "and in German?" say nothing about the skill that they need. Such a request has a
context: the latest turn of the user that says something, the one before that where this turn cannot
stand alone either, and the beginning of the assistant's latest answer. Retrieval reads the request
alone and in this context (``stages/retrieval.py``). A request that can stand alone is read alone,
because a conversation changes its subject, and what was said before would then mislead.

The turn was about what has been done, and the follow-up often wants another deed. What it wants it
for stands in the answer: "How wet is bed 14?", "Substrate 48 percent, your target is 62, valve
group 5.", "One run on that then." Over fifteen catalogs of ``benchmarks/trades.py`` with examples,
24 of 60 follow-ups were routed right when the turn was joined to the request, 28 when its clauses
asked for no skill of their own, and 41 with the answer and half of the meaning for the request.
The answer may quote anybody, so it is bounded, and without a turn of the user it is not read. Names
of skills are taken out of it: "Created with create_invoice." and "create_invoice or void_invoice?"
speak of what was done or could be done, not of what is wanted next.

Thanks and greetings have no context either: who says "thanks!" does not ask for the same again.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from router.request import Request
from router.result import Evidence
from router.retrieval.names import SkillNames
from router.text import STOPWORDS, tokens

MAX_TURNS: Final = 2
MAX_TURN_CHARACTERS: Final = 2_000
MAX_ANSWER_CHARACTERS: Final = 200
"""Read of an answer. Behind its beginning it offers and explains: with a long polite ending, 300
characters routed three fewer follow-ups of 95 right than 200."""
MAX_SHOWN_CHARACTERS: Final = 500
FEW_WORDS: Final = 2
"""A request with at most this many words that have a meaning does not stand alone."""
SHORT: Final = 5
"""A request with at most this many of them does not stand alone when it points back."""

_OPENING: Final = re.compile(
    r"\s*(?:(?:ok(?:ay)?|well|hm+|oh|ah|great|thanks?|thx|good|fine|yes|yeah|yep|no|nope|nah|not|"
    r"right|sure|sorry|please)\b[\s,.!?:;-]*)*"
    r"(?:and|but|or|so|then|now|also|next|instead|rather|what about|how about|same|again|another|"
    r"only|just|too|still|even|apart from|except|without|with|"
    r"(?:a (?:bit|little)|slightly|much) \w{2,}er|(?:(?:a (?:bit|little)|slightly|much) )?(?:more|"
    r"less|(?:short|long|small|bigg|larg|fast|quick|slow|dark|light|bright|loud|warm|cold|high|low|"
    r"bett|simpl|clean|cheap|earli|lat)er))\b",
    re.IGNORECASE,
)
"""How people begin when they go on with something. A comparison ("a bit darker") is one with it;
"Docker" and "Server" are none."""
_REPLY: Final = re.compile(
    r"\s*(?:ok(?:ay)?|hm+|yes|yeah|yep|no|nope|nah|not|right|sure|sorry|exactly)\b",
    re.IGNORECASE,
)
"""How people begin when they answer."""
_POINTER: Final = re.compile(
    r"\b(?:it|its|that|those|these|this|them|they|their|he|she|his|her|him|one|ones|same|other|"
    r"others|another|again|instead|rather|too|also|then|first|second|third|last|next|previous|"
    r"rest|both|above|earlier|later|more|less|still|there)\b",
    re.IGNORECASE,
)
"""Words that point to something said before, or compare with it."""
_EMPTY: Final = frozenset(
    (
        *("ok", "okay", "yes", "yeah", "yep", "no", "nope", "nah", "not", "thanks", "thank", "thx"),
        *("please", "pls", "well", "hm", "hmm", "oh", "great", "good", "fine", "right", "sure"),
        *("sorry", "now", "then", "again", "same", "too", "also", "instead", "rather", "still"),
        *("just", "only", "even", "actually", "next", "last", "first", "second", "third", "other"),
        *("another", "one", "ones", "thing", "things", "bit", "part", "way", "go", "try", "make"),
        *("do", "get", "give", "let", "want", "need", "like", "show", "tell"),
    )
)
"""Words that say nothing about what is wanted, beside the function words."""
_COURTESY: Final = re.compile(
    r"\b(?:(?:(?:many )?thanks|thank you|thx|cheers)(?: a lot| so much| very much| again)?"
    r"(?: for (?:all )?(?:the|your) (?:help|time|work))?|"
    r"(?:hello|hi|hey)(?: there| again)?|good (?:morning|day|afternoon|evening|night)|"
    r"(?:good)?bye|see you(?: later| soon| tomorrow)?|"
    r"have a (?:nice|good|great) (?:day|evening|weekend)|"
    r"you(?: a|['\u2019])re welcome|never ?mind|that['\u2019]s all(?: for (?:now|today))?)\b",
    re.IGNORECASE,
)
_BESIDE_COURTESY: Final = frozenset(
    (
        *("ok", "okay", "no", "nope", "nah", "oh", "ah", "well", "and", "great", "good", "fine"),
        *("nice", "perfect", "cool", "super", "awesome", "wonderful", "lovely", "excellent"),
    )
)
"""Words that ask for nothing beside thanks. By themselves they may answer a question."""


_NO_NAMES: Final = SkillNames()


@dataclass(frozen=True, slots=True)
class Reading:
    """A request as retrieval reads it.

    Attributes:
        text: the request.
        context: what was said before, where the request does not stand alone; else empty.
        turns: how many earlier turns of the user are part of it.
        answered: the assistant's latest answer is.
    """

    text: str
    context: str = ""
    turns: int = 0
    answered: bool = False

    @property
    def whole(self) -> str:
        """The request behind its context."""
        return f"{self.context}\n{self.text}" if self.context else self.text

    @property
    def evidence(self) -> Evidence:
        """Which text was read, for the trace."""
        text = self.whole
        shown = text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[:MAX_SHOWN_CHARACTERS]}…"
        return {"turns_read": self.turns, "text_read": shown}

    def explained(self, reason: str) -> str:
        """A reason, with what was read where it was more than the request."""
        what = "the user's latest turn" if self.turns == 1 else "what the user said before"
        answer = " and the assistant's answer" if self.answered else ""
        return f"{reason}; read with {what}{answer}" if self.turns else reason


def reading_of(request: Request, names: SkillNames = _NO_NAMES) -> Reading:
    """The request, with what was said before where it cannot stand alone."""
    if is_courtesy(request.text):
        return Reading(request.text)
    said = [turn.text[:MAX_TURN_CHARACTERS] for turn in request.history if turn.role == "user"]
    parts = [request.text]
    while said and len(parts) <= MAX_TURNS and not stands_alone(parts[0]):
        turn = said.pop()
        if not says_nothing(turn):
            parts.insert(0, turn)
    before = parts[:-1]
    if not before:
        return Reading(request.text)
    turns = len(before)
    answers = [turn.text for turn in request.history if turn.role == "assistant"]
    before += [names.taken_out(answer[:MAX_ANSWER_CHARACTERS]) for answer in answers[-1:]]
    return Reading(request.text, "\n".join(before), turns, bool(answers))


def says_nothing(text: str) -> bool:
    """Whether no word says what is wanted, as in "good night" and "yes, do it"."""
    return not _words(text) or is_courtesy(text)


def is_courtesy(text: str) -> bool:
    """Whether somebody thanks, greets or takes leave, and says nothing else."""
    rest, courtesies = _COURTESY.subn(" ", text)
    return courtesies > 0 and all(word in _BESIDE_COURTESY for word in tokens(rest))


def stands_alone(text: str) -> bool:
    """Whether a request can be understood without what was said before it."""
    words = len(_words(text))
    if words <= FEW_WORDS:
        return False
    points_back = bool(_OPENING.match(text) or _REPLY.match(text) or _POINTER.search(text))
    return words > SHORT or not points_back


def _words(text: str) -> list[str]:
    """The words that say what is wanted."""
    return [word for word in tokens(text) if word not in STOPWORDS and word not in _EMPTY]
