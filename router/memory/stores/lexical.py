"""Search by words: the database finds candidates, and BM25 over the visible spaces scores them.

FTS5's own ``bm25`` uses statistics of the whole table, so scores in one scope would change with
what others save in theirs; PostgreSQL has no BM25. Both read every row that contains a word, so a
common word makes them slow. Therefore the database only finds candidates, by those rare words of
the query that match a bounded number of rows. The candidates are scored with all words, by
statistics of the visible spaces only.

A term is indexed together with the number of its space (``7:deploy``), so that a search reads
nothing of other spaces. Terms are stems, made here for both the index and the query.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import numpy as np

from router.memory.stores.database import Connection, placeholders
from router.memory.stores.fusion import best_first
from router.memory.stores.spaces import Filter, Space, ids_of, newest_rows
from router.memory.texts.bm25 import MEMORIES, idf, mean_length
from router.memory.texts.words import content_terms
from router.text import stems

MATCHES: Final = 1_500
"""Rows that the database reads for the rare words of a query, at most."""
CANDIDATES: Final = 60
"""Rows that are scored at least, if so many match."""
NARROW: Final = 500
"""If at most so many rows pass a filter, all of them are scored."""
CHECKED_ROWS: Final = 240
"""Rows that are checked against a wider filter at a time."""
MAX_QUERY_TERMS: Final = 32
"""Terms of a query that are used, the rarest first: of a long request few words matter."""
MAX_TERM_CHARACTERS: Final = 64


def index_terms(text: str) -> list[str]:
    """The terms of a text in order, as they are indexed."""
    return [term[:MAX_TERM_CHARACTERS] for term in stems(text)]


def query_terms(text: str) -> list[str]:
    """The different terms of a query; function words only if there are no others."""
    return list(dict.fromkeys(term[:MAX_TERM_CHARACTERS] for term in content_terms(text)))


def indexed(space: int, terms: Iterable[str]) -> str:
    """The terms as the text of a row. Each has a blank on both sides, so that its number of
    occurrences is the number of occurrences of a substring."""
    return "".join(f" {space}:{term} " for term in terms)


def find_by_words(
    db: Connection,
    spaces: Sequence[Space],
    text: str,
    *,
    limit: int,
    where: Filter,
) -> dict[int, float]:
    """The rows that contain a word of the text, with their BM25, best first."""
    frequency = _document_frequencies(db, spaces, query_terms(text))
    terms = sorted(frequency, key=lambda term: frequency[term])[:MAX_QUERY_TERMS]
    if not terms:
        return {}
    total = sum(space.items for space in spaces)
    weights = {term: idf(frequency[term], total) for term in terms}
    rows = newest_rows(db, spaces, where, NARROW + 1).tolist() if where else []
    if not where or len(rows) > NARROW:
        rows = _candidates(db, spaces, frequency, weights, max(limit, CANDIDATES), where)
    scores = _scores(db, spaces, rows, weights)
    return dict(list(best_first(scores).items())[:limit])


def _document_frequencies(
    db: Connection, spaces: Sequence[Space], terms: Sequence[str]
) -> dict[str, int]:
    """The number of items that contain each term; terms that are in none are left out."""
    return dict(
        db.execute(
            f"SELECT term, sum(items) FROM terms WHERE space IN ({placeholders(len(spaces))}) "  # noqa: S608
            f"AND term IN ({placeholders(len(terms))}) GROUP BY term",
            (*ids_of(spaces), *terms),
        ).fetchall()
    )


def _candidates(
    db: Connection,
    spaces: Sequence[Space],
    frequency: Mapping[str, int],
    weights: Mapping[str, float],
    limit: int,
    where: Filter,
) -> list[int]:
    """The best rows by the rare terms; if these are too few, also the newest with a common term."""
    matches = 0
    rare: list[str] = []
    common: list[str] = []
    for term in weights:
        matches += frequency[term]
        if matches > MATCHES:
            common = [term]
            break
        rare.append(term)
    holders = [np.array([], dtype=np.int64)]
    worth = [np.array([], dtype=np.float64)]
    for term in rare:
        match = db.match(ids_of(spaces), [term])
        holders.append(db.numbers(match.rows, match.values))
        worth.append(np.full(len(holders[-1]), weights[term]))
    different, places = np.unique(np.concatenate(holders), return_inverse=True)
    total = np.bincount(places, np.concatenate(worth), len(different))
    rows: list[int] = different[np.lexsort((different, total))[::-1]].tolist()
    rows = _first_passing(db, rows, limit, where) if where else rows[:limit]
    if common and len(rows) < limit:
        condition, values = where.sql()
        match = db.match(ids_of(spaces), common)
        newest = (
            f"SELECT items.row FROM {match.items} AND {condition} "  # noqa: S608
            f"ORDER BY {match.newest} LIMIT {limit}"
        )
        rows += db.numbers(newest, (*match.values, *values)).tolist()
    return rows


def _first_passing(db: Connection, rows: Sequence[int], limit: int, where: Filter) -> list[int]:
    """The first ``limit`` rows that pass a filter. Further rows are read only while some are
    missing, because reading all takes several times as long."""
    condition, values = where.sql()
    passing: list[int] = []
    for start in range(0, len(rows), CHECKED_ROWS):
        some = rows[start : start + CHECKED_ROWS]
        among = f"SELECT row FROM items WHERE row IN ({placeholders(len(some))}) AND {condition}"  # noqa: S608
        found = set(db.numbers(among, (*some, *values)).tolist())
        passing += [row for row in some if row in found]
        if len(passing) >= limit:
            break
    return passing[:limit]


def _scores(
    db: Connection, spaces: Sequence[Space], rows: Sequence[int], weights: Mapping[str, float]
) -> dict[int, float]:
    mean = mean_length(sum(space.words for space in spaces), sum(space.items for space in spaces))
    needles = {
        space.id: [(indexed(space.id, [term]), weight) for term, weight in weights.items()]
        for space in spaces
    }
    scores: dict[int, float] = {}
    for row, space, length, words in db.execute(
        f"SELECT row, space, length, words FROM items WHERE row IN ({placeholders(len(rows))})",  # noqa: S608
        rows,
    ):
        norm = MEMORIES.length_norm(length, mean)
        score = 0.0
        for needle, weight in needles[space]:
            if count := words.count(needle):
                score += weight * MEMORIES.gain(count / norm)
        if score > 0:
            scores[row] = score
    return scores
