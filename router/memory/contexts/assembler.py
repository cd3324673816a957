"""Assembles memories and documents about a query into a context of a given number of tokens.

Both sides are searched at the same time. Memories keep the scores of the recall. The scores of
documents cannot be compared with these, so a document gets a new score: the mean of its relevance
(a probability) and its BM25 among all pieces (divided by the largest). The scores are multiplied by
the weight of the side. The weights also split the budget; what one side does not use, the other may
use.

A long memory is cut into sections, and only those that bear on the query are used.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import partial
from typing import Any, Final, TypeAlias

from router.concurrency.tasks import in_thread
from router.errors import InvalidRequest, StoreError
from router.memory.contexts.context import (
    PRESETS,
    AssembledContext,
    Chunk,
    ContextSide,
    LeftOut,
    RetrievalWeights,
    Retrieved,
    Strategy,
    joined,
    rendered,
)
from router.memory.contexts.usage_patterns import QueryPatternTracker
from router.memory.model import LayerQuery, MemoryItem, Scope, ScoreKind
from router.memory.query.rewrite import rewrite
from router.memory.recall.pool import RELEVANCE_FLOOR
from router.memory.recall.relevance import Judge, parts_of, passage_of
from router.memory.stores.graph import with_relations
from router.memory.texts.bm25 import TEXTBOOK
from router.memory.texts.chunking import SENTENCE_BORDER
from router.memory.texts.contents import content_key
from router.memory.texts.questions import questions_of
from router.settings.files import warn_once
from router.text import stems

MAX_BUDGET_TOKENS: Final = 1_000_000
MIN_SECTION: Final = 0.5
"""A section of a recalled memory is used if it is at least half as relevant as the best section."""
TOKENS_A_PIECE: Final = 50
"""Tokens of a piece that the number of pieces to search for is computed with. Most pieces are
longer, so there are more than fit, to choose from."""
MIN_PIECES: Final = 8
MAX_PIECES: Final = 100

MIN_RELEVANCE: Final = RELEVANCE_FLOOR
"""Less relevant pieces are left out. Pieces of the period that a query names are not, because an
event of that time need not share a word with the query."""
LONGEST_SENTENCE: Final = 60
"""Words. A longer text without the end of a sentence is a table, a log or a list."""

ContextSource: TypeAlias = Callable[
    [LayerQuery, Strategy, Scope, int], Coroutine[Any, Any, Retrieved]
]
"""The search of one side: gives at most the given number of items that the scope sees, best
first."""


@dataclass(frozen=True, slots=True)
class _Piece:
    """An item of one side on its way into the context."""

    item: MemoryItem
    side: ContextSide
    score: float
    content: str

    @property
    def source(self) -> str:
        named = self.item.attributes.get("source")
        if self.side is ContextSide.DOCUMENTS:
            return named if isinstance(named, str) and named else "rag"
        session = self.item.scope.session or self.item.attributes.get("session")
        return f"memory:{session or self.item.layer}"

    def left_out(self, reason: str) -> LeftOut:
        return LeftOut(self.item.id, self.source, reason)


class ContextAssembler:
    """Assembles contexts; has no state of its own."""

    def __init__(
        self,
        memory: ContextSource,
        *,
        documents: ContextSource,
        no_documents: Callable[[Scope], Awaitable[bool]],
        relevance: Judge,
        count_tokens: Callable[[str], int],
        clock: Callable[[], float],
        tracker: QueryPatternTracker | None = None,
    ) -> None:
        """``no_documents`` says whether the scope sees no document at all; ``relevance`` makes the
        scores of both sides comparable; ``count_tokens`` counts as the model does that will read
        the context; ``clock`` gives seconds since the epoch; the tracker counts which memories are
        used."""
        self._memory = memory
        self._documents = documents
        self._no_documents = no_documents
        self._relevance = relevance
        self._count = count_tokens
        self._clock = clock
        self._tracker = tracker

    async def assemble(
        self,
        query: str,
        strategy: Strategy | str = Strategy.HYBRID,
        token_budget: int = 2000,
        session: str | None = None,
        *,
        scope: Scope | Mapping[str, object] | None = None,
        weights: RetrievalWeights | str = PRESETS["memory_focused"],
        time_zone: tzinfo = UTC,
    ) -> AssembledContext:
        """The best of memory and documents that fits the budget.

        Args:
            query: what it is for, at most 2,000 characters.
            strategy: where to look. ``rag`` without documents follows ``hybrid``
                and says so.
            token_budget: tokens that ``text`` may have, in [1, 1,000,000].
            session: in place of the scope's session.
            scope: who asks.
            weights: of the two sides, or the name of a preset; they matter to ``rag`` alone.
            time_zone: of who asks.

        Raises:
            InvalidRequest: one of these cannot be used; the message names it.
        """
        now = datetime.fromtimestamp(self._clock(), time_zone)
        layer_query = rewrite(query, now=now)
        requested = _strategy(strategy)
        weights = _weights(weights)
        if isinstance(token_budget, bool) or not isinstance(token_budget, int):
            raise InvalidRequest("token_budget: expected a whole number")
        if not 1 <= token_budget <= MAX_BUDGET_TOKENS:
            raise InvalidRequest(f"token_budget: {token_budget} is not in [1, {MAX_BUDGET_TOKENS}]")
        asking_scope = Scope.parse(scope)
        if session is not None:
            asking_scope = Scope(asking_scope.user, asking_scope.project, session)

        notes: list[str] = []
        followed = requested
        if requested is Strategy.RAG and await self._no_documents(asking_scope):
            followed = Strategy.HYBRID
            notes.append("there are no documents; the strategy hybrid was followed instead of rag")
        if followed is not Strategy.RAG:
            weights = RetrievalWeights(documents=0.0, memory=1.0)
        found = await self._retrieve(
            layer_query, followed, asking_scope, weights, token_budget, notes
        )
        pieces, left_out = await in_thread(lambda: self._judged(layer_query, found, weights))
        chunks, unfit = self._filled(layer_query.subject, pieces, weights, token_budget)
        taken = {chunk.item_id for chunk in chunks}
        used = [p.item for p in pieces if p.side is ContextSide.MEMORY and p.item.id in taken]
        if used and self._tracker is not None:
            try:
                await in_thread(partial(self._tracker.record, used))
            except StoreError as error:  # what was asked for is there; a count must not matter
                warn_once(f"it is not counted which memories contexts use: {error}")
        if pieces and not chunks:
            smallest = min(self._alone(self._chunk(piece)) for piece in pieces)
            notes.append(
                f"nothing fits: the smallest of {len(pieces)} pieces that bear on the query has "
                f"{smallest} tokens, and the budget is {token_budget}"
            )
        elif not chunks and not notes:
            notes.append("nothing that bears on the query is stored")
        return AssembledContext(
            query=query,
            requested=requested,
            strategy=followed,
            chunks=tuple(chunks),
            tokens=self._count(joined(chunks)) if chunks else 0,
            budget=token_budget,
            left_out=(*left_out, *unfit),
            notes=tuple(notes),
        )

    async def _retrieve(
        self,
        layer_query: LayerQuery,
        strategy: Strategy,
        scope: Scope,
        weights: RetrievalWeights,
        budget: int,
        notes: list[str],
    ) -> dict[ContextSide, Sequence[MemoryItem]]:
        """What each side finds. If one side fails, that is noted, and the other side is used."""
        sources: dict[ContextSide, ContextSource] = {ContextSide.MEMORY: self._memory}
        if strategy is Strategy.RAG:
            sources[ContextSide.DOCUMENTS] = self._documents
        calls = []
        for side, source in sources.items():
            share = math.ceil(budget * weights.of(side) / TOKENS_A_PIECE)
            k = min(max(share, MIN_PIECES), MAX_PIECES)
            calls.append(source(layer_query, strategy, scope, k))
        answers = await asyncio.gather(*calls, return_exceptions=True)
        found: dict[ContextSide, Sequence[MemoryItem]] = {}
        for side, answer in zip(sources, answers, strict=True):
            if isinstance(answer, Exception):
                notes.append(f"{side.value} could not be searched: {answer}")
            elif isinstance(answer, BaseException):
                raise answer
            else:
                found[side] = [item.in_zone(layer_query.now.tzinfo or UTC) for item in answer.items]
                notes += answer.notes
        return found

    def _judged(
        self,
        layer_query: LayerQuery,
        found: Mapping[ContextSide, Sequence[MemoryItem]],
        weights: RetrievalWeights,
    ) -> tuple[list[_Piece], list[LeftOut]]:
        """All pieces with comparable scores, best first, each content once."""
        wholes = {id(item): with_relations(item) for some in found.values() for item in some}
        parts = [
            (side, item, part)
            for side, some in found.items()
            for item in some
            for part in parts_of(wholes[id(item)])
        ]
        contents = [part for _, _, part in parts]
        questions = [questions_of(i) if part == wholes[id(i)] else () for _, i, part in parts]
        judged = self._relevance(layer_query.subject, contents, questions)
        relevance = [one.relevance for one in judged]
        words = TEXTBOOK.shares(stems(layer_query.subject), contents)
        most = max(words, default=0.0) or 1.0
        best: dict[int, float] = {}
        for (_, item, _), relevant in zip(parts, relevance, strict=True):
            best[id(item)] = max(relevant, best.get(id(item), 0.0))
        pieces: list[_Piece] = []
        left_out: list[LeftOut] = []
        for (side, item, part), relevant, share in zip(parts, relevance, words, strict=True):
            if item.score_kind is ScoreKind.RERANKED and item.score is not None:
                beside = relevant / best[id(item)] if part != wholes[id(item)] else 1.0
                bears = beside >= MIN_SECTION or relevant >= MIN_RELEVANCE
                score = item.score * beside
            else:
                bears = relevant >= MIN_RELEVANCE
                score = (relevant + share / most) / 2
            piece = _Piece(item, side, weights.of(side) * score, part)
            period = layer_query.period
            if bears or (period is not None and period.start <= item.created < period.end):
                pieces.append(piece)
            else:
                left_out.append(piece.left_out("it does not bear on the query"))
        pieces.sort(key=lambda piece: -piece.score)
        kept: dict[str, _Piece] = {}
        for piece in pieces:
            first = kept.setdefault(content_key(piece.content), piece)
            if first is not piece:
                left_out.append(piece.left_out(f"the same as {first.item.id} of {first.source}"))
        return list(kept.values()), left_out

    def _filled(
        self, subject: str, pieces: Sequence[_Piece], weights: RetrievalWeights, budget: int
    ) -> tuple[list[Chunk], list[LeftOut]]:
        """Each side fills its share of the budget with its best pieces; then the rest is filled
        with the best pieces of both.

        A piece that does not fit is skipped, so that a long one does not keep out shorter ones. But
        the best of all is never skipped: if it does not fit as a whole, it is cut to the passage
        that bears on the subject. It may have half of the budget, and what the others leave.

        Whether a piece fits is asked of it without the blank line behind it, which the last one
        does not need; what it takes from the rest is both.
        """
        sizes = {piece: self._chunk(piece) for piece in pieces}
        alone = {piece: self._alone(sizes[piece]) for piece in pieces}
        best = pieces[0] if pieces and alone[pieces[0]] > budget else None
        part = None if best is None else self._cut(best, subject, budget // 2)
        reserved = 0 if part is None else part.tokens
        taken: dict[_Piece, Chunk] = {}
        rest = budget - reserved
        for side in ContextSide:
            share = min(int(budget * weights.of(side)), rest)
            for piece in pieces:
                chunk = sizes[piece]
                if piece.side is side and alone[piece] <= share:
                    taken[piece] = chunk
                    share -= chunk.tokens
                    rest -= chunk.tokens
        for piece in pieces:
            chunk = sizes[piece]
            if piece not in taken and alone[piece] <= rest:
                taken[piece] = chunk
                rest -= chunk.tokens
        if best is not None:
            part = self._cut(best, subject, rest + reserved) or part
            if part is not None:
                taken[best] = part
        ordered = [piece for piece in pieces if piece in taken]
        # The tokens of the whole may be more than the sum of its parts, so count them again.
        while len(ordered) > 1 and self._count(joined([taken[p] for p in ordered])) > budget:
            ordered.pop()
        kept = set(ordered)
        unfit = [
            piece.left_out(f"its {alone[piece]} tokens do not fit the budget")
            for piece in pieces
            if piece not in kept
        ]
        return [taken[piece] for piece in ordered], unfit

    def _chunk(self, piece: _Piece, content: str | None = None) -> Chunk:
        item = piece.item
        shown = piece.content if content is None else content
        text = rendered(piece.source, item.created, shown)
        return Chunk(
            content=shown,
            source=piece.source,
            created=item.created,
            score=piece.score,
            # With the blank line before the next chunk.
            tokens=self._count(text + "\n\n"),
            item_id=item.id,
            provenance=item.provenance,
            cut=content is not None,
        )

    def _alone(self, chunk: Chunk) -> int:
        """The tokens of a chunk without the blank line before the next one."""
        return self._count(joined([chunk]))

    def _cut(self, piece: _Piece, subject: str, budget: int) -> Chunk | None:
        """The longest passage, in whole words, that fits. It begins with the sentence that has most
        words of the subject; None if that does not fit, because half of it is no answer."""
        passage = passage_of(piece.content, subject, len(piece.content) - 1)
        words = passage.split()
        low, high, best = _least_words(passage, subject), len(words), None
        while low <= high:
            middle = (low + high) // 2
            is_end = middle == len(words) and words[0] == "…"  # the beginning is left out alone
            chunk = self._chunk(piece, " ".join(words[:middle]) + ("" if is_end else " …"))
            if self._alone(chunk) <= budget:
                best, low = chunk, middle + 1
            else:
                high = middle - 1
        return best


def _least_words(passage: str, subject: str) -> int:
    """The number of words that a cut of a passage needs: those of its first sentence, or of its
    clauses up to a semicolon if the others have no word of the subject; with the next sentence if
    the first is a heading. A text that is too long for a sentence, such as a table, needs one."""
    ends = [border.start() for border in SENTENCE_BORDER.finditer(passage)]
    ends = [end for end in ends if passage[:end].strip("\u2026 ")] + [len(passage)]
    is_heading = ends[0] < len(passage) and passage[ends[0] - 1] not in ".!?\u3002\uff01\uff1f"
    sentence = passage[: ends[is_heading]]
    asked = {*stems(subject)}
    found = asked.intersection(stems(sentence))
    clauses = (sentence[: end.start()] for end in re.finditer(r";\s", sentence))
    least = next((one for one in clauses if found and found <= {*stems(one)}), sentence)
    words = len(least.split())
    return words if words <= LONGEST_SENTENCE else 1


def _strategy(raw: Strategy | str) -> Strategy:
    try:
        return Strategy(raw)
    except ValueError:
        known = ", ".join(Strategy)
        raise InvalidRequest(f"strategy: {raw!r} is none of {known}") from None


def _weights(raw: RetrievalWeights | str) -> RetrievalWeights:
    if isinstance(raw, RetrievalWeights):
        return raw
    try:
        return PRESETS[raw]
    except (KeyError, TypeError):
        raise InvalidRequest(f"weights: {raw!r} is none of {', '.join(PRESETS)}") from None
