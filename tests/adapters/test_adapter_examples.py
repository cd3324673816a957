"""The examples run as they are, and the docs show what they do."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from adapters.conftest import installed

ROOT: Final = Path(__file__).parents[2]
EXAMPLES: Final = {
    "openai_tools": "openai",
    "anthropic_tools": "anthropic",
    "langchain_agent": "langchain",
    "pydantic_ai_agent": "pydantic_ai",
    "fastmcp_server": "fastmcp",
    "adk_agent": "google.adk",
}


def source_of(example: str) -> str:
    return (ROOT / "examples" / f"{example}.py").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "example", [name for name, package in EXAMPLES.items() if installed(package)]
)
def test_an_example_shows_the_tool_that_each_turn_needs(example: str) -> None:
    ran = subprocess.run(
        [sys.executable, str(ROOT / "examples" / f"{example}.py")],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    before, after = ran.stdout.split("Then reserve a restaurant table")
    assert "get_weather" in before
    assert "book_table" in after


def test_the_docs_show_lines_of_the_examples() -> None:
    text = (ROOT / "docs" / "adapters.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == len(EXAMPLES)
    sources = [source_of(example) for example in EXAMPLES]
    assert [block for block in blocks if not any(block in source for source in sources)] == []
