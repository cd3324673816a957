"""The fuzzy cache: what it answers, and how it forgets."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from cached import answer
from clock import Clock
from hypothesis import given, settings
from hypothesis import strategies as st

from router.stages.exact import CacheStats
from router.stages.fuzzy import FuzzyCache
from router.stages.validation import Basis, DecidedBy
from router.text import normalise


async def test_a_request_that_differs_in_fillers_only_is_recalled() -> None:
    cache = FuzzyCache()
    await cache.learn("Fix the bug", answer("debugging"))
    assert cache.find("Fix bug").result == answer("debugging")


async def test_a_hit_names_what_it_matched_how_well_and_how_old_it_is() -> None:
    clock = Clock(1_000_000.0)
    cache = FuzzyCache(clock=clock)
    await cache.learn("Fix the bug", answer("debugging"))
    clock.now += 5
    found = cache.find("fix bug")
    assert (found.matched, found.similarity, found.age_seconds) == ("fix the bug", 1.0, 5.0)


async def test_an_identical_request_is_answered_by_its_own_entry() -> None:
    cache = FuzzyCache()
    await cache.learn("fix the bug", answer("the"))
    await cache.learn("fix a bug", answer("a"))
    await cache.learn("fix bug", answer("bare"))
    found = [cache.find(text).result for text in ("Fix the bug", "Fix a bug", "Fix bug")]
    assert found == [answer("the"), answer("a"), answer("bare")]


async def test_the_most_similar_of_several_entries_answers() -> None:
    cache = FuzzyCache()
    await cache.learn("please test the parsers", answer("plural"))
    await cache.learn("please test the parser", answer("singular"))
    assert cache.find("test that parsers").result == answer("plural")


async def test_the_threshold_applies_on_top_of_the_gate() -> None:
    strict = FuzzyCache(similarity_threshold=1.0)
    await strict.learn("fix the bugs", answer("debugging"))
    assert strict.find("fix bugs").result == answer("debugging")
    assert strict.find("fix bug").result is None


@pytest.mark.parametrize(("age", "alive"), [(59.999, True), (60.0, False)])
@pytest.mark.parametrize("asked", ["fix the bug", "fix bug"])
async def test_an_entry_lives_just_less_than_its_time(age: float, alive: bool, asked: str) -> None:
    clock = Clock(1_000_000.0)
    cache = FuzzyCache(ttl_seconds=60, clock=clock)
    await cache.learn("fix the bug", answer("debugging"))
    clock.now += age
    assert (cache.find(asked).kept is not None) is alive


async def test_a_clock_that_steps_back_neither_kills_entries_nor_makes_them_immortal() -> None:
    clock = Clock(1_000_000.0)
    cache = FuzzyCache(ttl_seconds=60, clock=clock)
    await cache.learn("fix the bug", answer("debugging"))
    clock.now -= 100_000
    assert cache.find("fix the bug").result == answer("debugging")
    clock.now += 60
    assert cache.find("fix the bug").result is None


async def test_stats_count_what_happened() -> None:
    clock = Clock(1_000_000.0)
    cache = FuzzyCache(max_entries=1, ttl_seconds=60, clock=clock)
    await cache.learn("write tests", answer("1"))
    cache.find("write the tests")
    cache.find("something else")
    await cache.learn("ship release", answer("2"))
    clock.now += 60
    cache.find("ship release")
    assert cache.stats == CacheStats(entries=0, hits=1, misses=2, evictions=1, expirations=1)


@pytest.mark.parametrize(
    ("threshold", "ttl_seconds", "max_entries"), [(1.5, 60, 10), (0.75, 0, 10), (0.75, 60, 0)]
)
def test_sizes_without_sense_are_refused(
    threshold: float, ttl_seconds: float, max_entries: int
) -> None:
    with pytest.raises(ValueError, match=r"max_entries|similarity_threshold"):
        FuzzyCache(threshold, ttl_seconds, max_entries)


async def test_a_request_of_the_greatest_length_is_learned_and_recalled() -> None:
    cache = FuzzyCache()
    text = "deploy the parser " * 1100
    await cache.learn(text, answer("long"))
    await cache.learn("x" * 20_000, answer("one word"))
    assert cache.find("please " + text).result == answer("long")
    assert cache.find("y" + "x" * 19_999).result is None


# Against plain models


# No two of these pass the gate for each other, so a plain list is the whole truth.
TEXTS = st.sampled_from(["fix bug 1", "fix bug 2", "Fix Bug 2", "write docs", "open c++", "open c"])
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["learn", "find"]), TEXTS, st.sampled_from(["", "x"])),
        st.tuples(st.just("wait"), st.integers(1, 30).map(str), st.just("")),
        st.tuples(st.sampled_from(["clear", "restart"]), st.just(""), st.just("")),
    ),
    max_size=30,
)


@settings(max_examples=60)
@given(steps=STEPS, capacity=st.integers(1, 4), on_disk=st.booleans())
def test_the_cache_behaves_like_a_plain_list_across_restarts(
    tmp_path_factory: pytest.TempPathFactory,
    steps: list[tuple[str, str, str]],
    capacity: int,
    on_disk: bool,
) -> None:
    clock = Clock(1_000_000.0)
    path = tmp_path_factory.mktemp("cache") / "fuzzy.db" if on_disk else None

    def opened() -> FuzzyCache:
        return FuzzyCache(max_entries=capacity, ttl_seconds=40, path=path, clock=clock)

    cache = opened()
    model: list[tuple[tuple[str, str], float, str]] = []  # least recently used first
    for number, (step, text, context) in enumerate(steps):
        key = (normalise(text), context)
        held = next((entry for entry in model if entry[0] == key), None)
        if step == "learn":
            asyncio.run(cache.learn(text, answer(str(number)), context))
            if held:
                model.remove(held)
            elif len(model) == capacity:
                del model[0]
            model.append((key, clock.now + 40, str(number)))
        elif step == "find":
            expected = None
            if held:
                model.remove(held)
                if clock.now < held[1]:
                    model.append(held)
                    expected = answer(held[2])
            assert cache.find(text, context).result == expected
        elif step == "wait":
            clock.now += int(text)
        elif step == "clear":
            cache.clear()
            model.clear()
        elif on_disk:
            cache.close()
            cache = opened()
            model = [entry for entry in model if clock.now < entry[1]]
        assert len(cache) == len(model)
    cache.close()


async def test_marks_are_written_again_when_the_cache_was_cleared(tmp_path: Path) -> None:
    cache = FuzzyCache(path=tmp_path / "fuzzy.sqlite3")
    basis = Basis(DecidedBy.LLM, "v1")
    for _ in range(2):
        cache.clear()
        await cache.learn("Fix the bug", answer("debugging"), basis=basis)
        cache.keep_marks("v1", b"12345678")
    cache.close()
    assert FuzzyCache(path=tmp_path / "fuzzy.sqlite3").marks_of("v1") == b"12345678"
