"""A skill as retrieval sees it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cpu_time import cpu_time_at_most
from hypothesis import given
from hypothesis import strategies as st

from router.retrieval.documents import (
    FIELDS,
    MAX_BODY_CHARACTERS,
    MAX_SECTION_CHARACTERS,
    SkillDocument,
    indexed_words,
)
from router.skills.enrichment import Enrichment
from router.skills.manifest import SkillManifest


def manifest(**fields: Any) -> SkillManifest:
    texts = {"name": "some-skill", "description": "Does it.", "body": ""} | fields
    return SkillManifest(path=Path("/skills/some-skill/SKILL.md"), digest="0", **texts)


def stems_in(field: str, **fields: Any) -> dict[str, int]:
    return dict(SkillDocument.of(manifest(**fields)).fields[FIELDS.index(field)])


BODY = """
# Charts

Plot the columns.

## When to use

Asked for diagrams.

## Steps

```python
import matplotlib
```
"""


def test_the_name_is_indexed_in_its_words() -> None:
    assert stems_in("name", name="merge_conflict-helper") == {"merg": 1, "conflict": 1, "helper": 1}


def test_keywords_intents_and_examples_are_hints() -> None:
    hints = stems_in(
        "hints", routing_keywords=("rebase",), intents=("push",), examples=("push commits",)
    )
    assert hints == {"rebas": 1, "push": 2, "commit": 1}


def test_requests_that_an_llm_has_written_count_as_examples() -> None:
    enrichment = Enrichment(skill="some-skill", requests=("push commits",))
    assert stems_in("hints", enrichment=enrichment) == {"push": 1, "commit": 1}


def test_function_words_are_not_indexed() -> None:
    assert stems_in("description", description="What to do with the columns") == {"column": 1}


def test_code_is_kept_apart_from_prose() -> None:
    assert stems_in("code", body=BODY) == {"python": 1, "import": 1, "matplotlib": 1}
    assert "matplotlib" not in stems_in("prose", body=BODY)


def test_a_section_that_says_when_to_use_the_skill_counts_in_prose_and_again() -> None:
    assert stems_in("when", body=BODY) == {"ask": 1, "diagram": 1}
    assert stems_in("prose", body=BODY)["diagram"] == 1


@pytest.mark.parametrize(
    "heading", ["# Purpose", "###### USE CASES", "## Overview", "# What it is"]
)
def test_such_a_section_goes_by_many_names(heading: str) -> None:
    assert stems_in("when", body=f"{heading}\ndiagrams\n# Other\ncolumns") == {"diagram": 1}


def test_a_code_fence_that_is_not_closed_runs_to_the_end() -> None:
    body = "columns\n```\nimport\n## When\ndiagrams"
    assert stems_in("prose", body=body) == {"column": 1}
    assert stems_in("when", body=body) == {}


def test_an_empty_body_leaves_its_fields_empty() -> None:
    document = SkillDocument.of(manifest(body=""))
    assert [dict(bag) for bag in document.fields[3:]] == [{}, {}, {}]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FlatList", {"flatlist", "flat", "list"}),
        ("useEffectEvent", {"useeffectevent", "effect", "event", "use"}),
        ("plain", {"plain"}),
    ],
)
def test_an_identifier_is_indexed_whole_and_in_its_parts(text: str, expected: set[str]) -> None:
    assert set(indexed_words(text)) == expected


def test_words_are_kept_unstemmed_for_the_spelling_index() -> None:
    assert "columns" in SkillDocument.of(manifest(body=BODY)).words


def test_only_the_beginning_of_a_body_is_read() -> None:
    kept = "a " * (MAX_BODY_CHARACTERS // 2)
    document = SkillDocument.of(manifest(body=kept + "matplotlib"))
    assert document == SkillDocument.of(manifest(body=kept))


def test_only_the_beginning_of_a_section_on_when_counts_again() -> None:
    body = "# When\n" + "x " * (MAX_SECTION_CHARACTERS // 2) + "diagrams"
    assert "diagram" not in stems_in("when", body=body)


# --- the digest


SAYS = ("name", "description", "body", "routing_keywords", "intents", "examples")


@pytest.mark.parametrize("field", SAYS)
def test_the_digest_changes_with_what_the_encoder_reads(field: str) -> None:
    changed = ("columns",) if isinstance(getattr(manifest(), field), tuple) else "columns"
    after = manifest(**{field: changed})
    assert SkillDocument.of(after).digest != SkillDocument.of(manifest()).digest


def test_the_digest_changes_with_nothing_else() -> None:
    before = manifest()
    after = replace(
        before, license="MIT", digest="1", path=Path("/elsewhere"), generic=True, extra={"a": "b"}
    )
    assert SkillDocument.of(after).digest == SkillDocument.of(before).digest


@given(st.tuples(st.text(), st.text()), st.tuples(st.text(), st.text()))
def test_equal_digests_mean_equal_head_and_body(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    first, second = (SkillDocument.of(manifest(description=d, body=b)) for d, b in (one, other))
    equal_texts = (first.head, first.body) == (second.head, second.body)
    assert (first.digest == second.digest) == equal_texts


@pytest.mark.parametrize(
    "junk", ["#", "# what ", "```\n", "~~~\n```\n", "a", "aB", "# when\n", "_"]
)
def test_the_longest_bodies_of_junk_are_read_in_no_time(junk: str) -> None:
    with cpu_time_at_most(1):  # with backtracking it takes minutes
        SkillDocument.of(manifest(body=junk * (MAX_BODY_CHARACTERS // len(junk))))
