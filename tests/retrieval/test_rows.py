"""The vectors of all skills, after any changes."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from router.retrieval.documents import Edit
from router.retrieval.encoders import unit
from router.retrieval.rows import EVERYTHING, VectorRows

VECTORS = unit(np.random.default_rng(5).normal(size=(40, 8)).astype(np.float32))
HISTORIES = st.lists(st.sets(st.integers(0, len(VECTORS) - 1)), min_size=1, max_size=8)


def step(before: list[int], after: list[int]) -> tuple[Edit, NDArray[np.float32]]:
    """The step between two ascending lists of vectors."""
    kept = np.array([before.index(n) if n in before else -1 for n in after], dtype=np.intp)
    return Edit(kept, ()), VECTORS[[n for n in after if n not in before]]


@given(HISTORIES)
@settings(max_examples=100, deadline=None)
def test_every_generation_keeps_its_own_vectors_whatever_follows(history: list[set[int]]) -> None:
    generations: list[tuple[list[int], VectorRows]] = [([], VectorRows())]
    for chosen in map(sorted, history):
        before, rows = generations[-1]
        edit, added = step(before, chosen)
        rows.edited(edit, added)  # another one that follows the same generation
        generations.append((chosen, rows.edited(edit, added)))
    for chosen, rows in generations:
        if not chosen:
            continue
        anew = VectorRows().edited(*step([], chosen))
        assert rows.mean.tolist() == anew.mean.tolist()
        np.testing.assert_allclose(rows.mean, VECTORS[chosen].mean(axis=0), atol=1e-7)
        every = np.arange(len(chosen))
        assert rows.of(every).tolist() == VECTORS[chosen].tolist()
        expected = VECTORS[chosen] @ VECTORS[0]
        for among in (EVERYTHING, every[::2]):
            np.testing.assert_allclose(rows.cosines(VECTORS[0], among), expected[among], atol=1e-6)
