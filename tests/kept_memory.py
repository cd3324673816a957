"""Settings of a memory that lives in a test's folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from router.settings.settings import Settings


def settings_in(tmp_path: Path, **memory: Any) -> Settings:
    """Deadlines that a busy machine keeps."""
    return Settings(
        memory={
            "directory": tmp_path / "kept",
            "project_directory": tmp_path / "project",
            "layer_deadline_seconds": 30,
            "deadline_seconds": 60,
            **memory,
        }
    )
