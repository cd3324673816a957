"""The bundled encoder as it is: its vectors, its tokens, and what it needs of its surroundings."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from weakref import WeakValueDictionary

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.retrieval import bundled_encoder as module
from router.retrieval.bundled_encoder import (
    FEW_TEXTS,
    BundledEncoder,
    bundled_encoder,
    bundled_words,
)
from router.retrieval.encoders import Encoder

ENCODER = BundledEncoder()


@given(st.lists(st.text(max_size=50), min_size=1, max_size=5))
def test_rows_have_length_one_or_zero(texts: list[str]) -> None:
    vectors = ENCODER.encode(texts)
    assert vectors.shape == (len(texts), 256)
    assert vectors.dtype == np.float32
    lengths = np.linalg.norm(vectors, axis=1)
    assert np.all((np.abs(lengths - 1) < 1e-5) | (lengths == 0))


@pytest.mark.parametrize("text", ["", " "])
def test_a_text_without_tokens_is_all_zeros(text: str) -> None:
    vectors = ENCODER.encode(["merge the branch", text])
    assert np.linalg.norm(vectors[0]) == pytest.approx(1)
    assert np.linalg.norm(ENCODER.encode([""])) == 0


def test_a_skill_without_any_text_is_all_zeros() -> None:
    assert not ENCODER.encode_documents([("", "")]).any()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="tells resident memory on Linux")
def test_texts_are_not_kept() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])

    def encode(count: int) -> None:
        for number in range(count):
            ENCODER.encode([f"{number} resolve the merge conflict in config.yaml of {number}" * 3])

    encode(500)
    before = resident()
    encode(4_000)
    grown = (resident() - before) * os.sysconf("SC_PAGE_SIZE")
    assert grown < 4_000 * 1_000  # the tokenizer's own cache holds 3 KB a text


PIECES = st.sampled_from(
    ["merge", "the", "Ünïcødé", "日本語", "👩‍🚀", " ", "  ", "\n", "\u2581", "<s>", "'s"]
)


@given(st.lists(st.one_of(PIECES, st.text(max_size=6)), max_size=12), st.sampled_from(["", " "]))
def test_the_tokens_of_a_text_are_those_of_its_words(pieces: list[str], between: str) -> None:
    text = between.join(pieces)
    whole = [text, *["x"] * FEW_TEXTS]  # so many that they are tokenized as a batch
    assert np.array_equal(ENCODER.encode([text])[0], ENCODER.encode(whole)[0])


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("fix the bug🙏", "fix the bug"),
        ("Markdown→HTML", "markdown html"),
        ("100°C in °F", "100 c in f"),
        ("don’t pay £5…", "don t pay 5"),
        ("data\u200bbase", "database"),
    ],
)
def test_a_sign_does_not_hide_the_word_beside_it(text: str, plain: str) -> None:
    assert np.array_equal(*ENCODER.encode([text, plain]))


def test_a_text_has_the_same_vector_alone_and_in_a_batch() -> None:
    texts = ["merge", "resolve the merge conflict in config.yaml", ""]
    assert np.array_equal(ENCODER.encode(texts), [ENCODER.encode([t])[0] for t in texts])


def test_like_texts_are_nearer_than_unlike_ones() -> None:
    one, like, unlike = ENCODER.encode(
        ["resolve a merge conflict", "fix conflicts after merging", "bake a chocolate cake"]
    )
    assert one @ like > one @ unlike + 0.2


def test_a_skill_lies_between_its_head_and_its_body() -> None:
    head, body = "version control", "bake a cake"
    (skill,) = ENCODER.encode_documents([(head, body)])
    (alone,) = ENCODER.encode_documents([(head, "")])
    towards_head, towards_body = ENCODER.encode([head, body]) @ skill
    assert towards_head > towards_body > 0
    assert alone == pytest.approx(ENCODER.encode([head])[0], abs=1e-6)


def test_repetition_in_a_body_is_damped() -> None:
    body = "cake " * 100 + "version control"
    (damped,) = ENCODER.encode_documents([("", body)])
    plain, about = ENCODER.encode([body, "version control"])
    assert damped @ about > plain @ about


def test_the_bundled_encoder_needs_no_network_and_no_cache(tmp_path: Path) -> None:
    """A process whose sockets all fail, with an empty home."""
    script = (
        "import socket\n"
        "def refuse(*_): raise OSError('no network')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from router.retrieval.bundled_encoder import BundledEncoder\n"
        "print(BundledEncoder().encode(['offline']).shape)\n"
    )
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "(1, 256)\n"
    assert list(tmp_path.iterdir()) == []


def test_the_bundled_encoder_leaves_the_applications_logging_alone() -> None:
    code = (
        "import logging; before = logging.getLogger().handlers[:], logging.getLogger().level\n"
        "from router.retrieval.bundled_encoder import BundledEncoder; BundledEncoder()\n"
        "print((logging.getLogger().handlers, logging.getLogger().level) == before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


def test_the_bundled_encoder_is_shared_for_as_long_as_somebody_uses_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Each router of a process loaded it again: 15 MB for each tenant.
    shared = WeakValueDictionary[str, BundledEncoder]()
    monkeypatch.setattr(module, "_bundled", shared)
    one = bundled_encoder()
    assert bundled_encoder() is one
    del one
    gc.collect()
    assert not shared


def test_it_is_an_encoder() -> None:
    assert isinstance(ENCODER, Encoder)


def test_the_words_that_it_knows_whole_are_no_pieces_and_not_misspelt() -> None:
    words = bundled_words()
    assert {"march", "screaming", "recognise", "recognize"} <= words
    assert not words & {"vacaton", "conflcit"}
    assert not any(word.startswith("##") for word in words)
