"""A conformance suite for authors of answer caches.

It is part of the package because a plug-in's author has the package and not its tests. It needs no
test library; pytest collects it from a subclass whose name begins with ``Test``:

    class TestMyAnswers(AnswerCacheConformance):
        async def make_cache(self) -> AnswerCache:
            return MyAnswers()
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from router.result import Decision, RoutingResult, Stage
from router.stages.answers import AnswerCache
from router.stages.validation import Basis, DecidedBy, KeptAnswer

_REQUEST: Final = "squash the last four commits on this branch"
_SAME: Final = "  Squash the last FOUR commits on this branch. "
_SIMILAR: Final = "Please squash the last four commits on this branch!"
_OTHER: Final = "squash the last three commits on this branch"


def kept_answer(
    skill: str, *, catalog: str = "v1", decided_by: DecidedBy = DecidedBy.LLM
) -> KeptAnswer:
    """An answer that chose one skill."""
    result = RoutingResult(
        decision=Decision.ROUTE,
        selected_skills=(skill,),
        confidence=0.9,
        stage=Stage.LLM,
        catalog_version=catalog,
        id=f"{skill}-{catalog}",
    )
    return KeptAnswer(result, Basis(decided_by, catalog, "", ((skill, "digest"),)))


class AnswerCacheConformance:
    """Says whether a cache does what it must. Each ``test_`` method raises ``AssertionError`` with
    the reason when it does not."""

    async def make_cache(self) -> AnswerCache:
        """A new cache that holds nothing. It is not open yet; the suite opens and closes it."""
        raise NotImplementedError

    @asynccontextmanager
    async def _cache(self) -> AsyncIterator[AnswerCache]:
        cache = await self.make_cache()
        await cache.open()
        try:
            yield cache
        finally:
            await cache.aclose()

    async def _given(
        self, cache: AnswerCache, text: str, context: str = "c", *, similar: bool = True
    ) -> KeptAnswer | None:
        return (await cache.find(text, context, similar=similar)).kept

    async def test_it_finds_nothing_where_nothing_was_kept(self) -> None:
        async with self._cache() as cache:
            _must(await self._given(cache, _REQUEST) is None, "an empty cache has an answer")

    async def test_what_was_kept_is_found_with_all_that_it_rests_on(self) -> None:
        async with self._cache() as cache:
            answer = kept_answer("git")
            await cache.keep(_REQUEST, "c", answer, similar=True)
            for text in (_REQUEST, _SAME, _SIMILAR):
                found = await self._given(cache, text)
                if found is None:
                    raise AssertionError(f"{text!r} is not found")
                _must(found.result == answer.result, f"{text!r} has another answer")
                _must(found.basis == answer.basis, f"{text!r}: it rests on something else")

    async def test_a_request_that_means_something_else_is_not_answered(self) -> None:
        async with self._cache() as cache:
            await cache.keep(_REQUEST, "c", kept_answer("git"), similar=True)
            _must(await self._given(cache, _OTHER) is None, f"{_OTHER!r} is answered")

    async def test_no_answer_crosses_contexts(self) -> None:
        async with self._cache() as cache:
            await cache.keep(_REQUEST, "c", kept_answer("git"), similar=True)
            for text in (_REQUEST, _SIMILAR):
                _must(await self._given(cache, text, "other") is None, "a context is crossed")

    async def test_similar_requests_are_left_alone_where_they_are_not_wanted(self) -> None:
        async with self._cache() as cache:
            await cache.keep(_REQUEST, "c", kept_answer("git"), similar=False)
            _must(await self._given(cache, _REQUEST) is not None, "its own request is not found")
            _must(await self._given(cache, _SIMILAR) is None, "a similar one is answered")
            await cache.keep(_REQUEST, "c", kept_answer("git"), similar=True)
            _must(
                await self._given(cache, _SIMILAR, similar=False) is None,
                "a similar one is answered although the caller did not want it",
            )

    async def test_a_later_answer_takes_the_place_of_an_earlier_one(self) -> None:
        async with self._cache() as cache:
            for name in ("git", "terminal"):
                await cache.keep(_REQUEST, "c", kept_answer(name), similar=True)
            for text in (_REQUEST, _SIMILAR):
                found = await self._given(cache, text)
                _must(
                    found is not None and found.result.selected_skills == ("terminal",),
                    f"{text!r} has the earlier answer",
                )

    async def test_a_forgotten_answer_is_found_no_more(self) -> None:
        async with self._cache() as cache:
            await cache.keep(_REQUEST, "c", kept_answer("git"), similar=True)
            await cache.keep(_REQUEST, "d", kept_answer("git"), similar=True)
            await cache.forget(_SAME, "c")
            _must(await self._given(cache, _REQUEST) is None, "it is still found")
            _must(await self._given(cache, _REQUEST, "d") is not None, "another context lost it")
            await cache.forget("never kept", "c")

    async def test_marks_are_kept_while_an_answer_is_of_their_catalog(self) -> None:
        async with self._cache() as cache:
            _must(await cache.marks_of("v1") is None, "it has marks that were never kept")
            for version in ("v1", "v2"):
                answer = kept_answer("git", catalog=version)
                await cache.keep(f"{_REQUEST} {version}", "c", answer, similar=True)
                await cache.keep_marks(version, version.encode() * 8)
            for version in ("v1", "v2"):
                _must(await cache.marks_of(version) == version.encode() * 8, f"{version} is lost")

    async def test_closing_twice_is_fine(self) -> None:
        async with self._cache() as cache:
            await cache.aclose()


def _must(holds: bool, otherwise: str) -> None:
    if not holds:
        raise AssertionError(otherwise)
