from __future__ import annotations

import zlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.learning.features import (
    BUCKETS,
    LETTER_SHARE,
    PAIR_SHARE,
    STEM_SHARE,
    VECTOR_SHARE,
    Terms,
    rows,
    scaled,
    terms_of,
)
from router.retrieval.phrases import MAX_WORDS

TOTAL = VECTOR_SHARE + STEM_SHARE + PAIR_SHARE + LETTER_SHARE


def place_of(term: str) -> tuple[int, float]:
    code = zlib.crc32(term.encode())
    return code % BUCKETS, 1.0 if code >> 31 else -1.0


def block(text: str) -> np.ndarray:
    buckets, values = Terms.of(text).hashed()
    return np.bincount(buckets, weights=values, minlength=BUCKETS)


def cosine(one: str, other: str) -> float:
    a, b = block(one), block(other)
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def test_one_word_gives_its_stem_its_pairs_with_the_ends_and_its_letters() -> None:
    terms = {
        "refund": STEM_SHARE,
        " refund": PAIR_SHARE / 2,
        "refund ": PAIR_SHARE / 2,
        **dict.fromkeys(("^ref", "refu", "efun", "fund", "und$"), LETTER_SHARE / 5),
    }
    expected = np.zeros(BUCKETS)
    for term, share in terms.items():
        bucket, sign = place_of(term)
        expected[bucket] += sign * (share / TOTAL) ** 0.5
    assert block("Refund") == pytest.approx(expected, abs=1e-6)


def test_a_function_word_weighs_half_of_another() -> None:
    weight = {}
    buckets, values = Terms.of("the refund").hashed()
    for bucket, value in zip(buckets[:2], values[:2], strict=True):
        weight[int(bucket)] = abs(float(value))
    assert weight[place_of("the")[0]] == pytest.approx(weight[place_of("refund")[0]] / 2)


@pytest.mark.parametrize("text", ["", "   ", "?!", "🙂"])
def test_a_text_without_words_has_no_terms(text: str) -> None:
    buckets, values = Terms.of(text).hashed()
    assert (len(buckets), len(values)) == (0, 0)


def test_saying_a_word_again_changes_no_stem() -> None:
    once, again = Terms.of("card lost").hashed(), Terms.of("card lost lost").hashed()
    assert set(zip(*(part[:2].tolist() for part in once), strict=True)) == set(
        zip(*(part[:2].tolist() for part in again), strict=True)
    )


def test_a_typo_leaves_a_text_nearer_than_another_word() -> None:
    assert cosine("cancel subscription", "cancel subscripton") > cosine(
        "cancel subscription", "cancel appointment"
    )


def test_inflection_without_a_stemmer_leaves_words_near() -> None:
    assert cosine("Kündigungen", "Kündigung") > cosine("Kündigungen", "Überweisung") + 0.1


def test_the_order_of_words_counts() -> None:
    assert cosine("pounds to euros", "euros to pounds") < 1 - 1e-3


def test_of_a_long_text_only_the_beginning_is_read() -> None:
    long = " ".join(f"word{n}" for n in range(MAX_WORDS))
    assert (block(long) == block(f"{long} {long}")).all()


@settings(max_examples=100)
@given(st.text(max_size=200))
def test_the_hashed_part_is_finite_repeatable_and_bounded(text: str) -> None:
    buckets, values = Terms.of(text).hashed()
    assert ((buckets >= 0) & (buckets < BUCKETS)).all()
    shares = (STEM_SHARE + PAIR_SHARE + LETTER_SHARE) / TOTAL
    assert float(values @ values) == pytest.approx(shares if len(values) else 0.0, rel=1e-4)
    assert (Terms.of(text).hashed()[1] == values).all()


def test_rows_hold_the_scaled_vector_and_then_the_hashed_terms() -> None:
    vectors = np.eye(3, 5, dtype=np.float32)
    texts = ["lost my card", "", "weather tomorrow"]
    table = rows(terms_of(texts), vectors)
    assert table.shape == (3, 5 + BUCKETS)
    assert (table[:, :5] == scaled(vectors)).all()
    for row, text in zip(table, texts, strict=True):
        assert row[5:] == pytest.approx(block(text), abs=1e-6)


def test_a_row_does_not_depend_on_the_rows_beside_it() -> None:
    vectors = np.eye(2, 4, dtype=np.float32)
    together = rows(terms_of(["open the door", "play some jazz"]), vectors)
    assert (together[1:] == rows(terms_of(["play some jazz"]), vectors[1:])).all()


def test_every_text_needs_its_vector() -> None:
    with pytest.raises(ValueError, match="shorter"):
        rows(terms_of(["one"]), np.eye(2, 4, dtype=np.float32))
