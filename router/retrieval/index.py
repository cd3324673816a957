"""The index over one catalog: it ranks the skills for a request by three sources.

The sources are the wording of a skill's own text (BM25F), its meaning (the encoder's vectors), and
how near the skill's examples are. Their scores are added up. An index never changes. ``updated``
makes the next one from it (``documents.Edit``), and the first one is made from the index of no
skills: so only skills that are new or have changed are read and encoded, and there is one way to
make an index.

A request is ranked in three steps: candidates where there are very many skills (``candidates.py``);
of these the ``BY_SCORE`` best by a quick score; and these in full, with each example and for each
clause.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple, Self, TypeAlias

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from router.errors import EncoderError
from router.flight import give_way
from router.retrieval.background import Background, is_foreign
from router.retrieval.bundled_encoder import bundled_words
from router.retrieval.candidates import (
    BY_SCORE,
    BY_WORDS,
    EVERYTHING,
    EXHAUSTIVE,
    Positions,
    RoughVectors,
    highest,
)
from router.retrieval.clauses import clauses, readable
from router.retrieval.copies import Copies, root_numbers
from router.retrieval.documents import Edit, examples_of
from router.retrieval.encoders import Encoder, checked, unit
from router.retrieval.examples import ExampleIndex
from router.retrieval.lexical import LexicalIndex
from router.retrieval.names import SkillNames
from router.retrieval.postings import Postings
from router.retrieval.rows import VectorRows
from router.retrieval.spelling import SpellingIndex
from router.retrieval.vectors import VectorStore
from router.skills.catalog import Catalog
from router.skills.difference import differing
from router.skills.manifest import SkillManifest
from router.spare_memory import give_back
from router.text import LETTERS, STOPWORDS, compatible, stems_of, tokens, words_of_each

SHOWN_TERMS: Final = 5
REMEMBERED_VECTORS: Final = 1_024
MAX_CLAUSES: Final = 12
"""Clauses of one request that are ranked by themselves; hardly any has more."""
MAX_MISSPELT: Final = 100
"""Unknown words of a request that are looked up as misspelt; a pasted log is full of them."""
IN_CONTEXT: Final = 0.5
"""How much the score for the whole request counts when one of its clauses is scored: "mail it to
her" says little by itself."""
SCORED_AT_ONCE: Final = 8
"""``scores`` lets other work on the event loop go on after this many requests."""
READ_AT_ONCE: Final = 256
"""New skills of one step, or a sixteenth of those that are indexed, if that is more. Reading a
skill takes ten times the memory of what is kept of it."""
LEXICAL_WEIGHT: Final = 1.0
DENSE_WEIGHT: Final = 1.5
EXAMPLES_WEIGHT: Final = 1.0
"""What the three sources count in a score. BM25F is divided by the length of the request, so it has
the scale of a cosine, and a weighted sum keeps how much better the first is than the second, which
rank fusion throws away. The weights were chosen on whole catalogs with two encoders; near them
little changes. ``benchmarks/enrichment.py`` shows what each source adds."""


class Match(NamedTuple):
    """One skill as retrieval sees it for one request.

    Attributes:
        name: the skill.
        score: the fused score; comparable between the skills of one ranking only.
        lexical: BM25F divided by the length of the request (``_Asked.length``): at least 0, and
            below the square root of the number of its terms.
        cosine: of the encoder's vectors of the request and of the skill's own text.
        examples: how near its examples are, see ``ExampleIndex``.
        known: how much its own examples count in that, in [0, 1]; the rest is the benefit of the
            doubt. 0 without examples.
        terms: words of the request found in the skill, strongest contribution first.
    """

    name: str
    score: float
    lexical: float
    cosine: float
    examples: float
    known: float
    terms: tuple[str, ...]

    def shown(self, most: int = SHOWN_TERMS) -> str:
        """What it rests on, for a person."""
        return ", ".join(self.terms[:most]) or "meaning alone"


class Compared(NamedTuple):
    """A request beside the background (``background.py``) and the texts of the skills. A skill's
    nearest text is its own or an example, whichever has the larger cosine.

    Attributes:
        special: by how much the best skill's nearest text is nearer than the nearest request of
            the background.
        clear: by how much it is nearer than that, and than the nearest text of any other skill that
            is scored in full (``BY_SCORE``).
    """

    special: float
    clear: float


@dataclass(frozen=True, slots=True)
class Ranking:
    """The skills for one request, best first, and what the decision rests on.

    Attributes:
        matches: best first; empty when there is no skill to rank.
        size: number of skills that were ranked.
        evidence: sum of the best skill's term contributions; grows with what was matched.
        lead: how far the best score is ahead of the second; the score itself when it is alone.
        named: the skills that the request names outright, in its order; at most ``BY_SCORE``.
        background: the request beside the background; None where the encoder has none, and for a
            clause: what is said in passing is like some request by chance.
        clauses: of a request that has several and names no skill.
        foreign: the request has no word of the best skill, and hardly an English one, or none that
            the encoder knows. False where there is no background.
        wordless: the request has no words at all.
    """

    matches: tuple[Match, ...]
    size: int = 0
    evidence: float = 0.0
    lead: float = 0.0
    named: tuple[str, ...] = ()
    background: Compared | None = None
    clauses: tuple[Clause, ...] = ()
    foreign: bool = False
    wordless: bool = False


@dataclass(frozen=True, slots=True)
class Clause:
    """One clause of a request, and what it asks for when it is looked at by itself.

    Attributes:
        ranking: of the whole request's best skills for this clause. It has one match, without
            terms: the best for the clause in its context. ``lead`` is below zero where another is
            better for the clause alone.
        scores: for the clause alone, of the whole request's matches in their order.
        examples: how near the examples of each of them are to it; part of the score.
        highest: the best scores for the clause alone, at most two, best first.
        words: how many of its words some skill knows.
    """

    ranking: Ranking
    scores: tuple[float, ...]
    examples: tuple[float, ...]
    highest: tuple[float, ...]
    words: int


class EncodedRequest(NamedTuple):
    """A request and its clauses as the encoder sees them.

    Attributes:
        texts: the request, and where it has several clauses, the first ``MAX_CLAUSES`` of them.
        vectors: one row of unit length for each text. The request's is the mean over all its
            clauses, so that a long one does not drown a short one.
    """

    texts: tuple[str, ...]
    vectors: NDArray[np.float32]

    @property
    def vector(self) -> NDArray[np.float32]:
        """The vector of the whole request."""
        row: NDArray[np.float32] = self.vectors[0]
        return row


def encode_requests(encoder: Encoder, requests: Sequence[str]) -> list[EncodedRequest]:
    """The vectors of requests and of their clauses, encoded in one call."""
    parts = [clauses(request) for request in requests]
    every = [clause for clause_list in parts for clause in clause_list]
    encoded = checked(encoder.encode(every), len(every), encoder.identity)
    found = []
    start = 0
    for request, texts in zip(requests, parts, strict=True):
        rows = encoded[start : start + len(texts)]
        start += len(texts)
        if len(texts) == 1:
            found.append(EncodedRequest((request,), rows))
        else:
            mean = unit(rows.mean(axis=0, keepdims=True))
            texts, rows = texts[:MAX_CLAUSES], rows[:MAX_CLAUSES]
            found.append(EncodedRequest((request, *texts), np.concatenate([mean, rows])))
    return found


_Terms: TypeAlias = dict[str, tuple[str, int | None]]
"""Words with their stems, and the numbers of those as terms; None for what no skill has."""


class _Asked(NamedTuple):
    """One text, a request or a clause of it, as it is looked for.

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


class _Scored(NamedTuple):
    """Some skills scored for one or more texts. The tables have one row for each text and one
    column for each skill.

    Attributes:
        positions: the skills.
        score, lexical, cosine, examples: as in ``Match``.
        closest: the cosine of the nearest text of each skill, its own or an example.
        contributions: of each term of the first text, shape (terms, skills).
    """

    positions: NDArray[np.intp]
    score: NDArray[np.float64]
    lexical: NDArray[np.float64]
    cosine: NDArray[np.float64]
    examples: NDArray[np.float64]
    closest: NDArray[np.float64]
    contributions: NDArray[np.float64]


class SkillIndex:
    """Retrieval over one catalog. ``updated`` gives the index of the next one. Whatever reads a
    request raises ``EncoderError`` where it cannot be encoded.

    Attributes:
        catalog: the snapshot that this index is about.
        encoded: how many skills were encoded to make it; the others were stored already.
    """

    def __init__(
        self, encoder: Encoder, store: VectorStore, background: Background | None = None
    ) -> None:
        """The index of an empty catalog; ``background`` is what requests are compared with."""
        self.catalog = Catalog()
        self.encoded = 0
        self._encoder = encoder
        self._store = store
        self._background = background
        self._names: list[str] = []
        self._positions: NDArray[np.intp] = np.arange(0)
        self._vectors = VectorRows()
        self._examples: ExampleIndex = ExampleIndex()
        self._rough: RoughVectors | None = None
        self._lexical: LexicalIndex = LexicalIndex()
        self._spelling: SpellingIndex = SpellingIndex()
        self._skill_names = SkillNames()
        self._copies: Copies = Copies()
        # A request's vector is the encoder's work alone, so it outlives the catalog.
        self._remembered: LRUCache[str, EncodedRequest] = LRUCache(REMEMBERED_VECTORS)

    @classmethod
    def build(
        cls,
        catalog: Catalog,
        *,
        encoder: Encoder,
        store: VectorStore,
        progress: Callable[[int, int], None] | None = None,
    ) -> Self:
        """Index a catalog; texts that the store already holds unchanged are not encoded again.
        Rankings say how a request compares with the background, which only a decision needs.

        Args:
            progress: called with (done, total) texts to encode, for each step anew.

        Raises:
            EncoderError: a skill cannot be encoded, or the background.
        """
        background = Background.of(encoder, store, progress)
        return cls(encoder, store, background).updated(catalog, progress)

    def updated(self, catalog: Catalog, progress: Callable[[int, int], None] | None = None) -> Self:
        """The index of a later catalog, sharing this one's store and what is known of the skills
        that did not change; see ``build``. Many new skills are read in several steps."""
        roots = root_numbers(catalog)
        if roots and self._names and not self._copies.covers(self._names):
            # There is a second root now, and nothing was read for copies while there was one.
            empty = type(self)(self._encoder, self._store, self._background)
            return empty.updated(catalog, progress)
        gone, others = map(
            _routable,
            differing(tuple(self.catalog.skills.values()), tuple(catalog.skills.values())),
        )
        new = [
            one for name, one in others.items() if name not in gone or gone[name].mark != one.mark
        ]
        gone = {
            name: one
            for name, one in gone.items()
            if name not in others or others[name].mark != one.mark
        }
        names = _names(catalog)
        index, encoded, steps = self, 0, 1
        while len(new) > (part := max(READ_AT_ONCE, len(index._names) // 16)):
            now, new = new[:part], new[part:]
            later = frozenset(skill.name for skill in new)
            some = [name for name in names if name not in later]
            index = index._edited(some, now, gone, roots, len(names), progress)
            encoded += index.encoded
            steps += 1
            gone = {}
        index = index._edited(names, new, gone, roots, len(names), progress)
        index.catalog = catalog
        index.encoded += encoded
        index._rough = index._rough_vectors() if len(names) > EXHAUSTIVE else None
        if steps > 1:
            give_back()
        return index

    def _edited(
        self,
        names: list[str],
        new: Sequence[SkillManifest],
        gone: Mapping[str, SkillManifest],
        roots: Mapping[str, int],
        expected: int,
        progress: Callable[[int, int], None] | None,
    ) -> Self:
        """The index of other skills, but for its catalog: one step of ``updated``.

        Args:
            names: of the skills after the step, in their order.
            new: those of them that are to be read.
            gone: by name, the skills of this index that are not in it, or not as they were.
            expected: how many skills there will be after all steps.
        """
        kept = np.full(len(names), -1, dtype=np.intp)
        stay = np.delete(np.arange(len(names)), [bisect_left(names, skill.name) for skill in new])
        kept[stay] = np.delete(self._positions, [bisect_left(self._names, name) for name in gone])
        removed = self._store.documents(list(gone.values()))
        edit = Edit(kept, self._store.documents(new), removed, more=len(names) < expected)

        def of_skills(places: Sequence[int]) -> NDArray[np.float32]:
            chosen = [edit.added[place] for place in places]
            return self._encoder.encode_documents([(one.head, one.body) for one in chosen])

        def of_examples(texts: Sequence[str]) -> NDArray[np.float32]:
            return self._store.vectors(
                [_example_key(text) for text in texts],
                lambda places: self._encoder.encode([texts[place] for place in places]),
                progress,
            )[0]

        after = copy(self)
        keys = [f"document/{document.digest}" for document in edit.added]
        vectors, after.encoded = self._store.vectors(keys, of_skills, progress)
        after._names = names
        after.__dict__.pop("_position_of", None)  # the cached property is of the old names
        after._positions = np.arange(len(names))
        after._vectors = self._vectors.edited(edit, vectors, expected=expected)
        after._examples = self._examples.edited(edit, of_examples)
        after._lexical = self._lexical.edited(edit)
        after._spelling = self._spelling.edited(edit)
        after._skill_names = self._skill_names.edited(edit, names)
        after._copies = self._copies.edited(edit, names, roots)
        return after

    @cached_property
    def _position_of(self) -> dict[str, int]:
        """Positions by name; made when first used, because most requests do not need them."""
        return dict(zip(self._names, range(len(self._names)), strict=True))

    def over(self, catalog: Catalog) -> Self:
        """An index of other skills, with this one's encoder, store and background."""
        return type(self)(self._encoder, self._store, self._background).updated(catalog)

    def close(self) -> None:
        """Save and close the store, which every index made by ``updated`` shares."""
        self._store.close()

    async def prepare(self, requests: Iterable[str]) -> None:
        """Encode requests in one batch and remember their vectors for ``rank``. With a static
        encoder nothing is done here, because a whole batch would hold up other requests."""
        if not self._encoder.static:
            await self._encoded(self._corrected(request)[0] for request in requests)

    async def vector(self, request: str) -> NDArray[np.float32]:
        """The vector of a request; see ``EncodedRequest``."""
        request = readable(request)
        return (await self._encoded([request]))[request].vector

    async def nearest_example(self, request: str, name: str) -> tuple[str, float] | None:
        """The example of a skill that is nearest to a request, and the cosine of both; None when
        the skill has none, or there is no such skill."""
        place = self._position_of.get(name)
        if place is None:
            return None
        found = self._examples.nearest(await self.vector(request), place)
        if found is None:
            return None
        return examples_of(self.catalog.skills[name])[found[0]], found[1]

    async def _encoded(self, requests: Iterable[str]) -> dict[str, EncodedRequest]:
        """The vectors of requests, by text: ``_remembered`` may have dropped some of them again."""
        texts = dict.fromkeys(requests)
        vectors = {text: self._remembered[text] for text in texts if text in self._remembered}
        missing = [text for text in texts if text not in vectors]
        if not missing:
            return vectors
        # A static encoder answers in microseconds; a thread would cost more than it.
        if self._encoder.static:
            encoded = encode_requests(self._encoder, missing)
        else:
            encoded = await asyncio.to_thread(encode_requests, self._encoder, missing)
        ours, theirs = len(self._vectors.mean), len(encoded[0].vector)
        if ours not in (0, theirs):
            raise EncoderError(
                f"{self._encoder.identity}: the vectors of requests have {theirs} numbers, and "
                f"those of the skills {ours}: its model was changed and kept its name; give it a "
                "new one, or delete the folder `embeddings` in state_dir"
            )
        vectors.update(zip(missing, encoded, strict=True))
        self._remembered.update((text, vectors[text]) for text in missing)
        return vectors

    async def rank(
        self, request: str, *, among: Sequence[str] | None = None, limit: int = 10
    ) -> Ranking:
        """Rank the skills for a request. Those that it names outright come first.

        Args:
            among: names that may be ranked; None means all.
            limit: how many matches to give, at least 1.
        """
        request, terms = self._corrected(request)
        if self._copies.stronger:
            among = self._copies.without(among)
        allowed = EVERYTHING if among is None else self._positions_of(among)
        if not len(self._positions[allowed]):
            return Ranking(())
        encoded = (await self._encoded([request]))[request]
        return self._ranking(encoded, terms, allowed, limit)

    async def scores(self, requests: Sequence[str], names: Sequence[str]) -> NDArray[np.float64]:
        """Fused scores of some skills for many requests, shape (requests, names). A name that is
        not in the catalog scores minus infinity. Requests to route are let in between."""
        table = np.full((len(requests), len(names)), -np.inf)
        known = [column for column, name in enumerate(names) if name in self._position_of]
        if not requests or not known:
            return table
        positions = np.array([self._position_of[names[column]] for column in known], dtype=np.intp)
        for start in range(0, len(requests), SCORED_AT_ONCE):
            batch = [self._corrected(text) for text in requests[start : start + SCORED_AT_ONCE]]
            encoded = await self._encoded(request for request, _ in batch)
            for row, (request, terms) in enumerate(batch, start):
                asked = self._asked([request], terms)
                postings = self._lexical.postings(asked[0].numbers)
                texts, vectors = encoded[request]
                single = len(texts) == 1
                scored = self._scored(asked, vectors[:1], postings, positions, single=single)
                table[row, known] = scored.score[0]
            await give_way()
        return table

    def _ranking(
        self, request: EncodedRequest, terms: _Terms, allowed: Positions, limit: int
    ) -> Ranking:
        named = self._named(request.texts[0], allowed)[:BY_SCORE]  # all of them are scored in full
        named_at = [self._position_of[name] for name in named]
        read = 1 if named else len(request.texts)
        asked = self._asked(request.texts[:read], terms)
        postings = self._lexical.postings(asked[0].numbers)
        pool = self._best_of(asked[0], request.vector, postings, allowed, named_at, limit)
        single = len(request.texts) == 1
        scored = self._scored(asked, request.vectors[:read], postings, pool, single=single)
        order, lead = _ordered(scored.score[0], max(limit, 2))
        if named_at:
            order = _to_the_front(named_at, order, pool)
        order = order[:limit]
        added = scored.contributions[:, order].T
        size = len(self._positions[allowed])
        evidence = float(added[0].sum())
        return Ranking(
            self._matches(scored, 0, order, _strongest(asked[0].words, added)),
            size=size,
            evidence=evidence,
            lead=lead,
            named=named,
            background=self._compared(request.vector, scored.closest[0], int(order[0])),
            clauses=self._clauses(scored, asked[1:], size, order) if len(asked) > 1 else (),
            foreign=not evidence
            and self._background is not None
            and (is_foreign(asked[0].spoken) or not request.vector.any()),
            wordless=not asked[0].spoken,
        )

    def _compared(
        self, vector: NDArray[np.float32], closest: NDArray[np.float64], best: int
    ) -> Compared | None:
        """A request beside the background and the texts of skills.

        Args:
            closest: the cosine of the nearest text of each skill.
            best: the place of the best skill among them.
        """
        if self._background is None:
            return None
        nearest = self._background.nearest(vector)
        others = max(closest[:best].max(initial=nearest), closest[best + 1 :].max(initial=nearest))
        own = closest[best]
        return Compared(float(own) - nearest, float(own - others))

    def _clauses(
        self, scored: _Scored, clauses: Sequence[_Asked], size: int, order: NDArray[np.intp]
    ) -> tuple[Clause, ...]:
        """The clauses, which have the rows behind the whole request's; ``order`` has the places
        of its matches."""
        whole, alone = scored.score[0], scored.score[1:]
        best = np.argmax(alone + IN_CONTEXT * whole, axis=1)
        rows = np.arange(len(clauses))
        own = alone[rows, best]
        highest = -np.partition(-alone, min(1, alone.shape[1] - 1))[:, :2]
        if alone.shape[1] > 1:
            first, second = highest.T
            own = own - np.where(own < first, first, second)
        matches = self._matches(scored, 1 + rows, best, [()] * len(clauses))
        return tuple(
            Clause(
                Ranking((match,), size=size, evidence=match.lexical * clause.length, lead=lead),
                tuple(scores),
                tuple(near),
                tuple(two),
                len(clause.words),
            )
            for match, clause, lead, scores, near, two in zip(
                matches,
                clauses,
                own.tolist(),
                alone[:, order].tolist(),
                scored.examples[1:, order].tolist(),
                highest.tolist(),
                strict=True,
            )
        )

    def _matches(
        self,
        scored: _Scored,
        row: int | NDArray[np.intp],
        places: NDArray[np.intp],
        terms: Sequence[tuple[str, ...]],
    ) -> tuple[Match, ...]:
        """The skills at some places of a row, or of one row each, with their terms."""
        positions = scored.positions[places]
        return tuple(
            map(
                Match,
                [self._names[position] for position in positions.tolist()],
                scored.score[row, places].tolist(),
                scored.lexical[row, places].tolist(),
                scored.cosine[row, places].tolist(),
                scored.examples[row, places].tolist(),
                self._examples.weight[positions].tolist(),
                terms,
            )
        )

    def _scored(
        self,
        asked: Sequence[_Asked],
        vectors: NDArray[np.float32],
        postings: Postings,
        pool: NDArray[np.intp],
        *,
        single: bool,
    ) -> _Scored:
        """Some skills scored in full for a request and its clauses, whose words are among its own.

        Args:
            asked: the request, then the clauses.
            postings: of the terms of the request.
            single: the request has a single clause.
        """
        contributions = postings.contributions(pool)
        row_of = {number: row for row, number in enumerate(asked[0].numbers)}
        terms = np.zeros((len(asked), len(row_of)))
        for row, text in enumerate(asked):
            held = [row_of[number] for number in text.numbers if number in row_of]
            terms[row, held] = 1 / text.length
        lexical = terms @ contributions
        cosine = (vectors @ self._vectors.of(pool).T).astype(np.float64)
        near, example = self._examples.near(
            [text.spoken for text in asked],
            vectors,
            vectors @ self._vectors.mean,
            pool,
            single=single,
        )
        score = _fused(lexical, cosine, near)
        closest = np.maximum(cosine, example)
        return _Scored(pool, score, lexical, cosine, near, closest, contributions)

    def _best_of(
        self,
        asked: _Asked,
        vector: NDArray[np.float32],
        postings: Postings,
        allowed: Positions,
        wanted: Sequence[int],
        limit: int,
    ) -> NDArray[np.intp]:
        """The positions of the skills to score in full, ascending: those with the best quick
        scores, which read only the means of the examples, and those at the positions ``wanted``."""
        matched = postings.scores()
        if isinstance(allowed, slice):
            allowed = self._candidates(matched, vector, wanted)
        positions = self._positions[allowed]
        keep = max(limit, BY_SCORE)
        if len(positions) <= keep:
            return positions
        cosine = self._vectors.cosines(vector, allowed).astype(np.float64)
        near = self._examples.about(vector, float(self._vectors.mean @ vector))[allowed]
        score = _fused(matched[allowed] / asked.length, cosine, near)
        if wanted:
            score[np.isin(positions, wanted)] = np.inf
        chosen = (-score).argpartition(keep)[:keep]
        chosen.sort()
        return positions[chosen]

    def _named(self, request: str, allowed: Positions) -> tuple[str, ...]:
        named = self._skill_names.named_in(request)
        if not named or isinstance(allowed, slice):
            return named
        offered = set(allowed.tolist())
        return tuple(name for name in named if self._position_of[name] in offered)

    def _positions_of(self, names: Sequence[str]) -> Positions:
        """The positions of the skills with these names; ``EVERYTHING`` where these are all, so that
        no array is copied."""
        named = frozenset(names)
        if len(named) >= len(self._names) and named.issuperset(self._position_of):
            return EVERYTHING
        found = self._position_of.keys() & named
        return np.array(sorted(map(self._position_of.__getitem__, found)), dtype=np.intp)

    def _candidates(
        self,
        matched: NDArray[np.float64],
        vector: NDArray[np.float32],
        wanted: Sequence[int],
    ) -> Positions:
        """The skills to score for a request: all, or of many the best by words and by vectors, and
        those at the positions ``wanted``."""
        if self._rough is None:
            return EVERYTHING
        chosen = np.zeros(len(self._names), dtype=bool)
        chosen[highest(matched, BY_WORDS)] = True
        chosen[self._rough.nearest(vector)] = True
        chosen[list(wanted)] = True
        found = np.flatnonzero(chosen)
        # A request that is like nothing at all still gets a ranking.
        return found if len(found) >= BY_SCORE else np.union1d(found, self._positions[:EXHAUSTIVE])

    def _rough_vectors(self) -> RoughVectors:
        """For each skill the part of its score that is linear in the request's vector."""
        table = DENSE_WEIGHT * self._vectors.of(self._positions)
        if len(self._examples.holders):
            holders = self._examples.holders
            weight = self._examples.weight[holders, np.newaxis].astype(np.float32)
            table[holders] += 2 * weight * self._examples.means
        return RoughVectors(table)

    def _asked(self, texts: Sequence[str], terms: _Terms) -> list[_Asked]:
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
            asked.append(_Asked(spoken, list(known.values()), numbers, length))
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


def _names(catalog: Catalog) -> list[str]:
    """Of the routable skills, in their order."""
    if len(catalog.routable) == len(catalog.skills):  # as nearly always; it is much quicker
        return list(catalog.skills)
    return [skill.name for skill in catalog.routable]


def _routable(skills: Iterable[SkillManifest]) -> dict[str, SkillManifest]:
    return {skill.name: skill for skill in skills if not skill.disable_model_invocation}


def _example_key(text: str) -> str:
    return f"example/{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()}"


def _fused(
    lexical: NDArray[np.float64], dense: NDArray[np.float64], examples: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The scores of skills from those by the three sources, all of one shape."""
    return LEXICAL_WEIGHT * lexical + DENSE_WEIGHT * dense + EXAMPLES_WEIGHT * examples


def _ordered(scores: NDArray[np.float64], count: int) -> tuple[NDArray[np.intp], float]:
    """The places of the ``count`` best scores, best first and equal ones by place, and how far the
    best is ahead of the second."""
    order = np.argsort(-scores, kind="stable")[:count]
    best = scores[order[:2]]
    return order, float(best[0] - best[1]) if len(best) > 1 else float(best[0])


def _to_the_front(
    wanted: Sequence[int], order: NDArray[np.intp], positions: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Places in order of score, with those of the positions ``wanted`` before all others."""
    front = [int(np.flatnonzero(positions == position)[0]) for position in wanted]
    return np.array([*front, *(place for place in order.tolist() if place not in front)])


def _strongest(words: Sequence[str], added: NDArray[np.float64]) -> list[tuple[str, ...]]:
    """For each skill the words that it has, the one that adds most first; ``added`` has the shape
    (skills, words)."""
    order = np.argsort(-added, axis=1, kind="stable").tolist()
    counts = np.count_nonzero(added > 0, axis=1).tolist()
    return [
        tuple([words[place] for place in places[:count]])
        for places, count in zip(order, counts, strict=True)
    ]
