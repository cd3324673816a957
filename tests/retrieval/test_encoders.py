"""The encoders: the bundled one as it is, the remote ones through their SDKs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from servers.loopback import LoopbackServer, QueuedServer, Reply
from servers.ollama_server import OllamaServer
from servers.ollama_server import embeddings as ollama_embeddings
from servers.ollama_server import error as ollama_error
from servers.openai_server import OpenAIServer
from servers.openai_server import embeddings as openai_embeddings
from servers.openai_server import error as openai_error

from router.errors import EncoderError
from router.retrieval.encoders import (
    FEW_TEXTS,
    REMOTE_BATCH,
    Encoder,
    OllamaEncoder,
    OpenAIEncoder,
    WordLlamaEncoder,
)

WORDLLAMA = WordLlamaEncoder()

# --- the bundled encoder


@given(st.lists(st.text(max_size=50), min_size=1, max_size=5))
def test_rows_have_length_one_or_zero(texts: list[str]) -> None:
    vectors = WORDLLAMA.encode(texts)
    assert vectors.shape == (len(texts), 256)
    assert vectors.dtype == np.float32
    lengths = np.linalg.norm(vectors, axis=1)
    assert np.all((np.abs(lengths - 1) < 1e-5) | (lengths == 0))


@pytest.mark.parametrize("text", ["", " "])
def test_a_text_without_tokens_is_all_zeros(text: str) -> None:
    vectors = WORDLLAMA.encode(["merge the branch", text])
    assert np.linalg.norm(vectors[0]) == pytest.approx(1)
    assert np.linalg.norm(WORDLLAMA.encode([""])) == 0


def test_a_skill_without_any_text_is_all_zeros() -> None:
    assert not WORDLLAMA.encode_documents([("", "")]).any()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="tells resident memory on Linux")
def test_texts_are_not_kept() -> None:
    def resident() -> int:
        return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])

    def encode(count: int) -> None:
        for number in range(count):
            WORDLLAMA.encode(
                [f"{number} resolve the merge conflict in config.yaml of {number}" * 3]
            )

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
    assert np.array_equal(WORDLLAMA.encode([text])[0], WORDLLAMA.encode(whole)[0])


def test_a_text_has_the_same_vector_alone_and_in_a_batch() -> None:
    texts = ["merge", "resolve the merge conflict in config.yaml", ""]
    assert np.array_equal(WORDLLAMA.encode(texts), [WORDLLAMA.encode([t])[0] for t in texts])


def test_like_texts_are_nearer_than_unlike_ones() -> None:
    one, like, unlike = WORDLLAMA.encode(
        ["resolve a merge conflict", "fix conflicts after merging", "bake a chocolate cake"]
    )
    assert one @ like > one @ unlike + 0.2


def test_a_skill_lies_between_its_head_and_its_body() -> None:
    head, body = "version control", "bake a cake"
    (skill,) = WORDLLAMA.encode_documents([(head, body)])
    (alone,) = WORDLLAMA.encode_documents([(head, "")])
    towards_head, towards_body = WORDLLAMA.encode([head, body]) @ skill
    assert towards_head > towards_body > 0
    assert alone == pytest.approx(WORDLLAMA.encode([head])[0], abs=1e-6)


def test_repetition_in_a_body_is_damped() -> None:
    body = "cake " * 100 + "version control"
    (damped,) = WORDLLAMA.encode_documents([("", body)])
    plain, about = WORDLLAMA.encode([body, "version control"])
    assert damped @ about > plain @ about


def test_the_bundled_encoder_needs_no_network_and_no_cache(tmp_path: Path) -> None:
    """A process whose sockets all fail, with an empty home."""
    script = (
        "import socket\n"
        "def refuse(*_): raise OSError('no network')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from router.retrieval.encoders import WordLlamaEncoder\n"
        "print(WordLlamaEncoder().encode(['offline']).shape)\n"
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
        "from router.retrieval.encoders import WordLlamaEncoder; WordLlamaEncoder()\n"
        "print((logging.getLogger().handlers, logging.getLogger().level) == before)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "True"


# --- remote encoders


@dataclass
class Remote:
    """One provider's encoder, its server, and its form of answers."""

    name: str
    server: LoopbackServer
    encoder: OpenAIEncoder | OllamaEncoder
    vectors: Callable[[list[list[float]]], Reply]
    error: Callable[[int], Reply]


@pytest.fixture(params=["openai", "ollama"])
def remote(
    request: pytest.FixtureRequest, openai_server: OpenAIServer, ollama_server: OllamaServer
) -> Remote:
    if request.param == "openai":
        return Remote(
            "openai",
            openai_server,
            OpenAIEncoder("test-model", base_url=openai_server.url, api_key="sk-test"),
            lambda rows: openai_embeddings(dict(enumerate(rows))),
            # The SDK tries again after a 5xx, when the server says so at once.
            lambda status: openai_error(status, "fault", headers={"retry-after-ms": "1"}),
        )
    return Remote(
        "ollama",
        ollama_server,
        OllamaEncoder("test-model", host=ollama_server.url),
        ollama_embeddings,
        lambda status: ollama_error(status, "fault"),
    )


@pytest.mark.parametrize(
    ("make", "provider"),
    [
        (lambda address: OpenAIEncoder("m", base_url=address, api_key="sk-test"), "openai"),
        (lambda address: OllamaEncoder("m", host=address), "ollama"),
    ],
)
def test_an_address_that_is_none_is_named_with_its_provider(
    make: Callable[[str], object], provider: str
) -> None:
    with pytest.raises(EncoderError, match=f"^{provider} embeddings: the settings cannot be used"):
        make("http://[::")


def test_remote_rows_are_scaled_to_length_one(remote: Remote) -> None:
    remote.server.queue(remote.vectors([[3, 4], [0, 0]]))
    assert remote.encoder.encode(["a", "b"]).tolist() == [pytest.approx([0.6, 0.8]), [0, 0]]
    assert remote.server.requests[0].body["model"] == "test-model"
    assert remote.server.requests[0].body["input"] == ["a", "b"]


def test_openai_rows_are_put_in_the_order_of_their_index(openai_server: OpenAIServer) -> None:
    openai_server.queue(openai_embeddings({2: [0, 0, 1], 0: [1, 0, 0], 1: [0, 1, 0]}))
    encoder = OpenAIEncoder("test-model", base_url=openai_server.url, api_key=None)
    assert encoder.encode(["a", "b", "c"]).tolist() == np.eye(3).tolist()


def test_many_texts_go_in_batches(remote: Remote) -> None:
    remote.server.queue(
        remote.vectors([[1, 0]] * REMOTE_BATCH), remote.vectors([[0, 1]] * (REMOTE_BATCH // 2))
    )
    texts = [f"text {number}" for number in range(REMOTE_BATCH + REMOTE_BATCH // 2)]
    vectors = remote.encoder.encode(texts)
    assert vectors.shape == (len(texts), 2)
    assert vectors[:, 1].sum() == REMOTE_BATCH // 2
    assert [text for call in remote.server.requests for text in call.body["input"]] == texts


def test_only_the_heads_of_skills_are_sent(remote: Remote) -> None:
    remote.server.queue(remote.vectors([[1, 0]]))
    remote.encoder.encode_documents([("head", "body")])
    assert remote.server.requests[0].body["input"] == ["head"]


@pytest.mark.parametrize(
    ("rows", "fault"),
    [
        ([[1.0, 0.0]], "1 vectors for 2 texts"),
        ([[1.0, 0.0]] * 3, "3 vectors for 2 texts"),
        ([], "0 vectors for 2 texts"),
        ([[1.0, 0.0], [1.0]], "vectors of different lengths"),
        ([[], []], "empty vectors"),
        ([[float("nan")], [1.0]], "not a number"),
        ([[float("inf")], [1.0]], "not a number"),
        ([[1e39], [1.0]], "not a number"),
    ],
)
def test_unusable_vectors_are_an_error(remote: Remote, rows: list[list[float]], fault: str) -> None:
    remote.server.queue(remote.vectors(rows))
    with pytest.raises(EncoderError, match=f"^{remote.name}: .*{fault}"):
        remote.encoder.encode(["a", "b"])


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"[1]",
        b"{}",
        b'{"data": null, "embeddings": null}',
        b'{"data": [{"index": 0, "embedding": "x"}], "embeddings": ["x"]}',
        b'{"data": [{"index": 0}], "embeddings": [null]}',
        b"\xff",
    ],
)
def test_an_answer_of_another_protocol_is_an_error(remote: Remote, body: bytes) -> None:
    remote.server.queue(Reply(body))
    with pytest.raises(EncoderError, match=f"^{remote.name}"):
        remote.encoder.encode(["a"])


@pytest.mark.parametrize("status", [400, 401, 404, 500, 503])
def test_a_refused_call_is_an_error(remote: Remote, status: int) -> None:
    remote.server.always = remote.error(status)
    with pytest.raises(EncoderError, match=f"^{remote.name} embeddings: .*fault"):
        remote.encoder.encode(["a"])


def test_an_answer_that_breaks_off_is_an_error(remote: Remote) -> None:
    remote.server.always = Reply(remote.vectors([[1.0, 0.0]]).body, cut=True)
    with pytest.raises(EncoderError, match=f"^{remote.name} embeddings"):
        remote.encoder.encode(["a"])


def test_no_proxy_has_a_part_in_what_stays_on_this_machine(
    proxy: QueuedServer, remote: Remote
) -> None:
    remote.server.queue(remote.vectors([[3, 4]]))
    remote.encoder.encode(["a"])
    assert (len(remote.server.requests), proxy.requests) == (1, [])


def test_a_server_that_is_not_there_is_an_error(remote: Remote) -> None:
    remote.server.close()
    where = r": 127\.0\.0\.1:\d+: " if remote.name == "openai" else ""
    with pytest.raises(EncoderError, match=f"^{remote.name} embeddings{where}"):
        remote.encoder.encode(["a"])


def test_every_encoder_has_the_shape_of_the_protocol(remote: Remote) -> None:
    assert isinstance(WORDLLAMA, Encoder)
    assert isinstance(remote.encoder, Encoder)
    assert remote.encoder.identity.startswith(f"{remote.name}/http://127.0.0.1:")
    assert remote.encoder.identity.endswith("/test-model")
