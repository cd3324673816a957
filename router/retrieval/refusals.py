"""Finds what a request says that it does not want: "publish it, but don't send the newsletter".

Ranking compares words, so the words of what is refused would load it. ``refusals_in`` takes them
out of the request. It knows the forms in which people refuse, each from its first word to the end
of its clause: an order not to do something ("don't", "I don't need", "you must not", "skip", "send
no …", "under no circumstances", "nobody should", "I'll do … myself"), a thing that is not wanted
("no invoice, only …", "not this but that", "the invoice can wait"), and what is done without or in
place of ("without", "instead of", "rather than", "except").

"Stop sending it" is often an order of its own. It refuses only behind "but" or "and please".

It knows nothing of skills, and some harmless negations have these forms: "without losing quality".
So what is refused counts only where it is a skill by itself (``router/stages/refused.py``). Left
alone here are the negations that state a problem or a fact ("it does not start", "not shipped
yet"), that ask ("can I pay without a card?"), and that want a change of what goes on ("don't send
it to the old address any more").
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

MAX_READ_CHARACTERS: Final = 2_000
MAX_CHARACTERS_BEFORE: Final = 200
"""So much of the text before a negation is read, to tell what kind it is."""

_SPACES: Final = re.compile(r"\s+")
_CLAUSE: Final = r"(?:(?<![^\n])|(?<=[.!?;:,(])|(?<=\s[-\u2013\u2014])) ?"
"""The beginning of a clause."""
_DO_NOT: Final = r"(?:do\snot|don['\u2019]?t)"
_NO_ORDER: Final = (
    r"(?!\s(?:you|we|they|i|forget|worry|mind|know|think|remember|understand|let|lose|miss|waste|"
    r"exceed|hesitate|have|be|get|see|care|leave\sout|make\s(?:it|him|her|them|me|us))\b)"
)
"""What follows "don't" where it is no order to leave something undone, but a question ("don't
you"), a state ("don't know"), or says how something is done ("don't lose", "don't forget")."""
_PAST: Final = r"(?!embed\b)\w+(?:(?<!e)ed|(?<!p)en)"
"""How participles end. None ends as "need" and "open" do."""
_NOT: Final = r"(?:\snot|n['\u2019]?t)"
_NO_VERB: Final = (
    r"(?:have|has|had|got|get|see|find|is|are|was|were|with|at|in|on|by|of|for|under|to|from|there|"
    rf"i|we|you|it|or|and|but|so|if|as|oh|well|yes|ok|still|why|please|{_PAST})"
)
"""Words before "no" that order nothing: "send no form" is such an order, "with no form" is not."""
_BY_ONESELF: Final = r"(?:myself|ourselves|on\s(?:my|our)\sown)"
_AUXILIARY: Final = r"(?:can|could|will|would|do|does|did|is|are|was|has|have|should|must|may)"
"""Words behind "under no circumstances" where it states something: "… can I log in"."""
_OPENING: Final = re.compile(
    rf"(?:{_CLAUSE}|\s(?:and|but|just|please)\s)(?:(?:and|but|so|or|then|also|please|ok)\s){{0,3}}"
    r"(?P<order>"
    rf"(?:i|we)\s{_DO_NOT}\s(?:need|want)(?:\syou)?(?:\sto)?|{_DO_NOT}{_NO_ORDER}|never\smind|"
    rf"never(?!\s(?:{_PAST}|got|had|did|made|again|before)\b){_NO_ORDER}|"
    rf"you\s(?:must|should){_NOT}{_NO_ORDER}|(?:i|we)(?:['\u2019]?d|\swould)\srather\snot|"
    rf"(?:(?:i|we|you)\s)?(?:{_DO_NOT}\s(?:have|need)\sto|need{_NOT}(?!\sto\b){_NO_ORDER})|"
    rf"you(?:\sare|['\u2019]?re)\snot\sto|(?:nobody|no\sone)\s(?:should|must|may){_NO_ORDER}|"
    rf"(?:(?:i|we)(?:['\u2019]ll|\swill|\scan))(?=\s[^.!?;:,\n]{{1,80}}\s{_BY_ONESELF}\b)|"
    r"(?:there(?:\sis|['\u2019]?s)\s)?no\s(?:need\s(?:to|for)|point\sin)|"
    rf"(?:under|by|on|in)\sno\s(?:circumstances?|means|account|case|way)(?!\s{_AUXILIARY}\b)|"
    rf"(?!{_NO_VERB}\b)\w+\sno(?!\s(?:more|longer|later|one)\b)|"
    r"(?P<one>avoid|skip|leave\sout|omit|forget(?:\sabout)?|hold\soff(?:\son)?|"
    r"refrain\sfrom|(?:(?<=\sbut\s)|(?<=\splease\s))stop(?=\s\w{2,}ing\b)))\s"
    rf"|(?:{_CLAUSE}|\s(?:and|but)\s)(?:(?:and|but)\s)?(?P<thing>"
    rf"not(?!\s(?:even|only|just|sure|(?:a\s)?(?:bad|problem|single|word)|what|who|how|{_PAST})\b)|"
    r"no(?!\s(?:idea|one|matter|longer|more|way|problem|rush|hurry|doubt|worries|later|earlier|"
    r"sooner|less|fewer|clue)\b))\s"
    r"|(?:^|\s)(?:(?P<contrast>instead\sof|rather\sthan|as\sopposed\sto)|without|"
    r"except(?:\sfor)?)\s"
    rf"|(?:{_CLAUSE}|\s(?:and|but)\s)(?="
    r"(?:the|an?|any|my|our|(?!\w*thing\b)\w{2,}ing)\s(?:\w+\s){0,4}"
    rf"(?:can\swait|(?:is|are)(?:{_NOT}\s(?:needed|necessary|required)|\sunnecessary))\b)",
    re.IGNORECASE,
)
_END: Final = re.compile(
    r"[.!?;:,)\n](?!\w)|\s[-\u2013\u2014]\s|\s(?:but|just|only|instead)\b"
    r"|\sand\s(?:just|only|then|instead|please|also|i|we)\b",
    re.IGNORECASE,
)
"""What ends a refusal. An "and" does not: "without cover art and show notes" refuses both. After
"skip", which is an order like those beside it, it does (``_AND``), and so it does where an order
follows what is none (``_NEXT_ORDER``)."""
_AND: Final = re.compile(r"\sand\b", re.IGNORECASE)
_NEXT_ORDER: Final = re.compile(
    r"\sand\s(?!(?:all|both|not|no|\w{3,}ing)\b)\w+\s"
    r"(?:the|an?|my|your|his|her|our|their|this|that|these|those|it|them|\d+)\b",
    re.IGNORECASE,
)
"""An "and" before a verb and its object, with which no list of things goes on: "without delay and
book the room"."""
_SENTENCE_END: Final = re.compile(r"[.!?;\n]\s")
_NO_WISH: Final = re.compile(
    r"(?:^|,)\s*(?:(?:and|but|so|or)\s)?(?:(?:can|could|may|should|must|will|would|does|did|is|"
    r"are)\s(?!you\b)|do\s(?:i|we|they)\b|(?:how|why|what|when|which|who|where)\b)|"
    r"\b(?:can['\u2019]?t|can\s?not|couldn['\u2019]?t|whether|was|were|had|got|received)\b",
    re.IGNORECASE,
)
"""Before "without" and the like: a question, something that is impossible, or something past."""
_NO_CONTRAST: Final = re.compile(
    r"\w{2,}ing\s(?!\d)|\w+\s(?:it|them|him|her)\b|.*\seither\s*$", re.IGNORECASE
)
"""What is refused where it is an action and no thing ("resetting it", "reset it"), or nothing is
wanted in place of it ("not this either")."""
_GOES_ON: Final = re.compile(r"\b(?:any\s?more|any\slonger)(?:\splease)?\s*$", re.IGNORECASE)
_SO_FAR: Final = re.compile(r"\syet\s*$", re.IGNORECASE)
_CLOSING: Final = re.compile(
    r"(?:\s(?:yet|please|needed|required|necessary|for\snow|this\stime|today|now|at\sall|"
    rf"either|unnecessary|can\swait|(?:is|are)(?:{_NOT})?|{_BY_ONESELF}))+\s*$",
    re.IGNORECASE,
)
"""What is no part of the thing that is refused."""


def _one_space(run: re.Match[str]) -> str:
    return "\n" if "\n" in run[0] else " "


class Refusal(NamedTuple):
    """One thing that a request refuses.

    Attributes:
        text: its words.
        is_order: whether it is an order not to do it ("don't …"); else it may be a manner
            ("without …") or a fact.
        is_contrast: whether it is a thing in place of which another is wanted ("not this but
            that").
    """

    text: str
    is_order: bool
    is_contrast: bool = False


class Refusals(NamedTuple):
    """What a request wants, and what it refuses.

    Attributes:
        rest: the request without what it refuses.
        refused: what it refuses, in order.
    """

    rest: str
    refused: tuple[Refusal, ...] = ()


def refusals_in(request: str, *, ends_at_and: bool = False) -> Refusals:
    """What a request refuses. Of a long one only the first ``MAX_READ_CHARACTERS`` are read.

    ``ends_at_and`` says that what is no order ends at any "and", as if it were no list.
    """
    text = _SPACES.sub(_one_space, request[:MAX_READ_CHARACTERS])
    kept: list[str] = []
    refused: list[Refusal] = []
    place = 0
    for found in _OPENING.finditer(text):
        if found.start() < place:
            continue
        ending = _END.search(text, found.end())
        end = len(text) if ending is None else ending.start()
        next_one = _AND if found["one"] or ends_at_and else _NEXT_ORDER
        is_list = found["order"] and not found["one"]
        if not is_list and (following := next_one.search(text, found.end(), end)):
            end = following.start()
        part = text[found.end() : end]
        before = text[max(0, found.start() - MAX_CHARACTERS_BEFORE) : found.start()]
        if _states_something(found, part, before):
            continue
        kept.append(text[place : found.start()])
        is_not_this = found["contrast"] or (found["thing"] or "").lower() == "not"
        is_contrast = bool(is_not_this) and not _NO_CONTRAST.match(part)
        refused.append(Refusal(_CLOSING.sub("", part).strip(), bool(found["order"]), is_contrast))
        place = end
    if not refused:
        return Refusals(request)
    kept += text[place:], request[MAX_READ_CHARACTERS:]
    return Refusals("".join(kept).strip(" .,;:-\n\t"), tuple(one for one in refused if one.text))


def _states_something(opening: re.Match[str], part: str, before: str) -> bool:
    """Whether a negation states a fact, asks, or wants a change of what goes on. ``part`` is what
    is negated, and ``before`` the text before it."""
    if _GOES_ON.search(part):
        return True
    if opening["thing"]:
        return _SO_FAR.search(part) is not None
    if opening["order"]:
        return False
    return _NO_WISH.search(_SENTENCE_END.split(before)[-1]) is not None
