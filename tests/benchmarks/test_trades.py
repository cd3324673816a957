"""The catalogs of trades hold together: every label names a skill, every skill has its requests."""

from __future__ import annotations

from collections import Counter

import pytest

from benchmarks.trades import DATA, PARTS, case

CATALOGS = [name for names in PARTS.values() for name in names]
KINDS = {"plain": 12, "everyday": 14, "terse": 5, "several": 5, "followup": 4, "none": 14}
KINDS_LATER = {"plain": 12, "everyday": 12, "terse": 6, "several": 10, "followup": 14, "none": 12}


def test_every_catalog_of_the_folder_is_in_one_part() -> None:
    files = {path.name.partition(".")[0] for path in DATA.glob("*.jsonl")}
    assert sorted(CATALOGS) == sorted(files)


@pytest.mark.parametrize("name", CATALOGS)
def test_labels_and_written_requests_name_skills_of_their_catalog(name: str) -> None:
    found = case(name)
    assert set(found.written) == set(found.skills)
    assert all(len(requests) == 8 for requests in found.written.values())
    assert all(asked.right <= set(found.skills) for asked in found.asked)
    kinds = Counter(asked.kind for asked in found.asked)
    assert kinds == (KINDS_LATER if name in PARTS["later"] else KINDS)
    for asked in found.asked:
        needed = len(asked.skills)
        assert needed == 0 if asked.kind == "none" else needed >= 1 + (asked.kind == "several")
