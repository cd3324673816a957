"""A route says which memory layers to read, in the same call."""

from __future__ import annotations

from pathlib import Path

import pytest
from cascade import SHIPPED, settings_for

from router import SemanticRouter


@pytest.mark.parametrize(
    ("request_text", "layers"),
    [
        ("Continue working on auth", {"session", "project", "graph"}),
        ("What is JWT?", {"semantic"}),
    ],
)
async def test_a_request_names_the_layers_that_it_needs(
    tmp_path: Path, request_text: str, layers: set[str]
) -> None:
    async with SemanticRouter(settings_for(tmp_path), roots=[SHIPPED]) as router:
        result = await router.route(request_text)
    assert {layer.name for layer in result.memory_layers} == layers


async def test_a_cached_answer_names_the_same_layers(tmp_path: Path) -> None:
    async with SemanticRouter(settings_for(tmp_path), roots=[SHIPPED]) as router:
        first = await router.route("Commit what we changed in the last hour")
        again = await router.route("Commit what we changed in the last hour")
    assert again.memory_layers == first.memory_layers


async def test_a_request_longer_than_any_query_is_classified_by_its_beginning(
    tmp_path: Path,
) -> None:
    async with SemanticRouter(settings_for(tmp_path), roots=[SHIPPED]) as router:
        result = await router.route(" " * 3_000 + "What is JWT?")
    assert [layer.name for layer in result.memory_layers] == ["semantic"]
