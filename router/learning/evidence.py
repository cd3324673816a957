"""What the router was told about requests: labelled examples, durable, bounded, one a text.

A label says which skills are right for a request ("none" is a label too), or that one skill is
wrong. It carries digests of what the skills said of themselves at that time, so that evidence about
a skill that has changed since counts less, and evidence about one that is gone does not count until
it is back. That no skill is right was said over the skills that there were: it is no correction
where there is a new one, and no evidence at all over the skills of another project.

A person outranks a file, and a file an LLM. But a label about skills that have changed since does
not hide a later label of a weaker source: both are kept, and for each catalog the one counts that
holds best.

One SQLite file, shared by the processes of a machine: examples, the answers that ``feedback`` may
speak about, the states of what is fitted on all this, and the latest outcomes of local answers, of
which the processes tell each other.
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
"""Answers that feedback can still be given on."""
MAX_OUTCOMES: Final = 1_000
"""Outcomes that processes which share the file may be behind."""
MAX_SKILLS: Final = 20
MAX_MODELS: Final = 4
"""How many models are kept, each for another catalog. Each takes some megabytes."""

MAX_OFFERS: Final = 50
"""Sets of skills that labels which name none were given over; each takes 20 bytes a skill."""

AGED_WEIGHT: Final = 0.5
"""The weight of an example that speaks of a skill which has changed since."""
OTHERS: Final = 0.5
"""Where more than this share of the skills is new, a label that names none is no evidence."""


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


_ADD: Final = (
    "INSERT INTO labels SELECT :key, :wrong, :text, :digests, :source, :rank, :learnt"
    " WHERE NOT EXISTS (SELECT 1 FROM labels"
    " WHERE key = :key AND wrong = :wrong AND rank > :rank AND learnt > :learnt)"
    " ON CONFLICT (key, wrong, rank) DO UPDATE SET text = excluded.text,"
    " digests = excluded.digests, source = excluded.source, learnt = excluded.learnt"
)
"""A label that was given just now: it replaces an equal one."""
_MERGE: Final = f"{_ADD} WHERE excluded.learnt > learnt"
"""A label from another file: among equal ones the later one counts."""
_OUTRANK: Final = (
    "DELETE FROM labels WHERE key = :key AND wrong = :wrong AND rank < :rank AND learnt <= :learnt"
)
"""A label that was just put replaces earlier ones of weaker sources."""


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
    """Who said so, weakest first."""

    LLM = "llm"
    """The LLM decided a request that the router could not."""
    AUDIT = "audit"
    """The LLM was asked about a request that the router had answered by itself."""
    FILE = "file"
    """A file of examples, imported or beside a skill."""
    FEEDBACK = "feedback"
    """A person, or the caller's program."""

    @property
    def rank(self) -> int:
        """Higher outranks lower; LLM and audit are the same source."""
        return {"llm": 0, "audit": 0, "file": 1, "feedback": 2}[self.value]


@dataclass(frozen=True, slots=True)
class Example:
    """One label.

    Attributes:
        text: the request.
        skills: the skills that are right, sorted; empty means that none is. Of a label that says
            what is wrong: that one skill.
        right: False means that the skill in ``skills`` is wrong, and says nothing about others.
        source: who said so.
        weight: in (0, 1]; less than 1 when a skill has changed since.
        learnt: when it was given, in seconds since the epoch; None means now. It is never later.
        digests: of what the skills said of themselves then, by name, from which the weight follows;
            of a label that names none, that of the skills there were, under an empty name. None
            means that they say the same now.
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
    """An earlier answer, as far as feedback can be about it.

    Attributes:
        text: the request.
        skills: what was selected.
        context: what its cache entries are filed under.
        stage: the stage that answered.
        confidence: that stage's own, in [0, 1], before calibration.
        teaches: whether the request's text alone determined the answer.
        scope: of the request; None where it had none.
        was_question: whether it asked back, which names no skill and does not say that none fits.
        version: of the decision, whose confidence it is; None where that was not noted.
    """

    text: str
    skills: tuple[str, ...]
    context: str
    stage: str
    confidence: float
    teaches: bool
    scope: str | None = None
    was_question: bool = False
    version: int | None = None


_NO_SKILL: Final = ("",)
_NO_DIGESTS: Final = json.dumps({"": ""})
_OF_NONE: Final = '{"": '
"""What the digests of a label that names no skill begin with."""


def taken_back(text: str) -> Example:
    """A label that takes the place of what a person said is right for a request, here and in other
    processes, and says nothing itself: it names a skill that no catalog holds."""
    return Example(text, _NO_SKILL, True, Source.FEEDBACK)


def self_description(skill: SkillManifest) -> str:
    """Digest of what a skill says it is for. Its instructions may change without making what is
    known about its requests any older."""
    said = [
        skill.name,
        skill.description,
        *skill.routing_keywords,
        *skill.intents,
        *skill.examples,
    ]
    return hashlib.blake2b("\0".join(said).encode("utf-8", "replace"), digest_size=16).hexdigest()


def _prints_of(catalog: Mapping[str, SkillManifest]) -> list[str]:
    """The beginning of each skill's digest, in order."""
    return sorted(self_description(skill)[:16] for skill in catalog.values())


def _key_of(prints: Sequence[str]) -> str:
    return hashlib.blake2b("".join(prints).encode(), digest_size=16).hexdigest()


def evidence_file(directory: Path) -> Path:
    """The file in a folder for what is learnt."""
    return directory / "evidence.sqlite3"


def open_evidence(settings: Settings, *, clock: Callable[[], float]) -> EvidenceStore:
    """The evidence of these settings. Earlier versions kept it in the state folder, which may be
    deleted at any time: what is there is taken along.

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
        # An LLM call was paid for every row: it must survive the power as well.
        self._file = SharedConnection(
            path, _SCHEMA, durable=True, set_aside=lambda what: _log.error("%s", what)
        )
        self.close = self._file.close
        # What others write is read when it is asked for, and what this process writes is added.
        self._with_feedback: set[str] = set()
        self._feedback_of: int | None = None  # the version of the file; None before it is read
        self._teller = uuid.uuid4().hex
        self._heard = self._read("SELECT coalesce(max(number), 0) FROM outcomes")[0][0]

    @property
    def folder(self) -> Path:
        """The folder of the file."""
        return self._file.path.parent

    def take_over(self, earlier: Path) -> None:
        """Take along what another file of this kind holds, and rename that file. Where both speak
        about a request, the stronger source counts, and the later one among equals.

        A file that cannot be read is left where it is, with an error in the log."""
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
            _write(database, _MERGE, labels)
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
        """Remember one label, durably before it returns.

        Returns:
            Whether it was new or outranked or renewed what was known; a weaker source changes
            nothing, unless what is known speaks of skills as they no longer are.

        Raises:
            InvalidRequest: the text cannot be a request, there are too many skills, or, of a label
                that says what is wrong, not exactly one.
        """
        return self.add_many([Example(text, tuple(skills), right, source)], catalog=catalog) == 1

    def add_many(self, examples: Sequence[Example], *, catalog: Mapping[str, SkillManifest]) -> int:
        """Remember labels, all or none; see ``add``. Their weights are not kept.

        Returns:
            How many changed what was known.
        """
        prints = [] if all(example.skills for example in examples) else _prints_of(catalog)
        rows = [self._row(example, catalog, _key_of(prints)) for example in examples]
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
        return self._put(_MERGE if earlier else _ADD, counting, prints)

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
        """The labels that count over a catalog, oldest first: it holds all their skills, or, of a
        label that names none, not mostly others than those it was given over."""
        weight = self._weighing(catalog)
        found: dict[tuple[str, str], Example] = {}
        for key, text, wrong, digests, source, _ in self._rows():
            if counts := weight(digests):
                label = Example(text, _named(digests), not wrong, Source(source), counts)
                other = found.get((key, wrong))
                if other is None or _strength(other) < _strength(label):
                    found.pop((key, wrong), None)  # or the newer one had the older one's place
                    found[key, wrong] = label
        return list(found.values())

    def _weighing(
        self, catalog: Mapping[str, SkillManifest]
    ) -> Callable[[Mapping[str, str]], float]:
        """What a label with some digests weighs over a catalog; 0 where it does not count."""
        described = cache(lambda name: self_description(catalog[name]))
        prints = cache(lambda: _prints_of(catalog))
        new = cache(lambda offer: self._new_since(offer, prints()))

        def weight(digests: Mapping[str, str]) -> float:
            if "" in digests:
                counts, same = new(digests[""]) <= OTHERS, new(digests[""]) == 0
            else:
                counts = catalog.keys() >= digests.keys()
                same = counts and all(described(one) == said for one, said in digests.items())
            return (1.0 if same else AGED_WEIGHT) if counts else 0.0

        return weight

    def _new_since(self, offer: str, prints: Sequence[str]) -> float:
        """The share of the skills that were not there, or were others, when a label was given that
        names none: 1 where it is not known which were there."""
        if offer == _key_of(prints):
            return 0.0
        for (then,) in self._read("SELECT prints FROM offers WHERE key = ?", offer):
            return len(set(prints).difference(json.loads(then))) / max(len(prints), 1)
        return 1.0

    def may_be_corrected(self, text: str) -> bool:
        """Whether ``correction`` has to be asked: False only where no person gave a label for this
        request, in any process. It takes some microseconds and waits for no thread."""
        version = self._file.version()
        return (
            version is None
            or version != self._feedback_of
            or (normalise(text) in self._with_feedback)
        )

    def correction(self, text: str, catalog: Mapping[str, SkillManifest]) -> tuple[str, ...] | None:
        """The skills that a person said are right for a request; None where nobody did, or called
        one of them wrong since, or where one is gone or has changed, or, where none was right, a
        skill is new."""
        key = normalise(text)
        with self._file.turn() as database:
            self._follow(database)
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
            return None if self._new_since(right[""], _prints_of(catalog)) else ()
        if any(
            name not in catalog or self_description(catalog[name]) != digest
            for name, digest in right.items()
        ):
            return None
        return tuple(right)

    def _follow(self, database: sqlite3.Connection) -> None:
        """Take over which requests have labels of people, where another process has written."""
        version = version_of(database)  # first: what is written meanwhile is another version
        if version != self._feedback_of:
            rows = database.execute(
                "SELECT key FROM labels WHERE rank = ?", (Source.FEEDBACK.rank,)
            )
            self._with_feedback = {key for (key,) in rows}
            self._feedback_of = version

    def all(self) -> list[Example]:
        """Every label, whatever the catalog, oldest first, with its time and digests; ``add_many``
        takes them in elsewhere as they are here."""
        return [
            Example(text, _named(digests), not wrong, Source(source), 1.0, learnt, digests)
            for _, text, wrong, digests, source, learnt in self._rows()
        ]

    def _rows(self) -> Iterator[tuple[str, str, str, dict[str, str], str, float]]:
        rows = self._read(
            "SELECT key, text, wrong, digests, source, learnt FROM labels WHERE digests != ?"
            " ORDER BY learnt, key",
            _NO_DIGESTS,
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
        """Take in labels of another file. Where both speak about a request, the stronger source
        counts, and the later one among equals. What cannot be read is left out. A label that names
        no skill counts where it was given over the skills of the catalog.

        Returns:
            How many changed what was known.
        """
        rows = [row for label in labels if (row := _checked(label)) is not None]
        names_none = any(row.digests.startswith(_OF_NONE) for row in rows)
        return self._put(_MERGE, rows, _prints_of(catalog) if names_none else [])

    def _put(self, statement: str, rows: Sequence[_Row], prints: Sequence[str]) -> int:
        """Write labels, all or none; how many changed what was known. Where there are too many, the
        oldest of the weakest source go."""
        with self._file.transaction() as database:
            changed = _write(database, statement, rows)
            database.execute(
                "DELETE FROM labels WHERE (key, wrong, rank) IN (SELECT key, wrong, rank FROM"
                " labels ORDER BY rank DESC, learnt DESC, key, wrong LIMIT -1 OFFSET ?)",
                (MAX_EXAMPLES,),
            )
            _keep_offer(database, rows, prints)
            self._with_feedback.update(row.key for row in rows if row.rank == Source.FEEDBACK.rank)
        return changed

    def exchange(self, key: str, outcome: Sequence[Any]) -> list[Any]:
        """Tell the other processes that share the file how a local answer did, as plain JSON types.
        What they have told of the same local model since this was last called, or the file opened.
        """
        with self._file.transaction() as database:
            [[own]] = database.execute(
                "INSERT INTO outcomes (teller, key, outcome) VALUES (?, ?, ?) RETURNING number",
                (self._teller, key, json.dumps(outcome)),
            ).fetchall()
            told = database.execute(
                "SELECT outcome FROM outcomes"
                " WHERE number > ? AND teller != ? AND key = ? ORDER BY number",
                (self._heard, self._teller, key),
            ).fetchall()
            database.execute("DELETE FROM outcomes WHERE number <= ?", (own - MAX_OUTCOMES,))
            self._heard = own
        return [json.loads(row) for (row,) in told]

    def counts(self) -> dict[Source, int]:
        """How many labels each source gave."""
        rows = self._read(
            "SELECT source, count(*) FROM labels WHERE digests != ? GROUP BY source", _NO_DIGESTS
        )
        found = dict(rows)
        return {source: found.get(source.value, 0) for source in Source}

    def keep_answers(self, answers: Mapping[str, PastAnswer]) -> None:
        """Remember answers, by the id of each, so that feedback can be given on them later."""
        rows = [(answer_id, json.dumps(asdict(answer))) for answer_id, answer in answers.items()]
        with self._file.transaction() as database:
            database.executemany("INSERT OR REPLACE INTO answers (id, answer) VALUES (?, ?)", rows)
            database.execute(
                "DELETE FROM answers WHERE number <= (SELECT max(number) FROM answers) - ?",
                (MAX_ANSWERS,),
            )

    def answer(self, answer_id: str) -> PastAnswer | None:
        """An earlier answer; None when it is unknown or too long ago."""
        for (text,) in self._read("SELECT answer FROM answers WHERE id = ?", answer_id):
            fields = json.loads(text)
            return PastAnswer(**fields | {"skills": tuple(fields["skills"])})
        return None

    @property
    def now(self) -> float:
        """Seconds, by the clock of the file."""
        return self._clock()

    def state(self, name: str) -> Any:
        """What was kept under a name, as plain JSON types; None when nothing was."""
        for (value,) in self._read("SELECT value FROM states WHERE name = ?", name):
            return json.loads(value)
        return None

    def states(self, start: str) -> dict[str, Any]:
        """What was kept under the names that begin so, by the rest of the name."""
        query = "SELECT name, value FROM states WHERE name >= ? AND name < ?"
        rows = self._read(query, start, f"{start}\U0010ffff")
        return {name.removeprefix(start): json.loads(value) for name, value in rows}

    def drop_states(self, end: str) -> None:
        """Forget what was kept under the names that end so."""
        with self._file.transaction() as database:
            database.execute("DELETE FROM states WHERE substr(name, -?) = ?", (len(end), end))

    def keep_states(self, states: Mapping[str, Any]) -> None:
        """Keep plain JSON types under their names, all or none."""
        rows = [(name, json.dumps(value, allow_nan=False)) for name, value in states.items()]
        with self._file.transaction() as database:
            database.executemany("INSERT OR REPLACE INTO states VALUES (?, ?)", rows)

    def model(self, key: str) -> bytes | None:
        """A fitted model that was kept under a key; None when none was."""
        for (model,) in self._read("SELECT model FROM models WHERE key = ?", key):
            return bytes(model)
        return None

    def keep_model(self, key: str, model: bytes) -> None:
        """Keep a fitted model under a key, in the place of an earlier one."""
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
        """Forget all labels and what was fitted on them; the number of labels."""
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


def _checked(label: Sequence[Any]) -> _Row | None:
    """A label of another process as a row; None where it cannot be one."""
    try:
        _, wrong, text, digests, source, _, learnt = label
        check_text("request", text, MAX_REQUEST_CHARACTERS)
        named = {str(name): str(digest) for name, digest in json.loads(digests).items()}
        if len(named) > MAX_SKILLS or not isinstance(wrong, str):
            return None
        if ("" in named and len(named) > 1) or (wrong and [*named] != [wrong]):
            return None
        said, when = Source(source), finite(learnt)
        if when is None:
            return None
        return _Row(normalise(text), wrong, text, json.dumps(named), said.value, said.rank, when)
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None


def _named(digests: Mapping[str, str]) -> tuple[str, ...]:
    """The skills that a label names."""
    return tuple(name for name in digests if name)


def _strength(label: Example) -> tuple[float, int]:
    """Of two labels for one text that one counts which has more of it."""
    return label.weight, label.source.rank


def _write(database: sqlite3.Connection, statement: str, rows: Iterable[_Row]) -> int:
    """Put labels, each in the place of earlier ones that it outranks; how many were put."""
    changed = 0
    for row in rows:
        put = database.execute(statement, row._asdict()).rowcount
        if put:
            database.execute(_OUTRANK, row._asdict())
        changed += put
    return changed


def _keep_offer(database: sqlite3.Connection, rows: Iterable[_Row], prints: Sequence[str]) -> None:
    """Keep which skills there were, where one of the labels names none of them."""
    key = _key_of(prints)
    given_over_these = json.dumps({"": key})
    if all(row.digests != given_over_these for row in rows):
        return
    kept = "INSERT OR IGNORE INTO offers (key, prints) VALUES (?, ?)"
    if database.execute(kept, (key, json.dumps(prints))).rowcount:
        database.execute(
            "DELETE FROM offers WHERE number NOT IN"
            " (SELECT number FROM offers ORDER BY number DESC LIMIT ?)",
            (MAX_OFFERS,),
        )
