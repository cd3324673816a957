"""The index over one catalog, which ranks the skills for a request.

An index is immutable. ``updated`` makes the next one from it (``documents.Edit``), so that only new
and changed skills are read and encoded. The first index is made in the same way, from one without
skills.

To rank, a request is prepared (``reader.py``), the skills are scored (``scoring.py``), and the best
are returned in order, with the signals that a decision needs (``matches.py``).
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from router.errors import EncoderError
from router.retrieval.background import Background, is_foreign
from router.retrieval.copies import Copies, root_numbers
from router.retrieval.documents import Edit, examples_of
from router.retrieval.encoders import Encoder
from router.retrieval.guarded_encoder import GuardedEncoder
from router.retrieval.matches import Clause, Match, Ranking
from router.retrieval.names import SkillNames
from router.retrieval.reader import ReadRequest, ReadText, RequestReader
from router.retrieval.scoring import ALL_SKILLS, FULLY_SCORED, Positions, Scored, SkillScores
from router.retrieval.spare_memory import give_back
from router.retrieval.vectors import VectorStore
from router.skills.catalog import Catalog
from router.skills.difference import differing
from router.skills.manifest import SkillManifest

READ_AT_ONCE: Final = 256
"""How many new skills are read in one step; a sixteenth of the indexed ones, if that is more. To
read a skill takes ten times as much memory as the index keeps of it."""


class SkillIndex:
    """Retrieval over one catalog. ``updated`` gives the index of the next one. ``rank`` goes by the
    words of a request alone while an encoder that may be down is. Other methods that take a request
    raise ``EncoderError`` where it cannot be encoded.

    Attributes:
        catalog: the skills of this index.
        encoded: how many skills were encoded to make it; the vectors of the others were stored.
        reader: prepares requests for this index.
        skill_names: finds the names of skills in requests.
    """

    def __init__(
        self,
        encoder: Encoder,
        store: VectorStore,
        background: Background | None = None,
        *,
        of_requests: GuardedEncoder | None = None,
    ) -> None:
        """The index of an empty catalog. ``of_requests`` encodes the requests; without it they have
        one of their own."""
        of_requests = GuardedEncoder(encoder) if of_requests is None else of_requests
        self.catalog = Catalog()
        self.encoded = 0
        self.reader = RequestReader(of_requests)
        self.skill_names = SkillNames()
        self._encoder = encoder
        self._of_requests = of_requests
        self._store = store
        self._background = background
        self._names: list[str] = []
        self._copies = Copies()
        self._scores = SkillScores()

    @classmethod
    def build(
        cls,
        catalog: Catalog,
        *,
        encoder: Encoder,
        store: VectorStore,
        of_requests: GuardedEncoder | None = None,
        progress: Callable[[int, int], None] | None = None,
    ) -> Self:
        """Index a catalog. Texts whose vectors are stored already are not encoded again.

        Args:
            of_requests: encodes the requests.
            progress: called with (done, total) texts to encode, in each step from zero.

        Raises:
            EncoderError: a skill or the background cannot be encoded.
        """
        background = Background.of(encoder, store, progress)
        empty = cls(encoder, store, background, of_requests=of_requests)
        return empty.updated(catalog, progress)

    def updated(self, catalog: Catalog, progress: Callable[[int, int], None] | None = None) -> Self:
        """The index of a later catalog. It shares this one's store and the data of unchanged
        skills; see ``build``. Many new skills are read in several steps, to save memory."""
        roots = root_numbers(catalog)
        if roots and self._names and not self._copies.covers(self._names):
            # Copies are looked for only where there are several roots. With the second root, all
            # skills must be read again for that.
            return self._emptied().updated(catalog, progress)
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
            index = index._edited(some, now, gone, roots, progress, more=True)
            encoded += index.encoded
            steps += 1
            gone = {}
        index = index._edited(names, new, gone, roots, progress)
        index.catalog = catalog
        index.encoded += encoded
        if steps > 1:
            give_back()
        return index

    def _edited(
        self,
        names: list[str],
        new: Sequence[SkillManifest],
        gone: Mapping[str, SkillManifest],
        roots: Mapping[str, int],
        progress: Callable[[int, int], None] | None,
        *,
        more: bool = False,
    ) -> Self:
        """One step of ``updated``. The result still has this index's catalog.

        Args:
            names: the names of the skills after the step, in their order.
            new: the skills among them that must be read.
            gone: by name, the skills of this index that are removed or changed.
            more: whether other steps follow.
        """
        kept = np.full(len(names), -1, dtype=np.intp)
        stay = np.delete(np.arange(len(names)), [bisect_left(names, skill.name) for skill in new])
        went = [bisect_left(self._names, name) for name in gone]
        kept[stay] = np.delete(np.arange(len(self._names)), went)
        removed = self._store.documents(list(gone.values()), removed=True)
        edit = Edit(kept, self._store.documents(new), removed, more=more)

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
        after.__dict__.pop("_position_of", None)  # the cached property has the old names
        after.skill_names = self.skill_names.edited(edit, names)
        after._copies = self._copies.edited(edit, names, roots)
        after._scores = scores = self._scores.edited(edit, vectors, of_examples)
        after.reader = self.reader.edited(edit, scores.lexical, len(scores.mean))
        return after

    @cached_property
    def _position_of(self) -> dict[str, int]:
        """Positions by name. Made when first used, because most requests do not need them."""
        return dict(zip(self._names, range(len(self._names)), strict=True))

    def over(self, catalog: Catalog) -> Self:
        """An index over another catalog, with this one's encoder, store and background."""
        return self._emptied().updated(catalog)

    def _emptied(self) -> Self:
        return type(self)(
            self._encoder, self._store, self._background, of_requests=self._of_requests
        )

    def close(self) -> None:
        """Save and close the store, which every index made by ``updated`` shares."""
        self._store.close()

    async def nearest_example(self, request: str, name: str) -> tuple[str, float] | None:
        """The example of a skill that is nearest to a request, and its cosine; None where the skill
        has no examples or does not exist, or the request cannot be encoded."""
        place = self._position_of.get(name)
        if place is None:
            return None
        try:
            vector = await self.reader.vector(request)
        except EncoderError:
            return None
        found = self._scores.examples.nearest(vector, place)
        if found is None:
            return None
        return examples_of(self.catalog.skills[name])[found[0]], found[1]

    async def relation(self, request: str, context: str, name: str) -> float:
        """How far a request is about the same as its context and as the skill that was chosen in
        it: the cosine of its vector and that of the nearest clause of the context, plus the cosine
        of the nearest text of the skill. Between -2 and 2."""
        vector = await self.reader.vector(request)
        said = float((await self.reader.vectors(context) @ vector).max())
        return said + self._scores.closest(vector, self._position_of[name])

    async def rank(
        self,
        request: str,
        *,
        context: str = "",
        among: Sequence[str] | None = None,
        limit: int = 10,
    ) -> Ranking:
        """Rank the skills for a request. Those that it names outright come first, and those that it
        refuses by name are left out. ``Ranking.fault`` says why where its words alone counted.

        Args:
            context: the earlier turns that a follow-up refers to, see ``RequestReader.read``.
                Skills that it names are not "named outright", and its clauses are not ranked.
            among: names that may be ranked; None means all.
            limit: how many matches to return, at least 1.
        """
        named = self.skill_names.named_in(request)
        if named.refused:
            among = self.without(named.refused, among)
        if self._copies.stronger:
            among = self._copies.without(among)
        allowed = ALL_SKILLS if among is None else self._positions_of(among)
        size = len(self._names) if isinstance(allowed, slice) else len(allowed)
        if not size:
            return Ranking(())
        read = await self.reader.read(request, context, may_do_without=True)
        return self._ranking(read, self._among(named.wanted, allowed), allowed, size, limit)

    def without(self, refused: Collection[str], among: Sequence[str] | None) -> tuple[str, ...]:
        """The names, of all skills where ``among`` is None, without those that are refused."""
        offered = self._names if among is None else among
        return tuple(name for name in offered if name not in refused)

    async def scores(self, request: str, names: Sequence[str]) -> NDArray[np.float64]:
        """The fused scores of some skills of this catalog for a request."""
        positions = np.array([self._position_of[name] for name in names], dtype=np.intp)
        return self._scores.scores_of(await self.reader.read(request), positions)

    def _ranking(
        self,
        request: ReadRequest,
        named: tuple[str, ...],
        allowed: Positions,
        size: int,
        limit: int,
    ) -> Ranking:
        named = named[:FULLY_SCORED]  # so that all can be scored in full
        named_positions = [self._position_of[name] for name in named]
        scored = self._scores.best(request, allowed, named_positions, limit)
        order, lead = _ordered(scored.score[0], max(limit, 2))
        if named_positions:
            order = _to_the_front(named_positions, order, scored.positions)
        order = order[:limit]
        whole, *clauses = request.texts[: len(scored.score)]
        contributions = scored.contributions[:, order].T
        evidence = float(contributions[0].sum())
        background, foreign = None, False
        if self._background is not None and not request.fault:
            vector = request.vectors[0]
            background = self._background.compare(vector, scored.closest[0], int(order[0]))
            foreign = not evidence and (is_foreign(whole.words) or not vector.any())
        return Ranking(
            self._matches(scored, 0, order, _strongest(whole.known_words, contributions)),
            size=size,
            evidence=evidence,
            lead=lead,
            named=named,
            background=background,
            clauses=self._clauses(scored, clauses, request.after_comma, size, order)
            if clauses
            else (),
            foreign=foreign,
            wordless=not whole.words,
            fault=request.fault,
        )

    def _clauses(
        self,
        scored: Scored,
        clauses: Sequence[ReadText],
        after_comma: Sequence[bool],
        size: int,
        order: NDArray[np.intp],
    ) -> tuple[Clause, ...]:
        """The clauses of a request. Row 0 of the scores is the whole request, the others are its
        clauses; ``order`` are the columns of the whole request's matches."""
        scores, rows = scored.score[1:], np.arange(len(clauses))
        highest = -np.partition(-scores, min(1, scores.shape[1] - 1))[:, :2]
        leads = highest[:, 0] - highest[:, 1] if highest.shape[1] > 1 else highest[:, 0]
        best = scores.argmax(axis=1)
        matches = self._matches(scored, 1 + rows, best, [()] * len(clauses))
        return tuple(
            Clause(
                Ranking((match,), size=size, evidence=match.lexical * clause.norm, lead=lead),
                tuple(match_scores),
                tuple(example_nearness),
                tuple(two),
                len(clause.known_words),
                is_after_comma,
            )
            for match, clause, lead, match_scores, example_nearness, two, is_after_comma in zip(
                matches,
                clauses,
                leads.tolist(),
                scores[:, order].tolist(),
                scored.examples[1:, order].tolist(),
                highest.tolist(),
                after_comma,
                strict=True,
            )
        )

    def _matches(
        self,
        scored: Scored,
        row: int | NDArray[np.intp],
        places: NDArray[np.intp],
        terms: Sequence[tuple[str, ...]],
    ) -> tuple[Match, ...]:
        """The matches in some columns of one row, or, with several rows, of one row each."""
        positions = scored.positions[places]
        return tuple(
            map(
                Match,
                [self._names[position] for position in positions.tolist()],
                scored.score[row, places].tolist(),
                scored.lexical[row, places].tolist(),
                scored.cosine[row, places].tolist(),
                scored.examples[row, places].tolist(),
                self._scores.examples.weight[positions].tolist(),
                terms,
            )
        )

    def _among(self, named: tuple[str, ...], allowed: Positions) -> tuple[str, ...]:
        """Those of some names that may be ranked."""
        if not named or isinstance(allowed, slice):
            return named
        offered = set(allowed.tolist())
        return tuple(name for name in named if self._position_of[name] in offered)

    def _positions_of(self, names: Sequence[str]) -> Positions:
        """The positions of the skills with these names; ``ALL_SKILLS`` where these are all skills,
        because a slice copies no array."""
        named = frozenset(names)
        if len(named) >= len(self._names) and named.issuperset(self._position_of):
            return ALL_SKILLS
        found = self._position_of.keys() & named
        return np.array(sorted(map(self._position_of.__getitem__, found)), dtype=np.intp)


def _names(catalog: Catalog) -> list[str]:
    """The names of the routable skills, in their order."""
    if len(catalog.routable) == len(catalog.skills):  # nearly always, and much faster
        return list(catalog.skills)
    return [skill.name for skill in catalog.routable]


def _routable(skills: Iterable[SkillManifest]) -> dict[str, SkillManifest]:
    return {skill.name: skill for skill in skills if not skill.disable_model_invocation}


def _example_key(text: str) -> str:
    return f"example/{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()}"


def _ordered(scores: NDArray[np.float64], count: int) -> tuple[NDArray[np.intp], float]:
    """The places of the ``count`` best scores, best first and equal ones by place, and the
    difference of the two best."""
    order = np.argsort(-scores, kind="stable")[:count]
    best = scores[order[:2]]
    return order, float(best[0] - best[1]) if len(best) > 1 else float(best[0])


def _to_the_front(
    named: Sequence[int], order: NDArray[np.intp], positions: NDArray[np.intp]
) -> NDArray[np.intp]:
    """The places in ``order``, with those of the positions ``named`` moved to the front."""
    front = [int(np.flatnonzero(positions == position)[0]) for position in named]
    return np.array([*front, *(place for place in order.tolist() if place not in front)])


def _strongest(words: Sequence[str], contributions: NDArray[np.float64]) -> list[tuple[str, ...]]:
    """For each skill the words that it has, largest contribution first; ``contributions`` has the
    shape (skills, words)."""
    order = np.argsort(-contributions, axis=1, kind="stable").tolist()
    counts = np.count_nonzero(contributions > 0, axis=1).tolist()
    return [
        tuple([words[place] for place in places[:count]])
        for places, count in zip(order, counts, strict=True)
    ]
