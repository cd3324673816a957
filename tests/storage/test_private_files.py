"""Files that only their owner may read are replaced whole, or stay as they were."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from router.storage.private_files import replace_file


def test_the_new_content_is_for_its_owner_alone_and_nothing_lies_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "keys.json"
    file.write_bytes(b"old")
    file.chmod(0o644)
    replace_file(file, b"new")
    assert file.read_bytes() == b"new"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [file]


def test_after_a_failure_nothing_has_changed(tmp_path: Path) -> None:
    place = tmp_path / "keys.json"
    (place / "inside").mkdir(parents=True)  # a folder cannot be replaced by a file
    with pytest.raises(OSError, match=r"keys\.json"):
        replace_file(place, b"new")
    assert sorted(tmp_path.rglob("*")) == [place, place / "inside"]
