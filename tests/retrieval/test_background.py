"""What people ask assistants for in general, beside which a request is judged."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from router.retrieval.background import Background, requests
from router.retrieval.embedding_chroma import ChromaCache
from router.retrieval.encoders import WordLlamaEncoder
from router.retrieval.vectors import VectorStore

ENCODER = WordLlamaEncoder()


class Counting:
    """The bundled encoder, with the number of texts that it has encoded."""

    identity = ENCODER.identity

    def __init__(self, *, static: bool = True) -> None:
        self.static = static
        self.encoded = 0

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.encoded += len(texts)
        return ENCODER.encode(texts)

    def encode_documents(self, documents: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        return ENCODER.encode_documents(documents)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[VectorStore]:
    store = VectorStore.open(tmp_path, identity=ENCODER.identity)
    yield store
    store.close()


@pytest.fixture
def background(store: VectorStore) -> Background:
    found = Background.of(ENCODER, store)
    assert found is not None
    return found


def test_its_requests_are_many_short_and_different() -> None:
    found = requests()
    assert len(set(found)) == len(found) > 1_500
    assert all(text == text.strip() and 0 < len(text) < 200 for text in found)


def test_it_is_encoded_once_for_a_store_and_kept_in_its_file(tmp_path: Path) -> None:
    first, second = Counting(), Counting()
    for encoder in (first, second):
        store = VectorStore.open(tmp_path, identity=encoder.identity)
        assert Background.of(encoder, store) is Background.of(encoder, store)
        store.close()
    assert first.encoded == len(requests()) + 1
    assert second.encoded == 1  # which says how long its vectors are


def test_another_model_of_the_same_name_has_a_background_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for width in (256, 8):
        encoder = Counting()
        monkeypatch.setattr(encoder, "encode", lambda texts, w=width: ENCODER.encode(texts)[:, :w])
        store = VectorStore.open(tmp_path, identity=encoder.identity)
        found = Background.of(encoder, store)
        store.close()
        assert found is not None
        assert found.compared(encoder.encode(["hello"])[0])[0] > 0


def test_vectors_are_shared_in_chroma_beside_it(tmp_path: Path) -> None:
    store = VectorStore.open(tmp_path, identity="test", shared=ChromaCache(tmp_path))
    assert Background.of(ENCODER, store) is not None
    store.vectors(["a"], lambda _: ENCODER.encode(["a"]))
    store.save()
    store.close()
    chroma = ChromaCache(tmp_path)
    assert list(chroma.get("test", ["a"])) == ["a"]
    chroma.close()


def test_a_transformer_is_not_kept_busy_with_it(store: VectorStore) -> None:
    encoder = Counting(static=False)
    assert Background.of(encoder, store) is None
    assert encoder.encoded == 0


@pytest.mark.parametrize("place", [0, 700, -1])
def test_nothing_is_nearer_to_a_request_of_it_than_itself(
    background: Background, place: int
) -> None:
    nearest, _ = background.compared(ENCODER.encode([requests()[place]])[0])
    assert nearest == pytest.approx(1, abs=1e-5)


def test_what_many_ask_is_more_common_than_what_few_ask(background: Background) -> None:
    texts = ["how do I find a good recipe", "reticulate the splines of the NURBS lattice"]
    often, seldom = [background.compared(vector)[1] for vector in ENCODER.encode(texts)]
    assert seldom < often


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("Wie wird morgen das Wetter in Hamburg?", "will tomorrow be rainy in Hamburg?"),
        ("mach das Licht in der Küche aus", "could the kitchen lamp go off please"),
        ("réserve une table pour six personnes", "reserve a table at a restaurant, we are six"),
    ],
)
def test_requests_in_other_languages_are_not_taken_for_common_ones(
    background: Background, text: str, same: str
) -> None:
    assert same not in requests()
    foreign, english = map(background.compared, ENCODER.encode([text, same]))
    assert foreign[0] < english[0]
    assert abs(foreign[1]) < 3  # the encoder knows English; that says nothing of what is wanted


def test_an_encoder_without_differences_finds_nothing_common() -> None:
    background = Background(np.tile(np.array([1, 0], dtype=np.float32), (3, 1)))
    assert background.compared(np.array([1, 0], dtype=np.float32)) == (1.0, 0.0)
