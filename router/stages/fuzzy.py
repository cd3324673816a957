"""The fuzzy cache: the answer to a request that differs from an earlier one only in ways that do
not matter.

A request is answered by its own entry if there is one, at dictionary cost. Otherwise by the most
similar entry (normalised Levenshtein similarity of the texts without fillers) that reaches the
threshold and passes the content gate (``gate``).

Comparing with every entry would be slow in a large cache, and needless: entries that can pass the
gate have the same items as the request, but for typos. So entries are filed under their items, and
a word that the cache has never seen is looked up among those it has seen by leaving out one letter
on both sides. A word that it has seen is never taken for a typo. The search is complete: it
answers whatever a comparison with all entries would, up to ``_MAX_COMPARED`` entries with the same
items, latest first, and ``_MAX_RESPELLINGS`` readings of the typos.

With a path, entries live in an SQLite file as well (``_Store``), which several processes may share.
"""

from __future__ import annotations

import itertools
import logging
import sqlite3
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from filelock import FileLock
from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from router.result import EvidenceValue, Outcome, RoutingResult, Stage, StageTrace
from router.stages.gate import Signature, is_typo, judge, may_be_misspelt, signature
from router.text import normalise

_log = logging.getLogger(__name__)

_MAX_COMPARED: Final = 64
_MAX_RESPELLINGS: Final = 16
_RECENT: Final = 8
"""How many entries each stem remembers for explaining a miss."""
_MAX_EXPLAINED: Final = 1000
"""Characters; to compare longer texts would take longer than the explanation is worth."""


@dataclass(frozen=True, slots=True)
class FuzzyStats:
    """Counts since the cache was opened; ``entries`` is the present size."""

    entries: int
    hits: int
    misses: int
    evictions: int
    expirations: int


@dataclass(frozen=True, slots=True)
class Recall:
    """What the cache found for one request.

    Attributes:
        result: the stored answer; None on a miss.
        matched: the normalised request that the answer was learned for, or on a miss the most
            similar one of those looked at that the gate kept back; None if there is none.
        similarity: of ``matched``, in [0, 1].
        age_seconds: since ``matched`` was learned.
        compared: entries that were compared with the request.
        blocked: why the gate kept ``matched`` back; None on a hit or when nothing was near.
    """

    result: RoutingResult | None = None
    matched: str | None = None
    similarity: float = 0.0
    age_seconds: float = 0.0
    compared: int = 0
    blocked: str | None = None

    def trace(self, microseconds: float) -> StageTrace:
        """The stage's entry for the result."""
        if self.result is not None:
            outcome, reason = Outcome.ANSWERED, f"close to an earlier request: {self.matched}"
        elif self.blocked is not None:
            outcome, reason = Outcome.DECLINED, f"the nearest request differs: {self.blocked}"
        else:
            outcome, reason = Outcome.DECLINED, "no similar request is stored"
        return StageTrace(Stage.FUZZY, outcome, reason, microseconds, self.evidence)

    @property
    def evidence(self) -> Mapping[str, EvidenceValue]:
        """The same for a trace entry, without what is empty."""
        evidence: dict[str, EvidenceValue] = {"compared": self.compared}
        if self.matched is not None:
            evidence["matched" if self.result is not None else "nearest"] = self.matched
            evidence["similarity"] = round(self.similarity, 4)
            evidence["age_seconds"] = round(self.age_seconds, 3)
        if self.blocked is not None:
            evidence["blocked"] = self.blocked
        return MappingProxyType(evidence)


@dataclass(slots=True, eq=False)
class _Entry:
    id: int
    """Row in the file; negative when the entry is in memory only."""
    text: str
    context: str
    core: str
    learned: float
    result: RoutingResult | None
    """None: still in the file, read when it is needed."""
    held: bool = True


class _Index:
    """Finds the entries that may pass the gate for a request."""

    def __init__(self) -> None:
        self._by_items: dict[tuple[str, bool, tuple[str, ...]], list[_Entry]] = {}
        self._stem_uses: dict[str, int] = {}
        self._recent: dict[str, list[_Entry]] = {}
        self._word_uses: dict[tuple[str, str], int] = {}
        self._shortened: dict[str, list[tuple[str, str]]] = {}
        """Long words with their stems, under each form that lacks one letter, and whole."""

    def add(self, entry: _Entry, items: Signature) -> None:
        key = (entry.context, items.asks, items.stems)
        self._by_items.setdefault(key, []).append(entry)
        for word in zip(items.words, items.stems, strict=True):
            self._stem_uses[word[1]] = self._stem_uses.get(word[1], 0) + 1
            recent = self._recent.setdefault(word[1], [])
            recent.append(entry)
            if len(recent) > _RECENT:
                del recent[0]
            if may_be_misspelt(word[0]):
                uses = self._word_uses[word] = self._word_uses.get(word, 0) + 1
                if uses == 1:
                    for form in _shortened(word[0]):
                        self._shortened.setdefault(form, []).append(word)

    def remove(self, entry: _Entry, items: Signature) -> None:
        key = (entry.context, items.asks, items.stems)
        same = self._by_items[key]
        same.remove(entry)
        if not same:
            del self._by_items[key]
        for word in zip(items.words, items.stems, strict=True):
            self._stem_uses[word[1]] -= 1
            if not self._stem_uses[word[1]]:
                del self._stem_uses[word[1]], self._recent[word[1]]
            if may_be_misspelt(word[0]):
                self._word_uses[word] -= 1
                if not self._word_uses[word]:
                    del self._word_uses[word]
                    for form in _shortened(word[0]):
                        self._shortened[form].remove(word)
                        if not self._shortened[form]:
                            del self._shortened[form]

    def matching(self, context: str, wanted: Signature) -> Iterator[_Entry]:
        """Entries with the same items but for typos, latest first among equal ones."""
        for stems in self._respellings(wanted):
            yield from reversed(self._by_items.get((context, wanted.asks, stems), ()))

    def near(self, context: str, wanted: Signature) -> list[_Entry]:
        """A few late entries that share the rarest words, to explain a miss with."""
        known = {stem for stem in wanted.stems if stem in self._stem_uses}
        rarest = sorted(known, key=lambda stem: (self._stem_uses[stem], stem))[:2]
        entries = {entry.id: entry for stem in rarest for entry in self._recent[stem]}
        return [entry for entry in entries.values() if entry.held and entry.context == context]

    def _respellings(self, wanted: Signature) -> Iterator[tuple[str, ...]]:
        """The items with each unseen word replaced by the seen words it may be a typo of."""
        choices: list[tuple[str, ...]] = []
        for word, stem in zip(wanted.words, wanted.stems, strict=True):
            if stem in self._stem_uses:
                choices.append((stem,))
            elif meant := self._meant_by(word):
                choices.append(meant)
            else:
                return iter(())
        return itertools.islice(itertools.product(*choices), _MAX_RESPELLINGS)

    def _meant_by(self, word: str) -> tuple[str, ...]:
        if not may_be_misspelt(word):
            return ()
        seen = {pair for form in _shortened(word) for pair in self._shortened.get(form, ())}
        return tuple(sorted({stem for other, stem in seen if is_typo(word, other)}))


def _shortened(word: str) -> set[str]:
    """The word and all its forms without one letter. Words one edit apart share one of them."""
    return {word, *(word[:i] + word[i + 1 :] for i in range(len(word)))}


_Row: TypeAlias = tuple[int, str, str, float]
"""id, normalised text, context, time learned."""

_SCHEMA_VERSION: Final = 1
_BUSY_MILLISECONDS: Final = 250
_SYNC_SECONDS: Final = 1.0
"""How often a look-up checks for the work of other processes."""
_CREATE: Final = f"""
CREATE TABLE entries (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    text TEXT NOT NULL,
    context TEXT NOT NULL,
    learned REAL NOT NULL,
    used INTEGER NOT NULL,
    result TEXT NOT NULL,
    UNIQUE (text, context)
);
CREATE INDEX entries_by_use ON entries (used);
PRAGMA user_version = {_SCHEMA_VERSION};
"""
_INSERT: Final = """
INSERT OR REPLACE INTO entries (text, context, learned, used, result)
VALUES (?, ?, ?, (SELECT coalesce(max(used), 0) + 1 FROM entries), ?)
"""
_TOUCH: Final = """
UPDATE entries SET used = (SELECT coalesce(max(used), 0) + 1 FROM entries) WHERE id = ?
"""


class _UnusableFile(Exception):
    """The file is corrupt, or not a fuzzy cache of this version."""


class _Store:
    """The entries in an SQLite file: WAL, one transaction for each ``add``.

    Uses and removals are only noted, and written with the next ``add`` or at the end, so that a
    look-up never writes. Every fault of the file is reported once in ``diagnostics`` and survived.
    """

    def __init__(self, path: Path, diagnostics: list[str]) -> None:
        self._path = path
        self._diagnostics = diagnostics
        self._used: dict[int, None] = {}
        self._removed: list[int] = []
        self._seen_version = -1
        self.last_id = 0
        """The newest row that ``rows`` gave."""
        self._db: sqlite3.Connection | None = None
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # Two processes must not both find the file broken and move each other's new one away.
            with FileLock(f"{path}.lock", timeout=10):
                self._db = self._open()
        except (OSError, sqlite3.Error) as error:  # FileLock's Timeout is an OSError
            self._report(f"fuzzy cache works in memory only: {path}: {error}")

    def _open(self) -> sqlite3.Connection:
        try:
            return self._connect()
        except _UnusableFile as problem:
            self._move_aside(str(problem))
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        # The cache's own lock keeps the threads apart.
        db = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        try:
            db.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
            if not db.execute("SELECT 1 FROM sqlite_master").fetchone():
                db.executescript(f"BEGIN IMMEDIATE; {_CREATE} COMMIT;")
            version = db.execute("PRAGMA user_version").fetchone()[0]
            if version != _SCHEMA_VERSION:
                raise _UnusableFile(f"schema version {version}, not {_SCHEMA_VERSION}")
            fault = db.execute("PRAGMA quick_check(1)").fetchone()[0]
            if fault != "ok":
                raise _UnusableFile(fault)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
        except sqlite3.DatabaseError as error:
            db.close()
            if error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
                raise _UnusableFile(str(error)) from error
            raise
        except _UnusableFile:
            db.close()
            raise
        return db

    def _move_aside(self, problem: str) -> None:
        aside = next(
            candidate
            for n in itertools.count(1)
            if not (candidate := self._path.with_name(f"{self._path.name}.broken-{n}")).exists()
        )
        self._path.rename(aside)
        for suffix in ("-wal", "-shm"):  # they belong to the old file only
            with suppress(FileNotFoundError):
                Path(f"{self._path}{suffix}").rename(f"{aside}{suffix}")
        self._report(f"fuzzy cache begun anew; the old file is now {aside}: {problem}")

    def rows(self, *, after: int) -> list[_Row]:
        """Readable rows with a larger id, least recently used first; results are left in place."""
        found = self._run(
            "SELECT id, text, context, learned FROM entries WHERE id > ? ORDER BY used, id", after
        )
        rows: list[_Row] = []
        for row_id, text, context, learned in found:
            self.last_id = max(self.last_id, row_id)
            if isinstance(text, str) and isinstance(context, str) and isinstance(learned, float):
                rows.append((row_id, text, context, learned))
            else:
                self.note_removal(row_id)
        return rows

    def result(self, row_id: int) -> RoutingResult | None:
        """The result of one row; None when it is gone or cannot be read."""
        for (text,) in self._run("SELECT result FROM entries WHERE id = ?", row_id):
            if isinstance(text, str | bytes):
                with suppress(ValueError):
                    return RoutingResult.from_json(text)
        return None

    def ids_if_changed(self) -> frozenset[int] | None:
        """All ids, if another connection has written since the last call; else None."""
        for (version,) in self._run("PRAGMA data_version"):
            if version != self._seen_version:
                self._seen_version = version
                return frozenset(row_id for (row_id,) in self._run("SELECT id FROM entries"))
        return None

    def add(self, text: str, context: str, learned: float, result: str) -> int | None:
        """Write one entry and all that was noted; the entry's id, None when it was not written."""
        if self._db is None:
            return None
        try:
            with _transaction(self._db):
                self._write_notes(self._db)
                self._db.execute(_INSERT, (text, context, learned, result))
            row_id: int = self._db.execute("SELECT last_insert_rowid()").fetchone()[0]
        except (sqlite3.Error, UnicodeEncodeError) as error:
            self._report(f"fuzzy cache entry kept in memory only: {self._path}: {error}")
            return None
        self._used.clear()
        self._removed.clear()
        return row_id

    def note_use(self, row_id: int) -> None:
        self._used.pop(row_id, None)
        self._used[row_id] = None

    def note_removal(self, row_id: int) -> None:
        self._removed.append(row_id)

    def clear(self) -> None:
        self._used.clear()
        self._removed.clear()
        self._run("DELETE FROM entries")

    def close(self) -> None:
        if self._db is None:
            return
        try:
            with _transaction(self._db):
                self._write_notes(self._db)
        except sqlite3.Error as error:
            self._report(f"the last uses of the fuzzy cache are lost: {self._path}: {error}")
        self._db.close()
        self._db = None

    def _write_notes(self, db: sqlite3.Connection) -> None:
        db.executemany(_TOUCH, [(row_id,) for row_id in self._used])
        db.executemany("DELETE FROM entries WHERE id = ?", [(row_id,) for row_id in self._removed])

    def _run(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """The rows of one statement; none when the file fails."""
        if self._db is None:
            return []
        try:
            return self._db.execute(statement, values).fetchall()
        except sqlite3.Error as error:
            self._report(f"fuzzy cache file cannot be used: {self._path}: {error}")
            return []

    def _report(self, message: str) -> None:
        if message not in self._diagnostics:
            self._diagnostics.append(message)
            _log.warning("%s", message)


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:
            db.execute("ROLLBACK")
        raise


class FuzzyCache:
    """Answers by similar requests, least recently used out first, with a time to live.

    Args:
        similarity_threshold: least similarity of a hit, in [0, 1]; the gate applies on top.
        ttl_seconds: life of an entry from its ``learn``; at exactly this age it is gone.
        max_entries: capacity, at least 1.
        path: SQLite file to keep the entries in; None keeps them in memory only.
        clock: seconds since the epoch. When it steps back, entries from the future count as new.

    A file that cannot be used never stops the router: a corrupt or foreign one is moved aside and
    begun anew, an inaccessible one means working in memory. ``diagnostics`` says so.
    """

    def __init__(
        self,
        similarity_threshold: float = 0.75,
        ttl_seconds: float = 7 * 24 * 3600,
        max_entries: int = 500,
        path: Path | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not 0 <= similarity_threshold <= 1:
            raise ValueError("similarity_threshold must lie in [0, 1]")
        if max_entries < 1 or ttl_seconds <= 0:
            raise ValueError("max_entries must be at least 1 and ttl_seconds above 0")
        self._threshold = similarity_threshold
        self._ttl_seconds = ttl_seconds
        self._max_entries = max_entries
        self._clock = clock
        self._lock = threading.Lock()
        self._entries: OrderedDict[int, _Entry] = OrderedDict()  # least recently used first
        self._own: dict[tuple[str, str], _Entry] = {}
        self._index = _Index()
        self._memory_ids = itertools.count(-1, -1)
        self._hits = self._misses = self._evictions = self._expirations = 0
        self.diagnostics: list[str] = []
        """What went wrong with the file, in sentences."""
        self._store = None if path is None else _Store(path, self.diagnostics)
        self._synced_at = clock()
        if self._store is not None:
            self._take_over(self._store)

    async def recall(self, request: str, context: str = "") -> RoutingResult | None:
        """The answer that ``find`` finds."""
        return self.find(request, context).result

    async def learn(self, request: str, result: RoutingResult, context: str = "") -> None:
        """Store the answer; it replaces an earlier one to the same request and context.

        When this returns, the entry is in the file and survives the end of the process. The write
        is a WAL commit without fsync, some tens of microseconds, so it runs in the event loop; it
        waits for another writer for at most ``_BUSY_MILLISECONDS``.
        """
        text = normalise(request)
        with self._lock:
            now = self._clock()
            self._sync(now)
            if (old := self._own.get((text, context))) is not None:
                self._drop(old)
            self._make_room(self._max_entries - 1)
            row = None
            if self._store is not None:
                row = self._store.add(text, context, now, result.to_json())
            entry_id = next(self._memory_ids) if row is None else row
            items = signature(text)
            self._add(_Entry(entry_id, text, context, items.core, now, result), items)

    def find(self, request: str, context: str = "") -> Recall:
        """Look for an answer, and say what it rests on or what came nearest.

        The stored object itself is handed out: a ``RoutingResult`` is deeply immutable.
        """
        text = normalise(request)
        with self._lock:
            now = self._clock()
            if abs(now - self._synced_at) >= _SYNC_SECONDS:
                self._sync(now)
            own = self._own.get((text, context))
            if own is not None and (result := self._answer(own, now)) is not None:
                return Recall(result, text, 1.0, now - own.learned, 1)
            return self._find_similar(signature(text), context, now)

    def clear(self) -> None:
        """Drop all entries, in the file too; the counts go on."""
        with self._lock:
            self._forget_all()
            if self._store is not None:
                self._store.clear()

    def close(self) -> None:
        """Write down what was used, and close the file. The cache goes on in memory only."""
        with self._lock:
            if self._store is not None:
                self._store.close()
                self._store = None

    def __len__(self) -> int:
        """Entries held, expired ones that nobody asked for included."""
        return len(self._entries)

    @property
    def stats(self) -> FuzzyStats:
        return FuzzyStats(
            len(self._entries), self._hits, self._misses, self._evictions, self._expirations
        )

    def _find_similar(self, wanted: Signature, context: str, now: float) -> Recall:
        passing: list[tuple[float, _Entry]] = []
        compared = 0
        for entry in itertools.islice(self._index.matching(context, wanted), _MAX_COMPARED):
            compared += 1
            similarity = Levenshtein.normalized_similarity(wanted.core, entry.core)
            if similarity >= self._threshold and judge(wanted, signature(entry.text)).passes:
                passing.append((similarity, entry))
        passing.sort(key=lambda match: match[0], reverse=True)
        for similarity, entry in passing:
            if (result := self._answer(entry, now)) is not None:
                return Recall(result, entry.text, similarity, now - entry.learned, compared)
        self._misses += 1
        near = self._index.near(context, wanted) if len(wanted.core) <= _MAX_EXPLAINED else []
        nearest = process.extractOne(
            wanted.core,
            [entry.core for entry in near],
            scorer=Levenshtein.normalized_similarity,
            score_cutoff=self._threshold,
        )
        compared += len(near)
        if nearest is None:
            return Recall(compared=compared)
        entry = near[nearest[2]]
        verdict = judge(wanted, signature(entry.text))
        blocked = "both spellings are in use" if verdict.passes else verdict.reason
        age = max(0.0, now - entry.learned)
        return Recall(None, entry.text, nearest[1], age, compared, blocked)

    def _answer(self, entry: _Entry, now: float) -> RoutingResult | None:
        """The entry's answer, if it is still good; else the entry is dropped."""
        entry.learned = min(entry.learned, now)
        if now - entry.learned >= self._ttl_seconds:
            self._expirations += 1
            self._drop(entry)
            return None
        if entry.result is None and self._store is not None:
            entry.result = self._store.result(entry.id)
        if entry.result is None:
            self._drop(entry)
            return None
        self._entries.move_to_end(entry.id)
        if self._store is not None:
            self._store.note_use(entry.id)
        self._hits += 1
        return entry.result

    def _add(self, entry: _Entry, items: Signature) -> None:
        self._entries[entry.id] = entry
        self._own[entry.text, entry.context] = entry
        self._index.add(entry, items)

    def _drop(self, entry: _Entry) -> None:
        self._forget(entry)
        if self._store is not None:
            self._store.note_removal(entry.id)

    def _forget(self, entry: _Entry) -> None:
        entry.held = False
        del self._entries[entry.id], self._own[entry.text, entry.context]
        self._index.remove(entry, signature(entry.text))

    def _forget_all(self) -> None:
        for entry in self._entries.values():
            entry.held = False
        self._entries.clear()
        self._own.clear()
        self._index = _Index()

    def _make_room(self, size: int) -> None:
        while len(self._entries) > size:
            self._drop(next(iter(self._entries.values())))
            self._evictions += 1

    def _sync(self, now: float) -> None:
        """Follow what other processes did to the file."""
        self._synced_at = now
        if self._store is None or (ids := self._store.ids_if_changed()) is None:
            return
        for entry in [e for e in self._entries.values() if e.id > 0 and e.id not in ids]:
            self._forget(entry)
        self._take_over(self._store)

    def _take_over(self, store: _Store) -> None:
        """Read the rows that are not yet in memory."""
        now = self._clock()
        for row_id, text, context, learned in store.rows(after=store.last_id):
            if row_id in self._entries:
                continue
            if now - learned >= self._ttl_seconds:
                self._expirations += 1
                store.note_removal(row_id)
                continue
            if (old := self._own.get((text, context))) is not None:
                self._forget(old)
            items = signature(text)
            entry = _Entry(row_id, text, context, items.core, min(learned, now), None)
            self._add(entry, items)
        self._make_room(self._max_entries)
