"""A request as retrieval reads it: its clauses, misspelt words, and the vectors of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import closing

import pytest
from cascade import shipped_index
from cpu_time import cpu_time_at_most
from hypothesis import given
from hypothesis import strategies as st

from router.request import MAX_REQUEST_CHARACTERS
from router.retrieval.bundled_encoder import BundledEncoder
from router.retrieval.encoders import unit
from router.retrieval.index import SkillIndex
from router.retrieval.reader import (
    MAX_CLAUSES,
    MAX_MISSPELT,
    MAX_READ_CHARACTERS,
    Part,
    clauses,
    encode_requests,
    readable,
)
from router.text import words

CONNECTIVES = {"plus", "afterwards"}
"""What clauses may be split at, of the words that are no stop words."""

WORDS = st.sampled_from("fix the bug commit it C++ and then plus also don't 3.5 a/b 語".split())
GAPS = st.sampled_from([" ", ", ", "; ", ". ", "? ", "\n", "\n\n", " - ", ", and ", "\t", ","])
REQUESTS = st.one_of(
    st.text(max_size=60),
    st.lists(st.tuples(WORDS, GAPS)).map(lambda pairs: "".join(map("".join, pairs))),
)


def content(texts: list[str]) -> Counter[str]:
    return Counter(word for text in texts for word in words(text) if word not in CONNECTIVES)


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SkillIndex]:
    with closing(shipped_index(tmp_path_factory.mktemp("index"))) as index:
        yield index


async def test_a_misspelt_word_is_read_as_the_word_that_is_meant(shipped: SkillIndex) -> None:
    """By its letters, its meaning and the examples."""
    ranking = await shipped.rank("Resolve the merge Conflcit, and plot the distribtuion")
    assert {"merge", "conflict"} <= set(ranking.matches[0].terms)
    assert ranking == await shipped.rank("Resolve the merge conflict, and plot the distribution")


@pytest.mark.parametrize(
    "text",
    [
        "sqaush_comits",
        "\uff53\uff51\uff41\uff55\uff53\uff48 comits",
        "帮我sqaush我的comits",
        "SQAUSH/Comits",
    ],
)
async def test_a_misspelt_word_is_found_wherever_a_word_is(shipped: SkillIndex, text: str) -> None:
    ranking = await shipped.rank(text)
    assert {"squash", "commits"} <= set(ranking.matches[0].terms)


async def test_a_word_of_english_is_not_misspelt_because_no_skill_has_it(
    shipped: SkillIndex,
) -> None:
    """ "March" is not "match", and "screaming" not "streaming"."""
    ranking = await shipped.rank("what was screaming in March", limit=16)
    terms = {term for match in ranking.matches for term in match.terms}
    assert not terms & {"match", "streaming"}


async def test_not_every_word_of_a_pasted_log_is_looked_up_as_misspelt(shipped: SkillIndex) -> None:
    """Each look-up compares a word with hundreds of others."""
    log = " ".join(f"qqq{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(MAX_MISSPELT))
    for request, found in ((f"conflcit {log}", True), (f"{log} conflcit", False)):
        matches = (await shipped.rank(request, limit=16)).matches
        assert any("conflict" in match.terms for match in matches) is found


def test_of_a_request_with_very_many_clauses_only_the_first_vectors_are_kept() -> None:
    encoder = BundledEncoder()
    request = ". ".join(f"paint the wall number{part}" for part in range(3 * MAX_CLAUSES))
    [encoded] = encode_requests(encoder, [request])
    assert len(encoded.texts) == len(encoded.vectors) == 1 + MAX_CLAUSES
    every = encoder.encode([part.text for part in clauses(request)])
    assert encoded.vectors[0] == pytest.approx(unit(every.mean(axis=0, keepdims=True))[0])


# --- clauses


@given(REQUESTS)
def test_no_content_word_is_lost_or_made_up(request: str) -> None:
    assert content([part.text for part in clauses(request)]) == content([request])


@given(REQUESTS)
def test_there_is_a_clause_and_each_of_several_has_two_content_words(request: str) -> None:
    parts = clauses(request)
    assert parts
    if len(parts) > 1:
        assert min(len(words(part.text)) for part in parts) >= 2


def test_a_clause_says_whether_only_a_comma_sets_it_apart() -> None:
    request = (
        "book room 12, window seat, ten people, and then mail the list. Call Ana now, she waits"
    )
    assert [(part.text, part.after_comma) for part in clauses(request)] == [
        ("book room 12", False),
        ("window seat", True),
        ("ten people", True),
        ("then mail the list.", False),
        ("Call Ana now she waits", False),
    ]


@pytest.mark.parametrize(
    "request_",
    [
        "review the parser and then commit the fix",
        "review the parser, commit the fix",
        "review the parser. commit the fix",
        "review the parser; commit the fix",
        "review the parser\ncommit the fix",
        "review the parser - commit the fix",
        "review the parser plus commit the fix",
        "review the parser & commit the fix",
        "review the parser + commit the fix",
        "review the parser as well as commit the fix",
    ],
)
def test_a_request_for_two_things_has_two_clauses(request_: str) -> None:
    first, second = clauses(request_)
    assert (words(first.text), words(second.text)) == (["review", "parser"], ["commit", "fix"])


@pytest.mark.parametrize(
    "request_", ["search and replace", "open config.yaml, please", "well-known"]
)
def test_a_part_that_says_nothing_by_itself_stays_with_its_neighbour(request_: str) -> None:
    assert len(clauses(request_)) == 1


def test_an_empty_request_is_its_own_clause() -> None:
    assert clauses("") == [Part("")]


@pytest.mark.parametrize("filler", [" ", "\n", "\t", ", ", " - ", " and", ". "])
def test_the_longest_requests_are_split_in_no_time(filler: str) -> None:
    with cpu_time_at_most(1):  # with backtracking it takes minutes
        clauses("x" + filler * ((MAX_REQUEST_CHARACTERS - 2) // len(filler)) + "y")


def test_of_a_long_request_the_beginning_and_the_end_are_read() -> None:
    request = "commit this log\n" + "x" * MAX_READ_CHARACTERS + "\nand push it"

    read = readable(request)

    assert read.startswith("commit this log")
    assert read.endswith("and push it")
    assert len(read) <= MAX_READ_CHARACTERS + 1
    assert readable("commit this") == "commit this"
