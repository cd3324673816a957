"""Text encoders: texts in, unit vectors out.

Their port, and those that other people's packages and servers are. Each imports what it needs when
it is built. ``configured_encoder.py`` says which of them a setting means.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from router.bounded.replies import RefusedReply, blocking_reply_bounds, refusal_in
from router.errors import ConfigurationError, EncoderError
from router.version import install_extra
from router.web.loopback import direct, why_no_client

if TYPE_CHECKING:
    import ollama
    import openai
    from sentence_transformers import SentenceTransformer


REMOTE_BATCH: Final = 128
"""Texts a call to a remote encoder; both APIs take more, but answers grow to megabytes."""
REQUESTS_BATCH: Final = 16
"""The same of ``RemoteEncoder.within``, so that a slow server keeps to the time of each call."""

REMOTE_TIMEOUT_SECONDS: Final = 30.0
"""How long connecting may take, and each piece of an answer, while skills are encoded. Requests
have a shorter limit; see ``RemoteEncoder``."""
MAX_REMOTE_SECONDS: Final = 60.0
"""How long one whole answer may take."""
MAX_VECTORS_BYTES: Final = 16 * 1024 * 1024
"""The longest answer: a batch of the largest vectors in use, written in decimal digits."""

_MALFORMED: Final = (ValueError, TypeError, AttributeError)
"""What the SDKs raise for an answer that is not JSON, or not the JSON of their protocol."""


@runtime_checkable
class Encoder(Protocol):
    """Turns texts into vectors whose dot product is their cosine similarity.

    Attributes:
        identity: names the encoder and its weights; stored with an index, which is rebuilt when
            it changes.
        static: encoding costs microseconds, so that requests are encoded on the event loop.
            Others work in a thread.
    """

    @property
    def identity(self) -> str: ...

    @property
    def static(self) -> bool: ...

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Vectors of shape (len(texts), dimension), each of length 1 (or all zeros for a text
        without a single known token).

        Raises:
            EncoderError: the encoder cannot be reached or gave unusable vectors.
        """
        ...

    def encode_documents(self, documents: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        """Vectors of skills, each given as (head, body): what it is for, and its instructions.

        Shape and errors as for ``encode``.
        """
        ...


@runtime_checkable
class RemoteEncoder(Encoder, Protocol):
    """An encoder on a server, which may be down. Encoding skills may take minutes, and is tried
    again; for a request somebody waits, and for the labels the closing of the router does."""

    def within(self, seconds: float) -> Encoder:
        """The same encoder for requests and labels: each call has few texts, is tried once, and
        gives up after a time."""
        ...


def of_requests(encoder: Encoder, seconds: float) -> Encoder:
    """The encoder, whose calls give up after a time if it is on a server."""
    return encoder.within(seconds) if isinstance(encoder, RemoteEncoder) else encoder


class HeadEncoder(ABC):
    """What encoders share that are too slow, or read too little, for whole bodies."""

    static: Final = False

    @abstractmethod
    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]: ...

    def encode_documents(self, documents: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        return self.encode([head for head, _ in documents])


class SentenceTransformerEncoder(HeadEncoder):
    """Any sentence-transformers model, by name or folder."""

    def __init__(self, model: str) -> None:
        try:
            from sentence_transformers import SentenceTransformer
        except ImportError as error:
            raise EncoderError(
                "the sentence-transformers encoder needs its package: "
                + install_extra("sentence-transformers")
            ) from error
        self.identity = f"sentence-transformers/{model}"
        try:
            self._model: SentenceTransformer = SentenceTransformer(model)
        except (OSError, ValueError) as error:
            raise EncoderError(f"sentence-transformers: cannot load {model!r}: {error}") from error

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return unit(self._model.encode(list(texts), show_progress_bar=False))


class OpenAIEncoder(HeadEncoder):
    """An OpenAI-compatible embeddings endpoint."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None,
        api_key: str | None,
        seconds: float | None = None,
    ) -> None:
        """``seconds`` is set for requests; see ``within``.

        Raises:
            ConfigurationError: there is neither a key nor the address of a server that needs none.
            EncoderError: the settings cannot be used.
        """
        self._name, self._base_url, self._key = model, base_url, api_key
        self._batch = REMOTE_BATCH if seconds is None else REQUESTS_BATCH
        key = api_key or os.environ.get("OPENAI_API_KEY")
        address = base_url or os.environ.get("OPENAI_BASE_URL")
        if not key and not address:
            raise ConfigurationError(
                "setting encoder.kind: 'openai' needs a key: set OPENAI_API_KEY, or, for a server "
                "of your own that needs none, llm.openai.base_url or OPENAI_BASE_URL"
            )
        with _settings_of("openai"):
            import openai

            self._client: openai.OpenAI = openai.OpenAI(
                base_url=base_url,
                api_key=key or "none",  # the SDK does not start without one
                timeout=seconds or REMOTE_TIMEOUT_SECONDS,
                max_retries=1 if seconds is None else 0,
                http_client=openai.DefaultHttpxClient(
                    event_hooks=_bounds(seconds), **direct(openai.DefaultHttpxClient, address)
                ),
            )
        self.identity = f"openai/{self._client.base_url}/{model}"

    def within(self, seconds: float) -> OpenAIEncoder:
        return OpenAIEncoder(
            self._name, base_url=self._base_url, api_key=self._key, seconds=seconds
        )

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import openai

        rows: list[list[float]] = []
        try:
            for start in range(0, len(texts), self._batch):
                batch = list(texts[start : start + self._batch])
                reply = self._client.embeddings.create(
                    model=self._name, input=batch, encoding_format="float"
                )
                rows.extend(item.embedding for item in sorted(reply.data, key=lambda d: d.index))
        except RefusedReply as error:
            raise EncoderError(f"openai embeddings: {error}") from error
        except openai.APIConnectionError as error:
            if (refusal := refusal_in(error)) is not None:  # some versions of the SDK wrap it
                raise EncoderError(f"openai embeddings: {refusal}") from error
            where = error.request.url.netloc.decode()  # without what else is in the URL
            raise EncoderError(f"openai embeddings: {where}: {error}") from error
        except openai.OpenAIError as error:
            raise EncoderError(f"openai embeddings: {error}") from error
        except _MALFORMED as error:
            raise EncoderError(f"openai embeddings: not a usable answer: {error}") from error
        return unit(checked(rows, len(texts), "openai"))


class OllamaEncoder(HeadEncoder):
    """An Ollama server's embedding model."""

    def __init__(self, model: str, *, host: str | None, seconds: float | None = None) -> None:
        """``seconds`` is set for requests; see ``within``."""
        self.identity = f"ollama/{host or 'default'}/{model}"
        self._name, self._host = model, host
        self._batch = REMOTE_BATCH if seconds is None else REQUESTS_BATCH
        with _settings_of("ollama"):
            import httpx
            import ollama  # reads OLLAMA_HOST

            self._client: ollama.Client = ollama.Client(
                host=host,
                timeout=seconds or REMOTE_TIMEOUT_SECONDS,
                event_hooks=_bounds(seconds),
                **direct(httpx.Client, host or os.environ.get("OLLAMA_HOST", "")),
            )

    def within(self, seconds: float) -> OllamaEncoder:
        return OllamaEncoder(self._name, host=self._host, seconds=seconds)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        import httpx
        import ollama

        rows: list[Sequence[float]] = []
        try:
            for start in range(0, len(texts), self._batch):
                batch = list(texts[start : start + self._batch])
                rows.extend(self._client.embed(model=self._name, input=batch).embeddings)
        except (ollama.ResponseError, httpx.HTTPError, ConnectionError, RefusedReply) as error:
            raise EncoderError(f"ollama embeddings: {error}") from error
        except _MALFORMED as error:
            raise EncoderError(f"ollama embeddings: not a usable answer: {error}") from error
        return unit(checked(rows, len(texts), "ollama"))


@contextmanager
def _settings_of(provider: str) -> Iterator[None]:
    """Names the provider where its SDK, or the HTTP library below it, takes no such settings."""
    try:
        yield
    except Exception as error:
        reason = f"{provider} embeddings: the settings cannot be used: {why_no_client(error)}"
        raise EncoderError(reason) from error


def _bounds(seconds: float | None) -> dict[str, list[Callable[..., Any]]]:
    return blocking_reply_bounds(seconds=seconds or MAX_REMOTE_SECONDS, max_bytes=MAX_VECTORS_BYTES)


def checked(
    rows: Sequence[Sequence[float]] | NDArray[np.floating], wanted: int, encoder: str
) -> NDArray[np.float32]:
    """The rows as an array. Neither remote answers nor the encoders of others are trusted: with a
    value that is not a number in a vector, no score would be one, and anything would be likely.

    Raises:
        EncoderError: it is not one finite row a text, all of one length.
    """
    if len(rows) != wanted:
        raise EncoderError(f"{encoder}: {len(rows)} vectors for {wanted} texts")
    try:
        with np.errstate(over="ignore"):  # it becomes infinite, and is refused below
            vectors = np.asarray(rows, dtype=np.float32)
    except (TypeError, ValueError) as error:
        raise EncoderError(f"{encoder}: vectors of different lengths, or not numbers") from error
    if vectors.ndim != 2 or vectors.shape[1] == 0:
        raise EncoderError(f"{encoder}: empty vectors")
    if not np.isfinite(vectors).all():
        raise EncoderError(f"{encoder}: a vector holds a value that is not a number")
    return vectors


def unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows scaled to length 1; a row of zeros stays one."""
    # What numpy.linalg.norm does, in half the time for a few rows.
    norms = np.sqrt(np.add.reduce(vectors * vectors, axis=1, keepdims=True))
    return np.asarray(vectors / np.maximum(norms, 1e-9), dtype=np.float32)
