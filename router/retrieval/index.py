"""The index over one catalog snapshot: the documents, three ways to find them, and their fusion.

All of it is immutable and belongs to the snapshot. The lexical and spelling parts are computed from
the documents whenever the catalog changes, and the latent part when enough of it has changed or
``settled`` asks for it; the vectors come out of Chroma, where only what changed is encoded again.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from router.flight import give_way
from router.retrieval.candidates import (
    BY_WORDS,
    EVERYTHING,
    EXHAUSTIVE,
    Positions,
    RoughVectors,
    highest,
)
from router.retrieval.clauses import clauses
from router.retrieval.copies import Copies
from router.retrieval.documents import SkillDocument, words
from router.retrieval.encoders import Encoder
from router.retrieval.fusion import fuse
from router.retrieval.latent import LatentIndex
from router.retrieval.lexical import IDF_POWER, LexicalIndex
from router.retrieval.partner import likeliest_partner
from router.retrieval.spelling import SpellingIndex
from router.retrieval.vectors import VectorStore
from router.skills.catalog import Catalog
from router.skills.manifest import SkillManifest
from router.text import stem, tokens

NEAREST: Final = 100
"""Skills that the vectors tell apart; the others are taken to be as near as the last of these. The
weights of the fusion were fitted so."""
PARTNERS: Final = 20
"""Best skills that a second one is looked for among."""
FIFTH: Final = 4
PROMOTED: Final = -3.5
"""From these log-odds on, the likeliest second skill is put in fifth place, where a list of
suggestions still shows it."""
REMEMBERED_VECTORS: Final = 1_024
SCORED_AT_ONCE: Final = 8
"""Requests, in ``scores``, between two looks at what else there is to do."""


@dataclass(frozen=True, slots=True)
class Match:
    """One skill as retrieval sees it for one request.

    Attributes:
        name: the skill.
        score: the fused score; comparable between the skills of one ranking only.
        lexical: BM25F over the root of what the request's terms weigh together: at least 0, and
            below the root of their number.
        latent: cosine in the catalog's latent space.
        cosine: cosine of the encoder's vectors.
        terms: words of the request found in the skill, strongest contribution first.
    """

    name: str
    score: float
    lexical: float
    latent: float
    cosine: float
    terms: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ranking:
    """The skills for one request, best first, and what the decision rests on.

    Attributes:
        matches: best first; empty when there is no skill to rank.
        size: number of skills that were ranked.
        evidence: sum of the best skill's term contributions; grows with what was matched.
        latent_mass: latent cosine of the best skill, times the share of the request that the
            latent space can express.
        second: the likeliest second skill, at its place among the matches.
        second_log_odds: of the request needing it beside the best match.
    """

    matches: tuple[Match, ...]
    size: int = 0
    evidence: float = 0.0
    latent_mass: float = 0.0
    second: Match | None = None
    second_log_odds: float = -math.inf


def encode_requests(encoder: Encoder, requests: Sequence[str]) -> NDArray[np.float32]:
    """The vectors of requests, unit length, one row each: the mean over the clauses of each, so
    that a long clause does not drown a short one."""
    parts = [clauses(request) for request in requests]
    encoded = encoder.encode([clause for clause_list in parts for clause in clause_list])
    ends = np.cumsum([len(clause_list) for clause_list in parts])
    means = np.stack([part.mean(axis=0) for part in np.split(encoded, ends[:-1])])
    norms = np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-9)
    return np.asarray(means / norms, dtype=np.float32)


def _vectors(
    ordered: Sequence[SkillDocument],
    encoder: Encoder,
    store: VectorStore,
    progress: Callable[[int, int], None] | None,
    previous: SkillIndex | None,
) -> tuple[NDArray[np.float32], int]:
    """The vectors of documents, in their order, and how many were encoded. Rows that the previous
    index has are copied at once, which costs a tenth of looking a thousand up one by one."""
    rows = np.full(len(ordered), -1, dtype=np.intp)
    if previous is not None and len(previous._vectors):
        before, position = previous._documents, previous._position
        for place, document in enumerate(ordered):
            if before.get(document.name) is document:
                rows[place] = position[document.name]
    new = np.flatnonzero(rows < 0).tolist()

    def encode(places: Sequence[int]) -> NDArray[np.float32]:
        chosen = [ordered[new[place]] for place in places]
        return encoder.encode_documents([(document.head, document.body) for document in chosen])

    keys = [f"document/{ordered[place].digest}" for place in new]
    found, encoded = store.vectors(keys, encode, progress)
    if previous is None or len(new) == len(ordered):
        return found, encoded
    table = previous._vectors[rows]  # the last row stands in for the new ones
    if len(new):
        table[new] = found
    return table, encoded


class SkillIndex:
    """Retrieval over one catalog. ``updated`` gives the index of the next one.

    Attributes:
        catalog: the snapshot that this index is about.
        encoded: how many skills were encoded to make it; the others were stored already.
    """

    def __init__(
        self,
        catalog: Catalog,
        documents: dict[str, SkillDocument],
        encoder: Encoder,
        store: VectorStore,
        vectors: NDArray[np.float32],
        encoded: int,
        previous: SkillIndex | None,
    ) -> None:
        ordered = [documents[skill.name] for skill in catalog.routable]
        self.catalog = catalog
        self.encoded = encoded
        self._documents = documents
        self._encoder = encoder
        self._store = store
        self._names = [document.name for document in ordered]
        self._position = {name: position for position, name in enumerate(self._names)}
        self._copies: Copies = Copies(
            catalog, ordered, previous=None if previous is None else previous._copies
        )
        self._positions = np.arange(len(self._names))
        self._vectors = vectors
        self._rough = RoughVectors(self._vectors) if len(self._names) > EXHAUSTIVE else None
        self._lexical: LexicalIndex = LexicalIndex(
            ordered, previous=None if previous is None else previous._lexical
        )
        self._latent: LatentIndex = LatentIndex(
            self._lexical, space=None if previous is None else previous._latent.space
        )
        self._spelling: SpellingIndex = SpellingIndex(
            ordered, previous=None if previous is None else previous._spelling
        )
        # A request's vector is the encoder's work alone, so it outlives the catalog.
        self._remembered: LRUCache[str, NDArray[np.float32]] = (
            LRUCache(REMEMBERED_VECTORS) if previous is None else previous._remembered
        )

    @classmethod
    def build(
        cls,
        catalog: Catalog,
        *,
        encoder: Encoder,
        store: VectorStore,
        progress: Callable[[int, int], None] | None = None,
        previous: Self | None = None,
    ) -> Self:
        """Index a catalog; skills that the store already holds unchanged are not encoded again.

        Raises:
            EncoderError: a skill cannot be encoded.
        """
        known = {} if previous is None else previous._documents
        old = {} if previous is None else previous.catalog.skills
        documents = {
            skill.name: known[skill.name]
            if skill.name in known and _same(old[skill.name], skill)
            else SkillDocument.of(skill)
            for skill in catalog.routable
        }

        ordered = [documents[skill.name] for skill in catalog.routable]
        vectors, encoded = _vectors(ordered, encoder, store, progress, previous)
        return cls(catalog, documents, encoder, store, vectors, encoded, previous)

    def updated(self, catalog: Catalog) -> Self:
        """The index of a later catalog, sharing this one's store and unchanged documents."""
        return self.build(catalog, encoder=self._encoder, store=self._store, previous=self)

    @property
    def folded(self) -> frozenset[str]:
        """Names of the skills that the latent space was not computed from, or still knows. When
        there is none, the index is the one made from nothing."""
        return self._latent.folded

    def settled(self) -> Self:
        """The same index with a latent space of its own."""
        index = copy(self)
        index._latent = LatentIndex(self._lexical)
        return index

    def save(self) -> None:
        """Share new vectors, where there is a shared cache.

        Raises:
            StoreError: the shared cache cannot be written.
        """
        self._store.save()

    def close(self) -> None:
        """Save and close the store, which every index made by ``updated`` shares."""
        self._store.close()

    async def prepare(self, requests: Iterable[str]) -> None:
        """Encode requests in one batch and remember their vectors for ``rank``.

        Raises:
            EncoderError: the encoder cannot be reached.
        """
        await self._encoded(requests)

    async def vector(self, request: str) -> NDArray[np.float32]:
        """The vector of a request; see ``encode_requests``.

        Raises:
            EncoderError: the encoder cannot be reached.
        """
        return (await self._encoded([request]))[request]

    async def _encoded(self, requests: Iterable[str]) -> dict[str, NDArray[np.float32]]:
        """The vectors of requests. Not looked up in ``_remembered`` afterwards, which may have
        dropped some of them meanwhile."""
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
        vectors.update(zip(missing, encoded, strict=True))
        self._remembered.update((text, vectors[text]) for text in missing)
        return vectors

    async def rank(
        self, request: str, *, among: Sequence[str] | None = None, limit: int = 10
    ) -> Ranking:
        """Rank the skills for a request.

        Args:
            request: the text.
            among: names that may be ranked; None means all.
            limit: how many matches to give, at least 1.

        Raises:
            EncoderError: the request cannot be encoded.
        """
        among = self._copies.without(among)
        allowed = EVERYTHING if among is None else self._positions_of(among)
        size = len(self._positions[allowed])
        if size == 0:
            return Ranking(())
        vector = (await self._encoded([request]))[request]
        found_words, terms, unknown = self._terms(request)

        reach = float(self._lexical.idf[terms].sum()) + unknown
        scores = self._lexical.scores(terms)
        pool = self._candidates(scores, vector) if among is None else allowed
        lexical = scores[pool] / math.sqrt(reach + 1e-9)
        query = self._latent.query(terms)
        latent = self._latent.similarities(query, pool)
        dense = self._dense(vector, pool)
        fused = fuse(lexical, latent, dense)

        # Places in the pool; equal scores by position.
        order = np.argsort(-fused, kind="stable")[: max(limit, PARTNERS)]
        best = self._positions[pool][order]
        contributions = self._lexical.contributions(terms, best)
        found = [
            Match(
                name=self._names[position],
                score=float(fused[place]),
                lexical=float(lexical[place]),
                latent=float(latent[place]),
                cosine=float(dense[place]),
                terms=_strongest(found_words, contributions[:, column]),
            )
            for column, (place, position) in enumerate(zip(order, best, strict=True))
        ]
        partner = likeliest_partner(
            contributions[:, :PARTNERS], self._latent.documents[best[:PARTNERS]]
        )
        second = None if partner is None else found[partner.place]
        if partner is not None and partner.place > FIFTH and partner.log_odds >= PROMOTED:
            found.insert(FIFTH, found.pop(partner.place))
        expressible = math.sqrt(
            float((self._lexical.idf[terms] ** (2 * IDF_POWER)).sum()) + unknown + 1e-9
        )
        return Ranking(
            tuple(found[:limit]),
            size=size,
            evidence=float(contributions[:, 0].sum()),
            latent_mass=found[0].latent * float(np.linalg.norm(query)) / expressible,
            second=second,
            second_log_odds=-math.inf if partner is None else partner.log_odds,
        )

    async def scores(self, requests: Sequence[str], names: Sequence[str]) -> NDArray[np.float64]:
        """Fused scores of some skills for many requests, shape (requests, names). A name that is
        not in the catalog scores minus infinity. Requests to route are let in between.

        Raises:
            EncoderError: a request cannot be encoded.
        """
        table = np.full((len(requests), len(names)), -np.inf)
        known = [column for column, name in enumerate(names) if name in self._position]
        if not requests or not known:
            return table
        positions = np.array([self._position[names[column]] for column in known], dtype=np.intp)
        vectors = self._vectors[positions]
        for start in range(0, len(requests), SCORED_AT_ONCE):
            batch = requests[start : start + SCORED_AT_ONCE]
            encoded = await self._encoded(batch)
            dense = np.stack([encoded[request] for request in batch]) @ vectors.T
            table[start : start + len(batch), known] = self._fused(batch, positions, dense)
            await give_way()
        return table

    def _fused(
        self, requests: Sequence[str], positions: NDArray[np.intp], dense: NDArray[np.float32]
    ) -> NDArray[np.float64]:
        lexical, queries = [], []
        for request in requests:
            _, terms, unknown = self._terms(request)
            reach = float(self._lexical.idf[terms].sum()) + unknown
            lexical.append(self._lexical.scores(terms)[positions] / math.sqrt(reach + 1e-9))
            queries.append(self._latent.query(terms))
        latent = self._latent.similarities(np.stack(queries), positions)
        return fuse(np.stack(lexical), latent, dense.astype(np.float64))

    def _positions_of(self, names: Sequence[str]) -> NDArray[np.intp]:
        return np.array(
            sorted(self._position[name] for name in set(names) if name in self._position),
            dtype=np.intp,
        )

    def _candidates(self, lexical: NDArray[np.float64], vector: NDArray[np.float32]) -> Positions:
        """The skills to score for a request: all, or the best by words and by vectors of many."""
        if self._rough is None:
            return EVERYTHING
        wanted = np.zeros(len(self._names), dtype=bool)
        wanted[highest(lexical, BY_WORDS)] = True
        wanted[self._rough.nearest(vector)] = True
        found = np.flatnonzero(wanted)
        # A request that is like nothing at all still gets a ranking.
        return found if len(found) >= PARTNERS else self._positions[:EXHAUSTIVE]

    def _terms(self, request: str) -> tuple[list[str], list[int], int]:
        """The words of a request that some skill knows, one for each different stem, their term
        numbers, and how many other stems there are. A request of function words alone is taken by
        those."""
        known: dict[int, str] = {}
        unknown: set[str] = set()
        for word in words(request) or tokens(request):
            root = stem(word)
            if root not in self._lexical.vocabulary:
                root = stem(self._spelling.correct(word) or word)
            number = self._lexical.vocabulary.get(root)
            if number is None:
                unknown.add(root)
            else:
                known.setdefault(number, word)
        return list(known.values()), list(known), len(unknown)

    def _dense(self, vector: NDArray[np.float32], pool: Positions) -> NDArray[np.float64]:
        """Cosine of some skills; those beyond the nearest are taken to be as near as the last."""
        cosines = (self._vectors[pool] @ vector).astype(np.float64)
        if len(cosines) > NEAREST:
            cosines = np.maximum(cosines, np.partition(cosines, -NEAREST)[-NEAREST])
        return cosines


def _same(one: SkillManifest, other: SkillManifest) -> bool:
    return one is other or one.routing_digest == other.routing_digest


def _strongest(found: Sequence[str], contributions: NDArray[np.float64]) -> tuple[str, ...]:
    order = np.argsort(-contributions, kind="stable")
    return tuple(found[row] for row in order if contributions[row] > 0)
