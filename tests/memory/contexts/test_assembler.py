"""Contexts: what is taken, in which order, and never more than the budget."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.errors import InvalidRequest
from router.memory.contexts.assembler import ContextAssembler, ContextSource
from router.memory.contexts.context import (
    AssembledContext,
    ContextSide,
    RetrievalWeights,
    Retrieved,
    Strategy,
)
from router.memory.contexts.usage_patterns import QueryPatternTracker
from router.memory.model import LayerQuery, MemoryItem, Scope, ScoreKind
from router.memory.recall.relevance import Judged
from router.text import stems

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)


class Overlap:
    """Relevance as the share of the query's stems that a content holds."""

    def of(
        self, query: str, contents: Sequence[str], questions: Sequence[Sequence[str]] = ()
    ) -> list[Judged]:
        asked = set(stems(query))
        return [Judged(len(asked & set(stems(content))) / len(asked), 0.0) for content in contents]


class Held:
    """A side that holds these items."""

    def __init__(self, *items: MemoryItem) -> None:
        self.items = items
        self.asked: list[tuple[Strategy, Scope, int]] = []

    async def __call__(
        self, query: LayerQuery, strategy: Strategy, scope: Scope, k: int
    ) -> Retrieved:
        self.asked.append((strategy, scope, k))
        return Retrieved([item for item in self.items if scope.sees(item.scope)][:k])


def words_of(text: str) -> int:
    return len(text.split())


def remembered(number: int, content: str, *, session: str | None = None) -> MemoryItem:
    return MemoryItem(
        f"m{number}",
        "episodic",
        content,
        NOW - timedelta(days=1),
        scope=Scope(session=session),
        score=1.0 / (number + 1),
        score_kind=ScoreKind.FUSED,
    )


def written(number: int, content: str, source: str | None = "guide") -> MemoryItem:
    return MemoryItem(
        f"d{number}",
        "documents",
        content,
        NOW - timedelta(days=30),
        attributes={} if source is None else {"source": source},
        provenance=(f"doc:{number}",),
        score=0.5,
        score_kind=ScoreKind.COSINE,
    )


def assembler(
    memory: ContextSource,
    documents: ContextSource | None = None,
    tracker: QueryPatternTracker | None = None,
    relevance: Overlap | None = None,
    count_tokens: Callable[[str], int] = words_of,
) -> ContextAssembler:
    async def no_documents(_: Scope) -> bool:
        return documents is None

    return ContextAssembler(
        memory,
        documents=Held() if documents is None else documents,
        no_documents=no_documents,
        relevance=(Overlap() if relevance is None else relevance).of,
        count_tokens=count_tokens,
        clock=NOW.timestamp,
        tracker=tracker,
    )


def contents(context: AssembledContext) -> list[str]:
    return [chunk.content for chunk in context.chunks]


async def test_judging_holds_up_no_event_loop_because_it_may_wait_for_a_remote_encoder() -> None:
    judged = threading.Event()

    class Waiting(Overlap):
        def of(
            self, query: str, contents: Sequence[str], questions: Sequence[Sequence[str]] = ()
        ) -> list[Judged]:
            assert judged.wait(10)
            return super().of(query, contents, questions)

    making = assembler(Held(remembered(1, "redis")), relevance=Waiting()).assemble("redis")
    asyncio.get_running_loop().call_later(0.01, judged.set)
    assert contents(await making) == ["redis"]


async def test_every_chunk_says_where_it_comes_from_and_when() -> None:
    memory = Held(
        remembered(0, "rust ownership was hard", session="s1"), remembered(1, "rust ownership")
    )
    documents = Held(written(0, "ownership in rust"), written(1, "rust ownership rules", None))
    context = await assembler(memory, documents).assemble("rust ownership", "rag", 200, "s1")
    assert {
        (chunk.item_id, chunk.source, chunk.created.date().isoformat()) for chunk in context.chunks
    } == {
        ("m0", "memory:s1", "2026-02-28"),
        ("m1", "memory:episodic", "2026-02-28"),
        ("d0", "guide", "2026-01-30"),
        ("d1", "rag", "2026-01-30"),
    }
    assert "[guide, 2026-01-30]\nownership in rust" in context.text


async def test_rag_without_documents_follows_hybrid_and_says_so() -> None:
    memory = Held(remembered(0, "rust ownership"))
    context = await assembler(memory).assemble("rust ownership", "rag", 200)
    assert (context.requested, context.strategy) == (Strategy.RAG, Strategy.HYBRID)
    assert "no documents" in context.notes[0]
    assert memory.asked[0][0] is Strategy.HYBRID


async def test_only_rag_reads_documents() -> None:
    documents = Held(written(0, "rust ownership"))
    context = await assembler(Held(), documents).assemble("rust ownership", "hybrid", 200)
    assert context.chunks == ()
    assert documents.asked == []


async def test_the_session_is_part_of_the_scope_that_is_searched() -> None:
    memory = Held(remembered(0, "rust ownership", session="other"))
    context = await assembler(memory).assemble(
        "rust ownership", "hybrid", 200, "mine", scope={"user": "ann"}
    )
    assert memory.asked[0][1] == Scope(user="ann", session="mine")
    assert context.chunks == ()


async def test_an_empty_context_says_that_nothing_is_stored() -> None:
    context = await assembler(Held()).assemble("rust ownership", "hybrid", 100)
    assert (context.text, context.tokens) == ("", 0)
    assert context.notes == ("nothing that bears on the query is stored",)


async def test_the_same_content_is_taken_once_and_the_other_is_named() -> None:
    memory = Held(remembered(0, "rust ownership  explained\n"))
    documents = Held(written(0, "rust ownership explained"))
    context = await assembler(memory, documents).assemble(
        "rust ownership", "rag", 200, weights="balanced"
    )
    assert len(context.chunks) == 1
    assert [out.reason for out in context.left_out] == ["the same as m0 of memory:episodic"]


async def test_what_does_not_bear_on_the_query_is_left_out_and_named() -> None:
    memory = Held(remembered(0, "rust ownership"), remembered(1, "lunch was good"))
    context = await assembler(memory).assemble("rust ownership", "hybrid", 200)
    assert contents(context) == ["rust ownership"]
    assert [(o.item_id, o.reason) for o in context.left_out] == [
        ("m1", "it does not bear on the query")
    ]


async def test_what_happened_at_the_time_asked_about_need_not_share_a_word() -> None:
    memory = Held(remembered(1, "lunch was good"))
    context = await assembler(memory).assemble("what happened yesterday?", "episodic", 200)
    assert contents(context) == ["lunch was good"]


async def test_what_one_side_leaves_of_its_share_the_other_may_use() -> None:
    documents = Held(*(written(n, f"rust ownership part {n} " + "x " * 6) for n in range(10)))
    context = await assembler(Held(), documents).assemble("rust ownership", "rag", 100)
    assert sum(chunk.tokens for chunk in context.chunks) > 80


async def test_each_side_gets_its_share_even_when_the_other_scores_higher() -> None:
    memory = Held(*(remembered(n, f"rust ownership moves {n} " + "x " * 6) for n in range(20)))
    documents = Held(written(0, "ownership " + "y " * 6))
    context = await assembler(memory, documents).assemble("rust ownership moves", "rag", 100)
    assert "guide" in {chunk.source for chunk in context.chunks}


async def test_a_piece_too_long_for_the_budget_does_not_starve_the_shorter() -> None:
    memory = Held(remembered(0, "rust ownership " * 100), remembered(1, "rust ownership today"))
    context = await assembler(memory).assemble("rust ownership", "hybrid", 30)
    assert contents(context)[1:] == ["rust ownership today"]
    assert [chunk.cut for chunk in context.chunks] == [True, False]


async def test_the_best_piece_is_never_left_out_for_its_length_while_less_relevant_ones_fit() -> (
    None
):
    filler = "The walls were painted and the floor was cleaned. " * 20
    note = f"{filler}The cellar safe opens with 4711. {filler}"
    memory = Held(remembered(0, note), remembered(1, "The cellar safe was bought in Essen"))
    context = await assembler(memory).assemble("How does the cellar safe open?", "hybrid", 100)
    best, other = contents(context)
    assert best.startswith("… The cellar safe opens with 4711.")
    assert other == "The cellar safe was bought in Essen"
    assert 80 < context.tokens <= 100


@pytest.mark.parametrize("pieces", [1, 2])
async def test_the_last_piece_needs_no_blank_line_behind_it(pieces: int) -> None:
    memory = Held(*(remembered(place, f"rust ownership {place}") for place in range(pieces)))
    letters = assembler(memory, count_tokens=len)
    whole = await letters.assemble("rust ownership", "hybrid", 1000)
    assert len(whole.chunks) == pieces
    fitting = await letters.assemble("rust ownership", "hybrid", whole.tokens)
    assert fitting.text == whole.text
    too_small = await letters.assemble("rust ownership", "hybrid", whole.tokens - 1)
    assert len(too_small.chunks) == pieces - 1
    if pieces == 1:
        assert f"has {whole.tokens} tokens" in too_small.notes[0]


async def test_when_no_piece_fits_whole_the_best_is_cut() -> None:
    memory = Held(remembered(0, "rust ownership " * 100))
    context = await assembler(memory).assemble("rust ownership", "hybrid", 30)
    assert [chunk.cut for chunk in context.chunks] == [True]
    assert context.tokens == 30


@pytest.mark.parametrize(
    ("note", "budget", "shown"),
    [
        ("The pilot light is relit by holding knob B. ", 10, []),
        (
            "The pilot light is relit by holding knob B. ",
            12,
            ["The pilot light is relit by holding knob B. \u2026"],
        ),
        ("## Pilot light\nHold knob B. ", 8, []),
        ("## Pilot light\nHold knob B. ", 9, ["## Pilot light Hold knob B. \u2026"]),
        (
            "The pilot light is relit with B; the manual of the stove tells more on page twelve. ",
            11,
            ["The pilot light is relit with B; the \u2026"],
        ),
    ],
)
async def test_the_best_piece_is_cut_to_no_less_than_the_sentence_that_answers(
    note: str, budget: int, shown: list[str]
) -> None:
    memory = Held(remembered(0, note + "The stove is old. " * 20))
    context = await assembler(memory).assemble("Is the pilot light relit?", "hybrid", budget)
    assert contents(context) == shown
    assert bool(context.notes) == (not shown)


async def test_a_side_that_fails_leaves_a_note_and_the_other_side() -> None:
    async def broken(query: LayerQuery, strategy: Strategy, scope: Scope, k: int) -> Retrieved:
        raise OSError("the disk is gone")

    memory = Held(remembered(0, "rust ownership"))
    context = await assembler(memory, broken).assemble("rust ownership", "rag", 100)
    assert contents(context) == ["rust ownership"]
    assert context.notes == ("documents could not be searched: the disk is gone",)


async def test_both_sides_are_asked_at_the_same_time() -> None:
    barrier = asyncio.Barrier(2)

    async def meet(query: LayerQuery, strategy: Strategy, scope: Scope, k: int) -> Retrieved:
        await barrier.wait()
        return Retrieved([])

    async with asyncio.timeout(120):
        context = await assembler(meet, meet).assemble("rust ownership", "rag", 100)
    assert contents(context) == []


async def test_the_tracker_counts_the_memories_that_were_used(tmp_path: Path) -> None:
    tracker = QueryPatternTracker(tmp_path / "patterns.sqlite3", clock=NOW.timestamp)
    memory = Held(remembered(0, "rust ownership"), remembered(1, "lunch was good"))
    await assembler(memory, tracker=tracker).assemble("rust ownership", "hybrid", 100)
    found = tracker.get_consolidation_candidates(1)
    tracker.close()
    assert [(candidate.layer, candidate.id) for candidate in found] == [("episodic", "m0")]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"strategy": "psychic"}, "strategy"),
        ({"token_budget": 0}, "token_budget"),
        ({"token_budget": True}, "token_budget"),
        ({"token_budget": 2.5}, "token_budget"),
        ({"weights": "heavy"}, "weights"),
        ({"weights": []}, "weights"),
        ({"scope": {"tenant": "a"}}, "scope"),
        ({"session": ""}, "scope.session"),
        ({"query": "  "}, "query"),
    ],
)
async def test_what_cannot_be_used_is_named(arguments: dict[str, object], named: str) -> None:
    given_arguments = {"query": "rust ownership"} | arguments
    with pytest.raises(InvalidRequest, match=named):
        await assembler(Held()).assemble(**given_arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("documents", "memory"), [(0.5, 0.6), (1.2, -0.2), (0.0, 0.0), (float("nan"), 1.0), (0.3, 0.68)]
)
def test_weights_that_do_not_sum_to_one_are_refused(documents: float, memory: float) -> None:
    with pytest.raises(InvalidRequest, match="weights"):
        RetrievalWeights(documents, memory)


def test_weights_may_miss_one_by_a_hundredth() -> None:
    assert RetrievalWeights(0.33, 0.66).of(ContextSide.MEMORY) == 0.66


texts = st.lists(
    st.sampled_from("rust ownership borrow move trait lunch today code".split()),
    min_size=1,
    max_size=30,
).map(" ".join)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(texts, max_size=8),
    st.lists(texts, max_size=8),
    st.integers(1, 120),
    st.sampled_from(["balanced", "rag_focused", "memory_focused"]),
)
def test_the_budget_is_kept_and_every_piece_is_accounted_for(
    said: list[str], docs: list[str], budget: int, weights: str
) -> None:
    memory = Held(*(remembered(n, text) for n, text in enumerate(said)))
    documents = Held(*(written(n, text) for n, text in enumerate(docs)))
    context = asyncio.run(
        assembler(memory, documents).assemble("rust ownership", "rag", budget, weights=weights)
    )
    assert context.tokens == words_of(context.text) <= budget
    assert [chunk.score for chunk in context.chunks] == sorted(
        (chunk.score for chunk in context.chunks), reverse=True
    )
    handled = [chunk.item_id for chunk in context.chunks] + [o.item_id for o in context.left_out]
    assert sorted(handled) == sorted(item.id for item in (*memory.items, *documents.items))


@settings(max_examples=50, deadline=None)
@given(texts, st.sampled_from([RetrievalWeights(0.5, 0.5), RetrievalWeights(0.8, 0.2)]))
def test_of_equal_pieces_the_weights_decide_by_their_ratio(
    text: str, weights: RetrievalWeights
) -> None:
    # Not the same text, which would be a duplicate; the same words in another order.
    twin = " ".join(reversed(f"rust {text} ownership".split()))
    memory = Held(remembered(0, f"rust {text} ownership"))
    documents = Held(written(0, twin))
    context = asyncio.run(
        assembler(memory, documents).assemble("rust ownership", "rag", 500, weights=weights)
    )
    scores = {chunk.item_id: chunk.score for chunk in context.chunks}
    if len(scores) == 2:  # a palindrome is a duplicate
        assert scores["d0"] * weights.memory == pytest.approx(scores["m0"] * weights.documents)
