"""Two ranked lists as one."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.memory.model import MemoryItem, ScoreKind
from router.memory.services.merge import MergeStrategy, merge
from router.memory.texts.contents import content_key

PRIMARY, UNION, WEIGHTED = MergeStrategy


def item(layer: str, content: str) -> MemoryItem:
    return MemoryItem(
        id=content,
        layer=layer,
        content=content,
        created=datetime(2026, 1, 1, tzinfo=UTC),
        provenance=(f"{layer}:{content}",),
        score=1.0,
        score_kind=ScoreKind.BM25,
    )


def of_files(contents: str) -> list[MemoryItem]:
    return [item("files", content) for content in contents]


def of_service(contents: str) -> list[MemoryItem]:
    return [item("forgetful", content) for content in contents]


def shown(items: list[MemoryItem]) -> str:
    return "".join(item.id.upper() if item.layer == "files" else item.id for item in items)


@pytest.mark.parametrize(
    ("strategy", "expected"), [(PRIMARY, "ABxy"), (UNION, "AxBy"), (WEIGHTED, "AxBC")]
)
def test_full_lists_do_not_crowd_the_service_out(strategy: MergeStrategy, expected: str) -> None:
    merged = merge(of_files("abcdef"), of_service("xyz"), strategy=strategy, limit=4)
    assert shown(merged) == expected


@pytest.mark.parametrize("strategy", MergeStrategy)
def test_the_file_wins_where_both_hold_the_same(strategy: MergeStrategy) -> None:
    theirs = [replace(item("forgetful", "a"), content=" a\n")]
    (only,) = merge(of_files("a"), theirs, strategy=strategy, limit=5)
    assert only.layer == "files"
    assert only.content == "a"
    assert only.provenance == ("files:a", "forgetful:a")


def test_the_weights_decide_how_the_answer_is_shared() -> None:
    files, service = of_files("abcdefghij"), of_service("klmnopqrst")
    merged = merge(files, service, strategy=WEIGHTED, limit=10)
    assert sum(found.layer == "files" for found in merged) == 6


def test_weighted_scores_are_of_one_kind_and_best_where_both_agree() -> None:
    merged = merge(of_files("ab"), of_service("ax"), strategy=WEIGHTED, limit=5)
    assert [found.score_kind for found in merged] == [ScoreKind.FUSED] * 3
    assert merged[0].score == pytest.approx(1.0)


_LISTS = st.text("abcdefgh", max_size=12)


@given(
    ours=_LISTS,
    theirs=_LISTS,
    strategy=st.sampled_from(MergeStrategy),
    limit=st.integers(1, 20),
)
def test_merging_keeps_its_promises(
    ours: str, theirs: str, strategy: MergeStrategy, limit: int
) -> None:
    merged = merge(of_files(ours), of_service(theirs), strategy=strategy, limit=limit)
    keys = [content_key(found.content) for found in merged]
    assert len(keys) == len(set(keys)) == min(limit, len(set(ours + theirs)))
    assert all((found.layer == "files") == (found.id in ours) for found in merged)
    for found in merged:
        sources = {source.split(":")[0] for source in found.provenance}
        wanted = {"files"} if found.id in ours else set()
        assert sources == wanted | ({"forgetful"} if found.id in theirs else set())
    # Within each source the order of what only it found is kept.
    for first, second in ((ours, theirs), (theirs, ours)):
        alone = [found.id for found in merged if found.id in first and found.id not in second]
        assert alone == [key for key in dict.fromkeys(first) if key in alone]
    if strategy is WEIGHTED:
        scores = [found.score or 0.0 for found in merged]
        assert scores == pytest.approx(sorted(scores, reverse=True))  # files win a tie
        assert all(0 < score <= 1 for score in scores)
    if strategy is PRIMARY:
        from_files = [found.layer == "files" for found in merged]
        assert from_files == sorted(from_files, reverse=True)
