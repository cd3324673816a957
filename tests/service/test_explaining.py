"""Why one skill won: each score in its parts, and the lead of the winner over the runner-up."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from cached import answer
from cascade import bundled_encoder, some_skills

from router.request import Request
from router.retrieval.index import SkillIndex
from router.retrieval.vectors import VectorStore
from router.service.explaining import explain
from router.skills.registry import SkillRegistry

ASKED = Request.parse("squash the last four commits on this branch")


@pytest.fixture
def index(tmp_path: Path) -> SkillIndex:
    """Over two shipped skills."""
    catalog = SkillRegistry([some_skills(tmp_path / "skills", "git", "testing")]).catalog
    encoder = bundled_encoder()
    store = VectorStore(tmp_path / "embeddings", identity=encoder.identity)
    return SkillIndex.build(catalog, encoder=encoder, store=store)


async def test_scores_are_split_into_parts_and_so_is_the_lead(index: SkillIndex) -> None:
    found = await explain(ASKED, answer("git"), index)
    assert [(one.name, one.role) for one in found.candidates] == [
        ("git", "selected"),
        ("testing", "not chosen"),
    ]
    for one in found.candidates:
        assert sum(one.parts) == pytest.approx(one.score)
    assert found.winner is not None
    assert found.runner_up is not None
    assert (found.winner.name, found.runner_up.name) == ("git", "testing")
    assert found.lead.startswith("git is ")
    assert "squash" in found.winner.terms


async def test_where_nothing_is_selected_the_best_by_retrieval_is_looked_at(
    index: SkillIndex,
) -> None:
    nothing = replace(answer("git"), selected_skills=(), suggested_skills=("testing",))
    found = await explain(ASKED, nothing, index)
    assert [one.role for one in found.candidates] == ["not chosen", "suggested"]
    assert found.winner is not None
    assert found.winner.name == "git"
