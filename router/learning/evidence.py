"""The evidence file: labels of requests, and the state of what is learnt from them.

A label says which skills are right for a request ("none" is a label, too), or that one skill is
wrong. It holds digests of the descriptions that the skills had at that time. So a label has a lower
weight when one of its skills has changed since, and none while one is not installed. A label "none"
holds a digest of all skills of that time: it is no correction any more when a skill is new, and has
no weight when most skills are new, as in another project.

A person's label outranks one from a file, and that outranks one of an LLM. But a label about skills
that have changed since does not hide a newer label of a weaker source: both are stored, and for
each catalog the one with the higher weight is used.

It is one SQLite file that the processes of a machine share. It holds the labels, the answers that
``feedback`` may refer to, fitted models, states, and the latest outcomes of local answers, which
the processes exchange.
"""

from __future__ import annotations

import hashlib
import json
import logging
import sqlite3
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from router.errors import InvalidRequest, StoreError
from router.numeric import finite
from router.request import MAX_REQUEST_CHARACTERS, check_text
from router.settings.settings import Settings
from router.skills.manifest import SkillManifest
from router.storage.database import Schema, SharedConnection, opened, version_of
from router.text import normalise

_log: Final = logging.getLogger(__name__)

MAX_EXAMPLES: Final = 20_000
MAX_ANSWERS: Final = 10_000
"""The number of latest answers that feedback can be given on."""
MAX_OUTCOMES: Final = 1_000
"""The number of latest outcomes in the file. A process that reads less often misses some."""
MAX_SKILLS: Final = 20
MAX_MODELS: Final = 4
"""The number of stored models, each for another catalog. Each takes some megabytes."""

MAX_OFFERS: Final = 50
"""The number of sets of skills that are remembered for "none" labels; each takes 20 bytes a
skill."""

CHANGED_SKILL_WEIGHT: Final = 0.5
"""The weight of a label one of whose skills has changed since."""
MAX_NEW_SHARE: Final = 0.5
"""A "none" label has no weight where more than this share of the skills is new."""


_SCHEMA: Final = Schema(
    (
        """
CREATE TABLE examples (
    key TEXT NOT NULL,              -- the normalised text
    wrong TEXT NOT NULL,            -- the skill that is wrong for it; '' where skills are right
    text TEXT NOT NULL,
    digests TEXT NOT NULL,          -- of the skills that are right (or wrong), JSON; of a label
                                    -- that names none, that of the skills there were, under ''
    source TEXT NOT NULL,
    rank INTEGER NOT NULL,
    learnt REAL NOT NULL,
    PRIMARY KEY (key, wrong)
);
CREATE INDEX examples_by_age ON examples (rank, learnt);
CREATE TABLE answers (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    answer TEXT NOT NULL            -- an Answer, JSON
);
CREATE TABLE states (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
""",
        """
CREATE TABLE models (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,       -- the skills and the encoder that the model is of
    model BLOB NOT NULL
);
""",
        """
CREATE TABLE offers (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    key TEXT NOT NULL UNIQUE,       -- a digest of the prints
    prints TEXT NOT NULL            -- of the skills that there were, JSON
);
""",
        """
CREATE TABLE labels (               -- as examples were, but with a label of each rank
    key TEXT NOT NULL,
    wrong TEXT NOT NULL,
    text TEXT NOT NULL,
    digests TEXT NOT NULL,
    source TEXT NOT NULL,
    rank INTEGER NOT NULL,
    learnt REAL NOT NULL,
    PRIMARY KEY (key, wrong, rank)
);
INSERT INTO labels SELECT * FROM examples;
DROP TABLE examples;
CREATE INDEX labels_by_age ON labels (rank, learnt);
""",
        """
CREATE TABLE outcomes (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    teller TEXT NOT NULL,           -- the process that tells it to the others
    key TEXT NOT NULL,              -- of the local model that it is about
    outcome TEXT NOT NULL           -- JSON
);
""",
    )
)


_ADD_LABEL: Final = (
    "INSERT INTO labels SELECT :key, :wrong, :text, :digests, :source, :rank, :learnt"
    " WHERE NOT EXISTS (SELECT 1 FROM labels"
    " WHERE key = :key AND wrong = :wrong AND rank > :rank AND learnt > :learnt)"
    " ON CONFLICT (key, wrong, rank) DO UPDATE SET text = excluded.text,"
    " digests = excluded.digests, source = excluded.source, learnt = excluded.learnt"
)
"""Adds a new label, in place of one for the same request and of the same rank."""
_MERGE_LABEL: Final = f"{_ADD_LABEL} WHERE excluded.learnt > learnt"
"""Adds a label from another file. Of two with the same rank, the later one is kept."""
_DELETE_OUTRANKED: Final = (
    "DELETE FROM labels WHERE key = :key AND wrong = :wrong AND rank < :rank AND learnt <= :learnt"
)
"""Deletes earlier labels of weaker sources, after a label was added."""


class _Row(NamedTuple):
    """A label as the file holds it; see ``_SCHEMA``."""

    key: str
    wrong: str
    text: str
    digests: str
    source: str
    rank: int
    learnt: float


class Source(StrEnum):
    """Where a label comes from, weakest source first."""

    LLM = "llm"
    """The LLM answered a request."""
    AUDIT = "audit"
    """The LLM was asked about a request that the local model had answered."""
    FILE = "file"
    """A file of examples, imported or beside a skill."""
    FEEDBACK = "feedback"
    """A person, or the caller's program."""

    @property
    def rank(self) -> int:
        """A higher rank outranks a lower one; LLM and audit have the same."""
        return {"llm": 0, "audit": 0, "file": 1, "feedback": 2}[self.value]


@dataclass(frozen=True, slots=True)
class Example:
    """One label.

    Attributes:
        text: the request.
        skills: the skills that are right, sorted; empty means that none is. With ``right`` False,
            the one skill that is wrong.
        right: False means that the skill in ``skills`` is wrong; other skills may be right or not.
        source: where it comes from.
        weight: in (0, 1]; less than 1 where a skill has changed since.
        learnt: the time of the label, in seconds since the epoch; None means now. A time in the
            future is taken as now.
        digests: of the descriptions that the skills had then, by name; for a "none" label, that of
            all skills, under an empty name. None means those of the current skills.
    """

    text: str
    skills: tuple[str, ...]
    right: bool
    source: Source
    weight: float = 1.0
    learnt: float | None = None
    digests: Mapping[str, str] | None = None


@dataclass(frozen=True, slots=True)
class PastAnswer:
    """What is needed of an earlier answer to take feedback on it.

    Attributes:
        text: the request.
        skills: the selected skills.
        context: the cache context of the request.
        stage: the result of ``confidence_source``.
        confidence: the confidence before calibration, in [0, 1].
        teaches: whether feedback may become a label: the answer depended on the text alone, and
            labels may be learnt from its scope.
        scope: of the request; None where it had none.
        was_question: whether the router asked back, which does not mean that no skill fits.
        version: the ``Learner.version`` of the answer; None where it was not stored.
    """

    text: str
    skills: tuple[str, ...]
    context: str
    stage: str
    confidence: float
    teaches: bool
    scope: str | None = None
    was_question: bool = False
    version: str | None = None


_RETRACTED_SKILLS: Final = ("",)
_RETRACTED_DIGESTS: Final = json.dumps({"": ""})
_NAMES_NONE_PREFIX: Final = '{"": '
"""The beginning of the digests of a "none" label, as JSON."""


def retraction(text: str) -> Example:
    """A label that replaces a person's "none" label for a request, here and in other processes, and
    has no effect itself: it names a skill that no catalog has."""
    return Example(text, _RETRACTED_SKILLS, True, Source.FEEDBACK)


def self_description(skill: SkillManifest) -> str:
    """A digest of the texts that say what a skill is for. Its instructions are not among them: when
    they change, its labels keep their weight."""
    parts = [
        skill.name,
        skill.description,
        *skill.routing_keywords,
        *skill.intents,
        *skill.examples,
    ]
    return hashlib.blake2b("\0".join(parts).encode("utf-8", "replace"), digest_size=16).hexdigest()


def _fingerprints_of(catalog: Mapping[str, SkillManifest]) -> list[str]:
    """The first digits of each skill's digest, sorted."""
    return sorted(self_description(skill)[:16] for skill in catalog.values())


def _digest_of_fingerprints(fingerprints: Sequence[str]) -> str:
    return hashlib.blake2b("".join(fingerprints).encode(), digest_size=16).hexdigest()


def evidence_file(directory: Path) -> Path:
    """The path of the evidence file in its folder."""
    return directory / "evidence.sqlite3"


def open_evidence(settings: Settings, *, clock: Callable[[], float]) -> EvidenceStore:
    """Open the evidence file of these settings. Earlier versions had it in the state folder, which
    may be deleted at any time; a file there is moved into this one.

    Raises:
        StoreError: it cannot be opened.
    """
    directory = settings.evidence_directory
    store = EvidenceStore(evidence_file(directory), clock=clock)
    earlier = evidence_file(settings.state_dir)
    if directory != settings.state_dir and earlier.exists():
        try:
            store.take_over(earlier)
        except BaseException:
            store.close()
            raise
    return store


def copy_evidence(directory: Path, to: Path) -> None:
    """Copy what a router has learnt to another folder, while it may be running. Nothing is done
    where there is nothing.

    Raises:
        StoreError: the evidence cannot be read.
    """
    source = evidence_file(directory)
    if not source.exists():
        return
    try:
        with (
            closing(sqlite3.connect(f"{source.resolve().as_uri()}?mode=ro", uri=True)) as original,
            closing(sqlite3.connect(evidence_file(to))) as copy,
        ):
            original.backup(copy)
    except sqlite3.Error as error:
        raise StoreError(source, f"cannot be read: {error}") from error


class EvidenceStore:
    """The evidence file; safe to use from several threads. Whatever reads or writes it raises
    ``StoreError`` where that cannot be done."""

    def __init__(self, path: Path, *, clock: Callable[[], float]) -> None:
        """Open or create the file.

        A file that is damaged or foreign is set aside, with an error in the log.

        Raises:
            StoreError: it cannot be opened, or a later version wrote it; the message names it.
        """
        self._clock = clock
        # Every row has cost an LLM call or a person's time, so it must survive a power failure.
        self._file = SharedConnection(
            path, _SCHEMA, durable=True, set_aside=lambda what: _log.error("%s", what)
        )
        self.close = self._file.close
        # The normalised requests with labels of people. Read again when others have written.
        self._requests_with_feedback: set[str] = set()
        self._feedback_version: int | None = None  # the version of the file; None before it is read
        self._process_id = uuid.uuid4().hex
        self._last_read_outcome = self._read("SELECT coalesce(max(number), 0) FROM outcomes")[0][0]

    @property
    def folder(self) -> Path:
        """The folder of the file."""
        return self._file.path.parent

    def take_over(self, earlier: Path) -> None:
        """Copy the contents of another evidence file into this one, and rename that file; see
        ``merge``. A file that cannot be read stays where it is, with an error in the log."""
        try:
            source = opened(earlier, _SCHEMA, durable=True)
            with closing(source):
                labels = [_Row(*row) for row in source.execute("SELECT * FROM labels")]
                answers = source.execute("SELECT id, answer FROM answers ORDER BY number")
                kept = answers.fetchall()
                states = source.execute("SELECT * FROM states").fetchall()
                offers = source.execute("SELECT key, prints FROM offers ORDER BY number").fetchall()
        except (StoreError, sqlite3.Error) as error:
            _log.error("evidence of an earlier version is not taken along: %s", error)
            return
        with self._file.transaction() as database:
            _upsert(database, _MERGE_LABEL, labels)
            database.executemany("INSERT OR IGNORE INTO answers (id, answer) VALUES (?, ?)", kept)
            database.executemany("INSERT OR IGNORE INTO states VALUES (?, ?)", states)
            database.executemany("INSERT OR IGNORE INTO offers (key, prints) VALUES (?, ?)", offers)
        with suppress(OSError):  # another process has renamed it; taking over twice does no harm
            earlier.rename(f"{earlier}.moved")

    def add(
        self,
        text: str,
        skills: Iterable[str],
        *,
        source: Source,
        catalog: Mapping[str, SkillManifest],
        right: bool = True,
    ) -> bool:
        """Store one label. It is on the disk when this returns.

        Returns:
            Whether it was stored. It is not where a label of a stronger source has the full weight.

        Raises:
            InvalidRequest: the text cannot be a request, there are too many skills, or, with
                ``right`` False, not exactly one.
        """
        return self.add_many([Example(text, tuple(skills), right, source)], catalog=catalog) == 1

    def add_many(self, examples: Sequence[Example], *, catalog: Mapping[str, SkillManifest]) -> int:
        """Store labels, all or none; see ``add``. Their weights are not stored.

        Returns:
            The number of labels that were stored.
        """
        fingerprints = (
            [] if all(example.skills for example in examples) else _fingerprints_of(catalog)
        )
        rows = [
            self._row(example, catalog, _digest_of_fingerprints(fingerprints))
            for example in examples
        ]
        weight = self._weighing(catalog)
        outranks = "SELECT digests FROM labels WHERE key = ? AND wrong = ? AND rank > ?"
        counting = [
            row
            for row in rows
            if not any(
                weight(json.loads(digests)) == 1.0
                for (digests,) in self._read(outranks, row.key, row.wrong, row.rank)
            )
        ]
        earlier = any(example.learnt is not None for example in examples)
        return self._write_labels(_MERGE_LABEL if earlier else _ADD_LABEL, counting, fingerprints)

    def _row(self, example: Example, catalog: Mapping[str, SkillManifest], offer: str) -> _Row:
        check_text("request", example.text, MAX_REQUEST_CHARACTERS)
        names = sorted(set(example.skills))
        if len(names) > MAX_SKILLS:
            raise InvalidRequest(f"skills: {len(names)}; at most {MAX_SKILLS}")
        if not example.right and len(names) != 1:
            raise InvalidRequest("skills: a label that says what is wrong names one skill")
        digests = {
            name: self_description(catalog[name]) if name in catalog else "" for name in names
        } or {"": offer}
        if example.digests is not None:
            if example.digests.keys() != digests.keys():
                raise InvalidRequest("digests: they are of other skills than the label names")
            digests = {name: example.digests[name] for name in digests}
        now = self._clock()
        return _Row(
            normalise(example.text),
            "" if example.right else names[0],
            example.text,
            json.dumps(digests),
            example.source.value,
            example.source.rank,
            now if example.learnt is None else min(example.learnt, now),
        )

    def examples(self, catalog: Mapping[str, SkillManifest]) -> list[Example]:
        """The labels that have a weight over a catalog, oldest first; see the module's
        docstring."""
        weight = self._weighing(catalog)
        found: dict[tuple[str, str], Example] = {}
        for key, text, wrong, digests, source, _ in self._rows():
            if counts := weight(digests):
                label = Example(text, _named(digests), not wrong, Source(source), counts)
                other = found.get((key, wrong))
                if other is None or _strength(other) < _strength(label):
                    found.pop((key, wrong), None)  # so that the newer one comes last
                    found[key, wrong] = label
        return list(found.values())

    def _weighing(
        self, catalog: Mapping[str, SkillManifest]
    ) -> Callable[[Mapping[str, str]], float]:
        """A function that gives the weight of a label over a catalog, from its digests."""
        described = cache(lambda name: self_description(catalog[name]))
        fingerprints = cache(lambda: _fingerprints_of(catalog))
        new = cache(lambda offer: self._new_since(offer, fingerprints()))

        def weight(digests: Mapping[str, str]) -> float:
            if "" in digests:
                counts, same = new(digests[""]) <= MAX_NEW_SHARE, new(digests[""]) == 0
            else:
                counts = catalog.keys() >= digests.keys()
                same = counts and all(described(one) == digest for one, digest in digests.items())
            return (1.0 if same else CHANGED_SKILL_WEIGHT) if counts else 0.0

        return weight

    def _new_since(self, offer: str, fingerprints: Sequence[str]) -> float:
        """The share of the skills that are new or changed since a "none" label was given; 1 where
        the skills of that time are not known."""
        if offer == _digest_of_fingerprints(fingerprints):
            return 0.0
        for (then,) in self._read("SELECT prints FROM offers WHERE key = ?", offer):
            return len(set(fingerprints).difference(json.loads(then))) / max(len(fingerprints), 1)
        return 1.0

    def may_be_corrected(self, text: str) -> bool:
        """Whether ``correction`` must be called: False only where no person gave a label for this
        request, in any process. It takes some microseconds, without a thread."""
        version = self._file.version()
        return (
            version is None
            or version != self._feedback_version
            or (normalise(text) in self._requests_with_feedback)
        )

    def correction(self, text: str, catalog: Mapping[str, SkillManifest]) -> tuple[str, ...] | None:
        """The skills that a person named as right for a request. None where nobody did, where one
        of them was called wrong later or is removed or changed, and, for "none", where a skill is
        new.
        """
        key = normalise(text)
        with self._file.turn() as database:
            self._read_requests_with_feedback(database)
            rows = database.execute(
                "SELECT wrong, digests FROM labels WHERE key = ? AND source = ? ORDER BY learnt",
                (key, Source.FEEDBACK.value),
            ).fetchall()
        right: dict[str, str] | None = None
        for wrong, digests in rows:
            if not wrong:
                right = json.loads(digests)
            elif right is not None and wrong in right:
                right = None
        if right is None:
            return None
        if "" in right:
            return None if self._new_since(right[""], _fingerprints_of(catalog)) else ()
        if any(
            name not in catalog or self_description(catalog[name]) != digest
            for name, digest in right.items()
        ):
            return None
        return tuple(right)

    def _read_requests_with_feedback(self, database: sqlite3.Connection) -> None:
        """Read again which requests have labels of people, if another process has written."""
        version = version_of(database)  # before the rows: a later write then is another version
        if version != self._feedback_version:
            rows = database.execute(
                "SELECT key FROM labels WHERE rank = ?", (Source.FEEDBACK.rank,)
            )
            self._requests_with_feedback = {key for (key,) in rows}
            self._feedback_version = version

    def all(self) -> list[Example]:
        """Every label, whatever the catalog, oldest first, with its time and digests, so that
        ``add_many`` can copy them to another file."""
        return [
            Example(text, _named(digests), not wrong, Source(source), 1.0, learnt, digests)
            for _, text, wrong, digests, source, learnt in self._rows()
        ]

    def _rows(self) -> Iterator[tuple[str, str, str, dict[str, str], str, float]]:
        rows = self._read(
            "SELECT key, text, wrong, digests, source, learnt FROM labels WHERE digests != ?"
            " ORDER BY learnt, key",
            _RETRACTED_DIGESTS,
        )
        for key, text, wrong, digests, source, learnt in rows:
            yield key, text, wrong, json.loads(digests), source, learnt

    def labels(self, keys: Collection[tuple[str, str]] | None = None) -> list[list[Any]]:
        """Labels as plain JSON types, for ``merge`` in another file; oldest first.

        Args:
            keys: normalised text, and the skill that is wrong or an empty text; None means all.
        """
        rows = "SELECT key, wrong, text, digests, source, rank, learnt FROM labels"
        if keys is None:
            return [list(row) for row in self._read(f"{rows} ORDER BY learnt, key")]
        return [
            list(row)
            for key in keys
            for row in self._read(f"{rows} WHERE key = ? AND wrong = ?", *key)
        ]

    def merge(
        self, labels: Iterable[Sequence[Any]], *, catalog: Mapping[str, SkillManifest]
    ) -> int:
        """Store labels of another file. Of two labels for one request, the stronger source is kept,
        and the later one among equals. Malformed labels are left out. A "none" label has a weight
        only where it was given over the skills of the catalog.

        Returns:
            The number of labels that were stored.
        """
        rows = [row for label in labels if (row := _row_from_json(label)) is not None]
        names_none = any(row.digests.startswith(_NAMES_NONE_PREFIX) for row in rows)
        return self._write_labels(
            _MERGE_LABEL, rows, _fingerprints_of(catalog) if names_none else []
        )

    def _write_labels(
        self, statement: str, rows: Sequence[_Row], fingerprints: Sequence[str]
    ) -> int:
        """Write labels, all or none; returns the number of those written. Where there are too many,
        the oldest of the weakest source are deleted."""
        with self._file.transaction() as database:
            changed = _upsert(database, statement, rows)
            database.execute(
                "DELETE FROM labels WHERE (key, wrong, rank) IN (SELECT key, wrong, rank FROM"
                " labels ORDER BY rank DESC, learnt DESC, key, wrong LIMIT -1 OFFSET ?)",
                (MAX_EXAMPLES,),
            )
            _store_offer(database, rows, fingerprints)
            self._requests_with_feedback.update(
                row.key for row in rows if row.rank == Source.FEEDBACK.rank
            )
        return changed

    def exchange(self, key: str, outcome: Sequence[Any]) -> list[Any]:
        """Write an outcome of a local answer for the other processes that share the file, as plain
        JSON types. Returns the outcomes of the same local model that they have written since the
        last call, or since the file was opened."""
        with self._file.transaction() as database:
            [[own]] = database.execute(
                "INSERT INTO outcomes (teller, key, outcome) VALUES (?, ?, ?) RETURNING number",
                (self._process_id, key, json.dumps(outcome)),
            ).fetchall()
            outcomes = database.execute(
                "SELECT outcome FROM outcomes"
                " WHERE number > ? AND teller != ? AND key = ? ORDER BY number",
                (self._last_read_outcome, self._process_id, key),
            ).fetchall()
            database.execute("DELETE FROM outcomes WHERE number <= ?", (own - MAX_OUTCOMES,))
            self._last_read_outcome = own
        return [json.loads(row) for (row,) in outcomes]

    def counts(self) -> dict[Source, int]:
        """The number of labels by source."""
        rows = self._read(
            "SELECT source, count(*) FROM labels WHERE digests != ? GROUP BY source",
            _RETRACTED_DIGESTS,
        )
        found = dict(rows)
        return {source: found.get(source.value, 0) for source in Source}

    def keep_answers(self, answers: Mapping[str, PastAnswer]) -> None:
        """Store answers by id, so that feedback can be given on them later."""
        rows = [(answer_id, json.dumps(asdict(answer))) for answer_id, answer in answers.items()]
        with self._file.transaction() as database:
            database.executemany("INSERT OR REPLACE INTO answers (id, answer) VALUES (?, ?)", rows)
            database.execute(
                "DELETE FROM answers WHERE number <= (SELECT max(number) FROM answers) - ?",
                (MAX_ANSWERS,),
            )

    def answer(self, answer_id: str) -> PastAnswer | None:
        """An earlier answer; None where it is unknown or was deleted as too old."""
        for (text,) in self._read("SELECT answer FROM answers WHERE id = ?", answer_id):
            fields = json.loads(text)
            return PastAnswer(**fields | {"skills": tuple(fields["skills"])})
        return None

    @property
    def now(self) -> float:
        """Seconds, by the clock of the file."""
        return self._clock()

    def state(self, name: str) -> Any:
        """The state with a name, as plain JSON types; None without one."""
        for (value,) in self._read("SELECT value FROM states WHERE name = ?", name):
            return json.loads(value)
        return None

    def states(self, start: str) -> dict[str, Any]:
        """The states whose names begin with ``start``, by the rest of the name."""
        query = "SELECT name, value FROM states WHERE name >= ? AND name < ?"
        rows = self._read(query, start, f"{start}\U0010ffff")
        return {name.removeprefix(start): json.loads(value) for name, value in rows}

    def drop_states(self, end: str) -> None:
        """Delete the states whose names end with ``end``."""
        with self._file.transaction() as database:
            database.execute("DELETE FROM states WHERE substr(name, -?) = ?", (len(end), end))

    def keep_states(self, states: Mapping[str, Any]) -> None:
        """Store states, which are plain JSON types, by name, all or none."""
        rows = [(name, json.dumps(value, allow_nan=False)) for name, value in states.items()]
        with self._file.transaction() as database:
            database.executemany("INSERT OR REPLACE INTO states VALUES (?, ?)", rows)

    def model(self, key: str) -> bytes | None:
        """The stored model with a key; None without one."""
        for (model,) in self._read("SELECT model FROM models WHERE key = ?", key):
            return bytes(model)
        return None

    def keep_model(self, key: str, model: bytes) -> None:
        """Store a fitted model by its key, in place of an earlier one."""
        with self._file.transaction() as database:
            database.execute(
                "INSERT OR REPLACE INTO models (key, model) VALUES (?, ?)", (key, model)
            )
            database.execute(
                "DELETE FROM models WHERE number NOT IN"
                " (SELECT number FROM models ORDER BY number DESC LIMIT ?)",
                (MAX_MODELS,),
            )

    def reset(self) -> int:
        """Delete all labels and what was fitted to them; returns the number of labels."""
        with self._file.transaction() as database:
            number = database.execute("DELETE FROM labels").rowcount
            database.execute("DELETE FROM states")
            database.execute("DELETE FROM models")
            database.execute("DELETE FROM offers")
            database.execute("DELETE FROM outcomes")
            return number

    def _read(self, query: str, *values: object) -> list[tuple[Any, ...]]:
        with self._file.turn() as database:
            return database.execute(query, values).fetchall()


def _row_from_json(label: Sequence[Any]) -> _Row | None:
    """A label of another process as a row; None where it is malformed."""
    try:
        _, wrong, text, digests, source, _, learnt = label
        check_text("request", text, MAX_REQUEST_CHARACTERS)
        named = {str(name): str(digest) for name, digest in json.loads(digests).items()}
        if len(named) > MAX_SKILLS or not isinstance(wrong, str):
            return None
        if ("" in named and len(named) > 1) or (wrong and [*named] != [wrong]):
            return None
        origin, when = Source(source), finite(learnt)
        if when is None:
            return None
        return _Row(
            normalise(text), wrong, text, json.dumps(named), origin.value, origin.rank, when
        )
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def _named(digests: Mapping[str, str]) -> tuple[str, ...]:
    """The skills that a label names."""
    return tuple(name for name in digests if name)


def _strength(label: Example) -> tuple[float, int]:
    """The order of two labels for one text: the larger one is used."""
    return label.weight, label.source.rank


def _upsert(database: sqlite3.Connection, statement: str, rows: Iterable[_Row]) -> int:
    """Write labels, each in place of earlier ones that it outranks; returns the number written."""
    changed = 0
    for row in rows:
        put = database.execute(statement, row._asdict()).rowcount
        if put:
            database.execute(_DELETE_OUTRANKED, row._asdict())
        changed += put
    return changed


def _store_offer(
    database: sqlite3.Connection, rows: Iterable[_Row], fingerprints: Sequence[str]
) -> None:
    """Store the fingerprints of the skills, if one of the labels is a "none" label over them."""
    key = _digest_of_fingerprints(fingerprints)
    given_over_these = json.dumps({"": key})
    if all(row.digests != given_over_these for row in rows):
        return
    kept = "INSERT OR IGNORE INTO offers (key, prints) VALUES (?, ?)"
    if database.execute(kept, (key, json.dumps(fingerprints))).rowcount:
        database.execute(
            "DELETE FROM offers WHERE number NOT IN"
            " (SELECT number FROM offers ORDER BY number DESC LIMIT ?)",
            (MAX_OFFERS,),
        )
