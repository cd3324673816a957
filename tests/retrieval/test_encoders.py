"""The encoders on servers, through their SDKs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest
from servers.loopback import HANG, LoopbackServer, QueuedServer, Reply
from servers.ollama_server import OllamaServer
from servers.ollama_server import embeddings as ollama_embeddings
from servers.ollama_server import error as ollama_error
from servers.openai_server import OpenAIServer
from servers.openai_server import embeddings as openai_embeddings
from servers.openai_server import error as openai_error

from router.errors import EncoderError
from router.retrieval.encoders import (
    REMOTE_BATCH,
    Encoder,
    OllamaEncoder,
    OpenAIEncoder,
    RemoteEncoder,
)


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


def test_a_request_is_tried_once_and_not_for_longer_than_it_may_take(remote: Remote) -> None:
    """A thread that hangs cannot be cancelled; it must end by itself."""
    of_requests = remote.encoder.within(0.05)
    assert of_requests.identity == remote.encoder.identity
    remote.server.always = HANG
    with pytest.raises(EncoderError, match=f"^{remote.name} embeddings.*time"):
        of_requests.encode(["a"])
    assert len(remote.server.requests) <= 1


def test_a_server_that_is_not_there_is_an_error(remote: Remote) -> None:
    remote.server.close()
    where = r": 127\.0\.0\.1:\d+: " if remote.name == "openai" else ""
    with pytest.raises(EncoderError, match=f"^{remote.name} embeddings{where}"):
        remote.encoder.encode(["a"])


def test_every_encoder_has_the_shape_of_the_protocol(remote: Remote) -> None:
    assert isinstance(remote.encoder, Encoder)
    assert isinstance(remote.encoder, RemoteEncoder)
    assert remote.encoder.identity.startswith(f"{remote.name}/http://127.0.0.1:")
    assert remote.encoder.identity.endswith("/test-model")
