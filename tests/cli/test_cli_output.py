"""What a terminal and a pipe get."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from router.cli.output import plain


def test_a_locale_without_the_characters_shows_their_escapes() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "router", "skills", "list"],
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )
    assert b"debugging" in done.stdout
    assert b"\\u2026" in done.stdout


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("two\nlines", "two lines"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\u202eb", "a\\u202eb"),
        ("half \udc80", "half \\udc80"),
        ("naïve 👩‍💻", "naïve 👩‍💻"),
    ],
)
def test_text_from_strangers_cannot_drive_the_terminal(text: str, shown: str) -> None:
    assert plain(text) == shown
