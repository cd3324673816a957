"""Which encoder the settings name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from router.errors import ConfigurationError
from router.retrieval.bundled_encoder import bundled_encoder
from router.retrieval.encoders import (
    Encoder,
    OllamaEncoder,
    OpenAIEncoder,
    SentenceTransformerEncoder,
)
from router.retrieval.onnx_encoder import minilm, named_encoder
from router.settings.plugins import ENCODERS, load_plugin

if TYPE_CHECKING:
    from router.settings.settings import Settings


def build_encoder(settings: Settings) -> Encoder:
    """The encoder that the settings name.

    Raises:
        ConfigurationError: the chosen kind needs a model and none is named, or has one of its own
            and one is named, or it is a plug-in that cannot be used.
        EncoderError: the encoder cannot be loaded.
    """
    kind, model = settings.encoder.kind, settings.encoder.model
    if kind in ("bundled", "minilm"):
        if model is not None:
            raise ConfigurationError(
                f"setting encoder.model: kind {kind!r} has a model of its own; take {model!r} out, "
                "or set encoder.kind to the kind that runs it, such as onnx"
            )
        return bundled_encoder() if kind == "bundled" else minilm()
    from router.settings.settings import (
        ENCODER_KINDS,  # ``router memory classify`` needs no settings
    )

    if kind not in ENCODER_KINDS:
        plugin: Encoder = load_plugin(ENCODERS, kind, Encoder, "encoder.kind")
        return plugin
    if model is None:
        raise ConfigurationError(f"setting encoder.model: kind {kind!r} needs a model")
    if kind == "onnx":
        return named_encoder(model)
    if kind == "sentence-transformers":
        return SentenceTransformerEncoder(model)
    if kind == "openai":
        openai = settings.llm.openai
        key = openai.api_key.get_secret_value() if openai.api_key else None
        return OpenAIEncoder(model, base_url=openai.base_url, api_key=key)
    return OllamaEncoder(model, host=settings.llm.ollama.host)
