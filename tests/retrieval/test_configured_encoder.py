"""Which encoder a setting means."""

from __future__ import annotations

from pathlib import Path

import pytest
from servers.ollama_server import OllamaServer
from servers.ollama_server import embeddings as ollama_embeddings
from servers.openai_server import OpenAIServer
from servers.openai_server import embeddings as openai_embeddings

from router.errors import ConfigurationError
from router.retrieval.bundled_encoder import BundledEncoder
from router.retrieval.configured_encoder import build_encoder
from router.retrieval.onnx_encoder import minilm_files
from router.settings.settings import Settings


def test_the_default_is_the_bundled_encoder() -> None:
    assert isinstance(build_encoder(Settings()), BundledEncoder)


@pytest.mark.parametrize("kind", ["onnx", "openai", "ollama", "sentence-transformers"])
def test_a_kind_that_needs_a_model_says_so(kind: str) -> None:
    with pytest.raises(ConfigurationError, match=r"setting encoder\.model"):
        build_encoder(Settings(encoder={"kind": kind}))


def test_an_encoder_of_openai_without_a_key_names_what_is_missing() -> None:
    """The public API was called with the key "none", and said "Connection error"."""
    chosen = Settings(encoder={"kind": "openai", "model": "m"})
    with pytest.raises(ConfigurationError, match=r"encoder\.kind: 'openai' .*OPENAI_API_KEY"):
        build_encoder(chosen)


def test_a_server_of_ones_own_needs_no_key(
    openai_server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    openai_server.always = openai_embeddings({0: [1.0]})
    named = Settings(
        encoder={"kind": "openai", "model": "m"}, llm={"openai": {"base_url": openai_server.url}}
    )
    assert build_encoder(named).encode(["a"]).tolist() == [[1.0]]
    monkeypatch.setenv("OPENAI_BASE_URL", openai_server.url)
    found = Settings(encoder={"kind": "openai", "model": "m"})
    assert build_encoder(found).encode(["a"]).tolist() == [[1.0]]


@pytest.mark.parametrize("kind", ["bundled", "minilm"])
def test_a_kind_with_a_model_of_its_own_takes_no_other(kind: str) -> None:
    """The name was ignored, and another model than the one that was named encoded."""
    with pytest.raises(ConfigurationError, match=f"kind '{kind}' has a model of its own"):
        build_encoder(Settings(encoder={"kind": kind, "model": "foo"}))


def test_remote_encoders_use_the_addresses_of_the_llm_settings(
    openai_server: OpenAIServer, ollama_server: OllamaServer
) -> None:
    openai_server.queue(openai_embeddings({0: [1.0]}))
    ollama_server.queue(ollama_embeddings([[1.0]]))
    llm = {
        "openai": {"base_url": openai_server.url, "api_key": "sk-test"},
        "ollama": {"host": ollama_server.url},
    }
    for kind in ("openai", "ollama"):
        chosen = Settings(llm=llm, encoder={"kind": kind, "model": "test-model"})
        assert build_encoder(chosen).encode(["a"]).tolist() == [[1.0]]
    assert openai_server.requests[0].headers["authorization"] == "Bearer sk-test"


def test_minilm_needs_no_name_and_is_the_same_from_a_folder(tmp_path: Path) -> None:
    for file in minilm_files():
        (tmp_path / file.name).symlink_to(file)
    chosen = build_encoder(Settings(encoder={"kind": "minilm"}))
    named = build_encoder(Settings(encoder={"kind": "onnx", "model": str(tmp_path)}))
    assert chosen.identity == named.identity
    assert chosen.encode(["undo my commit"]).shape == (1, 384)
