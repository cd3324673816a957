"""The exact cache: answers identical requests in a few dictionary look-ups.

The key is the normalised text and the cache context, which is a digest of everything else that
changes the answer (available skills, history, scope, settings), except the catalog: whether an
answer is valid over the current skills is checked when it is read (``validation``).

``get`` is called more often than anything else in the router, so two things make it fast:

* Each entry is also stored under the exact texts (*spellings*) of its requests, so that a request
  that is repeated letter for letter is not even normalised.
* A hit only records that the entry was used. The next ``set`` applies these records to the LRU
  order of ``cachetools``. The last ``8 * max_entries`` hits are recorded.

One event loop and one synchronous caller may share a cache. Whatever changes an entry takes a lock.
A hit takes none, because each of its steps is a single operation of the interpreter.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import islice
from typing import Final, Generic, TypeVar

from cachetools import LRUCache

from router.text import normalise

T = TypeVar("T")

_MAX_SPELLINGS: Final = 8
"""Spellings that are stored for one entry. A request in a further spelling is normalised each
time."""
_BYTES_BESIDE_TEXTS: Final = 3_000
"""The estimated size of an entry without the texts of its requests."""


@dataclass(frozen=True, slots=True)
class CacheStats:
    """Counts of one cache since it was made; ``entries`` is the present size."""

    entries: int
    hits: int
    misses: int
    evictions: int
    expirations: int


@dataclass(slots=True, eq=False)
class _Entry(Generic[T]):
    key: tuple[str, str]
    expires_at: float
    answer: T
    size: int
    spellings: list[str] = field(default_factory=list)


class ExactCache(Generic[T]):
    """An LRU cache of answers by normalised text and context, with a time to live.

    Args:
        max_entries: capacity, at least 1.
        max_bytes: capacity in estimated bytes: ``_BYTES_BESIDE_TEXTS`` and the texts of each entry.
            An entry that is larger by itself is not stored.
        ttl_seconds: an entry expires this long after its ``set``.
        clock: seconds that never run backwards, such as ``time.monotonic``.
    """

    def __init__(
        self,
        max_entries: int = 1000,
        ttl_seconds: float = 7 * 24 * 3600,
        clock: Callable[[], float] = time.monotonic,
        *,
        max_bytes: int = 64 * 2**20,
    ) -> None:
        if max_entries < 1 or ttl_seconds <= 0:
            raise ValueError("max_entries must be at least 1 and ttl_seconds above 0")
        self._ttl_seconds = ttl_seconds
        self._clock = clock
        self._lock = threading.Lock()
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: LRUCache[tuple[str, str], _Entry[T]] = LRUCache(max_entries)
        self._by_spelling: dict[str, dict[str, _Entry[T]]] = {}
        self._used: deque[_Entry[T]] = deque(maxlen=8 * max_entries)
        self._record_use = self._used.append
        self._hits = self._misses = self._evictions = self._expirations = 0

    def get(self, request: str, context: str = "") -> T | None:
        """The answer to this request in this context, or None where there is none or it has
        expired.

        It is the stored object itself, not a copy. O(1).
        """
        try:
            entry = self._by_spelling[context][request]
        except KeyError:
            found = self._find_new_spelling(request, context)
            if found is None:
                return None
            entry = found
        if self._clock() >= entry.expires_at:
            self._expire(entry)
            return None
        self._record_use(entry)
        self._hits += 1
        return entry.answer

    def set(self, request: str, answer: T, context: str = "") -> None:
        """Store the answer in place of an earlier one to the same request and context. O(1)."""
        key = (normalise(request), context)
        size = _BYTES_BESIDE_TEXTS + sys.getsizeof(key[0])
        entry = _Entry(key, self._clock() + self._ttl_seconds, answer, size)
        with self._lock:
            self._apply_uses()
            if (old := self._entries.pop(key, None)) is not None:
                self._remove_spellings(old)
            if size > self._max_bytes:
                return
            while (
                len(self._entries) >= self._entries.maxsize or self._bytes + size > self._max_bytes
            ):
                self._remove_spellings(self._entries.popitem()[1])
                self._evictions += 1
            self._entries[key] = entry
            self._bytes += size
            self._add_spelling(entry, request)

    def discard(self, request: str, context: str) -> None:
        """Drop one answer."""
        with self._lock:
            if (entry := self._entries.pop((normalise(request), context), None)) is not None:
                self._remove_spellings(entry)

    def latest(self, limit: int) -> list[tuple[str, str, T, float]]:
        """The answers that were stored last, newest first: the normalised request, the context, the
        answer, and its age in seconds."""
        with self._lock:
            now, entries = self._clock(), list(self._entries.values())
        alive = (entry for entry in reversed(entries) if now < entry.expires_at)
        return [
            (*entry.key, entry.answer, now - (entry.expires_at - self._ttl_seconds))
            for entry in islice(alive, limit)
        ]

    def clear(self) -> None:
        """Drop all entries. The counts in ``stats`` are not reset."""
        with self._lock:
            self._entries.clear()
            self._by_spelling.clear()
            self._used.clear()
            self._bytes = 0

    def __len__(self) -> int:
        """Entries held. Expired ones count until they are looked up."""
        return len(self._entries)

    @property
    def stats(self) -> CacheStats:
        return CacheStats(
            len(self._entries), self._hits, self._misses, self._evictions, self._expirations
        )

    def _find_new_spelling(self, request: str, context: str) -> _Entry[T] | None:
        with self._lock:
            entry = self._entries.get((normalise(request), context))
            if entry is None:
                self._misses += 1
            else:
                self._add_spelling(entry, request)
            return entry

    def _expire(self, entry: _Entry[T]) -> None:
        with self._lock:
            self._misses += 1
            if self._entries.get(entry.key) is entry:  # else it has just been replaced
                del self._entries[entry.key]
                self._remove_spellings(entry)
                self._expirations += 1

    def _apply_uses(self) -> None:
        """Bring the LRU order up to date with the recorded hits."""
        while self._used:
            self._entries.get(self._used.popleft().key)

    def _add_spelling(self, entry: _Entry[T], request: str) -> None:
        size = sys.getsizeof(request)
        if len(entry.spellings) < _MAX_SPELLINGS and self._bytes + size <= self._max_bytes:
            self._bytes += size
            entry.size += size
            entry.spellings.append(request)
            self._by_spelling.setdefault(entry.key[1], {})[request] = entry

    def _remove_spellings(self, entry: _Entry[T]) -> None:
        self._bytes -= entry.size
        context = entry.key[1]
        spellings = self._by_spelling.get(context, {})
        for spelling in entry.spellings:
            spellings.pop(spelling, None)
        if not spellings:
            self._by_spelling.pop(context, None)
