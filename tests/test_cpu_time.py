"""The bound on CPU time counts what the code does, and not what other tests have left."""

from __future__ import annotations

import gc

from cpu_time import cpu_time_at_most


def test_garbage_collections_do_not_look_through_what_was_there_before() -> None:
    before = [object()]
    assert any(one is before for one in gc.get_objects())
    with cpu_time_at_most(60.0):
        mine = [object()]
        looked_through = gc.get_objects()
        assert any(one is mine for one in looked_through)
        assert not any(one is before for one in looked_through)
        del looked_through
    assert any(one is before for one in gc.get_objects())
