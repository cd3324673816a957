"""Layer weights that learn from feedback: which layers prove useful for which type of query.

For each query type and layer two numbers are stored: how often somebody called the layer's answer
useful, and how often useless. Both halve every ``HALF_LIFE_SECONDS``, and their sum is at most
``MAX_EVIDENCE``, so that later feedback can change what earlier feedback has taught. The factor by
which the layer's weight is multiplied is

    0.5 + (useful + 2) / (useful + useless + 4)        in (0.5, 1.5), 1 without feedback,

the mean of a Beta distribution with a prior of two votes on either side, plus 0.5: one vote changes
little, no value has to be clipped, and without new feedback the factor returns to 1.

The numbers are stored in an SQLite file, so that feedback survives a crash and reaches every
process; without a path they are kept in memory.
"""

from __future__ import annotations

import logging
import sqlite3
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, NamedTuple

from router.errors import StoreError
from router.memory.model import QueryType
from router.storage.database import Schema, SharedConnection, UnusableFile, version_of

_log = logging.getLogger(__name__)

HALF_LIFE_SECONDS: Final = 30 * 24 * 3600.0
MAX_EVIDENCE: Final = 20.0
"""The largest sum of the votes on one type and layer."""
_PRIOR_VOTES: Final = 2.0
_TYPES: Final = frozenset(QueryType)
_SCHEMA: Final = Schema(
    (
        """
CREATE TABLE layer_feedback (
    type TEXT NOT NULL,
    layer TEXT NOT NULL,
    useful REAL NOT NULL,
    useless REAL NOT NULL,
    at REAL NOT NULL,
    PRIMARY KEY (type, layer)
) WITHOUT ROWID;
""",
    )
)


class _Votes(NamedTuple):
    """The votes, faded as of the time ``at``, in seconds since the epoch."""

    useful: float
    useless: float
    at: float


class LayerWeights:
    """The factors; see the module's text. Threads may share it. Raises StoreError, which names the
    file, if the file cannot be used."""

    def __init__(self, path: Path | None = None, *, clock: Callable[[], float] = time.time) -> None:
        try:
            self._file = SharedConnection(path, _SCHEMA, durable=True, may_be_read_only=True)
        except UnusableFile as error:
            reason = f"{error.reason}; layer weights hold feedback only, and may be deleted"
            raise UnusableFile(error.path, reason) from error
        self._clock = clock
        self._votes: dict[tuple[str, str], _Votes] = {}
        self._version = 0
        self._seen = -1
        self.close = self._file.close
        with self._file.turn() as db:
            self._load(db)

    def version(self) -> int:
        """A number that changes with every vote and reset, also of other processes."""
        # While another thread writes, the last known number is given: a recall must not wait for
        # it.
        seen = self._file.version()
        if seen is not None and seen != self._seen:
            try:
                with self._file.turn() as db:
                    self._load(db)
            except StoreError as error:  # the weights that were read before are still of use
                _log.warning("%s", error)
        return self._version

    def factor(self, types: Iterable[QueryType], layer: str) -> float:
        """What to multiply the layer's weight by for a query of these types; in (0.5, 1.5)."""
        now = self._clock()
        votes = [self._faded(self._votes.get((kind, layer)), now) for kind in types]
        if not votes:
            return 1.0
        useful = sum(vote.useful for vote in votes) / len(votes)
        useless = sum(vote.useless for vote in votes) / len(votes)
        return 0.5 + (useful + _PRIOR_VOTES) / (useful + useless + 2 * _PRIOR_VOTES)

    def factors(self) -> dict[str, dict[str, float]]:
        """By query type and layer, the factors that feedback has changed."""
        shown: dict[str, dict[str, float]] = {}
        for kind, layer in sorted(self._votes):
            shown.setdefault(kind, {})[layer] = self.factor((QueryType(kind),), layer)
        return shown

    def learn(self, types: Iterable[QueryType], layer: str, *, useful: bool) -> None:
        """Count one vote for each type. When it returns, the vote is on disk."""
        with self._file.transaction() as db:
            self._load(db)  # another process may have voted
            now = self._clock()
            for kind in types:
                vote = self._faded(self._votes.get((kind, layer)), now)
                vote = _capped(vote.useful + useful, vote.useless + (not useful), now)
                db.execute(
                    "INSERT OR REPLACE INTO layer_feedback VALUES (?, ?, ?, ?, ?)",
                    (kind.value, layer, *vote),
                )
        with self._file.turn() as db:
            self._load(db)

    def reset(self) -> None:
        """Forget all feedback: every factor is 1 again."""
        with self._file.turn() as db:
            db.execute("DELETE FROM layer_feedback")
            self._load(db)

    def _faded(self, vote: _Votes | None, now: float) -> _Votes:
        if vote is None:
            return _Votes(0.0, 0.0, now)
        # A clock that was set back must not make old votes count more.
        left = 0.5 ** (max(0.0, now - vote.at) / HALF_LIFE_SECONDS)
        return _Votes(vote.useful * left, vote.useless * left, now)

    def _load(self, db: sqlite3.Connection) -> None:
        self._seen = version_of(db)
        rows = db.execute("SELECT type, layer, useful, useless, at FROM layer_feedback")
        self._votes = {
            (kind, layer): _Votes(*numbers)
            for kind, layer, *numbers in rows.fetchall()
            if kind in _TYPES  # another version of this program may have other types
        }
        self._version += 1


def _capped(useful: float, useless: float, at: float) -> _Votes:
    share = min(1.0, MAX_EVIDENCE / (useful + useless))
    return _Votes(useful * share, useless * share, at)
