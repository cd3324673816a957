"""How the bundled encoder is made: its texts, its vocabulary, and the rounding of its vectors.

What the teacher and torch do is not tested; neither is installed with the tests.
"""

from __future__ import annotations

import random
import zipfile
from argparse import Namespace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import encoder_training
from benchmarks.encoder_training import (
    LONGEST,
    MAX_TEMPLATE,
    TAKEN,
    chosen,
    cleaned,
    expanded,
    export,
    in_order,
    rounded,
    sentences,
    voice,
    wordnet,
)
from router.retrieval import bundled_encoder
from router.retrieval.bundled_encoder import VECTORS, VOCABULARY, BundledEncoder


def test_a_text_is_cleaned_to_one_line_of_plain_letters() -> None:
    assert cleaned(" Opens\n  the &quot;front&quot; door. ") == 'Opens the "front" door.'
    assert cleaned("a" * 149 + " " + "b" * 150) is not None


@pytest.mark.parametrize(
    "text",
    ["", "one two", "oneword_only", "a b" * LONGEST, "12:30 14:45 16:00 done", "Türen öffnen sich"],
)
def test_what_is_no_text_in_english_is_left_out(text: str) -> None:
    assert cleaned(text) is None


def test_a_paragraph_is_parted_where_a_sentence_begins() -> None:
    text = 'Press e.g. the button. Then wait! "Why?" Ask'
    assert sentences(text) == ["Press e.g. the button.", "Then wait!", '"Why?" Ask']


def test_a_template_gives_one_of_its_sentences() -> None:
    made = {expanded("(play|start) [some] {song_name}", random.Random(n)) for n in range(50)}
    assert made == {
        f"{verb} {some} song name" for verb in ("play", "start") for some in ("some", "")
    }


def test_brackets_within_brackets_are_expanded_and_lone_ones_stay() -> None:
    made = {expanded("[please (do|try)] it", random.Random(n)) for n in range(50)}
    assert made == {"please do it", "please try it", " it"}
    assert expanded("a) smile (: or [ (x]", random.Random(0)) == "a) smile (: or [ (x]"


def test_a_template_is_read_up_to_a_bound() -> None:
    assert len(expanded("(a)" * MAX_TEMPLATE, random.Random(0))) <= MAX_TEMPLATE


def test_a_meaning_of_wordnet_gives_its_definition_examples_and_synonyms() -> None:
    lines = [
        "  1 This software and database is being provided to you | as it is",
        '01 29 v 02 mend 0 fix_up(a) 1 003 @ 02 v 0000 | put right; often; "she fixed it up"  ',
        "02 03 n 01 entity 0 000 | that which is",
    ]
    assert list(wordnet(lines)) == [
        ("definitions", "mend, fix up: put right"),
        ("examples", "she fixed it up"),
        ("synonyms", "mend, fix up"),
        ("definitions", "entity: that which is"),
    ]


def test_of_a_wheel_its_english_texts_are_read_that_are_not_too_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "ovos_skill_timer-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("locale/en-us/start.intent", "start a timer\n")
        wheel.writestr("locale/en-us/answers.json", '{"done": "The timer is over"}')
        wheel.writestr("locale/en-us/long.intent", "wait for me " * 10)
        wheel.writestr("locale/de-de/start.intent", "stelle einen Wecker\n")
        wheel.writestr("timer/__init__.py", "print('nothing for you')\n")
    monkeypatch.setattr(encoder_training, "MAX_FILE_BYTES", 100)
    made = set(voice(tmp_path, random.Random(0)))
    assert made == {("voice", "start a timer"), ("voice", "The timer is over")}


def test_of_no_kind_too_many_texts_are_taught(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [("jargon", f"j{n}") for n in range(TAKEN["jargon"] + 5)] + [("gimp", "g")]
    assert chosen(rows) == [*(f"j{n}" for n in range(TAKEN["jargon"])), "g"]
    monkeypatch.setattr(encoder_training, "TEXTS", 3)
    assert chosen(rows) == ["j0", "j1", "j2"]


def test_the_vocabulary_keeps_the_order_of_its_numbers() -> None:
    assert in_order({"##s": 2, "[UNK]": 0, "play": 1}) == ["[UNK]", "play", "##s"]


@pytest.mark.parametrize("numbers", [{"a": 0, "b": 0}, {"a": 0, "b": 2}, {"a": 0, "b\nc": 1}])
def test_a_vocabulary_with_gaps_or_line_breaks_is_refused(numbers: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="token has"):
        in_order(numbers)


def test_vectors_are_rounded_by_no_more_than_half_a_step() -> None:
    table = np.random.default_rng(0).normal(size=(50, 8)).astype(np.float32)
    table[7] = 0
    rows, scales = rounded(table)
    assert rows.dtype == np.int8
    assert not rows[0].any()
    assert not rows[7].any()
    middle = np.median(np.linalg.norm(np.vstack([np.zeros((1, 8)), table[1:]]), axis=1))
    error = np.abs(rows * scales[:, None] * middle - table)[1:]
    assert (error <= scales[1:, None] * middle * 0.5001).all()
    assert np.median(np.linalg.norm(rows * scales[:, None], axis=1)) == pytest.approx(1, abs=0.02)


def test_what_is_exported_loads_and_encodes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = ["[UNK]", "play", "music", "##al", "stop"]
    (tmp_path / "vocabulary.txt").write_text("\n".join(tokens), encoding="utf-8")
    np.save(tmp_path / "table.npy", np.eye(5, 16, dtype=np.float16))
    export(Namespace(work=tmp_path, into=tmp_path))

    monkeypatch.setattr(bundled_encoder, "VECTORS", tmp_path / VECTORS.name)
    monkeypatch.setattr(bundled_encoder, "VOCABULARY", tmp_path / VOCABULARY.name)
    encoder = BundledEncoder()
    cosines = (
        encoder.encode(["Play music", "play musical", "stop", "unheard"])
        @ encoder.encode(["music play"]).T
    )
    assert cosines[:, 0].tolist() == pytest.approx([1, (2 / 3) ** 0.5, 0, 0], abs=1e-5)


def test_a_table_of_another_vocabulary_is_not_exported(tmp_path: Path) -> None:
    (tmp_path / "vocabulary.txt").write_text("[UNK]\nplay", encoding="utf-8")
    np.save(tmp_path / "table.npy", np.eye(3, 16, dtype=np.float16))
    with pytest.raises(SystemExit, match="3 vectors for 2 tokens"):
        export(Namespace(work=tmp_path, into=tmp_path))
    assert not (tmp_path / VECTORS.name).exists()
