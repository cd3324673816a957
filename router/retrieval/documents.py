"""The document of a skill for retrieval: six text fields, each a bag of stems, and its examples.

The body matters as much as the description, because many requests name a symptom or a tool that
only the instructions mention. Code counts less than prose. A section that says when to use the
skill is also a field of its own, so its words count twice.
"""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import sys
from base64 import b64decode, b64encode
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, TypeVar

import numpy as np
import Stemmer
from numpy.typing import NDArray

from router.retrieval.phrases import is_profile, profile_of
from router.skills.manifest import SkillManifest
from router.text import content_words, stems_of, tokens

T = TypeVar("T", bound=np.generic)

FIELDS: Final = ("name", "hints", "description", "prose", "code", "when")

MAX_BODY_CHARACTERS: Final = 20_000
"""At most this much of a body is read; the skill format asks for under 5,000 tokens."""

MAX_SECTION_CHARACTERS: Final = 1_500

_CAMEL: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
_CAMEL_CASE: Final = re.compile(r"\b[A-Z]*[a-z0-9_]*[a-z][A-Z]\w*")
_FENCE: Final = re.compile(r"^(```|~~~).*?(?:^\1|\Z)", re.DOTALL | re.MULTILINE)
_WHEN: Final = re.compile(
    r"^#{1,6}[^\n]*\b(?:when|use case|trigger|purpose|overview|what)[^\n]*\n(.*?)(?=^#|\Z)",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)


def indexed_words(text: str) -> dict[str, int]:
    """The content words of a skill's text, with their counts. An identifier counts whole and in
    parts, so that "FlatList" is found by "flatlist" and by "list"."""
    parts = [part for name in _CAMEL_CASE.findall(text) for part in _CAMEL.split(name)]
    counted = Counter(tokens(text))
    counted.update(tokens(" ".join(parts)))
    return {word: counted[word] for word in content_words(counted)}


@dataclass(frozen=True, slots=True)
class SkillDocument:
    """Everything about one skill that an index needs, made from its manifest alone.

    Attributes:
        name: the skill's name.
        fields: for each of ``FIELDS`` the stems with their counts.
        words: every different word, not stemmed, for the spelling index.
        examples: requests that the skill should serve, by its author and from its enrichment, each
            once.
        phrases: the phrase profiles of the examples, see ``profile_of``.
        head: one text that says what the skill is for, for the encoder.
        body: the instructions, cut, for the encoder.
        digest: of ``head`` and ``body``: an equal digest means an equal vector.
        stale: how many of the examples were written for another version of the skill.
    """

    name: str
    fields: tuple[Mapping[str, int], ...]
    words: frozenset[str]
    examples: tuple[str, ...]
    phrases: bytes
    head: str
    body: str
    digest: str
    stale: int = 0

    @classmethod
    def of(cls, skill: SkillManifest, *, kept: bytes | None = None) -> SkillDocument:
        """The document of a skill. ``kept`` is the stored ``analysis`` of the same texts, which
        then need not be analysed again."""
        title, hints, _, body = _texts(skill)
        head = f"{title}. {skill.description} {hints}".rstrip()
        digest = hashlib.sha256(f"{head}\0{body}".encode("utf-8", "replace")).hexdigest()
        fields, found_words, phrases = _analysed(skill) if kept is None else _read(kept)
        examples = examples_of(skill)
        stale = len(examples) - len(frozenset(skill.examples)) if skill.enrichment_is_stale else 0
        return cls(skill.name, fields, found_words, examples, phrases, head, body, digest, stale)

    @property
    def analysis(self) -> bytes:
        """Fields, words and phrases as bytes to store."""
        kept = {
            "fields": self.fields,
            "words": sorted(self.words),
            "phrases": b64encode(self.phrases).decode("ascii"),
        }
        return json.dumps(kept, ensure_ascii=True, separators=(",", ":")).encode("ascii")


@dataclass(frozen=True, slots=True)
class Edit:
    """The difference between one index and the next. Each part of an index keeps its data of the
    unchanged skills, and reads the documents of the others. Documents are not kept afterwards.

    Attributes:
        kept: for each skill of the new index, in the order of names, its place in the old one; -1
            for a new or changed skill.
        added: the documents of the new and changed skills, in the same order.
        removed: the documents of the removed and changed skills, as they were.
        more: whether other edits follow before the index is used. Work that only a search needs may
            then wait for the last edit.
    """

    kept: NDArray[np.intp]
    added: Sequence[SkillDocument]
    removed: Sequence[SkillDocument] = ()
    more: bool = False

    @property
    def places(self) -> NDArray[np.intp]:
        """The places of the added skills in the new index."""
        return np.flatnonzero(self.kept < 0)

    def carried(self, before: NDArray[T], added: NDArray[T]) -> NDArray[T]:
        """The new table with one row for each skill, from the old table and the rows of
        ``added``."""
        if len(added) == len(self.kept):
            return added
        table = before.take(self.kept, axis=0, mode="wrap")  # -1 takes the last row: replaced below
        if len(added):
            table[self.places] = added
        return table


def analysis_key(skill: SkillManifest) -> str:
    """The key of a skill's stored analysis: a digest of its texts and of the code that reads
    them."""
    texts = "\0".join(map(repr, (generation(), *_texts(skill), *examples_of(skill))))
    return "analysis/" + hashlib.sha256(texts.encode("utf-8", "replace")).hexdigest()


@cache
def generation() -> str:
    """A digest of the code that analyses texts, so that the analyses of older code are not used."""
    modules = (stems_of.__module__, profile_of.__module__, __name__)
    code = "".join(inspect.getsource(sys.modules[name]) for name in modules)
    return hashlib.sha256(f"{Stemmer.version()}\0{code}".encode()).hexdigest()


def _texts(skill: SkillManifest) -> tuple[str, str, str, str]:
    """Title, hints, description and body. Stale requests are no hints: they may be about what the
    skill was for, and a request that shares their words would be a certain match."""
    title = skill.name.replace("-", " ").replace("_", " ")
    examples = skill.examples if skill.enrichment_is_stale else examples_of(skill)
    hints = ". ".join((*skill.routing_keywords, *skill.intents, *examples))
    return title, hints, skill.description, skill.body[:MAX_BODY_CHARACTERS]


def examples_of(skill: SkillManifest) -> tuple[str, ...]:
    """The examples of a skill: its author's first, then those that an LLM has written."""
    written = () if skill.enrichment is None else skill.enrichment.requests
    return tuple(dict.fromkeys((*skill.examples, *written)))


_Analysis = tuple[tuple[Mapping[str, int], ...], frozenset[str], bytes]
"""Fields, words and phrases."""


def _read(kept: bytes) -> _Analysis:
    """Read a stored ``analysis``.

    Raises:
        ValueError: it is damaged.
    """
    try:
        found = json.loads(kept)
        fields = tuple(found["fields"])
        if len(fields) != len(FIELDS) or not all(isinstance(field, dict) for field in fields):
            raise ValueError("the fields are not whole")
        phrases = b64decode(found["phrases"], validate=True)
        if not is_profile(phrases):
            raise ValueError("the phrases are not whole")
        return fields, frozenset(found["words"]), phrases
    except (KeyError, TypeError) as error:
        raise ValueError(f"a kept analysis is damaged: {error}") from error


def _analysed(skill: SkillManifest) -> _Analysis:
    """The stems of each field with their counts, every word, and the phrase profiles."""
    title, hints, description, body = _texts(skill)
    prose = _FENCE.sub("\n", body)
    code = "\n".join(match.group() for match in _FENCE.finditer(body))
    when = " ".join(match.group(1)[:MAX_SECTION_CHARACTERS] for match in _WHEN.finditer(prose))
    counted = [indexed_words(text) for text in (title, hints, description, prose, code, when)]
    fields = tuple(map(_by_stem, counted))
    return fields, frozenset().union(*counted), profile_of(examples_of(skill))


def _by_stem(counted: Mapping[str, int]) -> dict[str, int]:
    """The counts of the stems, from the counts of the words."""
    found: dict[str, int] = {}
    for root, count in zip(stems_of(counted), counted.values(), strict=True):
        found[root] = found.get(root, 0) + count
    return found
