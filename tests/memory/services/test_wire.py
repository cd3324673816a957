"""What goes over the wire keeps the limits of the service."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from router.memory.services.forgetful.client import new_memories
from router.memory.services.forgetful.wire import Origin


@given(content=st.text(st.sampled_from("ab .\n。é"), min_size=1, max_size=9_000), repeat=st.just(3))
@settings(max_examples=50)
def test_no_part_breaks_the_services_limits_and_nothing_is_lost(content: str, repeat: int) -> None:
    content = content * repeat + "x"
    parts = new_memories("n" * 200, store="a", digest="b", content=content, tags=["t"] * 20)
    origins = [Origin.from_url(part.source_url) for part in parts]
    assert [origin and origin.part for origin in origins] == list(range(1, len(parts) + 1))
    for part in parts:
        assert 1 <= len(part.content) <= 2_000
        assert 1 <= len(part.title) <= 200
        assert len(part.context) <= 500
        assert len(part.tags) <= 10
        assert len(part.keywords) <= 10
    assert "".join("".join(part.content for part in parts).split()) == "".join(content.split())
