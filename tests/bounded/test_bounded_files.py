from __future__ import annotations

import os
import socket
import threading
import tracemalloc
from pathlib import Path

import pytest

from router.bounded.files import Unreadable, read_bounded


def test_a_file_is_read_up_to_the_bound(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"12345\r\n")
    assert read_bounded(path, most=7) == b"12345\r\n"
    with pytest.raises(Unreadable, match=r"^larger than 6 bytes$"):
        read_bounded(path, most=6)


def test_a_small_file_takes_little_memory_however_much_is_allowed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    content = bytes(range(256)) * 10_000  # more than is read at once
    path.write_bytes(content)
    tracemalloc.start()
    try:
        assert read_bounded(path, most=1 << 28) == content
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()
    with pytest.raises(Unreadable, match=r"^larger than 2,500,000 bytes$"):
        read_bounded(path, most=2_500_000)


@pytest.mark.parametrize("kind", ["pipe", "folder", "device", "link to a pipe"])
def test_what_is_no_regular_file_is_refused_at_once(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "it"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        path = Path(os.devnull)
    else:
        os.mkfifo(tmp_path / "pipe")
        path.symlink_to("pipe")
    with pytest.raises(Unreadable, match=r"^not a regular file$"):
        read_bounded(path, most=10)


def test_a_pipe_that_the_user_names_is_read_to_its_end_and_up_to_the_bound(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    for most in (5, 4):
        threading.Thread(target=path.write_bytes, args=(b"12345",)).start()
        if most == 5:
            assert read_bounded(path, most=most, pipes=True) == b"12345"
        else:
            with pytest.raises(Unreadable, match=r"^larger than 4 bytes$"):
                read_bounded(path, most=most, pipes=True)


def test_what_cannot_be_opened_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match=r"^cannot be read: No such file or directory$"):
        read_bounded(tmp_path / "gone", most=10)
    with pytest.raises(Unreadable, match=r"^cannot be read: .*null"):
        read_bounded(tmp_path / "a\0b", most=10)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "s"))
        with pytest.raises(Unreadable, match=r"^cannot be read: "):
            read_bounded(tmp_path / "s", most=10)


def test_no_file_stays_open(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"123")
    before = len(list(Path("/dev/fd").iterdir()))
    for _ in range(3):
        for path in (tmp_path, tmp_path / "file"):
            with pytest.raises(Unreadable):
                read_bounded(path, most=2)
    assert len(list(Path("/dev/fd").iterdir())) == before
