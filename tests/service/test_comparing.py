"""Comparing two ways to route: what is read of a file and of settings, and what two runs say."""

from __future__ import annotations

import pytest

from router.errors import ConfigurationError, InvalidRequest
from router.evaluation import Judgement, LabelledRequest, apart
from router.result import Decision
from router.service.comparing import (
    MAX_ROWS,
    Side,
    _settings,
    compared,
    read_requests,
    read_settings,
)
from router.settings.settings import Settings


def judged(line: int, label: str, *selected: str) -> Judgement:
    """A row that one skill serves, and what one side answered."""
    row = LabelledRequest(line, f"request {line}", (label,), {})
    decision = Decision.ROUTE if selected else Decision.ABSTAIN
    return Judgement(row, decision, selected, selected, 0.9, 0.9, "vector", 1.0)


def test_lines_are_requests_and_objects_are_labelled_requests() -> None:
    rows, labelled = read_requests("fix the bug\n\n write the docs \n")
    assert [(row.line, row.request) for row in rows] == [(1, "fix the bug"), (3, "write the docs")]
    assert not labelled
    rows, labelled = read_requests('{"request": "fix the bug", "skills": ["debugging"]}')
    assert [(row.request, row.skills) for row in rows] == [("fix the bug", ("debugging",))]
    assert labelled


def test_files_that_cannot_be_compared_are_refused_with_the_reason() -> None:
    with pytest.raises(ConfigurationError, match="there is no request; give one a line"):
        read_requests("\n \n")
    with pytest.raises(ConfigurationError, match=f"at most {MAX_ROWS} are compared"):
        read_requests("fix it\n" * (MAX_ROWS + 1))
    with pytest.raises(InvalidRequest, match="line 2: request: empty"):
        read_requests("fix it\n\0")


def test_settings_are_those_of_a_file_but_for_what_leads_elsewhere() -> None:
    assert read_settings('vector.caution = "careful"') == {"vector": {"caution": "careful"}}
    looser = {"vector": {"caution": "bold"}, "fuzzy": {"similarity_threshold": 0.6}}
    assert read_settings('vector.caution = "bold"\nfuzzy.similarity_threshold = 0.6') == looser
    with pytest.raises(ConfigurationError, match=r"settings: encoder\.kind: thresholds and sizes"):
        read_settings('encoder.kind = "onnx"')
    with pytest.raises(ConfigurationError, match="settings: "):
        read_settings("vector.caution = ")


def test_two_ways_are_compared_without_the_cluster() -> None:
    served = Settings(cluster={"url": "redis://127.0.0.1:6379"}, answer_cache="some.package:Cache")
    with apart(served) as own:
        side = _settings(served, Side({"vector": {"caution": "bold"}}), own)
    assert (side.cluster.url, side.answer_cache, side.vector.caution) == (None, "local", "bold")


def test_what_became_wrong_comes_before_what_became_right() -> None:
    first = [judged(1, "git"), judged(2, "git", "git"), judged(3, "git", "git")]
    second = [judged(1, "git", "git"), judged(2, "git"), judged(3, "git", "git")]
    found = compared(first, second, labelled=True)
    assert [moved.row.line for moved in found.moved] == [2, 1]
    assert found.steps == {("abstain", "route"): 1, ("route", "abstain"): 1, ("route", "route"): 1}
    assert (found.rows, found.first.rows, found.second.rows) == (3, 3, 3)
