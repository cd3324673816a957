"""A query, rewritten once for all layers: content terms, names, and the time it speaks of.

Each layer takes what it can use: lexical search the terms, the graph the names, the layers that
live by time the period. Any language is accepted; stop words and times are known in English only,
and elsewhere every word is a term. What counts as a name is decided by its shape, never by a list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import datetime
from itertools import chain
from typing import Final, TypeAlias

from router.errors import InvalidRequest
from router.memory.model import MAX_QUERY_CHARACTERS, LayerQuery
from router.memory.query.listing import COMING_UP
from router.memory.query.past import without_past_words
from router.memory.query.time_expressions import find_period
from router.request import check_text
from router.text import STOPWORDS, tokens, word_set

MAX_ENTITIES: Final = 20

_TIME_WORDS: Final = word_set(
    """
    ago yesterday today tonight tomorrow recently lately earlier last past previous latest
    day days week weeks weekend month months year years hour hours minute minutes
    morning afternoon evening night noon midnight when since until
    """
)
"""They say when, not what; the period has taken what could be understood of them."""

_QUOTED: Final = re.compile(
    r"(?<!\w)(?:\"([^\"\n]{1,200})\"|'([^'\n]{1,200})'|`([^`\n]{1,200})`"
    r"|\u201c([^\u201d\n]{1,200})\u201d|\u2018([^\u2019\n]{1,200})\u2019)(?!\w)"
)
_SHAPES: Final = re.compile(
    r"""(?<![\w@#/.-])(?:
        https?://[^\s<>"']+
      | @[A-Za-z][\w-]*                              # @handle
      | \#\d+ | [A-Z][A-Z0-9]+-\d+                   # issues: #12, ABC-12
      | (?:~?/|\.{1,2}/)?(?:[\w.@-]+/)+[\w.@-]*\w    # path/to/file
      | \w[\w-]+(?:\.[\w-]+)*\.[A-Za-z]\w{0,4}       # file.py, archive.tar.gz
      | [A-Za-z]\w+(?:(?:::|\.)[A-Za-z_]\w*)+        # std::vector, Class.method
      | \w*[A-Za-z0-9]_\w+                           # snake_case
      | [a-z]+[A-Z]\w* | [A-Z][a-z0-9]+[A-Z]\w*      # camelCase, CamelCase
    )(?![\w@])""",
    re.VERBOSE,
)
_WORD: Final = re.compile(r"[^\W_](?:[\w'\u2019+#-]*\w|[+#]+)?")
_SENTENCE_END: Final = re.compile(r"[.!?:]['\"\u201d\u2019)]?\s|\n")
_TITLES: Final = word_set("dr mr mrs ms prof st")
_NO_NAMES: Final = _TITLES | word_set("i i'm i've i'd i'll ok")

_THEIR_OWN: Final = re.compile(
    r"(?<!\ba )(?<!\beach )(?<!\bevery )(?<!\banother )\b(?:the )?user['\u2019]s\b", re.IGNORECASE
)
"""Not of "a user's session", which is anybody's."""
_THEY_DO: Final = re.compile(
    r"\b((?:do|does|did|is|was|has|had|can|could|may|might|should|would|will|must)"
    r"(?:n?['\u2019]t)?) the user\b"
    r"(?! (?:tables?|interface|guide|story|stories|services?|accounts?|ids?|models?|data)\b)",
    re.IGNORECASE,
)
"""Not of "the user table", as far as compounds are common."""
_THEM: Final = re.compile(r"\bthe user(?=\W*$)", re.IGNORECASE)


def rewrite(text: str, *, now: datetime) -> LayerQuery:
    """Read a query of 1 to 2,000 characters of any language. ``now`` is aware: what "yesterday"
    counts from."""
    check_text("query", text, MAX_QUERY_CHARACTERS)
    if now.tzinfo is None:
        raise InvalidRequest("now: a time without a time zone is ambiguous")
    found = find_period(text, now)
    timeless = without_past_words(text if found is None else found.removed_from(text))
    timeless = COMING_UP.sub(" ", timeless)
    terms = tuple(
        word for word in tokens(timeless) if word not in STOPWORDS and word not in _TIME_WORDS
    )
    period = None if found is None else found.period
    span = None if found is None else found.span
    return LayerQuery(text, terms, _entities(text, span), period, now, timeless)


def _entities(text: str, time: tuple[int, int] | None) -> tuple[str, ...]:
    """Names of things in order, as written, each once; a name inside another one is part of it."""
    taken = [] if time is None else [time]
    named: list[tuple[int, str]] = []
    shaped = ((*match.span(), match.group()) for match in _SHAPES.finditer(text))
    for start, end, name in chain(_quoted(text), shaped, _capitalised(text)):
        if any(start < last and first < end for first, last in taken):
            continue
        taken.append((start, end))
        named.append((start, name))
        if len(named) == MAX_ENTITIES:
            break
    return tuple(dict.fromkeys(name for _, name in sorted(named)))


_Named: TypeAlias = tuple[int, int, str]
"""Where a name starts and ends, and the name."""


def _quoted(text: str) -> Iterator[_Named]:
    for match in _QUOTED.finditer(text):
        if name := (match.group(match.lastindex or 0)).strip():
            yield match.start(), match.end(), name


def _capitalised(text: str) -> Iterator[_Named]:
    """Runs of capitalised words, such as "Anna Weber".

    At the start of a sentence a capital proves nothing, unless all letters are capitals ("JWT").
    """
    run: list[re.Match[str]] = []
    previous: re.Match[str] | None = None
    for match in _WORD.finditer(text):
        between = text[previous.end() if previous else 0 : match.start()]
        first = previous is None or _ends_sentence(previous.group(), between)
        if run and (first or between != " "):
            yield _joined(run)
            run = []
        if _is_name(match.group(), first=first):
            run.append(match)
        elif run:
            yield _joined(run)
            run = []
        previous = match
    if run:
        yield _joined(run)


def _ends_sentence(word: str, between: str) -> bool:
    """Whether a sentence ends between ``word`` and the next one."""
    if between.startswith(".") and word.casefold() in _TITLES:
        return False
    return _SENTENCE_END.search(between) is not None


def _joined(run: list[re.Match[str]]) -> _Named:
    name = " ".join(match.group() for match in run)
    return run[0].start(), run[-1].end(), name.removesuffix("'s").removesuffix("\u2019s")


def _is_name(word: str, *, first: bool) -> bool:
    letters = [character for character in word if character.isalpha()]
    if not letters or not word[0].isupper() or word.casefold() in _NO_NAMES:
        return False
    if first:
        return len(letters) > 1 and all(character.isupper() for character in letters)
    return True


def in_first_person(text: str) -> str:
    """A query about "the user", as the user would put it: "What are the user's allergies?" is "What
    are my allergies?". Agents ask so, of memories that people told of themselves. "The user table"
    stays."""
    return _THEM.sub("me", _THEY_DO.sub(r"\1 I", _THEIR_OWN.sub("my", text)))
