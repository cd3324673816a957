"""What people ask assistants for in general, beside which a request is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from router.errors import EncoderError
from router.retrieval.background import Background, is_foreign, requests
from router.retrieval.bundled_encoder import BundledEncoder
from router.retrieval.embedding_chroma import ChromaCache
from router.retrieval.encoders import Encoder
from router.retrieval.index import SkillIndex
from router.retrieval.onnx_encoder import minilm
from router.retrieval.vectors import ENCODING_BATCH, VectorStore
from router.skills.catalog import Catalog
from router.skills.manifest import SkillManifest
from router.text import tokens

ENCODER = BundledEncoder()
CAKE = SkillManifest(
    name="cake",
    description="Bakes chocolate cakes.",
    body="Butter the tin.",
    path=Path("/skills/cake/SKILL.md"),
    digest="cake",
)


class Counting:
    """Another encoder, with the number of texts that it has encoded; it can be told to fail after
    so many."""

    def __init__(self, encoder: Encoder = ENCODER, *, identity: str | None = None) -> None:
        self._encoder = encoder
        self.identity = identity or encoder.identity
        self.static = encoder.static
        self.encoded = 0
        self.most: int | None = None

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.most is not None and self.encoded >= self.most:
            raise EncoderError("gone")
        self.encoded += len(texts)
        return self._encoder.encode(texts)

    def encode_documents(self, documents: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        return self._encoder.encode_documents(documents)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[VectorStore]:
    store = VectorStore(tmp_path, identity=ENCODER.identity)
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


@pytest.mark.parametrize("build", [BundledEncoder, minilm])
async def test_an_encoder_makes_it_once_on_a_machine_and_tells_how_far_it_is(
    build: Callable[[], Encoder], tmp_path: Path
) -> None:
    told: list[tuple[int, int]] = []
    rankings = []
    counting = [Counting(build()) for _ in range(2)]
    for encoder in counting:
        store = VectorStore(tmp_path, identity=encoder.identity)
        index = SkillIndex.build(
            Catalog({CAKE.name: CAKE}),
            encoder=encoder,
            store=store,
            progress=lambda *now: told.append(now),
        )
        rankings.append(await index.rank("what should I bake"))
        store.close()
    assert [encoder.encoded for encoder in counting] == [len(requests()) + 1, 1]
    number = len(requests())
    assert told[0] == (ENCODING_BATCH, number)
    assert (number, number) in told
    assert rankings[0].background is not None
    assert rankings[0].background == pytest.approx(rankings[1].background, abs=1e-5)


@pytest.mark.parametrize("identity", ["plugin/static", "onnx/0123456789abcdef", "openai/model"])
def test_an_encoder_for_which_nothing_was_fitted_has_none(
    store: VectorStore, identity: str
) -> None:
    encoder = Counting(identity=identity)
    assert Background.of(encoder, store) is None
    assert encoder.encoded == 0


async def test_what_only_ranks_does_without_it(store: VectorStore) -> None:
    encoder = Counting()
    index = SkillIndex(encoder, store).updated(Catalog({CAKE.name: CAKE}))
    assert encoder.encoded == 0
    assert (await index.rank("what should I bake")).background is None


def test_what_fails_while_it_is_encoded_leaves_nothing_half_kept(store: VectorStore) -> None:
    failing, later = Counting(), Counting()
    failing.most = ENCODING_BATCH
    with pytest.raises(EncoderError, match="gone"):
        SkillIndex.build(Catalog({CAKE.name: CAKE}), encoder=failing, store=store)
    assert Background.of(later, store) is not None
    assert later.encoded == len(requests())


def test_vectors_are_shared_in_chroma_beside_it(tmp_path: Path) -> None:
    store = VectorStore(tmp_path, identity="test", shared=ChromaCache(tmp_path))
    assert Background.of(ENCODER, store) is not None
    store.vectors(["a"], lambda _: ENCODER.encode(["a"]))
    store.save()
    store.close()
    chroma = ChromaCache(tmp_path)
    assert list(chroma.get("test", ["a"])) == ["a"]
    chroma.close()


@pytest.mark.parametrize("place", [0, 700, -1])
def test_nothing_is_nearer_to_a_request_of_it_than_itself(
    background: Background, place: int
) -> None:
    vector = ENCODER.encode([requests()[place]])[0]
    assert background.nearest(vector) == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("Wie wird morgen das Wetter in Hamburg?", "will tomorrow be rainy in Hamburg?"),
        ("mach das Licht in der Küche aus", "could the kitchen lamp go off please"),
        ("réserve une table pour six personnes", "reserve a table at a restaurant, we are six"),
    ],
)
def test_a_request_in_another_language_is_not_near_the_same_one_in_english(
    background: Background, text: str, same: str
) -> None:
    assert same not in requests()
    foreign, english = map(background.nearest, ENCODER.encode([text, same]))
    assert foreign < english


@pytest.mark.parametrize(
    ("text", "foreign"),
    [
        ("Der Ofen zeigt einen Fehler an", True),
        ("me puedes ayudar con una hoja de cálculo", True),
        ("wie spät ist es in Tokio", True),
        ("用户无法登录", True),
        ("the deck oven shows E7", False),
        ("kubectl apply -f pod.yaml", False),
        ("flug buchen bitte", True),
        ("hi", False),
        ("thx", False),
        ("flüge", True),
        ("merci, now book the flight", False),
        ("???", False),
        ("\N{THUMBS UP SIGN}", False),
        ("48213 77", False),
    ],
)
def test_a_text_of_which_hardly_a_word_is_english_is_foreign(text: str, foreign: bool) -> None:
    assert is_foreign(tokens(text)) is foreign


def test_no_request_of_the_background_is_foreign() -> None:
    assert not any(is_foreign(tokens(text)) for text in requests())
