"""A request as retrieval reads it: its words, corrected and numbered as terms, and its vectors.

It is read as a whole, and clause by clause where it has several. How well the skills fit it is
computed from that (``scoring.py``).
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Iterable, Sequence
from copy import copy
from typing import Final, NamedTuple, Self, TypeAlias

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from router.errors import EncoderError
from router.retrieval.bundled_encoder import bundled_words
from router.retrieval.documents import Edit
from router.retrieval.encoders import Encoder, checked, unit
from router.retrieval.lexical import LexicalIndex
from router.retrieval.spelling import SpellingIndex
from router.text import LETTERS, STOPWORDS, compatible, stems_of, tokens, words_of_each

REMEMBERED_VECTORS: Final = 1_024
MAX_CLAUSES: Final = 12
"""Clauses of one request that are ranked by themselves; hardly any has more."""
MAX_MISSPELT: Final = 100
"""Unknown words of a request that are looked up as misspelt; a pasted log is full of them."""

_BREAK: Final = re.compile(
    r"(?<=[.!?;:])\s+|,\s+(?:and|then|so|but)\s+"
    r"|(?<!\s)\s+(?:and then|and|then|plus|afterwards|also|-)\s+|(?P<comma>,\s+)|\n+"
)
MAX_READ_CHARACTERS: Final = 4_000
"""What retrieval reads of a request, so that none keeps the event loop for long. Whoever pastes a
log says before or after it what to do: of a longer request the beginning and the end are read."""
_END_CHARACTERS: Final = 1_000
_MIN_WORDS: Final = 2
"""A part with fewer content words says nothing by itself and stays with its neighbour."""


def readable(request: str) -> str:
    """What retrieval reads of a request; see ``MAX_READ_CHARACTERS``."""
    if len(request) <= MAX_READ_CHARACTERS:
        return request
    return f"{request[: MAX_READ_CHARACTERS - _END_CHARACTERS]}\n{request[-_END_CHARACTERS:]}"


class Part(NamedTuple):
    """A clause.

    Attributes:
        listed: nothing but a comma sets it apart from the clause before.
    """

    text: str
    listed: bool = False


def clauses(request: str) -> list[Part]:
    """The clauses of a request in order, at least one; each but a lone one has two content words
    or more."""
    breaks = list(_BREAK.finditer(request))
    starts = [0, *(found.end() for found in breaks)]
    ends = [*(found.start() for found in breaks), len(request)]
    listed = [False, *(found["comma"] is not None for found in breaks)]
    found = [
        Part(text, alone)
        for start, end, alone in zip(starts, ends, listed, strict=True)
        if (text := request[start:end]).strip()
    ]
    if len(found) < 2:
        return found or [Part(request)]
    parts: list[list[Part]] = []
    count = 0  # of the content words in the last part
    for part, (_, words) in zip(found, words_of_each([one.text for one in found]), strict=True):
        more = len(words)
        if parts and (more < _MIN_WORDS or count < _MIN_WORDS):
            parts[-1].append(part)
            count += more
        else:
            parts.append([part])
            count = more
    return [Part(" ".join(one.text for one in part), part[0].listed) for part in parts]


class EncodedRequest(NamedTuple):
    """A request and its clauses as the encoder sees them.

    Attributes:
        texts: the request, and where it has several clauses, the first ``MAX_CLAUSES`` of them.
        vectors: one row of unit length for each text. The request's is the mean over all its
            clauses, so that a long one does not drown a short one.
        listed: for each of several clauses whether only a comma sets it apart from the one before.
    """

    texts: tuple[str, ...]
    vectors: NDArray[np.float32]
    listed: tuple[bool, ...] = ()


def encode_requests(encoder: Encoder, requests: Sequence[str]) -> list[EncodedRequest]:
    """The vectors of requests and of their clauses, encoded in one call."""
    parts = [clauses(request) for request in requests]
    every = [clause.text for clause_list in parts for clause in clause_list]
    encoded = checked(encoder.encode(every), len(every), encoder.identity)
    found = []
    for request, own in zip(requests, parts, strict=True):
        rows, encoded = encoded[: len(own)], encoded[len(own) :]
        if len(own) == 1:
            found.append(EncodedRequest((request,), rows))
        else:
            mean = unit(rows.mean(axis=0, keepdims=True))
            texts, listed = zip(*own[:MAX_CLAUSES], strict=True)
            rows = np.concatenate([mean, rows[:MAX_CLAUSES]])
            found.append(EncodedRequest((request, *texts), rows, listed))
    return found


_Terms: TypeAlias = dict[str, tuple[str, int | None]]
"""Words with their stems, and the numbers of those as terms; None for what no skill has."""


class ReadText(NamedTuple):
    """One text, a request or a clause of it, as its words are looked for.

    Attributes:
        spoken: all its words.
        words: those that some skill knows, one for each different stem.
        numbers: their term numbers.
        length: the square root of the summed IDF of its terms; an unknown one counts 1.
    """

    spoken: list[str]
    words: list[str]
    numbers: list[int]
    length: float


class ReadRequest(NamedTuple):
    """A request as it is ranked.

    Attributes:
        text: the part that is read, with misspelt words corrected, and without a context.
        texts: the words of the whole, and of each clause where it has several; the latter are
            among the former.
        vectors: one row of unit length for each of them, see ``EncodedRequest``.
        listed: as there.
    """

    text: str
    texts: list[ReadText]
    vectors: NDArray[np.float32]
    listed: tuple[bool, ...]


class RequestReader:
    """Reads requests for the index of one catalog. Raises ``EncoderError`` where a request cannot
    be encoded."""

    def __init__(self, encoder: Encoder) -> None:
        """For the index of no skills."""
        self._encoder = encoder
        self._lexical = LexicalIndex()
        self._spelling = SpellingIndex()
        self._width = 0
        # A request's vector is the encoder's work alone, so it outlives the catalog.
        self._remembered: LRUCache[str, EncodedRequest] = LRUCache(REMEMBERED_VECTORS)

    def edited(self, edit: Edit, lexical: LexicalIndex, width: int) -> Self:
        """The reader after a step; ``width`` is how many numbers a skill's vector has."""
        after = copy(self)
        after._lexical, after._width = lexical, width
        after._spelling = self._spelling.edited(edit)
        return after

    async def read(self, request: str, context: str = "") -> ReadRequest:
        """A request as it is ranked. With a context, which was said before it, the whole is both.
        However long the context is, and in however many clauses, it is half of the meaning."""
        text, terms = self._corrected(request)
        [(texts, vectors, listed)] = await self._encoded([text])
        if context:
            before, others = self._corrected(context)
            terms = others | terms
            [said] = await self._encoded([before])
            whole = unit(vectors[:1] + said.vectors[0])
            # Behind the whole come its clauses, or itself where it has a single one.
            own = int(len(texts) > 1)
            texts = (f"{before}\n{text}", *texts[own:])
            vectors = np.concatenate([whole, vectors[own:]])
        return ReadRequest(text, self._asked(texts, terms), vectors, listed or (False,))

    async def remember(self, requests: Iterable[str]) -> None:
        """Encode requests in one batch and remember their vectors. With a static encoder nothing is
        done here, because a whole batch would hold up other requests."""
        if not self._encoder.static:
            await self._encoded([self._corrected(request)[0] for request in requests])

    async def vector(self, request: str) -> NDArray[np.float32]:
        """The vector of a whole request; see ``EncodedRequest``."""
        [encoded] = await self._encoded([readable(request)])
        vector: NDArray[np.float32] = encoded.vectors[0]
        return vector

    async def _encoded(self, texts: Sequence[str]) -> list[EncodedRequest]:
        known = {text: self._remembered[text] for text in texts if text in self._remembered}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if not missing:
            return [known[text] for text in texts]
        # A static encoder answers in microseconds; a thread would cost more than it.
        if self._encoder.static:
            encoded = encode_requests(self._encoder, missing)
        else:
            encoded = await asyncio.to_thread(encode_requests, self._encoder, missing)
        ours, theirs = self._width, encoded[0].vectors.shape[1]
        if ours not in (0, theirs):
            raise EncoderError(
                f"{self._encoder.identity}: the vectors of requests have {theirs} numbers, and "
                f"those of the skills {ours}: its model was changed and kept its name; give it a "
                "new one, or delete the folder `embeddings` in state_dir"
            )
        found = dict(zip(missing, encoded, strict=True))
        self._remembered.update(found)  # which may drop some of the others
        known |= found
        return [known[text] for text in texts]

    def _asked(self, texts: Sequence[str], terms: _Terms) -> list[ReadText]:
        """What is looked for of a request, whose terms are given, and of its clauses: the content
        words, or all words where there are none."""
        asked = []
        for spoken, content in words_of_each(texts):
            words = content or spoken
            if not terms.keys() >= set(words):  # a part of a text may be folded in another way
                terms |= self._terms_of(words)
            known: dict[int, str] = {}
            unknown: set[str] = set()
            for word in words:
                root, number = terms[word]
                if number is None:
                    unknown.add(root)
                else:
                    known.setdefault(number, word)
            numbers = list(known)
            length = math.sqrt(sum(map(self._lexical.idf.item, numbers)) + len(unknown) + 1e-9)
            asked.append(ReadText(spoken, list(known.values()), numbers, length))
        return asked

    def _terms_of(self, words: Iterable[str]) -> _Terms:
        different = list(dict.fromkeys(words))
        roots = stems_of(different)
        numbered = zip(roots, self._lexical.numbers(roots), strict=True)
        return dict(zip(different, numbered, strict=True))

    def _corrected(self, request: str) -> tuple[str, _Terms]:
        """The part of a request that is read, with misspelt words corrected, and its terms. A word
        that the bundled encoder knows is not misspelt, though no skill has it: "steak" is not
        "speak"."""
        request = readable(request)
        terms = self._terms_of(tokens(request))
        strange = (word for word, (_, number) in terms.items() if number is None)
        if unknown := [word for word in strange if word not in STOPWORDS]:
            unknown = [word for word in unknown if word not in bundled_words()]
        correct = self._spelling.correct
        meant = {word: known for word in unknown[:MAX_MISSPELT] if (known := correct(word))}
        if meant:
            request = LETTERS.sub(lambda found: meant.get(compatible(found[0]), found[0]), request)
            terms = self._terms_of(tokens(request))
        return request, terms
