"""Search by words: FTS5 finds the rows, BM25 over the visible spaces scores them.

FTS5's own ``bm25`` counts over the whole table, so its scores in one scope would change with what
others save in theirs; and it reads every row that holds a word, so a common word makes it slow. It
is used to find candidates: by the rare words of the query, so many that together they match a
bounded number of rows. Those are scored with all the words, by statistics of the visible spaces
alone.

A term is indexed together with the number of its space (``7:deploy``), so that a search reads
nothing of other spaces. Terms are stems, made here for both the index and the query.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Sequence
from typing import Final

from router.memory.stores.fusion import best_first
from router.memory.stores.items_db import marks
from router.memory.stores.spaces import Filter, Space, ids_of, narrow_rows
from router.memory.texts.bm25 import MEMORIES, idf, mean_length
from router.memory.texts.words import content_terms
from router.text import stems

MATCHES: Final = 1_500
"""Rows that FTS5 reads and ranks for a query; about 1 µs each."""
CANDIDATES: Final = 60
"""Rows that are scored at least, when so many match."""
NARROW: Final = 500
"""A filter that leaves so few rows is answered by reading them all."""
MAX_QUERY_TERMS: Final = 32
"""The rarest ones; a long request has more words than it has points."""
MAX_TERM_CHARACTERS: Final = 64


def index_terms(text: str) -> list[str]:
    """The terms of a text in order, as they are indexed."""
    return [term[:MAX_TERM_CHARACTERS] for term in stems(text)]


def query_terms(text: str) -> list[str]:
    """The different terms to look for; function words only when there is nothing else."""
    return list(dict.fromkeys(term[:MAX_TERM_CHARACTERS] for term in content_terms(text)))


def indexed(space: int, terms: Iterable[str]) -> str:
    """Terms as the text of a row. Each stands between spaces of its own, so that a term's count is
    the count of a substring."""
    return "".join(f" {space}:{term} " for term in terms)


def find_by_words(
    db: sqlite3.Connection,
    spaces: Sequence[Space],
    text: str,
    *,
    limit: int,
    where: Filter,
) -> dict[int, float]:
    """Rows with their BM25, best first; only rows that hold a word of the text."""
    frequency = _document_frequencies(db, spaces, query_terms(text))
    terms = sorted(frequency, key=lambda term: frequency[term])[:MAX_QUERY_TERMS]
    if not terms:
        return {}
    rows = narrow_rows(db, spaces, where, NARROW) if where else None
    if rows is None:
        rows = _candidates(db, spaces, terms, frequency, max(limit, CANDIDATES), where)
    scores = _scores(db, spaces, rows, {term: frequency[term] for term in terms})
    return dict(list(best_first(scores).items())[:limit])


def matching(spaces: Iterable[Space], terms: Sequence[str], operator: str = "OR") -> str:
    """An expression of FTS5. A term holds no double quote, so nothing in it can end the string."""
    return " OR ".join(
        "(" + f" {operator} ".join(f'"{space.id}:{term}"' for term in terms) + ")"
        for space in spaces
    )


def _document_frequencies(
    db: sqlite3.Connection, spaces: Sequence[Space], terms: Sequence[str]
) -> dict[str, int]:
    """In how many items each term stands; terms that stand in none are left out."""
    return dict(
        db.execute(
            f"SELECT term, sum(items) FROM terms WHERE space IN ({marks(len(spaces))}) "  # noqa: S608
            f"AND term IN ({marks(len(terms))}) GROUP BY term",
            (*ids_of(spaces), *terms),
        ).fetchall()
    )


def _candidates(
    db: sqlite3.Connection,
    spaces: Sequence[Space],
    terms: Sequence[str],
    frequency: dict[str, int],
    limit: int,
    where: Filter,
) -> list[int]:
    """The best rows by the rare terms; where these are few, also the newest with a common one."""
    matches = 0
    rare: list[str] = []
    for term in terms:
        matches += frequency[term]
        if matches > MATCHES:
            break
        rare.append(term)
    rows: list[int] = []
    if rare:
        rows += _matched(db, matching(spaces, rare), "rank", limit, where)
    if len(rows) < limit and len(rare) < len(terms):
        common = matching(spaces, [terms[len(rare)]])
        rows += _matched(db, common, "postings.rowid DESC", limit, where)
    return rows


def _matched(
    db: sqlite3.Connection, expression: str, order: str, limit: int, where: Filter
) -> list[int]:
    condition, values = where.sql()
    joined = "JOIN items ON items.row = postings.rowid" if where else ""
    return [
        row
        for (row,) in db.execute(
            f"SELECT postings.rowid FROM postings {joined} "  # noqa: S608
            f"WHERE postings MATCH ? AND {condition} ORDER BY {order} LIMIT ?",
            (expression, *values, limit),
        )
    ]


def _scores(
    db: sqlite3.Connection, spaces: Sequence[Space], rows: Iterable[int], frequency: dict[str, int]
) -> dict[int, float]:
    total = sum(space.items for space in spaces)
    mean = mean_length(sum(space.words for space in spaces), total)
    weights = {term: idf(holders, total) for term, holders in frequency.items()}
    needles = {
        space.id: [(indexed(space.id, [term]), weight) for term, weight in weights.items()]
        for space in spaces
    }
    scores: dict[int, float] = {}
    for row, space, length, words in db.execute(
        "SELECT row, space, length, words FROM items WHERE row IN (SELECT value FROM json_each(?))",
        (json.dumps(list(rows)),),
    ):
        norm = MEMORIES.length_norm(length, mean)
        score = 0.0
        for needle, weight in needles[space]:
            if count := words.count(needle):
                score += weight * MEMORIES.gain(count / norm)
        if score > 0:
            scores[row] = score
    return scores
