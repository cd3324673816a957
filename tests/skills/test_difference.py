"""What differs between two sequences of which most is the same."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from router.skills.difference import differing

OBJECTS = [object() for _ in range(4)]
SEQUENCES = st.lists(st.sampled_from(OBJECTS), max_size=8).map(tuple)


@given(SEQUENCES, SEQUENCES)
def test_the_second_sequence_is_the_first_one_with_the_part_that_differs_replaced(
    before: tuple[object, ...], after: tuple[object, ...]
) -> None:
    left, come = differing(before, after)
    start = next(
        (
            place
            for place, (old, new) in enumerate(zip(before, after, strict=False))
            if old is not new
        ),
        min(len(before), len(after)),
    )
    assert before[:start] + tuple(come) + before[start + len(left) :] == after
    if left and come:
        assert left[0] is not come[0]
        assert left[-1] is not come[-1]


def test_objects_are_compared_and_not_what_they_are_equal_to() -> None:
    one, same = [1], [1]
    assert differing((one,), (same,)) == ((one,), (same,))
    assert differing((one, same), (one, same)) == ((), ())
