"""Copies of skills in weaker roots are not routed to beside their originals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from cascade import SHIPPED, settings_for, some_skills
from index_edits import edit_between

from router import SemanticRouter
from router.retrieval.copies import Copies, root_numbers
from router.retrieval.documents import Edit, SkillDocument
from router.skills.catalog import Catalog, load_catalog

SQUASH = "squash the last four commits on this branch into one"


def copied(folder: Path, name: str, text: str) -> None:
    (folder / name).mkdir(parents=True)
    (folder / name / "SKILL.md").write_text(text.replace("name: git\n", f"name: {name}\n"))


@pytest.fixture
def roots(tmp_path: Path) -> list[Path]:
    """``mine`` with two shipped skills, and ``theirs`` with copies of one of them."""
    mine = some_skills(tmp_path / "mine", "git", "testing")
    text = (SHIPPED / "git" / "SKILL.md").read_text()
    for number in range(20):
        copied(tmp_path / "theirs", f"a-copy-{number}", text)
    copied(tmp_path / "theirs", "a-near-copy", text + "\nAlways be careful and friendly.\n")
    return [mine, tmp_path / "theirs"]


def copies_of(catalog: Catalog) -> Copies:
    edit = edit_between([], [SkillDocument.of(skill) for skill in catalog.routable])
    return Copies().edited(edit, list(catalog.skills), root_numbers(catalog))


def test_copies_and_near_copies_in_a_weaker_root_are_found(roots: list[Path]) -> None:
    copies = copies_of(load_catalog(roots))
    assert copies.originals == ("git", "testing")
    assert copies.stronger["a-copy-7"] == copies.stronger["a-near-copy"] == ("git",)


def test_the_earlier_root_wins_whoever_is_the_original(roots: list[Path]) -> None:
    assert "git" not in copies_of(load_catalog(roots[::-1])).originals


def test_within_one_root_nothing_is_hidden(roots: list[Path]) -> None:
    copies = copies_of(load_catalog([roots[1]]))
    assert (len(copies.originals), dict(copies.stronger)) == (21, {})


def test_a_copy_stands_in_where_its_original_is_not_available(roots: list[Path]) -> None:
    copies = copies_of(load_catalog(roots))
    assert copies.without(["a-copy-1", "testing"]) == ["a-copy-1", "testing"]
    assert copies.without(["a-copy-1", "git"]) == ["git"]


def test_a_later_comparison_is_that_of_a_fresh_one(roots: list[Path]) -> None:
    catalog = load_catalog(roots)
    (roots[1] / "a-copy-3" / "SKILL.md").write_text("---\ndescription: Bakes bread.\n---\nBake.\n")
    after = load_catalog(roots, previous=catalog)
    kept = np.arange(len(catalog.skills))
    kept[list(after.skills).index("a-copy-3")] = -1
    documents = [SkillDocument.of(one.get("a-copy-3")) for one in (after, catalog)]
    edit = Edit(kept, documents[:1], documents[1:])
    later = copies_of(catalog).edited(edit, list(after.skills), root_numbers(after))
    assert later.originals == copies_of(after).originals == ("a-copy-3", "git", "testing")


async def test_copies_take_no_request_from_their_original(
    roots: list[Path], tmp_path: Path
) -> None:
    settings = settings_for(tmp_path / "state")
    async with SemanticRouter(settings, sources=roots) as router:
        result = await router.route(SQUASH)
        assert result.selected_skills == ("git",)
        assert set((await router.rank(SQUASH)).names) == {"git", "testing"}
        result = await router.route(SQUASH, available_skills=["a-copy-1", "testing"])
        assert result.selected_skills == ("a-copy-1",)
