from __future__ import annotations

import pytest
import yaml
from cpu_time import cpu_time_at_most

from router.bounded.yaml import load_yaml


def test_plain_values_are_read() -> None:
    assert load_yaml("a: [1, {b: x}]", max_depth=3) == {"a": [1, {"b": "x"}]}


@pytest.mark.parametrize("opening", ["[", "{", "- "])
def test_what_is_nested_deeply_is_refused_quickly(opening: str) -> None:
    with cpu_time_at_most(1), pytest.raises(ValueError, match="more than 20 levels"):
        load_yaml("x:\n  " + opening * 60_000, max_depth=20)


def test_an_alias_is_refused_where_there_may_be_none() -> None:
    text = "a: &a [x]\nb: *a"
    assert load_yaml(text, max_depth=5) == {"a": ["x"], "b": ["x"]}
    with pytest.raises(ValueError, match="alias"):
        load_yaml(text, max_depth=5, aliases=False)


def test_what_is_no_yaml_is_an_error() -> None:
    with pytest.raises(yaml.YAMLError):
        load_yaml("a: [", max_depth=5)


def test_merges_that_double_each_time_are_refused_quickly() -> None:
    lines = ["- &b0 {k0: 1, k1: 2}"]
    lines += [f"- &b{i} {{<<: [*b{i - 1}, *b{i - 1}]}}" for i in range(1, 40)]
    assert load_yaml("\n".join(lines[:5]), max_depth=5)[4] == {"k0": 1, "k1": 2}
    with cpu_time_at_most(1), pytest.raises(ValueError, match="it merges"):
        load_yaml("\n".join(lines), max_depth=5)


@pytest.mark.parametrize("number", ["1" + ":1" * 500_000, "1" + ":1" * 400 + ".5", "9" * 5_000])
def test_a_number_that_takes_work_without_end_is_refused_quickly(number: str) -> None:
    assert load_yaml("a: 1:30", max_depth=1) == {"a": 90}
    with cpu_time_at_most(1), pytest.raises(ValueError, match="a number is too long"):
        load_yaml(f"a: {number}", max_depth=1)
    assert load_yaml(f"a: '{number}'", max_depth=1) == {"a": number}
