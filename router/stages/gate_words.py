"""The words that the content gate treats in a special way, as data.

General English function words, the phrases of polite requests, and the question words of other
languages. The fillers, which retrieval needs too, are in ``router.text``.
"""

from __future__ import annotations

from typing import Final

from router.text import word_set

NEGATIONS: Final = word_set("not no never without neither nor none nothing nobody nowhere non")
QUESTIONS: Final = word_set("what which who whom whose when where why how")
# Modal verbs of one meaning count as one.
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
# Names the reason only: these count like all other words, but tell a person more.
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
# Contractions with and without apostrophe, and spellings of speech.
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
    "'s": (),  # "is", "has" or a possessive: none of them counts
    "'re": ("are",),
    "'ll": ("will",),
    "'ve": ("have",),
    "'m": ("am",),
    "'d": ("would",),
    "'": (),
}
PLAIN_MODALS: Final = word_set("can could would")
# Verbs whose "me" is only courtesy.
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
CLOSINGS: Final = _phrases(  # last word first
    "you thank|me for|us for|can you if|could you if|possible if|much so you thank|"
    "now|now right|asap|immediately|possible as soon as|moment the at|well as|too"
)
LONGEST_PHRASE: Final = max(
    len(phrase) for phrases in (*OPENINGS.values(), *CLOSINGS.values()) for phrase in phrases
)
"""In words."""

# With one of them a question mark adds nothing.
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
