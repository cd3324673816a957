"""The version of this package, and how its extras are installed."""

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


def install_extra(name: str) -> str:
    """The command that installs an extra, for the way out that an error names. The package is on no
    index yet, so the command needs the folder that it was installed from."""
    return f"pip install '.[{name}]' in the folder of cascade-router"
