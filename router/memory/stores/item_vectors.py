"""The vectors of all items: made by one encoder, stored in the database, and searched by its
engine.

An item has one vector of its content, as part 0 of its row, and one of each saved question
(``texts/questions.py``). Its similarity to a query is that of its nearest vector.
"""

from __future__ import annotations

import json
import logging
import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar, Final

import numpy as np
from cachetools import LRUCache, cached
from numpy.typing import NDArray

from router.errors import EncoderError
from router.memory.model import MemoryItem
from router.memory.stores.database import Connection, Database, next_generation, placeholders
from router.memory.stores.fusion import best_first
from router.memory.stores.spaces import Filter, Space
from router.memory.texts.chunking import CHUNK_CHARACTERS
from router.memory.texts.questions import texts_of
from router.memory.texts.text_vectors import TextVectors
from router.retrieval.encoders import Encoder

_log: Final = logging.getLogger(__name__)

ENCODED_ROWS: Final = 256
"""Texts that are encoded at a time."""
REMEMBERED_QUERIES: Final = 256


class ItemVectors(ABC):
    """The vectors of all items. Thread-safe. ``WIDTH`` is an SQL expression for the number of
    dimensions of a stored vector."""

    WIDTH: ClassVar[str]

    def __init__(self, db: Database, encoder: Encoder) -> None:
        self._db = db
        self._encoder = encoder
        self.texts = TextVectors(encoder)
        self._incomplete = False
        self._outdated = False
        self._width = 0
        # Several layers search for the same text at once: one of them encodes it, the others wait.
        self.encode_query = cached(LRUCache(REMEMBERED_QUERIES), condition=threading.Condition())(
            self._encode_query
        )

    def open(self) -> None:
        """Make the vectors of all items that have none of this encoder, and delete those of another
        encoder. If the database is read-only, items without a vector are found by their words."""
        if self._db.read_only:
            return
        with self._db.reading() as db:
            is_foreign = self._is_foreign(db)
        if is_foreign:
            with self._db.writing() as db:
                db.execute("DELETE FROM vectors")
                db.execute("UPDATE memory_store SET encoder = ?", (self._encoder.identity,))
        self._incomplete = True
        self.complete()

    def prepare(self) -> None:
        """Load what searches need into memory, unless it is there; and make the vectors anew if an
        earlier search found that they are of another model."""
        if self._outdated:
            self._outdated = False
            self.complete()

    def encode(self, items: Sequence[Sequence[str]]) -> list[list[NDArray[np.float32] | None]]:
        """The vectors of the texts of each item. The lists are empty if the encoder is down; a text
        that it always fails on has None."""
        texts = [text for item in items for text in item]
        encoded: list[NDArray[np.float32] | None] = []
        try:
            for start in range(0, len(texts), ENCODED_ROWS):
                encoded += self.texts.made(texts[start : start + ENCODED_ROWS])
        except EncoderError as error:
            _log.warning("items are found by their words only for now: %s", error)
            self._incomplete = True
            return [[] for _ in items]
        self._drop_outdated()
        following = iter(encoded)
        return [list(islice(following, len(item))) for item in items]

    def complete(self) -> None:
        """Encode the items that the encoder failed on before."""
        if not self._incomplete:
            return
        self._incomplete = False
        last = 0  # rows are tried in order and once, so a text that always fails ends nothing
        while not self._incomplete:
            with self._db.reading() as db:
                if self._is_foreign(db):
                    return
                lacking = db.execute(
                    "SELECT row, space, content, attributes FROM items WHERE row > ? "
                    "AND row NOT IN (SELECT row FROM vectors) ORDER BY row LIMIT ?",
                    (last, ENCODED_ROWS),
                ).fetchall()
            if not lacking:
                return
            last = lacking[-1][0]
            vectors = self.encode(
                [texts_of(content, json.loads(attributes)) for *_, content, attributes in lacking]
            )
            with self._db.writing() as db:
                places = [(row, space) for row, space, *_ in lacking]
                self.insert(db, places, vectors)
                generation = next_generation(db)
                for space in {space for _, space in places}:
                    # Processes that have read this space believe that its vectors are complete.
                    db.execute(
                        "UPDATE spaces SET removed = ?, written = ? WHERE id = ?",
                        (generation, generation, space),
                    )

    def insert(
        self,
        db: Connection,
        places: Sequence[tuple[int, int]],
        vectors: Sequence[Sequence[NDArray[np.float32] | None]],
    ) -> None:
        """Store the vectors of rows, each given with its space, if the row still exists and the
        database has vectors of this encoder."""
        db.executemany(
            "INSERT INTO vectors (row, part, space, vector) SELECT row, ?, space, ? FROM items "
            "WHERE row = ? AND space = ? AND (SELECT encoder FROM memory_store) = ? "
            "ON CONFLICT (row, part) DO UPDATE SET vector = excluded.vector",
            [
                (part, self._stored(vector), *place, self._encoder.identity)
                for place, parts in zip(places, vectors, strict=True)
                for part, vector in enumerate(parts)
                if vector is not None
            ],
        )

    def nearest(
        self,
        db: Connection,
        spaces: Sequence[Space],
        text: str,
        *,
        limit: int,
        where: Filter,
    ) -> dict[int, float]:
        """Rows with their cosine similarity to a text, best first. Raises EncoderError if it cannot
        be encoded."""
        if not spaces:
            return {}
        vector = self.encode_query(text)
        if not vector.any() or self._is_foreign(db):
            return {}
        found = best_first(self._nearest(db, spaces, vector, limit, where))
        return dict(list(found.items())[:limit])

    def keep_texts(self, db: Connection, items: Mapping[int, MemoryItem]) -> None:
        """Put the vectors of items that were found into ``texts``, because their relevance is
        judged next. Long texts are left out: they are judged by their parts."""
        texts = {
            (row, part): text
            for row, item in items.items()
            for part, text in enumerate(texts_of(item.content, item.attributes))
            if len(text) <= CHUNK_CHARACTERS and text not in self.texts
        }
        if not texts:
            return
        rows = {row for row, _ in texts}
        stored = db.execute(
            f"SELECT row, part, vector FROM vectors WHERE row IN ({placeholders(len(rows))}) "  # noqa: S608
            "AND (SELECT encoder FROM memory_store) = ?",
            (*rows, self._encoder.identity),
        )
        # As a list: a generator would read the database while ``texts`` is locked.
        self.texts.keep(
            [
                (texts[row, part], self._read(vector))
                for row, part, vector in stored
                if (row, part) in texts
            ]
        )

    def discard(self, spaces: Sequence[int]) -> None:  # noqa: B027
        """Drop what is cached of some spaces outside the database."""

    @abstractmethod
    def _stored(self, vector: NDArray[np.float32]) -> Any:
        """A vector as a value of a statement."""

    @abstractmethod
    def _read(self, stored: Any) -> NDArray[np.float32]:
        """The inverse of ``_stored``."""

    @abstractmethod
    def _nearest(
        self,
        db: Connection,
        spaces: Sequence[Space],
        vector: NDArray[np.float32],
        limit: int,
        where: Filter,
    ) -> dict[int, float]:
        """At least the ``limit`` best rows of each space, with their cosine similarity."""

    def _encode_query(self, text: str) -> NDArray[np.float32]:
        # ``texts`` keeps the vector, which is needed again when relevance is judged.
        vectors = self.texts.of([text])
        self._drop_outdated()
        return np.asarray(vectors[0], dtype=np.float32)

    def _drop_outdated(self) -> None:
        """Delete the stored vectors if the encoder's vectors now have another number of dimensions,
        because another model has got its name. They are made anew when something is saved, or
        before the next search; until then items are found by words only."""
        width = self.texts.width
        if width == self._width:
            return
        self._width = width
        other = f"{self.WIDTH} != ? AND (SELECT encoder FROM memory_store) = ?"  # noqa: S608
        values = width, self._encoder.identity
        with self._db.reading() as db:
            ends = "(SELECT min(row) FROM vectors), (SELECT max(row) FROM vectors)"
            found = db.execute(f"SELECT 1 FROM vectors WHERE row IN ({ends}) AND {other}", values)  # noqa: S608
            if not found.fetchall() or self._db.read_only:
                return
        _log.warning("%s: another model has its name; vectors are made anew", values[1])
        with self._db.writing() as db:
            db.execute(f"DELETE FROM vectors WHERE {other}", values)  # noqa: S608
        self.encode_query.cache_clear()
        self._incomplete = self._outdated = True

    def _is_foreign(self, db: Connection) -> bool:
        """Whether the stored vectors are of another encoder, with which another process made
        them."""
        (encoder,) = db.execute("SELECT encoder FROM memory_store").fetchone()
        return bool(encoder != self._encoder.identity)
