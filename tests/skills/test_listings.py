"""Listings: folders and indexes of skills that are not installed."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.skills.listings import (
    MAX_ENTRIES,
    MAX_INDEX_BYTES,
    MAX_KEYWORDS,
    SkillListing,
    read_listing,
)

PDF = {
    "name": "pdf-forms",
    "description": "Fills PDF forms.",
    "keywords": ["acroform", "xfa form"],
    "url": "https://example.org/skills/pdf-forms?v=2",
}


def index(tmp_path: Path, document: object) -> Path:
    path = tmp_path / "index.json"
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def faults(listing: SkillListing) -> list[str]:
    found = (*listing.catalog.failures, *listing.catalog.notices)
    return [diagnostic.message for diagnostic in found]


@pytest.mark.parametrize("document", [[PDF], {"skills": [PDF], "generated": "today"}])
def test_an_index_lists_skills(tmp_path: Path, document: object) -> None:
    path = index(tmp_path, document)
    listed = read_listing(path)
    skill = listed.catalog.skills["pdf-forms"]
    assert (skill.description, skill.routing_keywords) == (
        "Fills PDF forms.",
        ("acroform", "xfa form"),
    )
    assert (skill.path, skill.body) == (path, "")
    assert listed.urls == {"pdf-forms": PDF["url"]}
    assert faults(listed) == []


def test_an_entry_needs_a_name_and_a_description_only(tmp_path: Path) -> None:
    entry = {"name": "pdf", "description": " Reads\n PDF.\u0007 ", "stars": 5}
    listed = read_listing(index(tmp_path, [entry]))
    assert listed.catalog.skills["pdf"].description == "Reads PDF."
    assert (listed.urls, faults(listed)) == ({}, [])


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"name": "../../etc"}, "name"),
        ({"name": "pdf\n"}, "name"),
        ({"name": "p" * 65}, "name"),
        ({"name": 7}, "name"),
        ({"description": None}, "description"),
        ({"description": " \u0007 "}, "description"),
        ({"description": "d" * 1025}, "description"),
        ({"keywords": "acroform"}, "keywords"),
        ({"keywords": [1]}, "keywords.0"),
        ({"keywords": ["k"] * (MAX_KEYWORDS + 1)}, "keywords"),
        ({"url": "javascript:alert(1)"}, "url"),
        ({"url": "file:///etc/passwd"}, "url"),
        ({"url": "https://user:password@example.org/"}, "url"),
        ({"url": "https://example.org/\u202egnp"}, "url"),
        ({"url": "https://example.org/\n"}, "url"),
    ],
)
def test_a_bad_entry_is_left_out_and_reported_without_its_value(
    tmp_path: Path, change: dict[str, Any], place: str
) -> None:
    good = {"name": "good", "description": "Is good."}
    listed = read_listing(index(tmp_path, [PDF | change, good]))
    assert list(listed.catalog.skills) == ["good"]
    [message] = faults(listed)
    assert message.startswith(f"entry 1 is left out: {place}: ")


def test_the_first_entry_of_a_name_is_taken(tmp_path: Path) -> None:
    listed = read_listing(index(tmp_path, [PDF, PDF | {"description": "Another."}]))
    assert listed.catalog.skills["pdf-forms"].description == "Fills PDF forms."
    assert faults(listed) == ["entry 2 is left out: pdf-forms is listed before it"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "the index is not JSON"),
        (b"[NaN]", "the index is not JSON"),
        (b"[" * 100_000, "the index is not JSON"),
        (b'["\xff"]', "the index is not JSON"),
        (b'{"names": []}', "the index is neither a list nor an object"),
        (b'"skills"', "the index is neither a list nor an object"),
        (b"[" + b"1," * MAX_ENTRIES + b"1]", "the index has 10,001 entries; at most 10,000"),
        (b" " * (MAX_INDEX_BYTES + 1), "the listing: larger than 8,388,608 bytes"),
    ],
)
def test_an_index_that_is_none_lists_nothing_and_says_why(
    tmp_path: Path, data: bytes, reason: str
) -> None:
    path = tmp_path / "index.json"
    path.write_bytes(data)
    listed = read_listing(path)
    assert dict(listed.catalog.skills) == {}
    assert [message.startswith(reason) for message in faults(listed)] == [True]


def test_a_path_that_leads_nowhere_lists_nothing_and_says_so(tmp_path: Path) -> None:
    listed = read_listing(tmp_path / "gone")
    assert faults(listed) == ["the listing: cannot be read: No such file or directory"]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    listed = read_listing(tmp_path / "pipe")
    assert faults(listed) == ["the listing: not a regular file"]


def test_a_folder_lists_its_skills_and_reports_those_that_cannot_be_loaded(tmp_path: Path) -> None:
    for name, text in (("pdf", "---\nname: pdf\ndescription: x\n---\nbody"), ("bad", "none")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "SKILL.md").write_text(text)
    listed = read_listing(tmp_path)
    assert {name: skill.path for name, skill in listed.catalog.skills.items()} == {
        "pdf": tmp_path / "pdf" / "SKILL.md"
    }
    assert [failure.path.parent.name for failure in listed.catalog.failures] == ["bad"]


def test_an_unchanged_index_is_not_parsed_again(tmp_path: Path) -> None:
    path = index(tmp_path, [PDF])
    first = read_listing(path)
    os.utime(path, (0, 0))
    assert read_listing(path, previous=first) is first
    index(tmp_path, [])
    assert dict(read_listing(path, previous=first).catalog.skills) == {}


def test_an_index_caught_half_written_goes_on_listing_what_it_did_until_it_is_mended_or_gone(
    tmp_path: Path,
) -> None:
    path = index(tmp_path, [PDF])
    whole = read_listing(path)
    path.write_bytes(path.read_bytes()[:20])
    half = read_listing(path, previous=whole)
    assert (list(half.catalog.skills), half.urls) == (["pdf-forms"], whole.urls)
    assert len(half.catalog.failures) == 1
    index(tmp_path, [PDF])
    mended = read_listing(path, previous=half)
    assert (list(mended.catalog.skills), faults(mended)) == (["pdf-forms"], [])
    path.unlink()
    assert dict(read_listing(path, previous=mended).catalog.skills) == {}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(("skills", "name", "description", "keywords", "url")), inner, max_size=4
        )
    ),
    max_leaves=12,
)


@settings(max_examples=200)
@given(JSON.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=40))
def test_whatever_the_bytes_nothing_is_raised_and_what_is_listed_is_sound(
    tmp_path: Path, data: bytes
) -> None:
    path = tmp_path / "index.json"
    path.write_bytes(data)
    listed = read_listing(path)
    for name, skill in listed.catalog.skills.items():
        assert name.replace("-", "").isascii() and name.replace("-", "").isalnum()
        assert skill.description == " ".join(skill.description.split()) != ""
    assert listed.urls.keys() <= listed.catalog.skills.keys()
