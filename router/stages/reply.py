"""What a request says as a reply to the assistant: thanks, a comment, yes or no to its offer.

Thanks, greetings and small talk ask for nothing that the turn before was about: neither "thanks!"
nor "tell me a joke" asks for the same thing again, nor do thanks that name it: "thanks for the
table". Nor does "great", "that worked" or "it prints again", unless the assistant has asked a
question, nor "not that one". Who says no to an offer ("Shall I send it?") does not want it: "no",
"don't send any", "I'd rather not", "no, that's too expensive". "No, send it to Ann" says what is
wanted, and is read.
"""

from __future__ import annotations

import re
from typing import Final

from router.request import Request
from router.retrieval.names import SkillNames
from router.retrieval.refusals import refusals_in
from router.stages.standing_alone import content_words, stands_alone
from router.text import stem, stems_of, tokens

_THANKS: Final = (
    r"(?:(?:(?:many|much) )?thanks|thank you|thx|cheers)"
    r"(?: a (?:lot|million|bunch)| so much| very much(?: indeed)?| again)?"
)
_COURTESY: Final = re.compile(
    rf"\b(?:{_THANKS}(?: for (?:all )?(?:the|your) (?:help|time|work))?|"
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
_THANKS_FOR: Final = re.compile(
    r"\b(?:i (?:just |only )?(?:want(?:ed)?|would like|have) to )?(?:say )?"
    rf"(?P<thanks>{_THANKS}) for(?: (?!(?:nothing|but|so|now|please|can|could|will|would|is|are|am|"
    r"not|\w+n['\u2019]t|still|i|need|want|too|also|advance|asap|soon|tomorrow|[-\u2013\u2014]|"
    r"and(?! (?:for|\w{2,}ing)\b))(?!\w))[^\s.,;:!?]+)+",
    re.IGNORECASE,
)
"""Thanks that name the thing, up to the end of their clause, where that states or asks nothing."""
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
_NO_PRAISE: Final = frozenset(("no", "nope", "nah", "oh", "ah", "well", "and", "then"))
"""The words of ``_BESIDE_COURTESY`` that praise nothing."""
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
    r"cool beans|thumbs up|spot on|job done|all (?:set|done|sorted)|you nailed it|"
    r"that(?:['\u2019]ll| will) do|"
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
_HEDGED: Final = r"(?:n[eo]\w*|hardly|barely|only|sometimes|wh\w+|how|if|let|make|once)\b"
_SUBJECT: Final = (
    r"(?:^|[,.;:!\n]|\s[-\u2013\u2014]\s) {0,3}(?:(?:and|yes|ok(?:ay)?) )?"
    rf"(?:(?:the|my|our|your|his|her) (?:(?!{_HEDGED})[\w-]+ )??)?(?!{_HEDGED})[\w-]+"
)
"""The beginning of a clause and its subject, as "the new page"."""
_WORKS: Final = r"works|prints|scans|connects|opens|loads|boots|plays|responds"
_WELL: Final = r"(?: (?:fine|well|perfectly|smoothly|great))?"
_CLOSED: Final = r"\s*(?=[,.;:!\n]|\s[-\u2013\u2014]\s|$)"
_SUCCESS: Final = re.compile(
    rf"{_SUBJECT}(?: (?:{_WORKS})|"
    r"(?:['\u2019]s| is| are) (?:up(?: and running)?|fine|ok(?:ay)?|fixed|solved|sorted|working|"
    rf"printing|running)){_WELL} (?:now|again){_CLOSED}",
    re.IGNORECASE,
)
"""A clause that reports a success: "it prints again"."""
_PLEASED: Final = re.compile(
    rf"{_SUBJECT}(?: (?:{_WORKS}|runs)|"
    r" (?:fixed|solved|sorted|cleared) (?:it|(?:the|my|our) (?:[\w-]+ )?[\w-]+)|"
    r"(?:['\u2019]s| is| are| was| has been)(?: all)? (?P<state>[\w-]+))"
    rf"(?: up| online)?{_WELL}(?: (?:now|again))?{_CLOSED}",
    re.IGNORECASE,
)
"""What does so beside thanks or praise, if its state is good, or what was asked for: "thanks, it is
back", and after "book a table" "thanks, it is booked"."""
_GOOD_STATES: Final = frozenset(
    (
        *("up", "back", "fine", "ok", "okay", "good", "fixed", "solved", "sorted", "ready"),
        *("online", "connected", "running", "working", "perfect", "great", "repaired", "done"),
    )
)
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
_STOPS: Final = (
    *("never", "neither", "none", "nothing", "wait", "stop", "hold", "later", "leave", "skip"),
    *("forget", "drop", "refrain"),
)
"""Words that say no, and ask for nothing by themselves."""
_DENIAL: Final = re.compile(
    r"(?!.*(?:\b(?:not|no need to)|n['\u2019]t) (?:wait|hesitate|mind|hurt|see why)\b|"
    r".*\b(?:no objection|not a bad|say no to))"
    r"\W*(?:(?:please|thanks?|thank you|sorry|well|oh|hm+)\W+)*"
    r"(?!(?:yes|yeah|yep|yup|sure)\b)[^,.;:!?\n]*?(?:\b(?:no|nope|nah|(?<!why )not|hang on|"
    rf"let me think|(?:cancel|scrap) (?:it|that|this)|{'|'.join(_STOPS)})\b|n['\u2019]t\b)"
    r"(?![^,.;:!\n]*\?)",
    re.IGNORECASE,
)
"""How a request begins that says no: with a negation, or a word that stops, in its first clause,
which is no question."""
_NO_END: Final = re.compile(
    r"[,.;:!\n]+|\s[-\u2013\u2014]\s|(?:(?<=\bno)|(?<=\bnah)|(?<=\bnope))\s"
)
"""Where the clause ends that says no."""
_WISH: Final = re.compile(
    r"(?:^|[,.;:!])\W*(?:(?:no|nope|nah|ok(?:ay)?|but|and|please|yes|just)\W+)*"
    r"(?:(?:only|rather|instead|make it|in|at|by|for|from|to|with|without|on|until|till|before|"
    r"after|via|between)\b|the \w+(?: \w+)? ones?\b|(?:the )?(?:\w+ )?\d|do (?:it|that|so)\b|"
    r"go\b|(?!(?:i|we|you|he|she|they|it|that|leave|keep|forget|drop|cancel)\b)\w+ "
    r"(?:it|them|him)\b)|\binstead\W*$|['\u2019]s (?:for|at|on|in|to|from) \w|"
    r"\b(?:i|we)(?:['\u2019]d| would)? (?:want|need|like|prefer|meant?|rather have)\b",
    re.IGNORECASE,
)
"""What corrects or completes an offer: "on Friday", "the blue ones", "20 instead", "it's for Ann",
"send it to Ann"."""
_OFFER: Final = re.compile(
    r"\b(?:(?:shall|should|may|can|could|might) (?:i|we)|"
    r"(?:i|we)(?: can| could| may| might|['\u2019]ll|['\u2019]d| will| would)|(?:me|us) to|"
    r"(?:if|about) (?:i|we))\b",
    re.IGNORECASE,
)
"""What a sentence has that offers to do something. Behind another question ("For two people?") a
"no" is an answer."""
_CONFIRMS: Final = re.compile(
    r"\b(?:are you (?:\w+ )?sure|(?:really|still) want|(?:continue|proceed)\W*\?)", re.IGNORECASE
)
"""What a question has that asks again before something is done."""
_ANYTHING_ELSE: Final = re.compile(r"\b(?:anything|something|what) (?:else|more)\b", re.IGNORECASE)
"""What a sentence has that offers nothing in particular."""
_CLOSING: Final = re.compile(
    r"\W*(?:(?:no|nope|nah|ok(?:ay)?|thanks?|thank you|please|i think)\b\W*)*"
    r"(?:(?:nothing|nothing (?:else|more)|that(?:['\u2019]s| is| will be|['\u2019]ll be) "
    r"(?:all|enough|everything|it)|all (?:good|set|done)|i['\u2019]?m (?:good|fine|done))\b\W*)?"
    r"(?:(?:thanks?|thank you|for (?:now|today)|then)\b\W*)*",
    re.IGNORECASE,
)
"""Whole requests of people who need no more."""
_INVITES: Final = re.compile(
    r"\?|\b(?:let me know|say (?:so|yes|the word)|if you (?:like|want|wish))\b", re.IGNORECASE
)
"""What the end of an answer has that waits for a yes or a no."""
_CONSENT: Final = re.compile(
    r"\W*(?:(?:yes|yeah|yep|yup|sure|ok(?:ay)?|right|exactly|of course|absolutely|definitely|"
    r"certainly|please|do(?: (?:it|that|so))?|go(?: (?:ahead|for it|on))?|sounds good|great|good|"
    r"fine(?: (?:with|by) me)?|perfect|(?:i )?agreed?|approved|alright|why not|no objections?|y|"
    r"(?:(?:(?:that|it)['\u2019]?s )?(?:a )?|not a )(?:good|great|bad) idea|be my guest|"
    r"(?:i )?(?:do(?: not|n['\u2019]t) (?:mind|see why not)|can(?:not|['\u2019]t) say no to that)|"
    r"(?:it )?can['\u2019]?t hurt|no rush|"
    r"let['\u2019]?s do (?:it|that)|i['\u2019]?d like (?:it|that)|"
    r"(?:that|it)(?:['\u2019]| woul)d be (?:good|great|nice|lovely|perfect))\b\W*)+"
    r"(?:(?:then|now|thanks|thank you)\b\W*)*",
    re.IGNORECASE,
)
"""Whole requests that only consent to what the assistant has asked."""
_AGREEMENT: Final = re.compile(
    r"\W*(?:yes|yeah|yep|yup|sure|ok(?:ay)?|of course|absolutely|definitely|certainly)\b",
    re.IGNORECASE,
)
_RESERVATION: Final = re.compile(
    r"\b(?:but|no|not|never|first|before|instead|rather|later|maybe|once|after|if|already|until|"
    r"forget|cancel)\b|n['\u2019]t\b|\?",
    re.IGNORECASE,
)
"""Requests that begin like the first, and have nothing like the second, consent and say more:
"ok, take the cheaper one"."""
_OPEN_QUESTION: Final = re.compile(
    r"\W*(?:and |or |so )?(?:what|which|who|whom|whose|when|where|why|how(?! about\b))\b",
    re.IGNORECASE,
)
"""How questions begin that cannot be consented to."""
_SENTENCE_END: Final = re.compile(r"(?<=[.!?:;])\s+|\n+")
SENTENCES_OF_OFFER: Final = 3
"""An offer stands in one of the last sentences: "I can send it. Is that OK? Just say the word."."""
MAX_ANSWER_CHARACTERS: Final = 200
"""How much of an answer is used. Its later part is often polite talk: with 300 characters, three
fewer of 95 follow-ups were routed right than with 200."""


def asks_for_nothing(request: Request) -> bool:
    """Whether a request asks for nothing that the turn before was about."""
    text = request.text
    is_apart = is_courtesy(text) or _SMALL_TALK.fullmatch(text) or _REJECTION.fullmatch(text)
    return bool(is_apart) or is_comment(request)


def offer_before(request: Request) -> str:
    """The sentence in which the assistant, in the turn before a request, offers to do something in
    particular, or asks again whether to do it; empty if it does not."""
    sentences = _last_sentences(answer_before(request))
    if not _INVITES.search(" ".join(sentences)):
        return ""
    for sentence in sentences:
        is_specific = not (_ANYTHING_ELSE.search(sentence) or _OPEN_QUESTION.match(sentence))
        if is_specific and (_OFFER.search(sentence) or _CONFIRMS.search(sentence)):
            return sentence
    return ""


def says_no(text: str) -> bool:
    """Whether a text says no to an offer, by how it begins or by a refusal further on, and asks
    nothing."""
    if asks(text):
        return False
    begins_with_no = _DENIAL.match(text) is not None
    return begins_with_no or bool(not _AGREEMENT.match(text) and refusals_in(text).refused)


def only_says_no(text: str) -> bool:
    """Whether a text has no content word but those that say no."""
    return set(content_words(text)).issubset((*_STOPS, "cancel", "scrap", "think", "hang"))


def wishes(text: str) -> bool:
    """Whether a text corrects or completes an offer: "on Friday", "no, the blue ones"."""
    if not _DENIAL.match(text):
        return _WISH.search(text) is not None
    _, *rest = _NO_END.split(text, maxsplit=1)
    return bool(rest) and _WISH.search(rest[0]) is not None


def is_comment(request: Request) -> bool:
    """Whether a request only praises the assistant's latest answer, comments on it, or needs no
    more. Neither of them ends with a question, but "Anything else?"."""
    text, answer = request.text, latest_answer(request)
    if answer is None or asks(text):
        return False
    if asks(answer) and not _ANYTHING_ELSE.search(_last_sentences(answer)[-1]):
        return False
    if _CLOSING.fullmatch(text):
        return True
    rest, courtesies = _without_courtesy(text)
    rest, successes = _SUCCESS.subn(" ", rest)
    if courtesies or not (_BESIDE_COURTESY - _NO_PRAISE).isdisjoint(tokens(rest)):
        asked = [turn.text for turn in request.history if turn.role == "user"][-1:]
        verbs = stems_of(content_words(" ".join(asked))[:1])

        def told(clause: re.Match[str]) -> str:
            state = (clause["state"] or "").lower()
            is_good = not state or state in _GOOD_STATES or stem(state) in verbs
            return " " if is_good else clause[0]

        rest = _PLEASED.sub(told, rest)
    rest, comments = _COMMENT.subn(" ", rest)
    spoken = tokens(rest)
    words = [word for word in spoken if word not in _BESIDE_COURTESY]
    is_praise = successes + comments > 0 or len(words) < len(spoken)
    return not words or (is_praise and _BESIDE_PRAISE.issuperset(words))


def latest_answer(request: Request) -> str | None:
    """The latest turn of the assistant, if there is one."""
    answers = (turn.text for turn in reversed(request.history) if turn.role == "assistant")
    return next(answers, None)


def answer_before(request: Request) -> str:
    """The turn before a request, if it is the assistant's; else empty."""
    last = request.history[-1] if request.history else None
    return last.text if last is not None and last.role == "assistant" else ""


def _last_sentences(answer: str) -> list[str]:
    return _SENTENCE_END.split(answer[-MAX_ANSWER_CHARACTERS:].rstrip())[-SENTENCES_OF_OFFER:]


def consents(text: str) -> bool:
    """Whether a text says nothing but yes."""
    return _CONSENT.fullmatch(text) is not None


def question_consented_to(text: str, answer: str, names: SkillNames) -> str:
    """The last sentence of an answer that asks or offers something and says what, where a text
    consents to it, or completes or corrects it; else empty. "OK?" and "Shall I?" do not say what.
    Nor does a sentence that names two skills."""
    sentences = [*reversed(_last_sentences(answer))]
    last = next(filter(asks, sentences), "")
    if _OPEN_QUESTION.match(last) or _ANYTHING_ELSE.search(last):
        return ""
    said = (one for one in sentences if asks(one) or _OFFER.search(one))
    question = next(filter(content_words, said), "").strip()
    agrees = consents(text) or (
        not stands_alone(text)
        and (
            (_AGREEMENT.match(text) is not None and not _RESERVATION.search(text))
            or (_OFFER.search(question) is not None and wishes(text))
        )
    )
    return question if agrees and len(names.named_in(question).wanted) <= 1 else ""


def asks(text: str) -> bool:
    """Whether a text ends with a question."""
    return text.rstrip().endswith("?")


def says_nothing(text: str) -> bool:
    """Whether a text has no content word, as "good night" and "yes, do it"."""
    return not content_words(text) or is_courtesy(text)


def is_courtesy(text: str) -> bool:
    """Whether a text is only thanks, a greeting or a goodbye."""
    rest, courtesies = _without_courtesy(text)
    return courtesies > 0 and all(word in _BESIDE_COURTESY for word in tokens(rest))


def without_the_thing(text: str) -> str:
    """A text that is only thanks for something, without that; else the text. "Thanks for fixing the
    printer" does not ask for a printer to be fixed."""
    return _THANKS_FOR.sub(r"\g<thanks>", text) if is_courtesy(text) else text


def _without_courtesy(text: str) -> tuple[str, int]:
    """A text without its thanks, greetings and goodbyes, and how many there were."""
    rest, named = _THANKS_FOR.subn(" ", text)
    rest, others = _COURTESY.subn(" ", rest)
    return rest, named + others
