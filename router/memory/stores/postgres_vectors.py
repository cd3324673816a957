"""Search by meaning inside PostgreSQL, with pgvector.

The search is exact: it compares all vectors of the spaces that a scope sees. An approximate index
over all rows would first take the nearest of everybody and only then leave out other scopes, so a
small scope beside large ones would find too little.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pgvector import Vector

from router.memory.stores.database import Connection, placeholders
from router.memory.stores.item_vectors import ItemVectors
from router.memory.stores.spaces import Filter, Space, ids_of


class PostgresVectors(ItemVectors):
    """The vectors of a ``PostgresDatabase``."""

    WIDTH = "vector_dims(vector)"

    def _stored(self, vector: NDArray[np.float32]) -> Vector:
        return Vector(vector)

    def _read(self, stored: Vector) -> NDArray[np.float32]:
        return stored.to_numpy()

    def _nearest(
        self,
        db: Connection,
        spaces: Sequence[Space],
        vector: NDArray[np.float32],
        limit: int,
        where: Filter,
    ) -> dict[int, float]:
        condition, values = where.sql()
        joined = "JOIN items ON items.row = vectors.row" if where else ""
        wanted = self._stored(vector)
        found = db.execute(
            "SELECT vectors.row, max(-(vector <#> ?)) AS similarity "  # noqa: S608
            f"FROM vectors {joined} WHERE vectors.space IN ({placeholders(len(spaces))}) "
            f"AND {self.WIDTH} = ? AND {condition} "
            "GROUP BY vectors.row ORDER BY similarity DESC LIMIT ?",
            (wanted, *ids_of(spaces), len(vector), *values, limit),
        )
        return dict(found.fetchall())
