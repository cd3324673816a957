"""BM25 of contents among each other, and of texts that come and go."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.memory.texts.bm25 import MEMORIES, TEXTBOOK, TextIndex
from router.memory.texts.words import content_terms

words = st.sampled_from("deploy staging rollback cache anna login error release".split())
texts = st.lists(words, min_size=1, max_size=6).map(" ".join)


def shares(query: str, contents: list[str]) -> list[float]:
    return MEMORIES.shares(content_terms(query), contents)


class TestShares:
    def test_the_content_with_the_rare_word_comes_first(self) -> None:
        contents = ["Anna likes tea", "Anna broke the login", "Anna went home"]
        scores = shares("What did Anna do to the login?", contents)
        assert scores.index(max(scores)) == 1

    def test_a_word_that_all_hold_still_counts(self) -> None:
        assert min(shares("deploy", ["deploy a", "deploy b"])) > 0

    def test_a_content_without_any_word_scores_nothing(self) -> None:
        assert shares("deploy staging", ["deploy to staging", "lunch"])[1] == 0

    def test_words_are_compared_by_their_stems(self) -> None:
        assert shares("deploying", ["we deployed", "lunch"])[0] > 0

    def test_function_words_count_when_there_are_no_others(self) -> None:
        assert shares("who are you", ["you are here", "lunch"])[0] > 0

    @pytest.mark.parametrize("query", ["???", "deploy"])
    def test_nothing_found_is_nothing_scored(self, query: str) -> None:
        assert shares(query, []) == []

    def test_a_query_without_words_scores_everything_zero(self) -> None:
        assert shares("???", ["deploy", "!!!"]) == [0, 0]

    @given(texts, st.lists(texts, max_size=8))
    def test_scores_are_shares_of_what_can_be_reached(
        self, query: str, contents: list[str]
    ) -> None:
        assert all(0 <= score < 1 for score in shares(query, contents))

    @given(texts, st.lists(texts, max_size=8), st.randoms(use_true_random=False))
    def test_the_order_of_the_contents_does_not_matter(
        self, query: str, contents: list[str], random: object
    ) -> None:
        places = list(range(len(contents)))
        random.shuffle(places)  # type: ignore[attr-defined]
        before = shares(query, contents)
        after = shares(query, [contents[place] for place in places])
        assert after == pytest.approx([before[place] for place in places])


class TestTextIndex:
    def test_its_scores_are_those_of_the_formula_over_the_same_texts(self) -> None:
        contents = ["deploy to staging", "deploy", "lunch with Anna, and a long walk home"]
        index = TextIndex()
        for number, content in enumerate(contents):
            index.put(str(number), content, "")
        found = dict(index.search("deploy staging"))
        wanted = TEXTBOOK.shares(content_terms("deploy staging"), contents)
        assert found["0"] / found["1"] == pytest.approx(wanted[0] / wanted[1])
        assert found.keys() == {"0", "1"}

    def test_a_word_of_the_title_counts(self) -> None:
        index = TextIndex()
        index.put("a", "how we do it", "deploy")
        index.put("b", "how we do it", "lunch")
        assert [key for key, _ in index.search("deploy")] == ["a"]

    @given(st.lists(st.tuples(st.sampled_from("abc"), st.none() | texts), max_size=12), texts)
    def test_what_was_put_and_removed_leaves_no_trace(
        self, changes: list[tuple[str, str | None]], query: str
    ) -> None:
        index, fresh, held = TextIndex(), TextIndex(), dict[str, str]()
        for key, text in changes:
            if text is None:
                index.remove(key)
                held.pop(key, None)
            else:
                index.put(key, text, key)
                held[key] = text
        for key, text in held.items():
            fresh.put(key, text, key)
        assert dict(index.search(query)) == pytest.approx(dict(fresh.search(query)))
