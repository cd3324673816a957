"""What a request says as a reply to the assistant: thanks, a comment, yes or no to its offer.

Thanks, greetings and small talk ask for nothing that the turn before was about: neither "thanks!"
nor "tell me a joke" asks for the same thing again. Nor does "great" or "that worked", unless the
assistant has asked a question, nor "not that one", nor who says no to an offer ("Shall I send
it?"): "no", "don't send any", "I'd rather not", "no, that's too expensive". "No, send it to Ann"
says what is wanted, and is read.
"""

from __future__ import annotations

import re
from typing import Final

from router.request import Request
from router.retrieval.names import SkillNames
from router.retrieval.refusals import refusals_in
from router.stages.standing_alone import content_words, stands_alone
from router.text import tokens

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
MAX_ANSWER_CHARACTERS: Final = 200
"""How much of an answer is used. Its later part is often polite talk: with 300 characters, three
fewer of 95 follow-ups were routed right than with 200."""


def asks_for_nothing(request: Request) -> bool:
    """Whether a request asks for nothing that the turn before was about."""
    text = request.text
    is_apart = is_courtesy(text) or _SMALL_TALK.fullmatch(text) or _REJECTION.fullmatch(text)
    return bool(is_apart) or is_comment(request) or declines_offer(request)


def answers_no(request: Request) -> bool:
    """Whether a request begins by saying no to what the assistant's latest answer offers to do."""
    text, answer = request.text, latest_answer(request)
    if answer is None or not asks(answer) or not _OFFER.match(_last_sentence(answer)):
        return False
    return not asks(text) and _DENIAL.match(text) is not None


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
    return _BESIDE_DENIAL.issuperset(content_words(kept)) and not _GOES_AHEAD.search(kept)


def is_comment(request: Request) -> bool:
    """Whether a request only praises the assistant's latest answer, or comments on it, and neither
    of them ends with a question."""
    text, answer = request.text, latest_answer(request)
    if answer is None or asks(answer) or asks(text):
        return False
    rest, comments = _COMMENT.subn(" ", _COURTESY.sub(" ", text))
    spoken = tokens(rest)
    words = [word for word in spoken if word not in _BESIDE_COURTESY]
    is_praise = comments > 0 or len(words) < len(spoken)
    return not words or (is_praise and _BESIDE_PRAISE.issuperset(words))


def latest_answer(request: Request) -> str | None:
    """The latest turn of the assistant, if there is one."""
    answers = (turn.text for turn in reversed(request.history) if turn.role == "assistant")
    return next(answers, None)


def _last_sentence(answer: str) -> str:
    return _SENTENCE_END.split(answer[-MAX_ANSWER_CHARACTERS:].rstrip())[-1].strip()


def consents(text: str) -> bool:
    """Whether a text says nothing but yes."""
    return _CONSENT.fullmatch(text) is not None


def question_consented_to(text: str, end: str, names: SkillNames) -> str:
    """The last sentence of an answer that ends with a question, where a text consents to it and it
    says what is offered; else empty. "OK?" and "Shall I?" do not say it, and the answer before them
    does. Nor is a question taken that names a skill outright: only the user may do that."""
    question = _last_sentence(end)
    if _OPEN_QUESTION.match(question) or not content_words(question):
        return ""
    agrees = consents(text) or (
        _AGREEMENT.match(text) and not _RESERVATION.search(text) and not stands_alone(text)
    )
    return question if agrees and not names.named_in(question).wanted else ""


def asks(text: str) -> bool:
    """Whether a text ends with a question."""
    return text.rstrip().endswith("?")


def says_nothing(text: str) -> bool:
    """Whether a text has no content word, as "good night" and "yes, do it"."""
    return not content_words(text) or is_courtesy(text)


def is_courtesy(text: str) -> bool:
    """Whether a text is only thanks, a greeting or a goodbye."""
    rest, courtesies = _COURTESY.subn(" ", text)
    return courtesies > 0 and all(word in _BESIDE_COURTESY for word in tokens(rest))
