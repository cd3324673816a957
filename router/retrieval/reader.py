"""Prepares a request for ranking: corrects misspelt words, finds the index's terms, encodes it.

This is done for the whole request, and for each clause where it has several. The scores of the
skills are computed from the result (``scoring.py``).
"""

from __future__ import annotations

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
from router.retrieval.guarded_encoder import GuardedEncoder
from router.retrieval.lexical import LexicalIndex
from router.retrieval.spelling import SpellingIndex
from router.text import LETTERS, STOPWORDS, compatible, stems_of, tokens, words_of_each

REMEMBERED_VECTORS: Final = 1_024
MAX_CLAUSES: Final = 12
"""At most this many clauses of a request are ranked by themselves; hardly any request has more."""
MAX_MISSPELT: Final = 100
"""At most this many unknown words of a request are looked up as misspelt: a pasted log is full of
them."""

_BREAK: Final = re.compile(
    r"(?<=[.!?;:])\s+|,\s+(?:and|then|so|but)\s+"
    r"|(?<!\s)\s+(?:and then|and|then|plus|as well as|afterwards|also|-|&|\+)\s+"
    r"|(?P<comma>,\s+)|\n+"
)
MAX_READ_CHARACTERS: Final = 4_000
"""Retrieval reads at most this much of a request, so that none blocks the event loop for long. Of a
longer request it reads the beginning and the end, because people who paste a log say before or
after it what to do."""
_END_CHARACTERS: Final = 1_000
_MIN_WORDS: Final = 2
"""A part with fewer content words is no clause by itself, and is joined to its neighbour: ranked
beside the whole request, it would be similar to some skill by chance."""


def readable(request: str) -> str:
    """The part of a request that retrieval reads; see ``MAX_READ_CHARACTERS``."""
    if len(request) <= MAX_READ_CHARACTERS:
        return request
    return f"{request[: MAX_READ_CHARACTERS - _END_CHARACTERS]}\n{request[-_END_CHARACTERS:]}"


class Part(NamedTuple):
    """One clause.

    Attributes:
        text: its words.
        after_comma: whether only a comma separates it from the clause before.
    """

    text: str
    after_comma: bool = False


def clauses(request: str, *, least: int = _MIN_WORDS) -> list[Part]:
    """The clauses of a request in order, at least one. Where there are several, each has at least
    ``least`` content words."""
    breaks = list(_BREAK.finditer(request))
    starts = [0, *(found.end() for found in breaks)]
    ends = [*(found.start() for found in breaks), len(request)]
    after_comma = [False, *(found["comma"] is not None for found in breaks)]
    found = [
        Part(text, is_after_comma)
        for start, end, is_after_comma in zip(starts, ends, after_comma, strict=True)
        if (text := request[start:end]).strip()
    ]
    if len(found) < 2:
        return found or [Part(request)]
    parts: list[list[Part]] = []
    count = 0  # of the content words in the last part
    for part, (_, content) in zip(found, words_of_each([one.text for one in found]), strict=True):
        more = len(content)
        if parts and min(more, count) < least:
            parts[-1].append(part)
            count += more
        else:
            parts.append([part])
            count = more
    return [Part(" ".join(one.text for one in part), part[0].after_comma) for part in parts]


class EncodedRequest(NamedTuple):
    """A request and its clauses as the encoder sees them.

    Attributes:
        texts: the request, and where it has several clauses, the first ``MAX_CLAUSES`` of them.
        vectors: one row of unit length for each text. The vector of the request is the mean over
            all its clauses, so that a long clause does not outweigh a short one.
        after_comma: for each clause, if there are several, whether only a comma separates it from
            the clause before.
    """

    texts: tuple[str, ...]
    vectors: NDArray[np.float32]
    after_comma: tuple[bool, ...] = ()


def encode_requests(encoder: Encoder, requests: Sequence[str]) -> list[EncodedRequest]:
    """The vectors of requests and of their clauses, encoded in one call."""
    parts = [clauses(request) for request in requests]
    all_clauses = [clause.text for clause_list in parts for clause in clause_list]
    encoded = checked(encoder.encode(all_clauses), len(all_clauses), encoder.identity)
    return _of_clauses(requests, parts, encoded)


def _of_clauses(
    requests: Sequence[str], parts: Sequence[list[Part]], encoded: NDArray[np.float32]
) -> list[EncodedRequest]:
    """Requests with the vectors of all their clauses, one row each."""
    found = []
    for request, request_clauses in zip(requests, parts, strict=True):
        rows, encoded = encoded[: len(request_clauses)], encoded[len(request_clauses) :]
        if len(request_clauses) == 1:
            found.append(EncodedRequest((request,), rows))
        else:
            mean = unit(rows.mean(axis=0, keepdims=True))
            texts, after_comma = zip(*request_clauses[:MAX_CLAUSES], strict=True)
            rows = np.concatenate([mean, rows[:MAX_CLAUSES]])
            found.append(EncodedRequest((request, *texts), rows, after_comma))
    return found


_Terms: TypeAlias = dict[str, tuple[str, int | None]]
"""For each word its stem, and the number of that stem as a term of the index; None where no skill
has the stem."""


class ReadText(NamedTuple):
    """The words of a request or of one of its clauses.

    Attributes:
        words: all words.
        known_words: the words that some skill has, one for each different stem.
        term_numbers: the numbers of these words as terms of the index.
        norm: the square root of the summed IDF of its terms, where an unknown one counts 1. Lexical
            scores are divided by it, so that they do not grow with the length of the request.
    """

    words: list[str]
    known_words: list[str]
    term_numbers: list[int]
    norm: float


class ReadRequest(NamedTuple):
    """A request, ready to be ranked.

    Attributes:
        text: the request without its context, shortened and with misspelt words corrected.
        texts: the words of the whole, context included, and of each clause where there are several.
        vectors: one row of unit length for each of ``texts``; see ``EncodedRequest``.
        after_comma: see ``EncodedRequest``.
        fault: why the request could not be encoded; empty where it was. Its vectors are zeros then,
            which are similar to nothing, and its words alone count.
    """

    text: str
    texts: list[ReadText]
    vectors: NDArray[np.float32]
    after_comma: tuple[bool, ...]
    fault: str = ""


class RequestReader:
    """Reads requests for the index of one catalog. Raises ``EncoderError`` where a request cannot
    be encoded, unless ``read`` is told to do without."""

    def __init__(self, encoder: GuardedEncoder) -> None:
        """A reader for an index without skills."""
        self._encoder = encoder
        self._lexical = LexicalIndex()
        self._spelling = SpellingIndex()
        self._width = 0
        # A vector depends on the encoder only, so later indexes use the same memory.
        self._remembered: LRUCache[str, EncodedRequest] = LRUCache(REMEMBERED_VECTORS)

    def edited(self, edit: Edit, lexical: LexicalIndex, width: int) -> Self:
        """The reader of the edited index; ``width`` is the dimension of the skills' vectors."""
        after = copy(self)
        after._lexical, after._width = lexical, width
        after._spelling = self._spelling.edited(edit)
        return after

    async def read(
        self, request: str, context: str = "", *, may_do_without: bool = False
    ) -> ReadRequest:
        """Prepare a request for ranking.

        Args:
            context: the earlier turns that a follow-up refers to. The whole then is both texts, and
                its vector the mean of both vectors: however long the context is, it counts half.
            may_do_without: whether a request that cannot be encoded is read all the same, for the
                sake of its words, where the encoder is one that may be down. One that works in
                this process does not fail for a while, so its fault is an error in any case.
        """
        text, terms = self._corrected(request)
        before, others = self._corrected(context) if context else ("", {})
        wanted = [text, before] if context else [text]
        fault = ""
        try:
            encoded = [one for each in wanted for one in await self._encoded([each])]
        except EncoderError as error:
            if self._encoder.static or not may_do_without:
                raise
            encoded, fault = self._not_encoded(wanted), str(error)
        texts, vectors, after_comma = encoded[0]
        if context:
            terms = others | terms
            whole = unit(vectors[:1] + encoded[1].vectors[0])
            # The request's clauses follow the whole; a request of one clause is that clause.
            first_clause = int(len(texts) > 1)
            texts = (f"{before}\n{text}", *texts[first_clause:])
            vectors = np.concatenate([whole, vectors[first_clause:]])
        return ReadRequest(
            text, self._terms_of_texts(texts, terms), vectors, after_comma or (False,), fault
        )

    def _not_encoded(self, texts: Sequence[str]) -> list[EncodedRequest]:
        """The texts with zeros for vectors."""
        parts = [clauses(text) for text in texts]
        count = sum(map(len, parts))
        return _of_clauses(texts, parts, np.zeros((count, self._width), dtype=np.float32))

    async def remember(self, requests: Iterable[str]) -> None:
        """Encode requests in one batch and remember their vectors. A static encoder is fast for
        single requests, and a whole batch would block the event loop; nothing is done then."""
        if not self._encoder.static:
            await self._encoded([self._corrected(request)[0] for request in requests])

    async def vector(self, request: str) -> NDArray[np.float32]:
        """The vector of a whole request; see ``EncodedRequest``."""
        vector: NDArray[np.float32] = (await self.vectors(request))[0]
        return vector

    async def vectors(self, request: str) -> NDArray[np.float32]:
        """The vectors of a request and of its clauses; see ``EncodedRequest``."""
        [encoded] = await self._encoded([readable(request)])
        return encoded.vectors

    async def _encoded(self, texts: Sequence[str]) -> list[EncodedRequest]:
        known = {text: self._remembered[text] for text in texts if text in self._remembered}
        missing = [text for text in dict.fromkeys(texts) if text not in known]
        if not missing:
            return [known[text] for text in texts]
        encoded = await self._encoder.ask(lambda encoder: encode_requests(encoder, missing))
        width = encoded[0].vectors.shape[1]
        if self._width not in (0, width):
            raise EncoderError(
                f"{self._encoder.identity}: the vectors of requests have {width} numbers, and "
                f"those of the skills {self._width}: its model was changed and kept its name; give "
                "it a new one, or delete the folder `embeddings` in state_dir"
            )
        found = dict(zip(missing, encoded, strict=True))
        self._remembered.update(found)  # which may drop some of the others
        known |= found
        return [known[text] for text in texts]

    def _terms_of_texts(self, texts: Sequence[str], terms: _Terms) -> list[ReadText]:
        """The terms of a request and of its clauses: of their content words, or of all words where
        there are no content words. ``terms`` are those of the whole."""
        texts_read = []
        for words, content in words_of_each(texts):
            chosen = content or words
            if not terms.keys() >= set(chosen):  # a part of a text may be normalised differently
                terms |= self._terms_of(chosen)
            known: dict[int, str] = {}
            unknown: set[str] = set()
            for word in chosen:
                root, number = terms[word]
                if number is None:
                    unknown.add(root)
                else:
                    known.setdefault(number, word)
            term_numbers = list(known)
            norm = math.sqrt(sum(map(self._lexical.idf.item, term_numbers)) + len(unknown) + 1e-9)
            texts_read.append(ReadText(words, list(known.values()), term_numbers, norm))
        return texts_read

    def _terms_of(self, words: Iterable[str]) -> _Terms:
        different = list(dict.fromkeys(words))
        roots = stems_of(different)
        numbered = zip(roots, self._lexical.numbers(roots), strict=True)
        return dict(zip(different, numbered, strict=True))

    def _corrected(self, request: str) -> tuple[str, _Terms]:
        """The readable part of a request with misspelt words corrected, and its terms. A word that
        the bundled encoder knows is not misspelt, even if no skill has it: "steak" must not become
        "speak"."""
        request = readable(request)
        terms = self._terms_of(tokens(request))
        strange = (word for word, (_, number) in terms.items() if number is None)
        if unknown := [word for word in strange if word not in STOPWORDS]:
            unknown = [word for word in unknown if word not in bundled_words()]
        correct = self._spelling.correct
        corrections = {word: known for word in unknown[:MAX_MISSPELT] if (known := correct(word))}
        if corrections:
            request = LETTERS.sub(
                lambda found: corrections.get(compatible(found[0]), found[0]), request
            )
            terms = self._terms_of(tokens(request))
        return request, terms
