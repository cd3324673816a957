"""The memory store: all layers in one database.

``open`` keeps it in a SQLite file of a folder, and ``connect`` in a PostgreSQL database, which many
machines may share. Both use the same SQL statements and pass the same tests; ``database`` says
where they differ.

A save is on the disk before it returns. Every search names its scope, and reads only the spaces
that the scope sees, so an item of another scope is never even a candidate. Several processes may
use one store: what one of them saves, all find at once, by words and by meaning.
"""

from __future__ import annotations

import logging
import shutil
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from router.errors import (
    ConfigurationError,
    EncoderError,
    InvalidRequest,
    StoreError,
    UnknownMemory,
)
from router.memory.model import MAX_QUERY_CHARACTERS, MemoryItem, Scope, ScoreKind
from router.memory.stores.coverage import Coverage, cover
from router.memory.stores.database import Connection, Database, next_generation, placeholders
from router.memory.stores.fusion import at_place, best_first, fuse
from router.memory.stores.graph import entities_in, walk
from router.memory.stores.item_vectors import ItemVectors
from router.memory.stores.lexical import find_by_words, query_terms
from router.memory.stores.replacements import correct_marks
from router.memory.stores.rows import (
    Changes,
    Draft,
    find_space,
    load,
    make_space,
    read_item,
    read_rows,
)
from router.memory.stores.spaces import (
    EVERYTHING,
    Filter,
    Place,
    Space,
    ids_in,
    ids_of,
    newest_rows,
    owned_spaces,
    page_of,
    scope_key,
    visible_spaces,
)
from router.memory.stores.sqlite_database import SqliteDatabase
from router.memory.stores.sqlite_vectors import SqliteVectors
from router.memory.texts.questions import texts_of
from router.request import check_text
from router.version import install_extra

if TYPE_CHECKING:
    from router.retrieval.encoders import Encoder

_log: Final = logging.getLogger(__name__)

MIN_CANDIDATES: Final = 50
"""Rows that the searches by words and by meaning each find at least, before their scores are
added."""


class MemoryStore:
    """The items of all layers. Thread-safe; made by ``open`` or ``connect``, closed once.

    Every method raises StoreError if the database cannot be used, and every search raises
    InvalidRequest for a text that cannot be a query. ``text_vectors`` is a cache of vectors, which
    includes those of the items found lately.
    """

    def __init__(self, db: Database, vectors: ItemVectors, clock: Callable[[], float]) -> None:
        try:
            vectors.open()
        except BaseException:
            db.close()
            raise
        self._db = db
        self._vectors = vectors
        self._clock = clock
        self.text_vectors = vectors.texts

    @classmethod
    def open(
        cls,
        directory: Path,
        *,
        encoder: Encoder,
        clock: Callable[[], float] = time.time,
    ) -> Self:
        """Open the store in a folder, or create it. Vectors of another encoder are replaced, which
        encodes every item again.

        Raises:
            StoreError: the database cannot be opened or is damaged. It is left as it is.
        """
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                directory,
                f"the folder of memories cannot be used: {error.strerror or error} "
                "(setting memory.directory)",
            ) from error
        db = SqliteDatabase(directory / "memory.db")
        shutil.rmtree(directory / "vectors", ignore_errors=True)  # an earlier version's copies
        return cls(db, SqliteVectors(db, encoder), clock)

    @classmethod
    def connect(cls, url: str, *, encoder: Encoder, clock: Callable[[], float] = time.time) -> Self:
        """Open the store in a PostgreSQL database, or create it there. Otherwise as ``open``.

        Raises:
            ConfigurationError: the address is not one, or the extra ``postgres`` is missing.
            StoreError: the server cannot be reached or used.
        """
        try:
            from router.memory.stores.postgres_database import PostgresDatabase, PostgresVectors
        except ImportError:
            raise ConfigurationError(
                f"setting memory.url: needs the extra `postgres`: {install_extra('postgres')}"
            ) from None
        db = PostgresDatabase(url)
        return cls(db, PostgresVectors(db, encoder), clock)

    def close(self) -> None:
        """Close all files; a call that is under way may end in a ``StoreError``."""
        self._db.close()

    @property
    def away(self) -> bool:
        """Whether the database could not be reached when it was last needed."""
        return self._db.away

    @property
    def generation(self) -> int:
        """A number that rises with every change of what can be found, by any process. ``touch``
        does not change it.
        """
        with self._db.reading() as db:
            return int(db.execute("SELECT generation FROM memory_store").fetchone()[0])

    def save(
        self, items: Sequence[MemoryItem], *, over: Sequence[MemoryItem] = ()
    ) -> list[MemoryItem]:
        """Store items, all or none; they are on the disk when this returns. Returns the items as
        they are stored. If an item of ``over``, from which the new items were made, has been
        changed since it was read, nothing is stored and the list is empty.

        An item replaces the one with the same layer, scope and id. Scores are not stored. If the
        encoder fails the items are stored all the same and found by their words; they are encoded
        with a later save, or when the store is opened next.

        Raises:
            InvalidRequest: an item of the layer ``user`` or ``project`` without one in its scope, a
                ``due`` that is no ISO date, or values that cannot be stored.
        """
        drafts = list({(i.layer, i.scope, i.id): Draft.of(i) for i in items}.values())
        if not drafts:
            return []
        vectors = self._vectors.encode(
            [texts_of(draft.item.content, draft.item.attributes) for draft in drafts]
        )
        changes = Changes()
        with self._db.writing() as db:
            if any(_seen(db, old.layer, old.id, old.scope) != old for old in over):
                return []
            spaces = {
                key: make_space(db, *key)
                for key in {(draft.item.layer, draft.key) for draft in drafts}
            }
            placed = {(spaces[d.item.layer, d.key], d.item.id): d for d in drafts}
            changes.remove(db, placed)
            rows = changes.insert(db, placed)
            places = zip(rows, (space for space, _ in placed), strict=True)
            self._vectors.insert(db, list(places), vectors)
            changes.write(db, next_generation(db))
        self._vectors.complete()
        return [draft.item for draft in drafts]

    def delete(self, layer: str, ids: Iterable[str], scope: Scope) -> int:
        """Remove items that are stored in exactly this scope; returns how many there were.

        To see an item does not mean to be allowed to delete it: an item that belongs to everybody
        is deleted with ``Scope()`` only.
        """
        with self._db.writing() as db:
            space = find_space(db, layer, scope_key(scope))
            return 0 if space is None else _remove(db, [(space, item_id) for item_id in ids])

    def get(self, layer: str, id: str, scope: Scope) -> MemoryItem:  # noqa: A002 - the field's name
        """The item with an id that the scope sees; if there are several, that of the most
        particular scope.

        Raises:
            UnknownMemory: the scope sees none.
        """
        with self._db.reading() as db:
            item = _seen(db, layer, id, scope)
        if item is None:
            raise UnknownMemory(id)
        return item

    def get_stored(self, layer: str, id: str, scope: Scope) -> MemoryItem:  # noqa: A002
        """The item with an id that is stored in exactly this scope; raises as ``get``."""
        item = self.get(layer, id, scope)
        if item.scope != scope:
            raise UnknownMemory(id)
        return item

    def ids(self, layer: str, scope: Scope) -> set[str]:
        """The ids of all items of a layer that are stored in exactly this scope."""
        with self._db.reading() as db:
            space = find_space(db, layer, scope_key(scope))
            return {id for (id,) in db.execute("SELECT id FROM items WHERE space = ?", (space,))}  # noqa: A001

    def page(
        self, spaces_of: Scope, *, layers: Sequence[str] | None, after: Place, limit: int
    ) -> tuple[list[MemoryItem], Place | None]:
        """The items that a scope sees, newest first, without scores; and where the next page
        begins."""
        with self._db.reading() as db:
            spaces = visible_spaces(db, spaces_of, layers)
            return _page(db, spaces, after, limit)

    def owned(
        self, owner: Scope, *, after: Place, limit: int
    ) -> tuple[list[MemoryItem], Place | None]:
        """A page of the items of an owner, as ``page``."""
        with self._db.reading() as db:
            return _page(db, owned_spaces(db, owner), after, limit)

    def forget(self, owner: Scope) -> int:
        """Remove everything of an owner, and rewrite the database, so that the texts and the
        owner's name are gone from the disk; returns how many items there were.

        Raises:
            InvalidRequest: the owner is everybody.
        """
        if owner == Scope():
            raise InvalidRequest("forget: name a user, a project or a session")
        with self._db.writing() as db:
            spaces = ids_of(owned_spaces(db, owner))
            removed = _remove(db, ids_in(db, spaces))
            db.execute(f"DELETE FROM spaces WHERE id IN ({placeholders(len(spaces))})", spaces)  # noqa: S608
        self._vectors.discard(spaces)
        self._db.vacuum()
        return removed

    def left_of(self, owner: Scope) -> tuple[int, int]:
        """How many items an owner has, and how many vectors the owner has or no item has any
        more."""
        with self._db.reading() as db:
            spaces = ids_of(owned_spaces(db, owner))
            (vectors,) = db.execute(
                f"SELECT count(*) FROM vectors WHERE space IN ({placeholders(len(spaces))}) "  # noqa: S608
                "OR row NOT IN (SELECT row FROM items)",
                spaces,
            ).fetchone()
            return len(ids_in(db, spaces)), vectors

    def prepare_search(self) -> None:
        """Load the vectors into memory that searches by meaning need; with 100,000 items that takes
        some .7 s of CPU time. Without it the first search in each layer loads what it needs."""
        self._vectors.prepare()

    def expire(self) -> int:
        """Remove every item whose attribute ``expires_at`` has passed; returns how many there
        were."""
        expired, now = "SELECT space, id FROM items WHERE expires <= ?", (self._clock(),)
        with self._db.reading() as db:
            if not db.execute(expired, now).fetchall():
                return 0
        with self._db.writing() as db:
            return _remove(db, db.execute(expired, now).fetchall())

    def touch(self, items: Iterable[MemoryItem]) -> None:
        """Set the time when items were last given as an answer to now. It waits for the disk, so
        call it after the answer."""
        if self._db.read_only:
            return
        with self._db.writing() as db:
            for item in items:
                space = find_space(db, item.layer, scope_key(item.scope))
                db.execute(
                    "UPDATE items SET accessed = ? WHERE id = ? AND space = ?",
                    (self._clock(), item.id, space),
                )

    def lexical(
        self, layer: str, text: str, *, scope: Scope, k: int, where: Filter = EVERYTHING
    ) -> list[MemoryItem]:
        """The items that contain words of a text, by BM25, best first."""
        _check_query(text)
        with self._db.reading() as db:
            spaces = visible_spaces(db, scope, [layer])
            found = find_by_words(db, spaces, text, limit=max(k, MIN_CANDIDATES), where=where)
            return self._load(db, spaces, found, ScoreKind.BM25, k)

    def semantic(
        self, layer: str, text: str, *, scope: Scope, k: int, where: Filter = EVERYTHING
    ) -> list[MemoryItem]:
        """The items nearest to a text by cosine similarity, best first."""
        _check_query(text)
        with self._db.reading() as db:
            spaces = visible_spaces(db, scope, [layer])
            found = self._vectors.nearest(
                db, spaces, text, limit=max(k, MIN_CANDIDATES), where=where
            )
            return self._load(db, spaces, found, ScoreKind.COSINE, k)

    def search(
        self,
        layer: str,
        text: str,
        *,
        scope: Scope,
        k: int,
        where: Filter = EVERYTHING,
        words: str | None = None,
    ) -> list[MemoryItem]:
        """The items by words and by meaning together, best first; see ``fuse``. If the text cannot
        be encoded, only words count.

        Args:
            words: the text to search for by words; None is the whole text.
        """
        _check_query(text)
        with self._db.reading() as db:
            spaces = visible_spaces(db, scope, [layer])
            found = self._fused(db, spaces, text, words or text, k, where)
            return self._load(db, spaces, found, ScoreKind.FUSED, k)

    def newest(
        self, layer: str, *, scope: Scope, k: int, where: Filter = EVERYTHING
    ) -> list[MemoryItem]:
        """The latest items, latest first, scored by their place."""
        with self._db.reading() as db:
            spaces = visible_spaces(db, scope, [layer])
            rows = newest_rows(db, spaces, where, k + MIN_CANDIDATES).tolist()
            return self._load(db, spaces, _placed(rows), ScoreKind.FUSED, k)

    def soonest(
        self, layer: str, *, scope: Scope, k: int, where: Filter = EVERYTHING
    ) -> list[MemoryItem]:
        """The tasks in the order of their attribute ``due``, those without one last; scored by
        their place."""
        condition, values = where.sql()
        with self._db.reading() as db:
            spaces = visible_spaces(db, scope, [layer])
            found: list[tuple[bool, float, int]] = []
            for space in spaces:  # one at a time, so that the index gives them in order
                for missing in ("IS NOT NULL", "IS NULL"):
                    found += [
                        (due is None, due or 0.0, row)
                        for due, row in db.execute(
                            "SELECT due, row FROM items WHERE space = ? AND "  # noqa: S608
                            f"status IS NOT NULL AND due {missing} AND {condition} "
                            "ORDER BY due LIMIT ?",
                            (space.id, *values, k + MIN_CANDIDATES),
                        )
                    ]
            rows = [row for _, _, row in sorted(found)]
            return self._load(db, spaces, _placed(rows), ScoreKind.FUSED, k)

    def related(self, layer: str, text: str, *, scope: Scope, k: int) -> list[MemoryItem]:
        """The items about the entities that a text names, and about those up to ``MAX_RELATIONS``
        relations away, nearest first; then the items that only words and meaning find. See
        ``walk`` for the way that relations are followed.

        The score of an item that was reached is 1 / (1 + relations), plus its score by words and
        meaning, which is small and decides between equally near ones.
        """
        _check_query(text)
        with self._db.reading() as db:
            spaces = visible_spaces(db, scope, [layer])
            found = self._fused(db, spaces, text, text, k, EVERYTHING)
            named = entities_in(db, spaces, text)
            for row, hops in walk(db, spaces, named, text).items():
                found[row] = found.get(row, 0.0) + 1.0 / (1 + hops)
            return self._load(db, spaces, best_first(found), ScoreKind.FUSED, k)

    def coverage(
        self, words: str, *, scope: Scope, where: Filter = EVERYTHING
    ) -> tuple[Coverage, ...]:
        """How many items each layer has that the scope sees, the layer with most items first. With
        ``words``, only items that contain all of them are counted."""
        terms = query_terms(words)
        with self._db.reading() as db:
            by_layer: dict[str, list[Space]] = defaultdict(list)
            for space in visible_spaces(db, scope):
                by_layer[space.layer].append(space)
            found = [cover(db, spaces, terms, where) for spaces in by_layer.values()]
        known = [coverage for coverage in found if coverage is not None]
        return tuple(sorted(known, key=lambda coverage: (-coverage.items, coverage.layer)))

    def _load(
        self,
        db: Connection,
        spaces: Sequence[Space],
        scores: Mapping[int, float],
        kind: ScoreKind,
        k: int,
    ) -> list[MemoryItem]:
        found = load(db, spaces, scores, kind, k)
        self._vectors.keep_texts(db, found)
        return list(found.values())

    def _fused(
        self,
        db: Connection,
        spaces: Sequence[Space],
        text: str,
        words: str,
        k: int,
        where: Filter,
    ) -> dict[int, float]:
        limit = max(2 * k, MIN_CANDIDATES)
        lexical = find_by_words(db, spaces, words, limit=limit, where=where)
        try:
            semantic = self._vectors.nearest(db, spaces, text, limit=limit, where=where)
        except EncoderError as error:
            _log.warning("searching by words only: %s", error)
            semantic = {}
        return fuse(lexical, semantic)


def _page(
    db: Connection, spaces: Sequence[Space], after: Place, limit: int
) -> tuple[list[MemoryItem], Place | None]:
    rows = page_of(db, spaces, after, limit)
    found = read_rows(db, spaces, [row for row, _ in rows])
    return found, rows[-1][1] if len(rows) == limit else None


def _seen(db: Connection, layer: str, name: str, scope: Scope) -> MemoryItem | None:
    """The item of that id that the scope sees; of several, the most particular one's."""
    found = (read_item(db, space, name) for space in visible_spaces(db, scope, [layer]))
    return next((item for item in found if item is not None), None)


def _remove(db: Connection, items: Iterable[tuple[int, str]]) -> int:
    """Remove items, by space and id, as one change; how many there were."""
    items = {*items}
    correct_marks(db, items)
    changes = Changes()
    changes.remove(db, items)
    if changes.removed:
        changes.write(db, next_generation(db))
    return sum(len(rows) for rows in changes.removed.values())


def _check_query(text: str) -> None:
    check_text("query", text, MAX_QUERY_CHARACTERS)


def _placed(rows: Sequence[int]) -> dict[int, float]:
    return {row: at_place(place) for place, row in enumerate(rows)}
