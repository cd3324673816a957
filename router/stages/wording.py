"""The words of an English request that carry its meaning, and the ``Signature`` made of them.

``signature_of`` splits the text, expands contractions, removes the phrases that open and close a
polite request, and drops filler words. Some words are fillers only in some places, as "a" in "from
A to B". The word lists that this and the content gate need come first. The general fillers, which
retrieval needs too, are in ``router.text``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from router.text import FILLERS, STOPWORDS, is_english, memoised, stems_of, word_set

NEGATIONS: Final = word_set("not no never without neither nor none nothing nobody nowhere non")
QUESTIONS: Final = word_set("what which who whom whose when where why how")
# Modal verbs with the same meaning are treated as the same word.
MODALS: Final = {
    **dict.fromkeys(("can", "could"), "can"),
    **dict.fromkeys(("should", "ought", "must", "shall"), "should"),
    **dict.fromkeys(("may", "might"), "may"),
    **dict.fromkeys(("will", "would"), "will"),
}
SAME: Final = {**MODALS, "which": "what", "whom": "who"}
PLAIN_RELATIONS: Final = word_set("to of in on at for with by about and as via into onto through")
AUXILIARIES: Final = word_set(
    "am is are was were do does did have has had can could will would should shall may might must"
)
# These are compared like all other words. The list only lets a reason say "direction differs".
DIRECTIONS: Final = word_set(
    """
    on off in out up down from to over under above below before after into onto back forward
    left right start stop begin end open close lock unlock enable disable activate deactivate
    add remove insert delete increase decrease raise lower push pull import export upload download
    show hide connect disconnect mount unmount install uninstall encrypt decrypt encode decode
    accept reject allow deny grant revoke first last next previous more less most least most min max
    minimum maximum inbound outbound internal external public private send receive buy sell
    """
)
# Contractions with and without apostrophe, and colloquial spellings.
IRREGULAR: Final = {
    "cannot": ("can", "not"),
    "cant": ("can", "not"),
    "can't": ("can", "not"),
    "wont": ("will", "not"),
    "won't": ("will", "not"),
    "shan't": ("shall", "not"),
    "aint": ("is", "not"),
    "ain't": ("is", "not"),
    "let's": (),
    "lets": (),
    "im": ("i", "am"),
    "ive": ("i", "have"),
    "wanna": ("want", "to"),
    "gonna": ("going", "to"),
    "gotta": ("have", "to"),
    "u": ("you",),
    **{
        base + "nt": (base, "not")
        for base in word_set("do does did is are was were has have had could should would must")
    },
    **{base + "s": (base, "is") for base in word_set("what where who how when that there")},
    **{base + "re": (base, "are") for base in word_set("you they")},
}
CLITICS: Final = {
    "'s": (),  # "is", "has" or a possessive, which are all ignored
    "'re": ("are",),
    "'ll": ("will",),
    "'ve": ("have",),
    "'m": ("am",),
    "'d": ("would",),
    "'": (),
}
PLAIN_MODALS: Final = word_set("can could would")
# Verbs after which "me" is only courtesy.
GIVING: Final = word_set("show tell give get find help let remind send bring make buy set")


def _phrases(text: str) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Phrases by their first word, longest first."""
    parsed = [tuple(phrase.split()) for phrase in text.split("|")]
    return {
        first: tuple(sorted((p for p in parsed if p[0] == first), key=len, reverse=True))
        for first in {p[0] for p in parsed}
    }


OPENINGS: Final = _phrases(
    """
    please|pls|plz|kindly|just|hey|hi|hello|yo|ok|okay|so|well|now|um|uh|er|hmm|thanks|thank you|
    can you|could you|would you|will you|would you mind|do you know|do you happen to know|
    do you think you can|do you think you could|is it possible for you to|
    i was wondering if you could|i am wondering|i was wondering|i wonder|i am curious|
    i want to|i want you to|i want to know|i want to find out|i need to|i need you to|
    i need to know|i need to find out|i would like to|i would like you to|i would like to know|
    i would like to find out|i would love to|i would love to know|i have to|i have to know|
    i am trying to|i am looking to|i am hoping to|i am going to|i will need to|
    i am trying to find out|i am looking for|i am interested in|
    want to|need to|would like to|trying to|we want to|we need to|we have to|we would like to|
    can i ask|can i ask you|may i ask|may i know|can i know|
    help me to|help me with|help me|help with|i need help to|i need help with|i need your help to|
    help us|tell me|let me know|let me see|go ahead and
    """
)
CLOSINGS: Final = _phrases(  # with the words in reverse order, to be matched from the end
    "you thank|me for|us for|can you if|could you if|possible if|much so you thank|"
    "now|now right|asap|immediately|possible as soon as|moment the at|well as|too"
)
LONGEST_PHRASE: Final = max(
    len(phrase) for phrases in (*OPENINGS.values(), *CLOSINGS.values()) for phrase in phrases
)
"""The number of words of the longest phrase."""

# A request with one of these words is a question, with or without a question mark.
FOREIGN_QUESTIONS: Final = word_set(
    """
    was wie wann wo wer warum wieso weshalb welche welcher welches
    qué cómo cuándo cuando dónde donde quién quien cuánto cuanto cuál cual
    quoi quand où qui pourquoi combien comment quel quelle quels
    cosa come dove chi perché perche quanto quale quê onde quem
    wat hoe waar wanneer waarom welk vad hur var när varför vem hvad hvordan hvor hvornår
    jak gdzie kiedy dlaczego kto ile nerede neden kim apa bagaimana kapan
    как что где когда кто почему зачем сколько какой какая какие як що коли хто чому
    """
)

_CHUNK: Final = re.compile(r"""["`][^"`]*["`]|(?<!\w)'[^']+'(?!\w)|\S+""")
_HYPHENATED: Final = re.compile(r"[^\W\d_]+(?:['-][^\W\d_]+)*'?")


@dataclass(frozen=True, slots=True)
class Signature:
    """The parts of one request that carry its meaning.

    Attributes:
        core: the normalised text without fillers, for the Levenshtein similarity.
        stems: the words in order, as stems; numbers, paths and the like are kept as they are.
        words: the same words as they were written.
        relations: the plain prepositions before each word and after the last one, joined.
        is_question: whether the request is a question.
        english: whether the rules for English apply.
    """

    core: str
    stems: tuple[str, ...]
    words: tuple[str, ...]
    relations: tuple[str, ...]
    is_question: bool
    english: bool


@memoised(short=2048)  # a request is looked up first and then stored: twice the same text
def signature_of(text: str) -> Signature:
    """The signature of a normalised text."""
    words = _split(text) or [text]
    marked = text.endswith("?") or "? " in text
    if not is_english(words):
        is_question = marked or not FOREIGN_QUESTIONS.isdisjoint(words)
        plain = tuple(words)
        return Signature(
            " ".join(words), plain, plain, ("",) * (len(plain) + 1), is_question, False
        )
    request = _without_courtesies(words)
    beginning = request[0] if request else ""
    indirect = beginning in ("if", "whether")  # tell me if ...
    is_question = (
        indirect
        or (beginning in AUXILIARIES and request[:2] != ["do", "not"])
        or (marked and len(words) - len(request) < 2)  # "Can you ...?" is no question
        or not QUESTIONS.isdisjoint(request)
    )
    kept = _without_fillers(request[1:] if indirect else request)
    plain_relations = PLAIN_RELATIONS
    if STOPWORDS.issuperset(kept):
        kept, plain_relations = words, frozenset()  # there are only function words: keep all
    written: list[str] = []
    relations: list[str] = []
    relation = ""
    for word in kept:
        if word in plain_relations:
            relation += " " + word
            continue
        written.append(word)
        relations.append(relation)
        relation = ""
    relations.append(relation)
    items = tuple(
        SAME.get(word, root if word.isalpha() else word)
        for word, root in zip(written, stems_of(written), strict=True)
    )
    return Signature(" ".join(kept), items, tuple(written), tuple(relations), is_question, True)


def _split(text: str) -> list[str]:
    """The words, with contractions expanded; numbers, paths and the like stay whole."""
    words: list[str] = []
    for chunk in _CHUNK.findall(text):
        if chunk.isalpha() and chunk not in IRREGULAR:
            words.append(chunk)
            continue
        if chunk[0] not in "\"'`":
            chunk = chunk.rstrip("?")
            if chunk[:1] == "(":
                chunk = chunk[1:].removesuffix(")")
            elif "(" not in chunk:
                chunk = chunk.removesuffix(")")
        if not chunk or chunk in ".,;:!":
            continue
        if _HYPHENATED.fullmatch(chunk):
            for part in chunk.split("-"):
                words.extend(_expanded(part))
        else:
            words.append(chunk)
    return words


def _expanded(word: str) -> Iterable[str]:
    if word in IRREGULAR:
        return IRREGULAR[word]
    if word.endswith("n't"):
        return (word[:-3], "not")
    base, mark, clitic = word.partition("'")
    if mark and mark + clitic in CLITICS:
        return (base, *CLITICS[mark + clitic])
    return (word,)


def _without_courtesies(words: list[str]) -> list[str]:
    """The words without the phrases that open and close a polite request."""
    start, end = 0, len(words)
    while start < end and (size := _opening(words[start : start + LONGEST_PHRASE])):
        start += size
    while start < end and (size := _closing(words[max(start, end - LONGEST_PHRASE) : end])):
        end -= size
    return words[start:end]


def _opening(words: list[str]) -> int:
    """The number of words of courtesy at the beginning."""
    if words[:2] in (["show", "me"], ["show", "us"]) and not QUESTIONS.isdisjoint(words[2:3]):
        return 2  # show me how
    return _matching(OPENINGS, words)


def _closing(words: list[str]) -> int:
    """The number of words of courtesy at the end."""
    return _matching(CLOSINGS, words[::-1])


def _matching(phrases: Mapping[str, Sequence[tuple[str, ...]]], words: list[str]) -> int:
    """The length of the longest phrase that the words begin with; 0 for none."""
    for phrase in phrases.get(words[0], ()):
        if tuple(words[: len(phrase)]) == phrase:
            return len(phrase)
    return 0


def _without_fillers(words: list[str]) -> list[str]:
    """The words without those that are fillers in their place. The examples at the cases show which
    uses are fillers and which are not."""
    kept: list[str] = []
    question = bool(words) and (words[0] in AUXILIARIES or words[0] in QUESTIONS)
    for i, word in enumerate(words):
        before = words[i - 1] if i else ""
        after = words[i + 1] if i + 1 < len(words) else ""
        if word in FILLERS:
            match word:
                case "have" | "has" | "had" if after == "to":
                    kept.append("must")
                    continue
                case "a" | "i":  # from A to B, part I
                    filler = bool(after) and (word == "i" or after not in STOPWORDS)
                case "am":  # 10 am
                    filler = not before[-1:].isdigit()
                case "be" | "do":  # a to do list, to be called Tom
                    filler = before != "to"
                case "any":  # do I have any files; but delete any file
                    filler = question
                case "me":  # show me; but call me Mary
                    filler = not before or before in GIVING or before in PLAIN_RELATIONS
                case "us":  # show us; but fly to US cities
                    filler = not before or before in GIVING
                case _:
                    filler = True
            if filler:
                continue
        elif word == "just" and before in FILLERS:
            continue  # "I just lost it", "it was just lost"; but "lose just one"
        elif word in PLAIN_MODALS and words[0] in ("how", "where", "when"):
            continue  # "how can I" and "how would I" are "how do I"
        elif (
            word in ("get", "gets", "got", "getting")
            and after.endswith("ed")
            and (question or words[0] in FILLERS)
        ):
            continue  # "did it get deleted" is "was it deleted"; but "get deleted files"
        kept.append(word)
    return kept
