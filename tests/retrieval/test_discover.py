"""Discovery over installed skills and over those that listings list."""

from __future__ import annotations

import asyncio
import json
import logging
import shutil
import threading
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from numpy.typing import NDArray

from router.errors import EncoderError, InvalidRequest
from router.retrieval.bundled_encoder import BundledEncoder
from router.retrieval.discover import Discovered, ListingIndex, discover
from router.retrieval.index import SkillIndex
from router.retrieval.vectors import VectorStore
from router.skills.catalog import Catalog, load_catalog, merge_sources
from router.skills.folders import FolderSource

QUERY = "fill in a PDF form"


class Encoder:
    """The bundled encoder, with a record of the skills that it encoded."""

    static = True

    def __init__(self) -> None:
        self._encoder = BundledEncoder()
        self.identity = self._encoder.identity
        self.skills: list[str] = []
        self.faulty = False
        self.free = threading.Event()
        self.free.set()
        self.busy = threading.Event()

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self._encoder.encode(texts)

    def encode_documents(self, documents: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        self.busy.set()
        assert self.free.wait(20)
        if self.faulty:
            raise EncoderError("out of order")
        self.skills += [head.split(".")[0] for head, _ in documents]
        return self._encoder.encode_documents(documents)


def put(root: Path, name: str, description: str) -> Path:
    file = root / name / "SKILL.md"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"---\nname: {name}\ndescription: {description}\n---\nDo it.\n")
    return file


def write_index(path: Path, **skills: str) -> Path:
    """An index of skills by description; underscores in names stand for hyphens."""
    entries = [
        {"name": name.replace("_", "-"), "description": text} for name, text in skills.items()
    ]
    path.write_text(json.dumps(entries))
    return path


@pytest.fixture
def encoder() -> Encoder:
    return Encoder()


@pytest_asyncio.fixture
async def installed(tmp_path: Path, encoder: Encoder) -> AsyncIterator[SkillIndex]:
    """Two installed skills, one of which shadows another."""
    put(tmp_path / "project", "git", "Commits, branches and merge conflicts.")
    put(tmp_path / "project", "pdf", "Reads text out of PDF files.")
    put(tmp_path / "user", "pdf", "Another one for PDF.")
    store = VectorStore(tmp_path / "installed", identity=encoder.identity)
    catalog = load_catalog([tmp_path / "project", tmp_path / "user"])
    index = SkillIndex.build(catalog, encoder=encoder, store=store)
    encoder.skills.clear()
    yield index
    index.close()


def over(tmp_path: Path, encoder: Encoder, *paths: Path) -> ListingIndex:
    return ListingIndex(paths, encoder=encoder, state_dir=tmp_path / "state")


async def ask(
    index: SkillIndex,
    listings: ListingIndex | None = None,
    *,
    query: str = QUERY,
    limit: int = 10,
) -> tuple[Discovered, ...]:
    return await discover(query, catalog=index.catalog, index=index, limit=limit, listings=listings)


def names(found: Sequence[Discovered]) -> list[str]:
    return [skill.name for skill in found]


# --- the installed skills


async def test_installed_skills_are_ranked_with_why_and_what_they_shadow(
    tmp_path: Path, installed: SkillIndex
) -> None:
    first, second = await ask(installed)
    assert (first.name, first.installed, first.url) == ("pdf", True, None)
    assert first.description == "Reads text out of PDF files."
    assert first.source == tmp_path / "project" / "pdf" / "SKILL.md"
    assert first.shadows == (tmp_path / "user" / "pdf" / "SKILL.md",)
    assert (first.match.name, first.match.terms) == ("pdf", ("pdf",))
    assert first.reason == "matches on pdf"
    assert (second.name, second.shadows) == ("git", ())
    assert second.reason == "matches on meaning alone"
    assert first.match.score > second.match.score


@pytest.mark.parametrize("limit", [0, -1, 1001])
async def test_a_limit_out_of_range_is_refused(installed: SkillIndex, limit: int) -> None:
    with pytest.raises(InvalidRequest, match="limit"):
        await ask(installed, limit=limit)


# --- the skills that are not installed


async def test_suggestions_are_interleaved_by_rank_with_the_installed_skill_first(
    tmp_path: Path, encoder: Encoder, installed: SkillIndex
) -> None:
    path = write_index(
        tmp_path / "index.json",
        pdf_forms="Fills in a PDF form.",
        forms="Builds a web form.",
        cake="Bakes chocolate cakes.",
    )
    listings = over(tmp_path, encoder, path)
    found = await ask(installed, listings)
    assert names(found) == ["pdf", "pdf-forms", "git", "forms", "cake"]
    assert [skill.installed for skill in found] == [True, False, True, False, False]
    assert {skill.source for skill in found if not skill.installed} == {path}
    # By score the suggestion would be first: it has every word of the query.
    assert found[1].match.lexical > found[0].match.lexical
    assert names(await ask(installed, listings, limit=3)) == ["pdf", "pdf-forms", "git"]
    await listings.aclose()


async def test_what_is_installed_or_was_unloaded_is_not_suggested(
    tmp_path: Path, encoder: Encoder, installed: SkillIndex
) -> None:
    listed = {"pdf": "Fills PDF forms.", "git": "Works with git.", "forms": "Fills forms."}
    path = write_index(tmp_path / "index.json", **listed)
    listings = over(tmp_path, encoder, path)
    found = await ask(installed, listings)
    assert [(skill.name, skill.installed) for skill in found] == [
        ("pdf", True),
        ("forms", False),
        ("git", True),
    ]
    source = FolderSource([tmp_path / "project"])
    without_git = merge_sources([(source, source.read())], hidden=frozenset({"git"}))
    index = installed.updated(without_git)
    assert names(await ask(index, listings)) == ["pdf", "forms"]
    await listings.aclose()


async def test_a_folder_of_skills_is_a_listing_and_the_first_listing_wins(
    tmp_path: Path, encoder: Encoder, installed: SkillIndex
) -> None:
    file = put(tmp_path / "share", "forms", "Fills forms.")
    path = tmp_path / "index.json"
    entry = {"name": "forms", "description": "Builds forms.", "url": "https://example.org/f"}
    path.write_text(json.dumps([entry]))
    listings = over(tmp_path, encoder, tmp_path / "share", path)
    forms = (await ask(installed, listings))[1]
    assert (forms.description, forms.source, forms.url) == ("Fills forms.", file, None)
    await listings.aclose()
    listings = over(tmp_path, encoder, path, tmp_path / "share")
    forms = (await ask(installed, listings))[1]
    assert (forms.description, forms.source, forms.url) == (
        "Builds forms.",
        path,
        "https://example.org/f",
    )
    await listings.aclose()


async def test_suggestions_leave_the_installed_index_and_its_ranking_alone(
    tmp_path: Path, encoder: Encoder, installed: SkillIndex
) -> None:
    before = await installed.rank(QUERY)
    listings = over(tmp_path, encoder, write_index(tmp_path / "i.json", forms="Fills forms."))
    found = await ask(installed, listings)
    assert tuple(skill.match for skill in found if skill.installed) == before.matches
    assert await installed.rank(QUERY) == before
    await listings.aclose()


async def test_without_installed_skills_the_suggestions_stand_alone(
    tmp_path: Path, encoder: Encoder, installed: SkillIndex
) -> None:
    listings = over(tmp_path, encoder, write_index(tmp_path / "i.json", forms="Fills forms."))
    found = await ask(installed.updated(Catalog()), listings)
    assert [(skill.name, skill.installed) for skill in found] == [("forms", False)]
    await listings.aclose()


# --- the index of the listings


async def test_nothing_is_read_or_opened_before_it_is_asked(
    tmp_path: Path, encoder: Encoder, installed: SkillIndex
) -> None:
    listings = over(tmp_path, encoder, write_index(tmp_path / "i.json", forms="Fills forms."))
    assert not (tmp_path / "state").exists()
    nowhere = over(tmp_path, encoder)
    assert names(await ask(installed, nowhere)) == ["pdf", "git"]
    assert not (tmp_path / "state").exists()
    assert names(await ask(installed, listings)) == ["pdf", "forms", "git"]
    assert [path.name for path in (tmp_path / "state").iterdir()] == ["embeddings"]
    await listings.aclose()


async def test_only_what_changed_is_encoded_again_in_this_process_and_the_next(
    tmp_path: Path, encoder: Encoder, installed: SkillIndex
) -> None:
    path = write_index(tmp_path / "i.json", forms="Fills forms.", cake="Bakes cakes.")
    listings = over(tmp_path, encoder, path)
    await ask(installed, listings)
    assert sorted(encoder.skills) == ["cake", "forms"]
    await ask(installed, listings)
    write_index(path, forms="Fills PDF forms.", cake="Bakes cakes.")
    found = await ask(installed, listings)
    assert found[1].description == "Fills PDF forms."
    assert encoder.skills[2:] == ["forms"]
    write_index(path, forms="Fills PDF forms.")
    assert names(await ask(installed, listings)) == ["pdf", "forms", "git"]
    await listings.aclose()

    write_index(path, forms="Fills PDF forms.", tax="Files the tax return.")
    listings = over(tmp_path, encoder, path)
    await ask(installed, listings)
    assert encoder.skills[3:] == ["tax"]
    await listings.aclose()


async def test_a_skill_that_moved_to_another_listing_is_told_from_there(
    tmp_path: Path, encoder: Encoder, installed: SkillIndex
) -> None:
    put(tmp_path / "first", "forms", "Fills forms.")
    (tmp_path / "second").mkdir()
    listings = over(tmp_path, encoder, tmp_path / "first", tmp_path / "second")
    await ask(installed, listings)
    shutil.move(tmp_path / "first" / "forms", tmp_path / "second" / "forms")
    forms = (await ask(installed, listings))[1]
    assert forms.source == tmp_path / "second" / "forms" / "SKILL.md"
    assert encoder.skills == ["forms"]
    await listings.aclose()


async def test_a_faulty_listing_is_logged_once_and_disturbs_no_other(
    tmp_path: Path, encoder: Encoder, installed: SkillIndex, caplog: pytest.LogCaptureFixture
) -> None:
    path = write_index(tmp_path / "i.json", forms="Fills forms.")
    listings = over(tmp_path, encoder, tmp_path / "gone", path)
    with caplog.at_level(logging.WARNING, "router"):
        for _ in range(2):
            assert names(await ask(installed, listings)) == ["pdf", "forms", "git"]
    assert [record.getMessage() for record in caplog.records] == [
        f"listing fault in '{tmp_path / 'gone'}': "
        "the listing: cannot be read: No such file or directory"
    ]
    assert [fault.path for fault in listings.diagnostics] == [tmp_path / "gone"]
    await listings.aclose()


async def test_after_a_fault_of_the_encoder_the_next_question_is_answered(
    tmp_path: Path, encoder: Encoder, installed: SkillIndex
) -> None:
    path = write_index(tmp_path / "i.json", forms="Fills forms.")
    listings = over(tmp_path, encoder, path)
    encoder.faulty = True
    with pytest.raises(EncoderError, match="out of order"):
        await ask(installed, listings)
    encoder.faulty = False
    assert names(await ask(installed, listings)) == ["pdf", "forms", "git"]
    write_index(path, tax="Files the tax return.")
    encoder.faulty = True
    with pytest.raises(EncoderError, match="out of order"):
        await ask(installed, listings)
    encoder.faulty = False
    assert names(await ask(installed, listings)) == ["pdf", "tax", "git"]
    await listings.aclose()


async def test_closing_waits_for_the_question_under_way_and_refuses_the_next(
    tmp_path: Path, encoder: Encoder, installed: SkillIndex
) -> None:
    listings = over(tmp_path, encoder, write_index(tmp_path / "i.json", forms="Fills forms."))
    encoder.busy.clear()
    encoder.free.clear()
    question = asyncio.create_task(ask(installed, listings))
    assert await asyncio.to_thread(encoder.busy.wait, 20)
    closing = asyncio.create_task(listings.aclose())
    await asyncio.sleep(0)
    assert not closing.done()
    encoder.free.set()
    await closing
    assert names(await question) == ["pdf", "forms", "git"]
    await listings.aclose()
    with pytest.raises(RuntimeError, match="closed"):
        await ask(installed, listings)


async def test_a_cancelled_question_leaves_the_index_usable(
    tmp_path: Path, encoder: Encoder, installed: SkillIndex
) -> None:
    listings = over(tmp_path, encoder, write_index(tmp_path / "i.json", forms="Fills forms."))
    encoder.busy.clear()
    encoder.free.clear()
    question = asyncio.create_task(ask(installed, listings))
    assert await asyncio.to_thread(encoder.busy.wait, 20)
    question.cancel()
    encoder.free.set()
    with pytest.raises(asyncio.CancelledError):
        await question
    assert names(await ask(installed, listings)) == ["pdf", "forms", "git"]
    assert encoder.skills == ["forms"]
    await listings.aclose()
