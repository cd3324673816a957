"""Ranks by words and by meaning, made one ranking."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from router.memory.stores.fusion import fuse


@given(
    st.dictionaries(st.integers(1, 30), st.floats(0, 20), max_size=20),
    st.dictionaries(st.integers(1, 30), st.floats(-1, 1), max_size=20),
)
def test_fusion_keeps_every_row_and_what_both_put_first(
    lexical: dict[int, float], semantic: dict[int, float]
) -> None:
    fused = fuse(lexical, semantic)
    assert fused.keys() == lexical.keys() | semantic.keys()
    assert list(fused.values()) == sorted(fused.values(), reverse=True)
    assert all(0 <= score <= 1 / 61 + 1e-12 for score in fused.values())
    top = 31
    assert next(iter(fuse({**lexical, top: 21.0}, {**semantic, top: 2.0}))) == top
