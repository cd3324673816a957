"""The bundled encoder: static, English, and offline.

It looks up a vector for each word, or for the pieces of a rare one, and adds them up: some 12 µs a
short text. Its vectors were made in two steps. First all-MiniLM-L6-v2, a sentence encoder that
needs 11 ms, was the teacher: the cosine of two texts should be the same as the teacher's
(``benchmarks/encoder_training.py``). Then 83,929 requests and questions were learnt, each with the
text that it asks for, mostly in other words (``benchmarks/encoder_tuning.py``). The encoder does
not know the order of words. ``EncoderError`` is raised if one of its files is missing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from router.errors import EncoderError
from router.retrieval.encoders import unit

if TYPE_CHECKING:
    from tokenizers import Tokenizer

VECTORS: Final = Path(__file__).with_name("bundled_encoder.npz")
"""``vectors`` int8 (32000, 256), a row a token, and ``scales`` float32 (32000,): what each row is
multiplied by."""
VOCABULARY: Final = Path(__file__).with_name("bundled_encoder.txt")
"""The tokens, one a line, in the order of the vectors. ``##`` marks a piece that does not begin a
word. The first one stands for everything unknown, and its vector is zero."""
UNKNOWN: Final = 0
"""The number of that token."""

BODY_SHARE: Final = 0.75
"""Weight of a skill's body beside its head in the vector of a skill."""
SHORT: Final = 128
"""Tokens of a text whose repetitions are not worth counting."""
FEW_TEXTS: Final = 16
"""So many texts are tokenized one by one."""
REMEMBERED_WORDS: Final = 16_384
LONGEST_WORD: Final = 40
"""The tokens of longer words are not remembered."""
_SIGNS: Final = re.compile(
    "[\u00a1-\u00a9\u00ab\u00ac\u00ae-\u00b4\u00b6-\u00b9\u00bb-\u00bf\u00d7\u00f7"
    "\u2010-\u2027\u2030-\u205e\u2070-\u2bff\U0001f000-\U0001faff]"
)
"""Signs that no token has, such as arrows, degrees and emoji. The tokenizer would take the word
beside one for unknown too."""


class BundledEncoder:
    """Sums of token vectors, 256 dimensions."""

    identity: Final = "bundled/3"
    static: Final = True

    def __init__(self) -> None:
        self._tokenizer = bundled_tokenizer()
        try:
            with np.load(VECTORS) as weights:
                self._vectors, self._scales = weights["vectors"], weights["scales"]
        except (OSError, KeyError, ValueError) as error:
            raise EncoderError(f"the bundled encoder is not whole: {error}") from error
        self._tokens_of_word = lru_cache(maxsize=REMEMBERED_WORDS)(self._tokens)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return unit(self._pooled(texts, damped=False))

    def encode_documents(self, documents: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        heads = self.encode([head for head, _ in documents])
        bodies = unit(self._pooled([body for _, body in documents], damped=True))
        return unit(heads + BODY_SHARE * bodies)

    def _pooled(self, texts: Sequence[str], *, damped: bool) -> NDArray[np.float32]:
        """Sums of token vectors; damped: a token that occurs n times counts as sqrt(n), so that a
        long text is not drowned by the few words that it repeats most."""
        rows = np.zeros((len(texts), self._vectors.shape[1]), dtype=np.float32)
        for row, tokens in zip(rows, self._tokenized(texts), strict=True):
            numbers = np.asarray(tokens, dtype=np.intp)
            weights = self._scales.take(numbers)
            if damped or len(tokens) > SHORT:
                numbers, counts = np.unique(numbers, return_counts=True)
                times = np.sqrt(counts, dtype=np.float32) if damped else counts.astype(np.float32)
                weights = self._scales.take(numbers) * times
            row[:] = weights @ self._vectors.take(numbers, axis=0).astype(np.float32)
        return rows

    def _tokenized(self, texts: Sequence[str]) -> list[Sequence[int]]:
        """The numbers of each text's tokens."""
        texts = [text if text.isascii() else _SIGNS.sub(" ", text) for text in texts]
        if len(texts) > FEW_TEXTS:
            return [encoding.ids for encoding in self._tokenizer.encode_batch(texts)]
        # A batch is spread over threads, which a busy machine takes long to wake.
        return [self._tokens_by_word(text) for text in texts]

    def _tokens_by_word(self, text: str) -> Sequence[int]:
        """The tokens of a text, put together from those of its words: no token reaches over a
        space."""
        words = text.split(" ")
        if max(map(len, words)) > LONGEST_WORD:
            return self._tokens(text)
        return list(chain.from_iterable(map(self._tokens_of_word, words)))

    def _tokens(self, text: str) -> Sequence[int]:
        return tuple(self._tokenizer.encode(text).ids)


_bundled: Final = WeakValueDictionary[str, BundledEncoder]()


def bundled_encoder() -> BundledEncoder:
    """The bundled encoder, the same for all that use it at the same time: a process may have a
    router for each of its tenants, and the weights and the tokenizer take 15 MB."""
    known = _bundled.get(BundledEncoder.identity)
    # No lock: a process that is forked while a thread holds it would wait for ever.
    return known or _bundled.setdefault(BundledEncoder.identity, BundledEncoder())


def bundled_tokenizer() -> Tokenizer:
    """The tokenizer of the bundled encoder: words in small letters without accents, rare ones in
    pieces, and punctuation."""
    return tokenizer_of(_vocabulary())


def tokenizer_of(tokens: Sequence[str]) -> Tokenizer:
    """A tokenizer with a vocabulary, whose first token stands for everything unknown."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

    vocabulary = {token: number for number, token in enumerate(tokens)}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token=tokens[0]))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


@cache
def bundled_words() -> frozenset[str]:
    """The words that the bundled encoder knows whole, in small letters: those that are usual in
    English, and names of programs."""
    return frozenset(token for token in _vocabulary() if not token.startswith("##"))


def _vocabulary() -> list[str]:
    try:
        return VOCABULARY.read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise EncoderError(f"the bundled encoder is not whole: {error}") from error
