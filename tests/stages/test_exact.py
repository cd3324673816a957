"""The exact cache against a plain model with a clock."""

from __future__ import annotations

import tracemalloc

import pytest
from cached import answer
from clock import Clock
from hypothesis import given, settings
from hypothesis import strategies as st

from router.result import RoutingResult
from router.stages.exact import CacheStats, ExactCache
from router.text import normalise


def test_long_requests_and_their_spellings_are_bounded_in_bytes() -> None:
    cache: ExactCache[RoutingResult] = ExactCache(max_entries=1_000, max_bytes=1_000_000)
    tracemalloc.start()
    try:
        for number in range(300):
            cache.set(f"{number} {'long ' * 3_000}", answer("writer"))
            for spaces in range(4):
                cache.get(f"{' ' * spaces}{number} {'long ' * 3_000}")
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1_500_000
    assert len(cache) == cache.stats.entries == 300 - cache.stats.evictions > 10
    assert cache.get(f"299 {'long ' * 3_000}") is not None
    assert cache.get(f"0 {'long ' * 3_000}") is None
    cache.set("x" * 1_000_000, answer("writer"))
    assert cache.get("x" * 1_000_000) is None
    for number in range(300):
        cache.set(str(number), answer("writer"))
    assert all(cache.get(str(number)) for number in range(300))


@pytest.mark.parametrize(("age", "alive"), [(59.999, True), (60.0, False)])
def test_an_entry_lives_just_less_than_its_time(age: float, alive: bool) -> None:
    clock = Clock(1_000_000.0)
    cache: ExactCache[RoutingResult] = ExactCache(ttl_seconds=60, clock=clock)
    cache.set("Fix the bug", answer("debugging"))
    clock.now += age
    assert (cache.get("Fix the bug") is not None) is alive


def test_stats_count_what_happened() -> None:
    clock = Clock(1_000_000.0)
    cache: ExactCache[RoutingResult] = ExactCache(max_entries=1, ttl_seconds=60, clock=clock)
    cache.set("first", answer("1"))
    cache.get("first")
    cache.get("second")
    cache.set("second", answer("2"))
    clock.now += 60
    cache.get("second")
    assert cache.stats == CacheStats(entries=0, hits=1, misses=2, evictions=1, expirations=1)


@pytest.mark.parametrize(("max_entries", "ttl_seconds"), [(0, 60), (10, 0)])
def test_sizes_without_sense_are_refused(max_entries: int, ttl_seconds: float) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        ExactCache(max_entries, ttl_seconds)


TEXTS = st.sampled_from(["fix bug", "Fix  BUG!", "c++", "C", "write docs", "Write docs.", "ship"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("set"), TEXTS, st.sampled_from(["", "x"])),
        st.tuples(st.just("get"), TEXTS, st.sampled_from(["", "x"])),
        st.tuples(st.just("wait"), st.integers(1, 30).map(str), st.just("")),
        st.tuples(st.just("clear"), st.just(""), st.just("")),
    ),
    max_size=60,
)


@settings(max_examples=200)
@given(STEPS, st.integers(1, 4))
def test_the_cache_behaves_like_a_plain_list(
    steps: list[tuple[str, str, str]], capacity: int
) -> None:
    clock = Clock(1_000_000.0)
    cache: ExactCache[RoutingResult] = ExactCache(max_entries=capacity, ttl_seconds=40, clock=clock)
    model: list[tuple[tuple[str, str], float, str]] = []  # least recently used first
    for number, (step, text, context) in enumerate(steps):
        key = (normalise(text), context)
        held = next((entry for entry in model if entry[0] == key), None)
        if step == "set":
            cache.set(text, answer(str(number)), context)
            if held:
                model.remove(held)
            elif len(model) == capacity:
                del model[0]
            model.append((key, clock.now + 40, str(number)))
        elif step == "get":
            expected = None
            if held:
                model.remove(held)
                if clock.now < held[1]:
                    model.append(held)
                    expected = answer(held[2])
            assert cache.get(text, context) == expected
        elif step == "wait":
            clock.now += int(text)
        else:
            cache.clear()
            model.clear()
        assert len(cache) == len(model)
