"""Queries that name no subject: "What did we do last week?", "Which tasks are overdue?".

They ask for everything that a layer holds of a time or a kind, and the layer lists it. An item of
the list need not share a word with the query, so its relevance cannot be judged from words.
"""

from __future__ import annotations

import re
from typing import Final

from router.memory.model import LayerQuery
from router.text import STOPWORDS, stem, stems, tokens, word_set


def _stems(words: str) -> frozenset[str]:
    return frozenset(stems(words))


_EVENT_STEMS: Final = _stems(
    """
    happened happening done going work worked talk talked said say spoke discuss discussed
    events history continue doing thing
    """
)
"""Words that ask for everything that happened."""
TASK_STEMS: Final = _stems(
    """
    task tasks todo todos list pending open due overdue late missed reminder remind deadline
    next action item upcoming outstanding left remaining still need needs anything something
    done completed finished closed resolved cancel cancelled canceled dropped abandoned past show
    get work plate agenda today soon yet blocked stuck paused progress
    """
)
"""Words that ask for tasks, or say which tasks are meant."""
COMING_UP: Final = re.compile(
    r"\b(?:coming|comes?) up\b|(?<=^what['\u2019]s )next\b|(?<=^what is )next\b", re.IGNORECASE
)
"""Asks for everything that is to come."""
BLOCKED: Final = re.compile(
    r"(?<!not )(?<!n['\u2019]t )\b(?:blocked|stuck|paused|on hold|waiting(?: for| on)?(?=\W*$))\b",
    re.IGNORECASE,
)
IN_PROGRESS: Final = re.compile(
    r"(?<!not )(?<!n['\u2019]t )\bin progress\b"
    r"|\b(?:am I|are we|I['\u2019]m|we['\u2019]re) (?:\w+ )?working on\b",
    re.IGNORECASE,
)
_IS_DONE: Final = re.compile(
    r"^\W*what(?: is|['\u2019]s)(?P<not>n['\u2019]t| not)?(?: already)? done(?: yet| already)?\W*$",
    re.IGNORECASE,
)
"""Asks for tasks; "What have we done?" and "What is done today?" ask for what happened."""
REPORT: Final = re.compile(
    r"\b(?:catch (?:me|us) up|(?:bring|get) (?:me|us) up to (?:speed|date)|fill (?:me|us) in"
    r"|(?:update|brief) (?:me|us)|walk (?:me|us) through"
    r"|(?:give|get) (?:me|us) (?:an?|the) (?:(?:quick|short|brief) )?"
    r"(?:rundown|recap|summary|overview|update))\b(?: (?:on|about|of)\b)?",
    re.IGNORECASE,
)
"""Asks for a report of what follows, and says nothing of it."""
TO_DO: Final = re.compile(r"\bshould (?:I|we) (?:do|work on|tackle)\b", re.IGNORECASE)
META_STEMS: Final = _stems(
    """
    know known knowledge remember remembered memory memories store stored hold held cover
    covered coverage expertise expert gap gaps missing many much little anything something
    everything notes topic topics subject subjects best well have learned information info
    overview summary count total about tell
    """
)
"""Words that ask about the memory itself."""
_TALK_STEMS: Final = _stems(
    "just stop stopped chat conversation session so far recap summarize summarise"
)
_ASKING_STEMS: Final = _EVENT_STEMS | TASK_STEMS | META_STEMS | _TALK_STEMS
_STEMS_WITH_A_TIME: Final = _stems(
    """
    appointment appointments save saved note noted write wrote written down record recorded log
    logged entry took take place occur occurred experience experienced got went wrong right well up
    new planned plan plans
    """
)
"""Words that ask for everything of a time, in a query that names one."""
_USE_STEMS: Final = _stems("use used run ran have had rely relied depend depended")
"""Words that ask for what was in use."""
_ONLY_TASK_STEMS: Final = _stems(
    """
    task todo due overdue pending reminder deadline upcoming outstanding completed finished closed
    resolved cancel cancelled canceled dropped abandoned blocked plate agenda
    """
)
"""Words that ask for tasks and for nothing else."""
_AT_PRESENT: Final = re.compile(r"\b(?:right now|at the moment|at present)\b", re.IGNORECASE)
"""Phrases for now. Single words for it, such as "currently", are left out of the terms anyway."""
_WHEN: Final = re.compile(
    r"^\W*(?:(?:until|till|since|by|from|on|at|in) )?"
    r"(?:when|(?:what|which) (?:time|day|date|month|year)|how long)\b",
    re.IGNORECASE,
)
_PLANNED_WORDS: Final = word_set("planned scheduled")
"""These ask for tasks if the query names no subject."""
_GOING_TO_WORK: Final = re.compile(
    r"\b(?:to|begin|start|stop|finish|leave) work\b(?! (?:on|through)\b)", re.IGNORECASE
)
"""Phrases in which "work" is a place, and asks for nothing."""
_LAYER_OF_KIND: Final = {
    word: layer
    for layer, words in {
        "user": "preference habit profile background",
        "project": "convention decision decided project codebase repository",
        "governance": "rule policy regulation",
        "planning": "plan goal roadmap strategy",
    }.items()
    for word in _stems(words)
}
"""Words that name a kind of memory, by stem, and the layer of that kind."""
_ABOUT_THE_USER: Final = re.compile(
    r"\babout (?:me|myself|the user)\W*$|^\W*who (?:am I|is the user)\W*$", re.IGNORECASE
)
_STEMS_BESIDE_A_KIND: Final = META_STEMS | _stems(
    "user myself team company our current important main"
)
MAX_KEYWORDS: Final = 5
_ABOUT: Final = re.compile(
    r"^\W*(?:(?:what|how) about|tell (?:me|us) (?:more )?about)\b(?:\s+(?:the|an?|my|our)\b)?\s*",
    re.IGNORECASE,
)
"""Asks for whatever is known of what follows."""


def bare_keywords(text: str) -> str:
    """What a query consists of if it is bare keywords, as one types them into a search box: "redis
    timeout". Then no layer can be ruled out, because keywords do not tell what is asked. "Redis?",
    "What about Redis?" and "Tell me about the timeout" tell no more. Empty for any other query.
    """
    named = _ABOUT.sub("", text).rstrip(" ?!.")
    words = tokens(named)
    # The part before an apostrophe, too: "who's" asks as "who" does.
    asking = {*words, *(word.split("'")[0] for word in words)}
    is_bare = 0 < len(words) <= MAX_KEYWORDS and "?" not in named and STOPWORDS.isdisjoint(asking)
    return named if is_bare else ""


def is_keyword(text: str) -> bool:
    """Whether a query is bare keywords; see ``bare_keywords``."""
    return bool(bare_keywords(text))


def asks_what_was_in_use(query: LayerQuery) -> bool:
    """Whether a query asks for everything that was in use in a past period: "What did we use in
    March?"."""
    stems_of_terms = {stem(term) for term in query.terms}
    is_over = query.period is not None and query.period.end <= query.now
    return (
        is_over
        and not stems_of_terms.isdisjoint(_USE_STEMS)
        and stems_of_terms <= _USE_STEMS | _ASKING_STEMS
    )


def asks_for_events(query: LayerQuery) -> bool:
    """Whether a query asks for everything that happened: "What did we do?". One that names a time
    and no subject asks for everything of that time: "Was there anything yesterday?"."""
    if query.period is None:
        return all(stem(term) in _EVENT_STEMS for term in query.terms)
    return names_no_subject(query)


def asks_what_happened(query: LayerQuery) -> bool:
    """Whether a query asks for everything that happened in a time that has begun, by that time
    alone ("29 Oct to 5 Nov", "What about Monday?") or by what is done then ("What is done
    today?")."""
    if query.period is None or query.period.start > query.now:
        return False
    done = _IS_DONE.search(query.timeless)
    return done["not"] is None if done else not _ABOUT.sub("", query.timeless).strip(" ?.!")


def asks_for_tasks(query: LayerQuery) -> bool:
    """Whether a query asks for tasks of any subject: "What is coming up in December?"."""
    return names_no_subject(query) and (
        any(stem(term) in _ONLY_TASK_STEMS or term in _PLANNED_WORDS for term in query.terms)
        or any(
            asking.search(query.text)
            for asking in (COMING_UP, BLOCKED, IN_PROGRESS, TO_DO, _IS_DONE)
        )
    )


def asks_when(text: str) -> bool:
    """Whether a query asks for a time: "Until when is my passport valid?"."""
    return _WHEN.search(text) is not None


def asks_for_kind(query: LayerQuery) -> str | None:
    """The layer of the kind of memory that a query names, if it names nothing else: ``project`` for
    "What are our conventions?", ``user`` for "What do you know about me?". None for any other
    query, and for one that names several kinds."""
    if query.period is not None or asks_for_tasks(query):
        return None
    words = {stem(term) for term in query.terms}
    kinds = {_LAYER_OF_KIND[word] for word in words if word in _LAYER_OF_KIND}
    if not words <= _LAYER_OF_KIND.keys() | _STEMS_BESIDE_A_KIND:
        return None
    if _ABOUT_THE_USER.search(query.text):
        return "user"
    kinds = kinds - {"project"} or kinds
    return kinds.pop() if len(kinds) == 1 else None


def names_no_subject(query: LayerQuery) -> bool:
    """Whether no word of a query says what the wanted memories are about."""
    phrases = [*_AT_PRESENT.findall(query.text), *BLOCKED.findall(query.text)]
    also_asking = _PLANNED_WORDS | word_set(" ".join(phrases))
    asking = _ASKING_STEMS if query.period is None else _ASKING_STEMS | _STEMS_WITH_A_TIME
    return not _GOING_TO_WORK.search(query.text) and all(
        stem(term) in asking or term in also_asking for term in query.terms
    )
