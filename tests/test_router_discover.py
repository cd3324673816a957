"""``discover`` of an open router: the installed skills, and listings as suggestions only."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest
from cascade import CountingEncoder, happened, router_over, settings_for, some_skills

from router import Discovered, InvalidRequest, SyncSemanticRouter
from router.service.service import Service
from router.service.shapes import FindArguments

QUERY = "translate the subtitles of a film"


@pytest.fixture
def skills(tmp_path: Path) -> Path:
    return some_skills(tmp_path / "skills", "git", "debugging")


@pytest.fixture
def listing(tmp_path: Path) -> Path:
    path = tmp_path / "index.json"
    entry = {
        "name": "subtitles",
        "description": "Translates subtitles of films. Use for SRT and VTT files.",
        "url": "https://example.org/subtitles",
    }
    path.write_text(json.dumps([entry]))
    return path


def seen(found: tuple[Discovered, ...]) -> list[tuple[str, bool]]:
    return [(skill.name, skill.installed) for skill in found]


async def test_listings_are_searched_on_request_only(
    tmp_path: Path, skills: Path, listing: Path
) -> None:
    async with router_over(skills, tmp_path / "state", listings=[listing]) as router:
        here = await router.discover("commit my changes")
        assert {skill.installed for skill in here} == {True}
        assert here[0].name == "git"
        everywhere = await router.discover(QUERY, limit=2, installed_only=False)
        assert seen(everywhere)[1] == ("subtitles", False)
        assert everywhere[1].url == "https://example.org/subtitles"


async def test_a_suggestion_is_never_routed_to(tmp_path: Path, skills: Path, listing: Path) -> None:
    async with router_over(skills, tmp_path / "state") as router:
        before = await router.route(QUERY)
    async with router_over(skills, tmp_path / "other", listings=[listing]) as router:
        await router.discover(QUERY, installed_only=False)
        after = await router.route(QUERY)
        assert "subtitles" not in router.catalog.skills
        named = await router.route(QUERY, available_skills=["subtitles"])
    assert (after.decision, after.selected_skills, after.suggested_skills) == (
        before.decision,
        before.selected_skills,
        before.suggested_skills,
    )
    assert (named.selected_skills, named.suggested_skills) == ((), ())


async def test_a_query_is_checked_as_a_request_is(tmp_path: Path, skills: Path) -> None:
    async with router_over(skills, tmp_path / "state") as router:
        with pytest.raises(InvalidRequest, match="empty"):
            await router.discover(" ")
        with pytest.raises(InvalidRequest, match="limit: 0"):
            await router.discover("commit", limit=0)


async def test_closing_answers_the_search_under_way(
    tmp_path: Path, skills: Path, listing: Path
) -> None:
    encoder = CountingEncoder()
    router = router_over(skills, tmp_path / "state", listings=[listing], encoder=encoder)
    await router.open()
    encoder.encoding.clear()
    encoder.release.clear()
    search = asyncio.create_task(router.discover(QUERY, installed_only=False))
    await happened(encoder.encoding)
    closing = asyncio.create_task(router.aclose())
    encoder.release.set()
    await closing
    assert ("subtitles", False) in seen(await search)
    with pytest.raises(RuntimeError, match="closed"):
        await router.discover(QUERY)


def test_the_synchronous_face_discovers_too(tmp_path: Path, skills: Path, listing: Path) -> None:
    settings = settings_for(tmp_path / "state", listings=[listing])
    with SyncSemanticRouter.from_skills(skills, settings=settings) as router:
        assert seen(router.discover(QUERY, installed_only=False))[1] == ("subtitles", False)


async def test_what_a_caller_may_not_use_cannot_be_found(tmp_path: Path, skills: Path) -> None:
    async with router_over(skills, tmp_path / "state") as router:
        found = await router.discover("commit my changes", available=["debugging"])
        forced = await router.discover(
            "commit my changes", available=["debugging"], always_include=["git"]
        )
        service = Service(router)
        told = await service.find(FindArguments(query="commit", available_skills=["debugging"]))
    assert seen(found) == seen(forced) == [("debugging", True)]
    assert told.left_out == 1


async def test_what_is_always_included_is_given_with_its_score(
    tmp_path: Path, skills: Path, listing: Path
) -> None:
    async with router_over(skills, tmp_path / "state", listings=[listing]) as router:
        every = await router.discover("commit my changes")
        one = await router.discover("commit my changes", limit=1, always_include=["debugging"])
        beside = await router.discover(
            QUERY, limit=2, always_include=["git", "debugging"], installed_only=False
        )
    assert seen(one) == [("debugging", True)]
    score = next(skill.match.score for skill in every if skill.name == "debugging")
    assert one[0].match.score == pytest.approx(score, abs=1e-6)
    assert {name for name, _ in seen(beside)} == {"git", "debugging"}


async def test_a_query_that_cannot_stand_alone_is_read_with_what_was_said(
    tmp_path: Path, skills: Path
) -> None:
    said = [{"role": "user", "content": "find the cause of this stack trace"}]
    async with router_over(skills, tmp_path / "state") as router:
        found = await router.discover("and again", history=said)
    assert found[0].name == "debugging"
