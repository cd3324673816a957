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

Thanks, greetings and small talk get no context: neither "thanks!" nor "tell me a joke" asks for the
same thing again. Nor does "great" or "that worked", unless the assistant has asked a question, nor
"not that one", nor who says no to an offer ("Shall I send it?"): "no", "don't send any", "I'd
rather not", "no, that's too expensive". "No, send it to Ann" says what is wanted, and is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from router.request import Request
from router.result import Evidence
from router.retrieval.names import SkillNames
from router.retrieval.refusals import refusals_in
from router.text import STOPWORDS, tokens

MAX_TURNS: Final = 2
MAX_TURN_CHARACTERS: Final = 2_000
MAX_ANSWER_CHARACTERS: Final = 200
"""How much of an answer is used. Its later part is often polite talk: with 300 characters, three
fewer of 95 follow-ups were routed right than with 200."""
MAX_SHOWN_CHARACTERS: Final = 500
MAX_WORDS_OF_FOLLOW_UP: Final = 2
"""A request with at most this many content words is a follow-up."""
MAX_WORDS_OF_DETAIL: Final = 3
"""A request with at most this many words, one of them a number, only adds a detail."""
MAX_WORDS_WITH_POINTER: Final = 5
"""A request with at most this many content words is a follow-up where it also refers back."""

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
"""How people begin when they continue a subject. A comparison ("a bit darker") is such a beginning;
the words "Docker" and "Server" are not, though they end in "er"."""
_REPLY: Final = re.compile(
    r"\s*(?:ok(?:ay)?|hm+|yes|yeah|yep|no|nope|nah|not|right|sure|sorry|exactly)\b",
    re.IGNORECASE,
)
"""How people begin when they answer."""
_POINTER: Final = re.compile(
    r"\b(?:it|its|that|those|these|this|them|they|their|he|she|his|her|him|one|ones|same|other|"
    r"others|another|again|instead|rather|too|also|then|first|second|third|last|next|previous|"
    r"rest|both|above|earlier|later|more|less|still|"
    r"(?<!\bis )(?<!\bare )there(?!['\u2019]s| is| are))\b",
    re.IGNORECASE,
)
"""Words that point to something said before, or compare with it. "Is there a bus?" points to
nothing."""
_PRONOUN: Final = re.compile(r"\b(?:it|that|this|them|those|these|him)\b", re.IGNORECASE)
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
"""Words that do not count as content words, besides the function words."""
_COURTESY: Final = re.compile(
    r"\b(?:(?:(?:(?:many|much) )?thanks|thank you|thx|cheers)"
    r"(?: a (?:lot|million|bunch)| so much| very much(?: indeed)?| again)?"
    r"(?: for (?:all )?(?:the|your) (?:help|time|work))?|"
    r"much appreciated|i appreciate (?:it|that)|"
    r"you(?: have|['\u2019]ve) been (?:(?:so|very|really) )?(?:helpful|kind|great)|"
    r"(?:hello|hi|hey)(?: there| again)?|good (?:morning|day|afternoon|evening|night)|sleep well|"
    r"(?:good)?bye|take care|talk to you (?:later|soon)|"
    r"see you(?: later| soon| tomorrow| (?:on )?\w+day)?|"
    r"have a (?:nice|good|great|lovely) (?:day|evening|weekend)|"
    r"(?:good|great|nice) (?:job|work)|well done|that was (?:quick|fast|great|helpful)|"
    r"(?:ha){2,}|lol|wow|brb|oops|hang on|one moment|my mistake|no worries|"
    r"i see|got it|understood|makes sense|that(?: i|['\u2019]?)s (?:so )?(?:funny|interesting)|"
    r"you(?: a|['\u2019])re welcome|never ?mind|forget (?:it|about it)|"
    r"do(?: not|n['\u2019]t) bother|that['\u2019]s all(?: for (?:now|today))?)\b",
    re.IGNORECASE,
)
_BESIDE_COURTESY: Final = frozenset(
    (
        *("ok", "okay", "no", "nope", "nah", "oh", "ah", "well", "and", "great", "good", "fine"),
        *("nice", "perfect", "cool", "super", "awesome", "wonderful", "lovely", "excellent"),
        *("brilliant", "fantastic", "amazing", "interesting", "then", "mate", "sweet", "neat"),
        *("superb", "ace", "smart", "clever", "impressive", "impressed", "splendid", "marvellous"),
        *("outstanding", "terrific", "fabulous", "incredible", "legend", "champion", "hero"),
        *("genius", "bravo", "helpful", "happy", "pleased", "glad", "ta", "phew", "yay", "top"),
        *("alright", "beautiful"),
    )
)
"""Words that may stand beside thanks or a greeting without asking for anything. By themselves they
ask for nothing either, unless the assistant has asked a question, which they answer."""
_BESIDE_PRAISE: Final = frozenset(
    (
        *("you", "you're", "that", "that's", "this", "it", "it's", "is", "are", "was", "were"),
        *("i", "i'm", "am", "my", "me", "a", "an", "the", "such", "what", "so", "very", "really"),
        *("quite", "just", "simply", "absolutely", "totally", "with", "for", "now", "news"),
        *("work", "stuff", "answer", "bot", "robot", "man", "boss"),
    )
)
"""Words that ask for nothing beside praise: "you are amazing". Alone they may: "what is that?"."""
_COMMENT: Final = re.compile(
    r"\b(?:(?:(?:that|this|it)(?: has| all)? )?(?:worked|works|helps|helped|solved it|fixed it|"
    r"did (?:it|the (?:trick|job)))(?: (?:now|well|fine|perfectly|a lot|for me|like a charm))?|"
    r"(?:that|it)(?:['\u2019]s| is| was) (?:fast|quick|easy|a relief)|"
    r"you(?:['\u2019]re| are)(?: (?:an?|the|my|such an?))?(?: \w+)? "
    r"(?:star|gem|best|life ?saver|angel|champ|treasure|wizard)|"
    r"you (?:rock|rule)|you(?:['\u2019]ve)? made my day|(?:good|nice) (?:one|to know)|"
    r"(?:fair|good) enough|love (?:it|that|this)|not bad|what a relief|all good|no problem|"
    r"cool beans|thumbs up|spot on|job done|you nailed it|that(?:['\u2019]ll| will) do|"
    r"(?:just|exactly) what i (?:wanted|needed)|no (?:more|further) questions|"
    r"i(?:['\u2019]?ll| will)(?: just)? (?:wait|see|manage|be back|come back|get back to you|"
    r"let you know|(?:think|sleep) (?:about|on|over) (?:it|that)|(?:try|check) (?:it|that))"
    r"(?: (?:then|first|later|tomorrow|now|out|myself))?|"
    r"(?:i(?:['\u2019]ve| have)? )?(?:(?:just|already) )?(?:found|solved|sorted|figured)"
    r" (?:it|that|them)(?: out)?(?: (?:myself|already))?)\b",
    re.IGNORECASE,
)
"""Comments on an answer, and what people say when they need no more. Unlike thanks, they and praise
ask for nothing only after an answer that asks nothing: "that works" may consent. These are lists,
because no measure tells praise from a detail: "legend" and "red" are equally far from all skills.
Of 18 comments that were written after the lists, they knew 8, and 7 more were then added."""
_SMALL_TALK: Final = re.compile(
    r"\W*(?:(?:please )?tell me (?:a|another) joke|(?:and )?how are you(?: doing)?(?: today)?|"
    r"who (?:are|made|built|created) you|what(?: is|['\u2019]?s) your name|how old are you|"
    r"what (?:can|do) you do|are you (?:there|real|human|an? (?:human|robot|bot|ai|person))|"
    r"what(?: is|['\u2019]?s) the (?:weather|time|date)(?: like)?(?: today| now| outside)?|"
    r"what time is it(?: now)?|what day is (?:it|today)(?: today)?|sing (?:me )?a song|"
    r"i(?: a|['\u2019]?)m (?:bored|tired|hungry|back)|you(?: a|['\u2019]?)re (?:so |very )?"
    r"(?:funny|great|smart|nice|the best)|i (?:have to|gotta) go(?: now)?|gotta go)\W*",
    re.IGNORECASE,
)
"""Whole requests that have nothing to do with the turn before them, however short they are."""


_REJECTION: Final = re.compile(
    r"\W*(?:no\W+)?(?:not (?:that|this)(?: one| skill| tool)?|the other one|"
    r"(?:that(?: is|['\u2019]?s) )?(?:the )?wrong(?: one| skill| tool)?)\W*",
    re.IGNORECASE,
)
"""Whole requests that reject what the router did before."""
_DENIAL: Final = re.compile(
    r"(?!.*(?:\bnot|n['\u2019]t|\bneed to) (?:wait|hesitate)\b)"
    r"\W*(?:(?:please|thanks?|thank you|sorry|well|oh|hm+)\W+)*"
    r"(?!(?:yes|yeah|yep|yup|sure)\b)[^,.;:!?\n]*?(?:\b(?:no|nope|nah|(?<!why )not|never|wait|stop|"
    r"hold|hang on|later|leave|skip|let me think)\b|n['\u2019]t\b)",
    re.IGNORECASE,
)
"""How a request begins that says no: with a negation, or a word that stops, in its first clause."""
_BESIDE_DENIAL: Final = frozenset(
    (
        *("never", "ever", "wait", "stop", "hold", "off", "hang", "later", "leave", "skip"),
        *("think", "know", "absolutely", "definitely", "certainly", "course", "better", "today"),
        *("necessary", "needed", "required", "bother", "maybe", "under", "circumstances", "say"),
        *("minute", "moment", "we'd"),
    )
)
"""Words that ask for nothing beside a denial."""
_CLAUSE_END: Final = re.compile(
    r"[,.;:!\n]+|\s[-\u2013\u2014]\s|(?:(?<=\bno)|(?<=\bnah)|(?<=\bnope))\s|\bbecause\b",
    re.IGNORECASE,
)
_REASON: Final = re.compile(
    r"(?!.*(?:\b(?:want|need|like|prefer|mean|choose|take)s?\b|\d|"
    r"\b(?:meant|rather|instead|only|just|but)\b|['\u2019]s (?:for|at|on|in|to|from|the)\b))"
    r"\W*(?:(?:too|i|we|you|he|she|it|they|there|that|this|don)(?:['\u2019]|\s)|"
    r"(?:leave|keep) (?:it|that|them|him|her)\b|"
    r"(?:(?!(?:wh\w+|that|if|an?)\b)\w+ ){1,2}(?:is|are|was|has|had|will|can|says?|said)\b)",
    re.IGNORECASE,
)
"""How a clause begins that only gives a reason for a denial: it states something, and has no word
of a wish. "It's for Ann" is a wish, because it corrects the offer."""
_GOES_AHEAD: Final = re.compile(
    r"(?<!not )(?<!n['\u2019]t )\b(?:do (?:it|that|so)|go)\b", re.IGNORECASE
)
_OFFER: Final = re.compile(
    r"(?:.{0,40}\W)?(?:(?:shall|should|may|can) (?:i|we)|"
    r"(?:(?:do|would) you )?(?:want|like) (?:me|us) to)\b",
    re.IGNORECASE,
)
"""How a question begins that offers to do something. A denial behind it wants none of it; behind
another question ("For two people?") it is an answer."""
_CONSENT: Final = re.compile(
    r"\W*(?:(?:yes|yeah|yep|yup|sure|ok(?:ay)?|right|exactly|of course|absolutely|definitely|"
    r"certainly|please|do(?: (?:it|that|so))?|go(?: (?:ahead|for it|on))?|sounds good|great|good|"
    r"fine(?: (?:with|by) me)?|perfect|(?:i )?agreed?|approved|alright|why not|"
    r"let['\u2019]?s do (?:it|that)|i['\u2019]?d like (?:it|that)|"
    r"(?:that|it)(?:['\u2019]| woul)d be (?:good|great|nice|lovely|perfect))\b\W*)+"
    r"(?:(?:then|now|thanks|thank you)\b\W*)*",
    re.IGNORECASE,
)
"""Whole requests that only consent to what the assistant has asked."""
_AGREEMENT: Final = re.compile(
    r"\W*(?:yes|yeah|yep|yup|sure|ok(?:ay)?|of course|absolutely|definitely|certainly|great|good|"
    r"perfect|please)\b",
    re.IGNORECASE,
)
_RESERVATION: Final = re.compile(
    r"\b(?:but|no|not|never|first|before|instead|rather|later)\b|n['\u2019]t\b|\?", re.IGNORECASE
)
"""Requests that begin like the first, and have nothing like the second, consent and say more:
"ok, take the cheaper one"."""
_OPEN_QUESTION: Final = re.compile(
    r"\W*(?:and |or |so )?(?:what|which|who|whom|whose|when|where|why|how)\b", re.IGNORECASE
)
"""How questions begin that cannot be consented to."""
_SENTENCE_END: Final = re.compile(r"(?<=[.!?:;])\s+|\n+")
_QUESTION: Final = re.compile(
    r"\W*(?:(?:ok(?:ay)?|oh|hm+|well|hey|hi|please|sorry)\W+)*"
    r"(?:(?:what(?! if\b)|who|when|where|why|how)(?:['\u2019]?s|['\u2019]re)?|whom|whose|which|is|"
    r"are|was|were|am|do|does|did|has|have|had|should|may|must|(?:can|could|will|would)(?!\s+you\b)|"
    r"tell me|explain)\b",
    re.IGNORECASE,
)
"""How questions begin. "Can you …?" is a request for an action, and an action may be a detail of
the one before: "can you remove the logo?"."""
MIN_WORDS_OF_QUESTION: Final = 3
"""A question of fewer words is no whole sentence: "which gate?"."""
_DETAIL: Final = re.compile(
    r"\W*(?:(?:ok(?:ay)?|yes|no|and|but|or|also|only|just|now|then|please)\W+)*"
    r"(?:in|at|by|for|from|to|with|without|as|on|until|till|before|after|except|via|under|over|"
    r"between|per)\b",
    re.IGNORECASE,
)
"""How people begin when they add a detail: with a preposition."""

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
        return bool(self.question) and _CONSENT.fullmatch(self.text) is not None

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
        why = "it consents" if self.question else _why_not_alone(self.text)
        return f"{reason}{self.note}, because {why}"


def in_context(request: Request, names: SkillNames = _NO_NAMES) -> RequestInContext:
    """The request, with its context where it is a follow-up. ``names`` are removed from the
    assistant's answer: it often says which tool was used, or asks which one is meant."""
    if _asks_for_nothing(request):
        return RequestInContext(request.text)
    answer = _latest_answer(request)
    earlier = [turn.text[:MAX_TURN_CHARACTERS] for turn in request.history if turn.role == "user"]
    end, question = "", ""
    if answer is not None and request.history[-1].role == "assistant" and _asks(answer):
        end = names.removed_from(answer.rstrip()[-MAX_ANSWER_CHARACTERS:])
        question = _question_consented_to(request.text, end, names)
    parts = [request.text]
    while earlier and len(parts) <= MAX_TURNS and not stands_alone(parts[0]):
        turn = earlier.pop()
        if not says_nothing(turn):
            parts.insert(0, turn)
    context = parts[:-1]
    if not context:
        if end and _CONSENT.fullmatch(request.text):
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


def _asks_for_nothing(request: Request) -> bool:
    """Whether a request asks for nothing that the turn before was about."""
    text = request.text
    is_apart = is_courtesy(text) or _SMALL_TALK.fullmatch(text) or _REJECTION.fullmatch(text)
    return bool(is_apart) or is_comment(request) or declines_offer(request)


def answers_no(request: Request) -> bool:
    """Whether a request begins by saying no to what the assistant's latest answer offers to do."""
    text, answer = request.text, _latest_answer(request)
    if answer is None or not _asks(answer) or not _OFFER.match(_last_sentence(answer)):
        return False
    return not _asks(text) and _DENIAL.match(text) is not None


def declines_offer(request: Request) -> bool:
    """Whether a request only says no to what the assistant's latest answer offers to do: what it
    does not refuse has no content of its own, but reasons."""
    text = request.text
    if not answers_no(request):
        return False
    clauses = _CLAUSE_END.split(refusals_in(text).rest)
    is_cut = not text.strip().startswith(clauses[0])
    kept = " ".join(
        clause
        for place, clause in enumerate(clauses)
        if not (_REASON.match(clause) and (place or is_cut))
    )
    return _BESIDE_DENIAL.issuperset(_content_words(kept)) and not _GOES_AHEAD.search(kept)


def is_comment(request: Request) -> bool:
    """Whether a request only praises the assistant's latest answer, or comments on it, and neither
    of them ends with a question."""
    text, answer = request.text, _latest_answer(request)
    if answer is None or _asks(answer) or _asks(text):
        return False
    rest, comments = _COMMENT.subn(" ", _COURTESY.sub(" ", text))
    spoken = tokens(rest)
    words = [word for word in spoken if word not in _BESIDE_COURTESY]
    is_praise = comments > 0 or len(words) < len(spoken)
    return not words or (is_praise and _BESIDE_PRAISE.issuperset(words))


def _latest_answer(request: Request) -> str | None:
    """The latest turn of the assistant, if there is one."""
    answers = (turn.text for turn in reversed(request.history) if turn.role == "assistant")
    return next(answers, None)


def _last_sentence(answer: str) -> str:
    return _SENTENCE_END.split(answer[-MAX_ANSWER_CHARACTERS:].rstrip())[-1].strip()


def _question_consented_to(text: str, end: str, names: SkillNames) -> str:
    """The last sentence of an answer that ends with a question, where a text consents to it and it
    says what is offered; else empty. "OK?" and "Shall I?" do not say it, and the answer before them
    does. Nor is a question taken that names a skill outright: only the user may do that."""
    question = _last_sentence(end)
    if _OPEN_QUESTION.match(question) or not _content_words(question):
        return ""
    consents = _CONSENT.fullmatch(text) or (
        _AGREEMENT.match(text) and not _RESERVATION.search(text) and not stands_alone(text)
    )
    return question if consents and not names.named_in(question).wanted else ""


def _why_not_alone(text: str) -> str:
    """Why a request was not taken to stand alone, for the user."""
    begins = _OPENING.match(text) or _REPLY.match(text)
    if begins is not None:
        return f'it begins with "{begins[0].strip()}"'
    points = _POINTER.search(text)
    if points is not None:
        return f'"{points[0]}" points back'
    return "it has few words of its own"


def _asks(text: str) -> bool:
    """Whether a text ends with a question."""
    return text.rstrip().endswith("?")


def says_nothing(text: str) -> bool:
    """Whether a text has no content word, as "good night" and "yes, do it"."""
    return not _content_words(text) or is_courtesy(text)


def is_courtesy(text: str) -> bool:
    """Whether a text is only thanks, a greeting or a goodbye."""
    rest, courtesies = _COURTESY.subn(" ", text)
    return courtesies > 0 and all(word in _BESIDE_COURTESY for word in tokens(rest))


def stands_alone(text: str) -> bool:
    """Whether a request can be understood without the turns before it: it is no follow-up."""
    words = len(_content_words(text))
    if words <= MAX_WORDS_OF_FOLLOW_UP:
        return False
    return words > MAX_WORDS_WITH_POINTER or not points_back(text)


def is_whole_question(text: str) -> bool:
    """Whether a text is a question with a subject of its own that points to nothing said before, as
    "how do I make pancakes?". A question of what was said may look the same: "when is lunch?"."""
    whole = _QUESTION.match(text) is not None and len(text.split()) >= MIN_WORDS_OF_QUESTION
    return whole and bool(_content_words(text)) and not points_back(text)


def adds_a_detail(text: str) -> bool:
    """Whether a text only adds a detail to what was said before, as "for Anna too", "10 copies" and
    "what about German?": it begins with a preposition, is a few words with a number, or has one
    content word at most."""
    short = len(text.split()) <= MAX_WORDS_OF_DETAIL
    numbered = short and any(character.isdigit() for character in text)
    return numbered or len(_content_words(text)) <= 1 or _DETAIL.match(text) is not None


def points_back(text: str) -> bool:
    """Whether a text begins as people continue or answer, or has a word that points back."""
    return bool(_OPENING.match(text) or _REPLY.match(text)) or has_pointer(text)


def verb_beside_pronoun(text: str) -> str:
    """The only content word of a request whose object is a pronoun, as "cancel" of "cancel it";
    else empty."""
    own = _content_words(text)
    return own[0] if len(own) == 1 and _PRONOUN.search(text) else ""


def has_pointer(text: str) -> bool:
    """Whether a text has a word that points back, as "do it"."""
    return _POINTER.search(text) is not None


def _content_words(text: str) -> list[str]:
    return [word for word in tokens(text) if word not in STOPWORDS and word not in _EMPTY]
