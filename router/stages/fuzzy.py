"""The fuzzy cache: answers a request with the answer to a similar one that means the same.

Where there is an entry for the identical request, a dictionary finds it. Otherwise the request is
answered by the most similar entry that reaches the similarity threshold (normalised Levenshtein
similarity of the texts without filler words) and passes the content gate (``gate``).

The request is compared only with the few entries that can pass the gate (``fuzzy_index``). The
result is that of a comparison with all entries, with two exceptions: a word that the cache has seen
is never taken for a typo, and of many entries with the same signature only the latest
``_MAX_COMPARED`` are compared.

With a path, entries are also in an SQLite file (``fuzzy_store``), which processes may share.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

from router.result import RoutingResult
from router.stages.exact import CacheStats
from router.stages.fuzzy_index import Entry, Index
from router.stages.fuzzy_store import Store
from router.stages.gate import compare_signatures
from router.stages.validation import Basis, KeptAnswer
from router.stages.wording import Signature, signature_of
from router.text import normalise

_MAX_COMPARED: Final = 64
_MAX_EXPLAINED_CHARACTERS: Final = 1000
"""For a longer request, a miss names no nearest request: to find it would take too long."""
_MAX_PENDING_DISCARDS: Final = 10_000
"""How many answers that are dropped while the file cannot be opened are remembered, to be dropped
from the file once it opens."""
_MAX_CATALOGS: Final = 64
"""The number of catalogs whose marks are held in memory."""
_SYNC_INTERVAL_SECONDS: Final = 1.0
"""The file is checked for changes by other processes at most this often."""
CLOCK_ERROR_SECONDS: Final = 3600.0
"""The clocks of processes that share a file may differ by this much."""


@dataclass(frozen=True, slots=True)
class FuzzyMatch:
    """What the cache found for one request.

    Attributes:
        kept: the stored answer with its basis; None on a miss.
        matched: on a hit, the normalised request that the answer was stored for. On a miss, the
            most similar request that the gate rejected; None if there is none.
        similarity: of ``matched`` to the request, in [0, 1].
        age_seconds: the age of the entry of ``matched``.
        compared: the number of entries that were compared with the request.
        blocked: why the gate rejected ``matched``; None on a hit, and where nothing was similar.
        is_own: whether the entry is that of the identical request.
    """

    kept: KeptAnswer | None = None
    matched: str | None = None
    similarity: float = 0.0
    age_seconds: float = 0.0
    compared: int = 0
    blocked: str | None = None
    is_own: bool = False

    @property
    def result(self) -> RoutingResult | None:
        """The stored answer; None on a miss."""
        return None if self.kept is None else self.kept.result


class FuzzyCache:
    """An LRU cache of answers, found by similar requests, with a time to live.

    Args:
        similarity_threshold: the least similarity of a hit, in [0, 1].
        ttl_seconds: an entry expires this long after its ``learn``.
        max_entries: capacity, at least 1.
        path: SQLite file for the entries; None keeps them in memory only.
        clock: seconds since the epoch. When it steps back, entries from the future count as new.
        changed_elsewhere: called with the text and context of an answer that another process has
            dropped or replaced.
        dropped_on_purpose: called with the digests (``fuzzy_store.drop_digest``) of answers that
            were dropped on purpose, also of those that are no entries here.

    A file that cannot be used never stops the router: a corrupt or foreign file is moved aside and
    a new one is begun; without access to the file the cache works in memory. ``diagnostics`` says
    what happened.
    """

    def __init__(
        self,
        similarity_threshold: float = 0.75,
        ttl_seconds: float = 7 * 24 * 3600,
        max_entries: int = 500,
        path: Path | None = None,
        clock: Callable[[], float] = time.time,
        changed_elsewhere: Callable[[str, str], None] = lambda _text, _context: None,
        dropped_on_purpose: Callable[[frozenset[bytes]], None] = lambda _digests: None,
    ) -> None:
        if not 0 <= similarity_threshold <= 1:
            raise ValueError("similarity_threshold must lie in [0, 1]")
        if max_entries < 1 or ttl_seconds <= 0:
            raise ValueError("max_entries must be at least 1 and ttl_seconds above 0")
        self._threshold = similarity_threshold
        self._ttl_seconds = ttl_seconds
        self._max_entries = max_entries
        self._clock = clock
        self._changed_elsewhere = changed_elsewhere
        self._dropped_on_purpose = dropped_on_purpose
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple[str, str], Entry] = OrderedDict()
        """By text and context, least recently used first."""
        self._index = Index()
        self._hits = self._misses = self._evictions = self._expirations = 0
        self.diagnostics: list[str] = []
        """What went wrong with the file, in sentences."""
        self._path = path
        self._store = Store(path, self.diagnostics)
        self._pending_discards: dict[
            tuple[str, str], None
        ] = {}  # while the file could not be opened
        self._marks: dict[str, bytes] = {}  # of catalogs that this process has kept answers of
        self._opened = False
        self._synced_at = 0.0

    def open(self) -> None:
        """Open the file and read its entries. Without this call, the first use does it. Waits up to
        ten seconds for another process that is opening the file."""
        with self._lock:
            self._open()

    def _open(self) -> None:
        if not self._opened:
            self._opened = True
            self._store.open()
            self._sync(self._clock())

    @property
    def fault(self) -> str:
        """Why the file could not be opened; empty where it is open or none was asked for."""
        return self._store.fault

    def reopen(self) -> None:
        """Try again to open the file. Entries that were stored meanwhile are then written to it,
        and those that were dropped meanwhile are dropped from it.

        Raises:
            StoreError: it still cannot be opened.
        """
        if not self.fault or self._path is None:
            return
        db = self._store.connect(self._path)  # outside the lock, because it may take seconds
        with self._lock:
            self._store.use(db)
            for entry in self._entries.values():
                self._store.note_use(entry)
            self._sync(self._clock())
            for key in self._pending_discards:
                if (old := self._entries.get(key)) is not None and old.row is not None:
                    self._drop(old)
                self._store.note_drop(*key)
            self._pending_discards.clear()
            self._store.flush()

    async def learn(
        self,
        request: str,
        result: RoutingResult,
        context: str = "",
        *,
        basis: Basis | None = None,
    ) -> None:
        """Store the answer with its basis, in place of an earlier one to the same request and
        context. The next ``flush`` or ``close`` writes it to the file.
        """
        text = normalise(request)
        self.follow()
        with self._lock:
            if (old := self._entries.get((text, context))) is not None:
                self._drop(old)
            self._make_room(self._max_entries - 1)
            signature = signature_of(text)
            kept = KeptAnswer(result, basis)
            entry = Entry(None, text, context, signature.core, self._clock(), kept)
            self._add(entry, signature)
            self._store.note_use(entry)

    def follow(self) -> None:
        """Take over the changes that other processes have made to the file. It is checked for them
        once a second at most."""
        now = self._clock()
        if not self._opened or abs(now - self._synced_at) >= _SYNC_INTERVAL_SECONDS:
            with self._lock:
                self._open()
                self._sync(now)

    def find(self, request: str, context: str = "") -> FuzzyMatch:
        """The best match for a request, or on a miss the nearest one that the gate rejected."""
        text = normalise(request)
        self.follow()
        with self._lock:
            now = self._clock()
            identical = self._entries.get((text, context))
            if identical is not None and (kept := self._answer(identical, now)) is not None:
                return FuzzyMatch(kept, text, 1.0, now - identical.learned, 1, is_own=True)
            return self._find_similar(signature_of(text), context, now)

    def keep_marks(self, catalog_version: str, marks: bytes) -> None:
        """Store the marks of a catalog that answers were decided over (``validation``)."""
        with self._lock:
            self._open()
            if catalog_version not in self._marks:
                if len(self._marks) >= _MAX_CATALOGS:
                    del self._marks[next(iter(self._marks))]
                self._marks[catalog_version] = marks
                self._store.keep_marks(catalog_version, marks)

    def marks_of(self, catalog_version: str) -> bytes | None:
        """The marks of a catalog; None when they are not known."""
        with self._lock:
            self._open()
            marks = self._marks.get(catalog_version)
            return self._store.marks_of(catalog_version) if marks is None else marks

    def discard(self, request: str, context: str) -> None:
        """Drop one answer. The next ``flush`` or ``close`` drops it from the file."""
        key = normalise(request), context
        with self._lock:
            if (entry := self._entries.get(key)) is not None:
                self._drop(entry)
            self._store.note_drop(*key)
            if self.fault and len(self._pending_discards) < _MAX_PENDING_DISCARDS:
                self._pending_discards[key] = None

    def flush(self) -> bool:
        """Write what was stored, used and dropped to the file.

        Returns:
            Whether this succeeded. If not, the next ``flush`` or ``close`` tries again. It waits
            for another process that writes for at most ``fuzzy_store.BUSY_SECONDS``.
        """
        with self._lock:
            return self._store.flush()

    def latest(self, limit: int) -> list[tuple[str, str, KeptAnswer, float]]:
        """The answers that were used last, newest first: the normalised request, the context, the
        answer, and its age in seconds."""
        with self._lock:
            self._open()
            now = self._clock()
            self._sync(now)
            found = []
            for entry in itertools.islice(reversed(self._entries.values()), limit):
                kept = self._store.answer(entry) if entry.kept is None else entry.kept
                if kept is not None and now - entry.learned < self._ttl_seconds:
                    found.append((entry.text, entry.context, kept, max(0.0, now - entry.learned)))
            return found

    def clear(self) -> bool:
        """Drop all entries, in the file too. The counts in ``stats`` are not reset.

        Returns:
            Whether the file, if there should be one, is empty now. One that cannot be written keeps
            its entries, and the next process finds them.
        """
        with self._lock:
            self._open()  # first, because it reads what is in the file
            self._entries.clear()
            self._index = Index()
            self._marks.clear()
            return self._store.clear()

    def close(self) -> None:
        """Write what is not yet written, and close the file. The cache then works in memory
        only."""
        with self._lock:
            self._store.close()

    def __len__(self) -> int:
        """Entries held. Expired ones count until they are looked up."""
        self.open()
        return len(self._entries)

    @property
    def stats(self) -> CacheStats:
        return CacheStats(
            len(self._entries), self._hits, self._misses, self._evictions, self._expirations
        )

    def _find_similar(self, signature: Signature, context: str, now: float) -> FuzzyMatch:
        passing: list[tuple[float, Entry]] = []
        compared = 0
        for entry in itertools.islice(self._index.matching(context, signature), _MAX_COMPARED):
            compared += 1
            similarity = Levenshtein.normalized_similarity(signature.core, entry.core)
            if similarity < self._threshold:
                continue
            if compare_signatures(signature, signature_of(entry.text)).passes:
                passing.append((similarity, entry))
        passing.sort(key=lambda match: match[0], reverse=True)
        for similarity, entry in passing:
            if (kept := self._answer(entry, now)) is not None:
                return FuzzyMatch(kept, entry.text, similarity, now - entry.learned, compared)
        self._misses += 1
        return self._explain_miss(signature, context, now, compared)

    def _explain_miss(
        self, signature: Signature, context: str, now: float, compared: int
    ) -> FuzzyMatch:
        near = (
            self._index.near(context, signature)
            if len(signature.core) <= _MAX_EXPLAINED_CHARACTERS
            else []
        )
        nearest = process.extractOne(
            signature.core,
            [entry.core for entry in near],
            scorer=Levenshtein.normalized_similarity,
            score_cutoff=self._threshold,
        )
        compared += len(near)
        if nearest is None:
            return FuzzyMatch(compared=compared)
        _, similarity, place = nearest
        entry = near[place]
        verdict = compare_signatures(signature, signature_of(entry.text))
        blocked = "both spellings are in use" if verdict.passes else verdict.reason
        age = max(0.0, now - entry.learned)
        return FuzzyMatch(None, entry.text, similarity, age, compared, blocked)

    def _answer(self, entry: Entry, now: float) -> KeptAnswer | None:
        """The entry's answer; None, and the entry is dropped, where it has expired or is gone from
        the file."""
        entry.learned = min(entry.learned, now)
        if now - entry.learned >= self._ttl_seconds:
            self._expirations += 1
            self._drop(entry)
            return None
        if entry.kept is None:
            entry.kept = self._store.answer(entry)
        if entry.kept is None:
            self._drop(entry)
            return None
        self._entries.move_to_end((entry.text, entry.context))
        self._store.note_use(entry)
        self._hits += 1
        return entry.kept

    def _add(self, entry: Entry, signature: Signature) -> None:
        self._entries[entry.text, entry.context] = entry
        self._index.add(entry, signature)

    def _drop(self, entry: Entry) -> None:
        self._forget(entry)
        if entry.row is not None:
            self._store.note_removal(entry.row)

    def _forget(self, entry: Entry) -> None:
        del self._entries[entry.text, entry.context]
        self._index.remove(entry, signature_of(entry.text))
        self._store.forget(entry)

    def _make_room(self, size: int) -> None:
        while len(self._entries) > size:
            self._drop(next(iter(self._entries.values())))
            self._evictions += 1

    def _sync(self, now: float) -> None:
        """Take over the changes that other processes have made to the file."""
        self._synced_at = now
        if (ids := self._store.ids_if_changed()) is None:
            return
        gone = [e for e in self._entries.values() if e.row is not None and e.row not in ids]
        for entry in gone:
            self._forget(entry)
            self._changed_elsewhere(entry.text, entry.context)
        if drops := self._store.new_drops():
            self._dropped_on_purpose(drops)
        self._read_new_rows(now)

    def _read_new_rows(self, now: float) -> None:
        """Read the rows that are not yet in memory. An entry that this process has not written yet
        is newer than that of the file, and will replace it there."""
        for row_id, text, context, learned in self._store.new_rows():
            old = self._entries.get((text, context))
            if old is not None and old.row in (None, row_id):
                continue
            # An entry from the far future would count as new at each start, and never expire.
            if not -CLOCK_ERROR_SECONDS <= now - learned < self._ttl_seconds:
                self._expirations += 1
                self._store.note_removal(row_id)
                continue
            self._changed_elsewhere(text, context)
            if old is not None:
                self._forget(old)
            signature = signature_of(text)
            entry = Entry(row_id, text, context, signature.core, min(learned, now), None)
            self._add(entry, signature)
        self._make_room(self._max_entries)
