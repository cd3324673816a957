"""What the bundled encoder is tuned with: the written pairs, and how they are read.

The training itself is not tested: torch is not installed with the tests.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from benchmarks.encoder_training import tokens_of
from benchmarks.encoder_tuning import (
    DROPPED,
    FILES,
    SHORT,
    beginning,
    read_groups,
    text_of,
    without_some,
)
from benchmarks.inputs import read
from router.retrieval.bundled_encoder import VOCABULARY, BundledEncoder, bundled_tokenizer


@pytest.mark.parametrize(
    ("file", "groups", "most_of_a_group", "texts", "questions"),
    [(FILES[0], 202, 40, 7_976, 63_739), (FILES[1], 101, 50, 5_050, 20_190)],
)
def test_the_files_have_as_many_texts_and_questions_as_the_script_says(
    file: Path, groups: int, most_of_a_group: int, texts: int, questions: int
) -> None:
    rows = read(file)
    sizes = Counter(row["group"] for row in rows)
    assert (len(sizes), max(sizes.values()), len(rows)) == (groups, most_of_a_group, texts)
    assert sum(len(row["asked"]) for row in rows) == questions


def test_a_skill_is_read_with_its_name_in_words() -> None:
    assert text_of({"name": "setAlarm-at_dawn", "text": "Rings."}) == "set Alarm at dawn Rings."
    assert text_of({"text": "I cannot eat nuts."}) == "I cannot eat nuts."


def test_what_is_asked_keeps_the_place_of_its_text_where_other_questions_are_unknown(
    tmp_path: Path,
) -> None:
    file = tmp_path / "pairs.jsonl"
    rows = [
        {"group": "one", "text": "stop the music", "asked": ["\u2603", "be quiet"]},
        {"group": "two", "text": "play", "asked": ["sing"]},
        {"group": "one", "text": "open the door", "asked": ["let me in"]},
    ]
    file.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    tokenizer = bundled_tokenizer()
    one, two = read_groups([file], tokenizer)
    assert [len(one.texts), list(one.right), len(one.asked)] == [2, [0, 1], 2]
    assert [len(two.texts), list(two.right), len(two.asked)] == [1, [0], 1]
    assert one.asked[1].tolist() == tokens_of(["let me in"], tokenizer)[0].tolist()


def test_tokens_are_left_out_of_long_texts_only_and_never_all() -> None:
    choose = np.random.default_rng(0)
    short, long = np.arange(1, SHORT), np.arange(1, 2001)
    assert without_some(short, choose).tolist() == short.tolist()
    assert len(without_some(long, choose)) == pytest.approx((1 - DROPPED) * 2000, rel=0.1)
    four = np.arange(1, SHORT + 1)
    assert all(len(without_some(four, choose)) for _ in range(2000))


def test_without_a_trained_table_the_bundled_one_is_the_beginning(tmp_path: Path) -> None:
    encoder, table = BundledEncoder(), beginning(tmp_path)
    text = "play some music"
    vector = table[tokens_of([text], bundled_tokenizer())[0]].sum(axis=0)
    vector /= np.linalg.norm(vector)
    assert vector.tolist() == pytest.approx(encoder.encode([text])[0].tolist(), abs=1e-5)
    assert (tmp_path / "vocabulary.txt").read_bytes() == VOCABULARY.read_bytes()

    (tmp_path / "vocabulary.txt").write_text("[UNK]\nplay\nmusic", encoding="utf-8")
    np.save(tmp_path / "trained.npy", np.eye(3, 16, dtype=np.float16))
    assert beginning(tmp_path).tolist() == np.eye(3, 16).tolist()
    assert (tmp_path / "vocabulary.txt").read_text(encoding="utf-8") == "[UNK]\nplay\nmusic"
