"""The version of this package."""

from __future__ import annotations

from functools import cache


@cache
def package_version() -> str:
    """Of cascade-router; empty in a source tree that is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("cascade-router")
    except PackageNotFoundError:
        return ""
