"""Finds the skills that a request names outright, and those that it refuses by name.

A compound name counts wherever it stands ("run test-driven-development on this"). A simple name is
often an everyday word, so it counts only where it is marked as a name ("/git", "`git`", "the git
skill", "skill: git"), or where the whole request is that name or a list of names ("git and
writer"). As a whole request, a name may be written in other ways, too: "trackContainer" and "track
container" for track_container.

In the midst of a sentence "/git" may be a path, and "$git" a variable. There they count only behind
a word that calls a skill ("use /git") or refuses it, and behind another name.

A name is refused only where the words directly before it say so ("do not use the git skill"), and
so are the names that follow it in a list. A name near another negation ("without errors in git")
is neither wanted nor refused: the request is then ranked as any other.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from router.retrieval.documents import Edit

_TOKEN: Final = re.compile(r"[^\s,;!?()\[\]{}<>|]+")
_MARKS: Final = "/$@`"
_MARKS_OF_PATHS: Final = "/$"
_EDGES: Final = _MARKS + "#'\"*.:"
_COMPOUND: Final = re.compile(r"\w[-_.:/]\w")
_HUMP: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
"""Where a word begins in trackContainer."""
_LEAD: Final = re.compile(
    r"\s*(?:(?:please|use|run|load|open|call|take|apply|invoke)\b\s*)*"
    r"(?:(?:the )?(?:skills?|tools?)\b:?)?\s*"
)
"""What may stand before a list of names."""
_BETWEEN: Final = re.compile(r"[,;&+\n]|\b(?:and|then|plus)\b")
"""What stands between the names where the whole request is a list of them."""
_NOUNS: Final = frozenset(("skill", "skills", "tool", "tools"))
_LABELS: Final = frozenset(f"{noun}:" for noun in _NOUNS)
_REFUSAL: Final = re.compile(
    r"(?:\b(?:do not|don['\u2019]?t|never|not to|cannot|"
    r"(?:can|could|should|must|would|may|need)(?: not|n['\u2019]?t)) "
    r"(?:use|run|load|call|pick|choose|take|apply|invoke)|"
    r"\b(?:without|except(?: for)?|avoid|instead of|rather than|other than|"
    r"(?:anything|everything) but|(?<!why )not)(?: (?:using|use|with))?)"
    r" (?:(?:any|either|one) of )?(?:(?:the|these|those|any|a|my) )?(?:(?:skills?|tools?):? )?$"
)
"""What stands directly before a refused name."""
_CALL: Final = re.compile(
    r"(?:(?:^|[.!?;:(])(?:\s*(?:and|but|so|now)\b)?|"
    r"\b(?:please|then|have|use|using|run|running|with|via|try|call|invoke|apply)(?: the)?)\s*\Z",
    re.MULTILINE,
)
"""What stands directly before "/git" and "$git" where they name a skill."""
_LISTED: Final = re.compile(r"[\s,]*(?:or|and|nor|(?P<wanted>and then|then|but))?\s*(?:the )?")
"""What stands between two names of a list, or of a refused name and the one that is wanted."""
_NEGATION: Final = re.compile(
    r"\b(?:not|don['\u2019]?t|never|no|without|except)(?: (?!but )[^\s,;:!?()]+){0,2} $"
)
"""A name behind it in the same clause is not wanted."""
_SPACES: Final = re.compile(r"\s+")
_CHARACTERS_BEFORE: Final = 80
"""So much of the text before a name is read."""
MAX_READ_CHARACTERS: Final = 2_000


class NamedSkills(NamedTuple):
    """The skills that a request names, in its order, each once.

    Attributes:
        wanted: those that it asks for.
        refused: those that it names only to say that they are not wanted.
        is_addressed: whether one of ``wanted`` cannot be a mere word of the request: it is the
            whole request or in a list that is, is marked ("/git"), or stands beside "skill".
    """

    wanted: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    is_addressed: bool = False


class SkillNames:
    """The names of a catalog's skills, in the spellings of requests. Immutable."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._by_spelling: dict[str, str] = {}
        self._by_words: dict[str, str] = {}
        for name in names:
            self._put(name)

    def edited(self, edit: Edit, names: Sequence[str]) -> SkillNames:
        """The names of the edited index; ``names`` are all of them."""
        after = SkillNames()
        after._by_spelling, after._by_words = self._by_spelling.copy(), self._by_words.copy()
        for document in edit.removed:
            after._by_spelling.pop(document.name.casefold(), None)
            after._by_words.pop(_words(document.name), None)
        for document in edit.added:
            after._put(document.name)
        # Where several names have one spelling, the last of them wins, so all are needed again.
        alike = min(len(after._by_spelling), len(after._by_words)) < len(names)
        return SkillNames(names) if alike else after

    def _put(self, name: str) -> None:
        folded = name.casefold()
        # Most names are in lower case already. To use one string object for both saves memory.
        self._by_spelling[name if folded == name else folded] = self._by_words[_words(name)] = name

    def named_in(self, request: str) -> NamedSkills:
        """The skills that a request names."""
        text = request[:MAX_READ_CHARACTERS].casefold()
        whole = self._whole(request[:MAX_READ_CHARACTERS]) or self._list(text)
        if whole:
            return NamedSkills(whole, is_addressed=True)
        wanted: dict[str, None] = {}
        refused: dict[str, None] = {}
        is_addressed, end_of_name, is_refused = False, -1, False
        spoken = list(_TOKEN.finditer(text))
        for place, token in enumerate(spoken):
            bare = token[0].strip(_EDGES)
            name = self._by_spelling.get(bare)
            if name is None:
                continue
            label = spoken[place - 1][0] if place else ""
            follower = spoken[place + 1][0].strip(_EDGES) if place + 1 < len(spoken) else ""
            start = token.start()
            before = _SPACES.sub(" ", text[max(0, start - _CHARACTERS_BEFORE) : start])
            is_listed = _LISTED.fullmatch(text, end_of_name, start) if end_of_name >= 0 else None
            refuses = _REFUSAL.search(before)
            called = refuses or is_listed or _CALL.search(text, start - len(before), start)
            marked = token[0][0] in _MARKS and (called or token[0][0] not in _MARKS_OF_PATHS)
            marked = bool(marked) or follower in _NOUNS or label in _LABELS
            if not (marked or _COMPOUND.search(bare)):
                continue
            is_refused = bool(refuses or (is_listed and not is_listed["wanted"] and is_refused))
            end_of_name = token.end()
            if is_refused:
                refused.setdefault(name)
            elif not _NEGATION.search(before):
                wanted.setdefault(name)
                is_addressed |= marked
        unwanted = tuple(name for name in refused if name not in wanted)
        return NamedSkills(tuple(wanted), unwanted, is_addressed)

    def _whole(self, text: str) -> tuple[str, ...]:
        """The skill whose name a text is, in any spelling; empty where it is none."""
        text = text.strip(_EDGES + " \n\t")
        name = self._by_words.get(_words(text)) or self._by_words.get(_words(_HUMP.sub(" ", text)))
        return () if name is None else (name,)

    def _list(self, text: str) -> tuple[str, ...]:
        """The skills whose names a case-folded text lists, if it holds nothing else; else empty."""
        lead = _LEAD.match(text)
        parts = [part for part in _BETWEEN.split(text[lead.end() if lead else 0 :]) if part.strip()]
        names: dict[str, None] = {}
        for part in parts if len(parts) > 1 else ():
            name = self._whole(part)
            if not name:
                return ()
            names.update(dict.fromkeys(name))
        return tuple(names)

    def removed_from(self, text: str) -> str:
        """A text without the compound names of skills in it."""
        return _TOKEN.sub(self._without_name, text)

    def _without_name(self, token: re.Match[str]) -> str:
        bare = token[0].strip(_EDGES).casefold()
        return "" if bare in self._by_spelling and _COMPOUND.search(bare) else token[0]


def _words(text: str) -> str:
    return " ".join(re.split(r"[\W_]+", text.casefold())).strip()
