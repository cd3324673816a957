from __future__ import annotations

import tomllib
from typing import Any

import pytest
from cpu_time import cpu_time_at_most

from router.bounded.toml import MAX_KEY_PARTS, load_toml


def test_plain_tables_are_read() -> None:
    text = 'a.b = 1\n[c."d.e"]\nf = [{g = 2.5}]\nh = "……… ..... 1.2.3"\n'
    assert load_toml(text) == tomllib.loads(text)


@pytest.mark.parametrize("part", ["a", "a ", '""', '"\\"" ', "'.'", "a-_1"])
@pytest.mark.parametrize("place", ["{} = 1", "x = 1\n[ {} ]", "[[{}]]", "x = {{ {} = 1 }}"])
def test_a_key_of_many_parts_is_refused_quickly(part: str, place: str) -> None:
    with cpu_time_at_most(1), pytest.raises(ValueError, match=f"more than {MAX_KEY_PARTS} parts"):
        load_toml(place.format(".".join([part] * 200_000)))


def test_a_key_of_as_many_parts_as_are_allowed_is_read() -> None:
    tables: Any = load_toml(f"{'.'.join(['a'] * MAX_KEY_PARTS)} = 1")
    for _ in range(MAX_KEY_PARTS):
        tables = tables["a"]
    assert tables == 1


@pytest.mark.parametrize(
    "piece", ["a", '"', "'", "a ", '"a', ". ", '"\\', "a.\n", '"".\n', '\\\\" ', " "]
)
def test_looking_for_long_keys_takes_time_in_proportion_to_the_text(piece: str) -> None:
    with cpu_time_at_most(2), pytest.raises(tomllib.TOMLDecodeError):
        load_toml(piece * 300_000 + "=")


def test_a_number_that_nobody_can_write_down_is_refused() -> None:
    assert load_toml("a = 0xffff_ffff_ffff_ffff\nb = -9223372036854775808")["a"] == 2**64 - 1
    for place in ("a = {}", "a = [1, {{b = {}}}]", "[c]\nd = {}"):
        with pytest.raises(ValueError, match="more than 64 bits"):
            load_toml(place.format("0x" + "f" * 20_000))
