"""The index over one catalog: it ranks the skills for a request.

An index never changes. ``updated`` makes the next one from it (``documents.Edit``), and the first
one is made from the index of no skills: so only skills that are new or have changed are read and
encoded, and there is one way to make an index.

A request is read (``reader.py``), the skills are scored for it (``scoring.py``), and the best of
them are put in order, with what a decision about them rests on (``matches.py``).
"""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import cached_property
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from router.retrieval.background import Background, is_foreign
from router.retrieval.copies import Copies, root_numbers
from router.retrieval.documents import Edit, examples_of
from router.retrieval.encoders import Encoder
from router.retrieval.matches import Clause, Match, Ranking
from router.retrieval.names import SkillNames
from router.retrieval.reader import ReadRequest, ReadText, RequestReader
from router.retrieval.scoring import BY_SCORE, EVERYTHING, Positions, Scored, SkillScores
from router.retrieval.spare_memory import give_back
from router.retrieval.vectors import VectorStore
from router.skills.catalog import Catalog
from router.skills.difference import differing
from router.skills.manifest import SkillManifest

READ_AT_ONCE: Final = 256
"""New skills of one step, or a sixteenth of those that are indexed, if that is more. Reading a
skill takes ten times the memory of what is kept of it."""


class SkillIndex:
    """Retrieval over one catalog. ``updated`` gives the index of the next one. Whatever reads a
    request raises ``EncoderError`` where it cannot be encoded.

    Attributes:
        catalog: the snapshot that this index is about.
        encoded: how many skills were encoded to make it; the others were stored already.
        reader: reads requests as this index ranks them.
        skill_names: the names of its skills, as requests spell them.
    """

    def __init__(
        self, encoder: Encoder, store: VectorStore, background: Background | None = None
    ) -> None:
        """The index of an empty catalog; ``background`` is what requests are compared with."""
        self.catalog = Catalog()
        self.encoded = 0
        self.reader = RequestReader(encoder)
        self.skill_names = SkillNames()
        self._encoder = encoder
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
        """The index of other skills, but for its catalog: one step of ``updated``.

        Args:
            names: of the skills after the step, in their order.
            new: those of them that are to be read.
            gone: by name, the skills of this index that are not in it, or not as they were.
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
        after.__dict__.pop("_position_of", None)  # the cached property is of the old names
        after.skill_names = self.skill_names.edited(edit, names)
        after._copies = self._copies.edited(edit, names, roots)
        after._scores = scores = self._scores.edited(edit, vectors, of_examples)
        after.reader = self.reader.edited(edit, scores.lexical, len(scores.mean))
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

    async def nearest_example(self, request: str, name: str) -> tuple[str, float] | None:
        """The example of a skill that is nearest to a request, and the cosine of both; None when
        the skill has none, or there is no such skill."""
        place = self._position_of.get(name)
        if place is None:
            return None
        found = self._scores.examples.nearest(await self.reader.vector(request), place)
        if found is None:
            return None
        return examples_of(self.catalog.skills[name])[found[0]], found[1]

    async def rank(
        self,
        request: str,
        *,
        context: str = "",
        among: Sequence[str] | None = None,
        limit: int = 10,
    ) -> Ranking:
        """Rank the skills for a request. Those that it names outright come first.

        Args:
            context: what was said before it, see ``RequestReader.read``. It names no skill, and its
                clauses ask for none.
            among: names that may be ranked; None means all.
            limit: how many matches to give, at least 1.
        """
        if self._copies.stronger:
            among = self._copies.without(among)
        allowed = EVERYTHING if among is None else self._positions_of(among)
        size = len(self._names) if isinstance(allowed, slice) else len(allowed)
        if not size:
            return Ranking(())
        return self._ranking(await self.reader.read(request, context), allowed, size, limit)

    async def scores(self, request: str, names: Sequence[str]) -> NDArray[np.float64]:
        """The fused scores of some skills of this catalog for a request."""
        positions = np.array([self._position_of[name] for name in names], dtype=np.intp)
        return self._scores.of(await self.reader.read(request), positions)

    def _ranking(self, asked: ReadRequest, allowed: Positions, size: int, limit: int) -> Ranking:
        named = self._named(asked.text, allowed)[:BY_SCORE]  # all of them are scored in full
        named_at = [self._position_of[name] for name in named]
        scored = self._scores.best(asked, allowed, named_at, limit)
        order, lead = _ordered(scored.score[0], max(limit, 2))
        if named_at:
            order = _to_the_front(named_at, order, scored.positions)
        order = order[:limit]
        whole, *clauses = asked.texts[: len(scored.score)]
        added = scored.contributions[:, order].T
        evidence = float(added[0].sum())
        compared, foreign = None, False
        if self._background is not None:
            vector = asked.vectors[0]
            compared = self._background.compared(vector, scored.closest[0], int(order[0]))
            foreign = not evidence and (is_foreign(whole.spoken) or not vector.any())
        return Ranking(
            self._matches(scored, 0, order, _strongest(whole.words, added)),
            size=size,
            evidence=evidence,
            lead=lead,
            named=named,
            background=compared,
            clauses=self._clauses(scored, clauses, asked.listed, size, order) if clauses else (),
            foreign=foreign,
            wordless=not whole.spoken,
        )

    def _clauses(
        self,
        scored: Scored,
        clauses: Sequence[ReadText],
        listed: Sequence[bool],
        size: int,
        order: NDArray[np.intp],
    ) -> tuple[Clause, ...]:
        """The clauses, which have the rows behind the whole request's; ``order`` has the places
        of its matches."""
        scores, rows = scored.score[1:], np.arange(len(clauses))
        highest = -np.partition(-scores, min(1, scores.shape[1] - 1))[:, :2]
        leads = highest[:, 0] - highest[:, 1] if highest.shape[1] > 1 else highest[:, 0]
        best = scores.argmax(axis=1)
        matches = self._matches(scored, 1 + rows, best, [()] * len(clauses))
        return tuple(
            Clause(
                Ranking((match,), size=size, evidence=match.lexical * clause.length, lead=lead),
                tuple(of_matches),
                tuple(near),
                tuple(two),
                len(clause.words),
                comma,
            )
            for match, clause, lead, of_matches, near, two, comma in zip(
                matches,
                clauses,
                leads.tolist(),
                scores[:, order].tolist(),
                scored.examples[1:, order].tolist(),
                highest.tolist(),
                listed,
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
                self._scores.examples.weight[positions].tolist(),
                terms,
            )
        )

    def _named(self, request: str, allowed: Positions) -> tuple[str, ...]:
        named = self.skill_names.named_in(request)
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


def _names(catalog: Catalog) -> list[str]:
    """Of the routable skills, in their order."""
    if len(catalog.routable) == len(catalog.skills):  # as nearly always; it is much quicker
        return list(catalog.skills)
    return [skill.name for skill in catalog.routable]


def _routable(skills: Iterable[SkillManifest]) -> dict[str, SkillManifest]:
    return {skill.name: skill for skill in skills if not skill.disable_model_invocation}


def _example_key(text: str) -> str:
    return f"example/{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()}"


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
