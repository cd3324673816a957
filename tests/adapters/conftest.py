"""Tests of adapters run where their framework is installed; ``make test-adapters`` installs all."""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec
from typing import Final

FRAMEWORKS: Final = {
    "test_langchain.py": "langchain",
    "test_pydantic_ai.py": "pydantic_ai",
    "test_fastmcp.py": "fastmcp",
    "test_adk.py": "google.adk",
}


def installed(package: str) -> bool:
    """Whether a package can be imported here."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # not even the package that it is in
        return False


collect_ignore = [name for name, package in FRAMEWORKS.items() if not installed(package)]
if not installed("mcp") or not version("mcp").startswith("1."):
    collect_ignore.append("test_mcp_1.py")
