"""The content gate: may the answer to one request serve another one?

Edit distance cannot tell "tire change" from "oil change" or issue 12 from issue 21. So each request
becomes a ``Signature``, the ordered sequence of what carries its meaning, and two requests match
only when their sequences do:

* Words count by stem, but only inflection is forgiven (bug, bugs): Snowball also joins import and
  important, past and paste.
* The order always counts. "From A to B", "convert A to B" and "A not B" all live in the order, and
  requests that only swap words are too far apart for the cache anyway.
* Numbers, versions, paths, identifiers and quoted strings count to the letter, and so do
  negations, directions, modal verbs, quantifiers, question words and other people's pronouns.
* Of two opposite function words the rare one counts (off, out, from, without), and the plain ones
  (on, in, to, with) may be left out, but not exchanged: "for Ann" is "Ann", not "by Ann".
* Articles, auxiliaries, courtesy and urgency do not count. That a question was asked does, and so
  "how do I fix it" is not "fix it": the one wants an explanation, the other a deed.
* One typo in a long word is forgiven unless the result looks like another real word.

Fillers, stems and inflection are English. For text in another language only case, punctuation,
spacing and typos in long words are forgiven, and there the typo must be a plain slip, because one
letter at the end or in the middle of a word often is grammar (Turkish "geliyor", "gelmiyor").

Symmetric and reflexive; not transitive, because two forgiven differences need not add up to one.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Final

from rapidfuzz.distance import OSA

from router.text import (
    FILLERS,
    MAX_WORD_LETTERS,
    STOPWORDS,
    is_english,
    normalise,
    stem,
    word_set,
)

MIN_TYPO_LETTERS: Final = 6
"""Shorter words have too many real neighbours: form and from, test and text."""
MIN_SLIP_LETTERS: Final = 7
"""For the typos that more often give another real word; ``is_typo`` tells the kinds."""
MIN_FOREIGN_SLIP_LETTERS: Final = 10
MAX_TYPOS: Final = 2
"""Typos forgiven between two requests, one in a word."""


class Difference(StrEnum):
    """What kept two requests apart, from the most telling kind to the least."""

    NUMBER = "number"
    LITERAL = "literal"
    """An identifier, path, version, quoted string or other sign."""
    NEGATION = "negation"
    DIRECTION = "direction"
    QUESTION = "question"
    """Another question word, or a question against a statement."""
    MODALITY = "modality"
    WORD = "content word"
    ORDER = "order"
    RELATION = "preposition"


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """Whether two requests mean the same, and if not, why.

    Attributes:
        difference: the kind of what differs; None when the pair passes.
        first: what only the first request has.
        second: what only the second request has.
    """

    difference: Difference | None = None
    first: str = ""
    second: str = ""

    @property
    def passes(self) -> bool:
        """Whether the one answer may serve both."""
        return self.difference is None

    @property
    def reason(self) -> str:
        """One clause for a person."""
        if self.difference is None:
            return "same content"
        return f"{self.difference.value} differs: {self.first or '-'} against {self.second or '-'}"


_PASS: Final = GateVerdict()


@dataclass(frozen=True, slots=True)
class Signature:
    """What carries the meaning of one request.

    Attributes:
        core: the normalised text without fillers; what the Levenshtein similarity compares.
        stems: the ordered items by which requests are looked up: stems and literals.
        words: the same items as they were written.
        relations: plain prepositions before each item and after the last, joined; often all empty.
        asks: whether it is a question.
        english: whether English rules apply.
    """

    core: str
    stems: tuple[str, ...]
    words: tuple[str, ...]
    relations: tuple[str, ...]
    asks: bool
    english: bool


_NEGATIONS: Final = word_set("not no never without neither nor none nothing nobody nowhere non")
_QUESTIONS: Final = word_set("what which who whom whose when where why how")
# Modal verbs of one meaning count as one.
_MODALS: Final = {
    **dict.fromkeys(("can", "could"), "can"),
    **dict.fromkeys(("should", "ought", "must", "shall"), "should"),
    **dict.fromkeys(("may", "might"), "may"),
    **dict.fromkeys(("will", "would"), "will"),
}
_SAME: Final = {**_MODALS, "which": "what", "whom": "who"}
_PLAIN_RELATIONS: Final = word_set("to of in on at for with by about and as via into onto through")
_AUXILIARIES: Final = word_set(
    "am is are was were do does did have has had can could will would should shall may might must"
)
# Names the reason only: these count like all other words, but tell a person more.
_DIRECTIONS: Final = word_set(
    """
    on off in out up down from to over under above below before after into onto back forward
    left right start stop begin end open close lock unlock enable disable activate deactivate
    add remove insert delete increase decrease raise lower push pull import export upload download
    show hide connect disconnect mount unmount install uninstall encrypt decrypt encode decode
    accept reject allow deny grant revoke first last next previous more less most least most min max
    minimum maximum inbound outbound internal external public private send receive buy sell
    """
)
# Contractions with and without apostrophe, and spellings of speech.
_IRREGULAR: Final = {
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
    "&": ("and",),
    **{
        base + "nt": (base, "not")
        for base in word_set("do does did is are was were has have had could should would must")
    },
    **{base + "s": (base, "is") for base in word_set("what where who how when that there")},
    **{base + "re": (base, "are") for base in word_set("you they")},
}
_CLITICS: Final = {
    "'s": (),  # "is", "has" or a possessive: none of them counts
    "'re": ("are",),
    "'ll": ("will",),
    "'ve": ("have",),
    "'m": ("am",),
    "'d": ("would",),
    "'": (),
}
# What may stand at the end of a question (what is it for) without changing what is asked.
_STRANDED: Final = frozenset(("", " for", " with", " of", " to", " at", " about"))
_PLAIN_MODALS: Final = word_set("can could would")
# Verbs whose "me" is only courtesy.
_GIVING: Final = word_set("show tell give get find help let remind send bring make buy set")


def _phrases(text: str) -> dict[str, tuple[tuple[str, ...], ...]]:
    """Phrases by their first word, longest first."""
    parsed = [tuple(phrase.split()) for phrase in text.replace("\n", " ").split("|")]
    return {
        first: tuple(sorted((p for p in parsed if p[0] == first), key=len, reverse=True))
        for first in {p[0] for p in parsed}
    }


_OPENINGS: Final = _phrases(
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
_LONGEST_PHRASE: Final = 7
_CLOSINGS: Final = _phrases(  # last word first
    "you thank|me for|us for|can you if|could you if|possible if|much so you thank|"
    "now|now right|asap|immediately|possible as soon as|moment the at|well as|too"
)

# With one of them a question mark adds nothing.
_FOREIGN_QUESTIONS: Final = word_set(
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
_ALPHABETIC: Final = re.compile("[a-z\u00df-\u024f\u0370-\u058f\u10a0-\u10ff]+")


def signature(text: str) -> Signature:
    """The signature of a request; any text will do, it is normalised first. Memoised if short."""
    return _memoised(text) if len(text) <= _MEMO_CHARACTERS else _signature(text)


def _signature(text: str) -> Signature:
    text = normalise(text)
    words = _split(text) or [text]
    marked = text.endswith("?") or "? " in text
    if not is_english(words):
        asks = marked or not _FOREIGN_QUESTIONS.isdisjoint(words)
        plain = tuple(words)
        return Signature(" ".join(words), plain, plain, ("",) * (len(plain) + 1), asks, False)
    request = _without_courtesies(words)
    indirect = bool(request) and request[0] in ("if", "whether")  # tell me if ...
    asks = (
        indirect
        or (bool(request) and request[0] in _AUXILIARIES and request[:2] != ["do", "not"])
        or (marked and len(words) - len(request) < 2)  # "Can you ...?" is no question
        or not _QUESTIONS.isdisjoint(request)
    )
    kept = _without_fillers(request[1:] if indirect else request)
    plain_relations = _PLAIN_RELATIONS
    if STOPWORDS.issuperset(kept):
        kept, plain_relations = words, frozenset()  # nothing but function words: all of them count
    items: list[str] = []
    written: list[str] = []
    relations: list[str] = []
    relation = ""
    for word in kept:
        if word in plain_relations:
            relation += " " + word
            continue
        items.append(_SAME.get(word) or (stem(word) if word.isalpha() else word))
        written.append(word)
        relations.append(relation)
        relation = ""
    relations.append(relation)
    return Signature(" ".join(kept), tuple(items), tuple(written), tuple(relations), asks, True)


_MEMO_CHARACTERS: Final = 1000
_memoised: Final = lru_cache(2048)(_signature)


def _without_fillers(words: list[str]) -> list[str]:
    """What is left without the fillers that are fillers where they stand."""
    kept: list[str] = []
    question = bool(words) and (words[0] in _AUXILIARIES or words[0] in _QUESTIONS)
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
                    filler = not before or before in _GIVING or before in _PLAIN_RELATIONS
                case "us":  # show us; but fly to US cities
                    filler = not before or before in _GIVING
                case _:
                    filler = True
            if filler:
                continue
        elif word == "just" and before in FILLERS:
            continue  # "I just lost it", "it was just lost"; but "lose just one"
        elif word in _PLAIN_MODALS and words[0] in ("how", "where", "when"):
            continue  # "how can I" and "how would I" are "how do I"
        elif (
            word in ("get", "gets", "got", "getting")
            and after.endswith("ed")
            and (question or words[0] in FILLERS)
        ):
            continue  # "did it get deleted" is "was it deleted"; but "get deleted files"
        kept.append(word)
    return kept


def _split(text: str) -> list[str]:
    """Words with contractions written out, and literals (all that is not letters) as they are."""
    words: list[str] = []
    for chunk in _CHUNK.findall(text):
        if chunk.isalpha():
            words.extend(_IRREGULAR.get(chunk, (chunk,)))
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
                words.extend(_written_out(part))
        else:
            words.append(chunk)
    return words


def _written_out(word: str) -> Iterable[str]:
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if word.endswith("n't"):
        return (word[:-3], "not")
    base, mark, clitic = word.partition("'")
    if mark and mark + clitic in _CLITICS:
        return (base, *_CLITICS[mark + clitic])
    return (word,)


def _without_courtesies(words: list[str]) -> list[str]:
    """The words without the phrases that open and close a polite request."""
    start, end = 0, len(words)
    while start < end:
        ahead = words[start : min(start + _LONGEST_PHRASE, end)]
        size = _matching(_OPENINGS, ahead)
        if ahead[0] == "show" and not _QUESTIONS.isdisjoint(ahead[2:3]):
            size = 2  # show me how
        if not size:
            break
        start += size
    while start < end:
        size = _matching(_CLOSINGS, words[max(start, end - _LONGEST_PHRASE) : end][::-1])
        if not size:
            break
        end -= size
    return words[start:end]


def _matching(phrases: Mapping[str, Sequence[tuple[str, ...]]], words: list[str]) -> int:
    """How many words the longest phrase takes that the words begin with."""
    for phrase in phrases.get(words[0], ()):
        if tuple(words[: len(phrase)]) == phrase:
            return len(phrase)
    return 0


def compare(first: str, second: str) -> GateVerdict:
    """Whether the answer to one request may serve the other; symmetric and reflexive."""
    return judge(signature(first), signature(second))


def judge(first: Signature, second: Signature) -> GateVerdict:
    """``compare`` on ready signatures."""
    if first.asks != second.asks:
        return GateVerdict(Difference.QUESTION, *_moods(first, second))
    if len(first.stems) != len(second.stems):
        return _explain(first, second)
    typos = 0
    for i, (one, other) in enumerate(zip(first.words, second.words, strict=True)):
        if one == other:
            continue
        if first.stems[i] == second.stems[i] and (
            not one.isalpha() or one in _SAME or _is_inflection(one, other, first=i == 0)
        ):
            continue
        typos += 1
        english = first.english and second.english
        if typos > MAX_TYPOS or not is_typo(one, other, english=english):
            return _explain(first, second)
    if first.relations != second.relations:
        last = len(first.stems)
        for i, (one, other) in enumerate(zip(first.relations, second.relations, strict=True)):
            # The last word of a text may be a particle (log in), which may not be left out.
            if one != other and (
                not _compatible(one, other) or (i == last and {one, other} - _STRANDED)
            ):
                return GateVerdict(Difference.RELATION, one.strip(), other.strip())
    return _PASS


def _moods(first: Signature, second: Signature) -> tuple[str, str]:
    return (
        ("a question", "a statement") if first.asks > second.asks else ("a statement", "a question")
    )


def _compatible(one: str, other: str) -> bool:
    """Whether one side says nothing that the other does not say: "for me to" and "to"."""
    mine, theirs = set(one.split()), set(other.split())
    return mine <= theirs or theirs <= mine


def _explain(first: Signature, second: Signature) -> GateVerdict:
    """Name the most telling difference between two signatures that do not match."""
    mine = _left_over(first, second)
    theirs = _left_over(second, first)
    if not mine and not theirs:
        if first.stems != second.stems:
            return GateVerdict(Difference.ORDER, " ".join(first.words), " ".join(second.words))
        pairs = zip(first.words, second.words, strict=True)  # of one stem: import, important
        mine, theirs = zip(*(pair for pair in pairs if pair[0] != pair[1]), strict=True)
    kinds = {word: _kind(word) for word in (*mine, *theirs)}
    worst = min(kinds.values(), key=list(Difference).index)
    return GateVerdict(
        worst,
        " ".join(word for word in mine if kinds[word] is worst),
        " ".join(word for word in theirs if kinds[word] is worst),
    )


def _left_over(first: Signature, second: Signature) -> tuple[str, ...]:
    """The words of the first signature whose stems the second has not, or has less often."""
    missing = Counter(first.stems) - Counter(second.stems)
    words: list[str] = []
    for stem_, word in zip(reversed(first.stems), reversed(first.words), strict=True):
        if missing[stem_] > 0:
            missing[stem_] -= 1
            words.append(word)
    return tuple(reversed(words))


def _kind(word: str) -> Difference:
    if not word.isalpha():
        return Difference.NUMBER if any(c.isdigit() for c in word) else Difference.LITERAL
    if word in _NEGATIONS:
        return Difference.NEGATION
    if word in _DIRECTIONS:
        return Difference.DIRECTION
    if word in _QUESTIONS:
        return Difference.QUESTION
    if word in _MODALS:
        return Difference.MODALITY
    return Difference.WORD


_ENDINGS: Final = frozenset(("", "s", "es", "d", "ed", "ing", "e", "y", "ies", "ied", "ying"))


def _is_inflection(one: str, other: str, *, first: bool) -> bool:
    """Whether two words of one stem differ only by number, person or tense.

    The first word of a request mostly is what to do, and "closed issues" is not "close issues".
    """
    if first and one.endswith("ed") != other.endswith("ed"):
        return False
    shared = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        shared += 1
    tails = []
    for word in (one, other):
        tail = word[shared:]
        if len(tail) > 2 and shared and tail[0] == word[shared - 1]:  # plan, planning
            tail = tail[1:]
        tails.append(tail)
    return set(tails) <= _ENDINGS and set(tails) not in ({"", "e"}, {"", "y"})  # past, paste


_KEY_ROWS: Final = ("qwertyuiop", "asdfghjkl", "zxcvbnm")
_SLIPS: Final = frozenset(
    {frozenset(pair) for row in _KEY_ROWS for pair in itertools.pairwise(row)}
    | {frozenset((a, b)) for a in "aeiou" for b in "aeiou" if a != b}
)
"""Letters taken for one another: neighbours on a row of the keyboard, and any two vowels."""
# Real words that look like typos of each other. General English; the rules keep the list short.
_REAL_PAIRS: Final = frozenset(
    frozenset(pair.split("/"))
    for pair in word_set(
        """
        contact/contract contacts/contracts contacted/contracted contacting/contracting
        confirm/conform confirmed/conformed confirming/conforming confirmation/conformation
        complement/compliment complements/compliments complementary/complimentary silver/sliver
        stationary/stationery casual/causal united/untied martial/marital sacred/scared
        complaint/compliant perfect/prefect cavalry/calvary desert/dessert deserts/desserts
        mediation/medication conviction/convection uniformed/uninformed lighting/lightning
        college/collage colleges/collages statute/stature statutes/statures summary/summery
        interment/internment ordnance/ordinance tortuous/torturous compiler/complier
        counties/countries installation/instillation
        """
    )
)
_INFLECTED: Final = re.compile("(?:ings?|ed|e?s)$")
_DOUBLED_ENDING: Final = re.compile(r"(?:ing|ings|ed|er|ers)$")


def may_be_misspelt(word: str) -> bool:
    """Whether the word is long enough for a typo to be told from another word."""
    return MIN_TYPO_LETTERS <= len(word) <= MAX_WORD_LETTERS and word.isalpha()


def is_typo(one: str, other: str, *, english: bool = True) -> bool:
    """Whether one word is a likely misspelling of the other.

    One edit, after the second letter and before the last, of a kind that fingers make and that
    seldom leads to another real word. Real words mostly differ at the start (import, export), at
    the end (compile, compiler; formal, format) or by an unrelated consonant (project, protect):

    * two letters swapped, or one doubled or not, in words of six letters and more;
    * after the third letter, and in words of seven letters and more (not counting -ing, -ed, -s:
      starting, staring), one letter too many or too few, a vowel for a vowel, or the key beside.

    In other languages the latter need ten letters and leave the last three alone.
    """
    if len(one) > len(other):
        one, other = other, one
    if (
        not may_be_misspelt(one)
        or not may_be_misspelt(other)
        or one[:2] != other[:2]
        or one[-1] != other[-1]
        or not (_ALPHABETIC.fullmatch(one) and _ALPHABETIC.fullmatch(other))
        or OSA.distance(one, other, score_cutoff=1) != 1
        or frozenset((one, other)) in _REAL_PAIRS
    ):
        return False
    at = next(i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    if len(one) == len(other):
        if one[at + 1 :] != other[at + 1 :]:
            return True  # swapped
        slip = frozenset((one[at], other[at])) in _SLIPS
    else:
        extra = other[at]
        if extra == other[at - 1]:
            # shoping and shopping are one word, but filing and filling, striped and stripped two
            return not (len(one) < 9 and _DOUBLED_ENDING.fullmatch(one, at))
        slip = english or extra != "m"  # in Turkish an m in the middle of a verb negates it
    if not slip or at < 3:
        return False
    if english:
        return len(_INFLECTED.sub("", one)) >= MIN_SLIP_LETTERS
    return len(one) >= MIN_FOREIGN_SLIP_LETTERS and one[-3:] == other[-3:]
