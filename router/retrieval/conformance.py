"""A conformance suite for embedding caches, for whoever writes one.

It is part of the package because a plug-in's author has the package and not its tests. It needs no
test library; pytest collects it from a subclass whose name begins with ``Test``:

    class TestMyCache(EmbeddingCacheConformance):
        def make_cache(self) -> EmbeddingCache:
            return MyCache(self.address)
"""

from __future__ import annotations

import threading
from typing import Final

import numpy as np
from numpy.typing import NDArray

from router.retrieval.embedding_cache import EmbeddingCache

MANY: Final = 2_500
"""Vectors in the largest look-up."""
DIMENSIONS: Final = 16
THREADS: Final = 4


class EmbeddingCacheConformance:
    """Says whether an embedding cache does what it must. Each ``test_`` method raises
    ``AssertionError`` with the reason when it does not."""

    def make_cache(self) -> EmbeddingCache:
        """A cache. Within one test, each call opens the same cache again, as another process
        would after the first one has closed it; each test begins with an empty one."""
        raise NotImplementedError

    def test_it_is_an_embedding_cache(self) -> None:
        """It has the methods, and a name that stays."""
        cache = self.make_cache()
        _must(isinstance(cache, EmbeddingCache), "a method is missing")
        name = cache.name
        _must(isinstance(name, str) and name != "", "the name is not a text")
        cache.close()
        again = self.make_cache()
        _must(again.name == name, "the same cache has another name when it is opened again")
        again.close()

    def test_what_was_put_is_found_bit_by_bit(self) -> None:
        """A vector is what the encoder made, whatever its length or direction."""
        cache = self.make_cache()
        vectors = {
            "unit": _vector(1),
            "long": _vector(2) * 1e3,
            "zero": np.zeros(DIMENSIONS, dtype=np.float32),
            "small": np.full(DIMENSIONS, 1e-30, dtype=np.float32),
        }
        cache.put("e", vectors)
        _must_equal(cache.get("e", list(vectors)), vectors)
        _must(cache.get("e", []) == {}, "nothing was asked for, and something came")
        cache.close()

    def test_what_is_not_held_is_left_out(self) -> None:
        """A look-up is no error when it finds only some."""
        cache = self.make_cache()
        _must(cache.get("e", ["a"]) == {}, "an empty cache has found something")
        cache.put("e", {"a": _vector(1)})
        _must_equal(cache.get("e", ["b", "a", "c"]), {"a": _vector(1)})
        cache.put("e", {})
        cache.close()

    def test_it_outlives_its_process(self) -> None:
        """What was put is found after the cache was closed and opened again."""
        cache = self.make_cache()
        cache.put("e", {"a": _vector(1)})
        cache.close()
        cache.close()
        again = self.make_cache()
        _must_equal(again.get("e", ["a"]), {"a": _vector(1)})
        again.close()

    def test_encoders_share_it_and_never_see_each_other(self) -> None:
        """One text has one vector for each encoder, even of another dimension; none is lost."""
        cache = self.make_cache()
        first, other = _vector(1), np.ones(7, dtype=np.float32)
        cache.put("first", {"a": first})
        cache.put("other/häßlich 🦊", {"a": other})
        cache.close()
        again = self.make_cache()
        _must_equal(again.get("other/häßlich 🦊", ["a"]), {"a": other})
        _must_equal(again.get("first", ["a"]), {"a": first})
        _must(again.get("third", ["a"]) == {}, "a vector of another encoder was given")
        again.close()

    def test_nobody_loses_anothers_vectors(self) -> None:
        """Whoever puts and looks up some texts leaves those of all others alone."""
        cache = self.make_cache()
        cache.put("e", {f"mine-{number}": _vector(number) for number in range(10)})
        cache.close()
        other = self.make_cache()
        other.put("e", {"theirs": _vector(99)})
        other.get("e", ["theirs", "nobody's"])
        other.close()
        again = self.make_cache()
        wanted = {f"mine-{number}": _vector(number) for number in range(10)}
        _must_equal(again.get("e", list(wanted)), wanted)
        again.close()

    def test_a_later_vector_takes_the_place_of_an_earlier_one(self) -> None:
        """Putting again is fine, and the last one counts."""
        cache = self.make_cache()
        cache.put("e", {"a": _vector(1), "b": _vector(2)})
        cache.put("e", {"a": _vector(3)})
        _must_equal(cache.get("e", ["a", "b"]), {"a": _vector(3), "b": _vector(2)})
        cache.close()

    def test_thousands_are_put_and_found_at_once(self) -> None:
        """An index over a large catalog is one look-up."""
        cache = self.make_cache()
        vectors = {f"document/{number}": _vector(number) for number in range(MANY)}
        cache.put("e", vectors)
        _must_equal(cache.get("e", list(vectors)), vectors)
        cache.close()

    def test_threads_may_share_it(self) -> None:
        """No vector is lost or mixed up when several threads put and look up."""
        cache = self.make_cache()
        faults: list[BaseException] = []

        def work(thread: int) -> None:
            try:
                for number in range(10):
                    key, vector = f"{thread}-{number}", _vector(100 * thread + number)
                    cache.put("e", {key: vector})
                    _must_equal(cache.get("e", [key]), {key: vector})
            except BaseException as error:  # noqa: BLE001 - told below, in the test's own thread
                faults.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        cache.close()
        _must(not faults, f"a thread failed: {faults[:1]}")


def _vector(seed: int) -> NDArray[np.float32]:
    return np.random.default_rng(seed).normal(size=DIMENSIONS).astype(np.float32)


def _must_equal(
    found: dict[str, NDArray[np.float32]], wanted: dict[str, NDArray[np.float32]]
) -> None:
    _must(found.keys() == wanted.keys(), f"found {sorted(found)[:5]}, not {sorted(wanted)[:5]}")
    for key, vector in wanted.items():
        same = found[key].dtype == np.float32 and np.array_equal(found[key], vector)
        _must(same, f"the vector of {key!r} is not the one that was put")


def _must(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)
