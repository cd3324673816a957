"""Folders and files that only their owner may read: they hold people's words. What cannot be made
or written raises ``OSError``.

What exists already with wider permissions is mended. On systems without POSIX permissions the
user's own profile protects these files, and nothing is done here.
"""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Final

FOLDER_MODE: Final = 0o700
FILE_MODE: Final = 0o600


def private_folder(path: Path) -> None:
    """Make a folder, with those above it, that only its owner may enter.

    A folder that exists is mended. Left as they are: folders of other users, and the user's home,
    the working directory and what is above them, which hold much that is not the router's."""
    missing = [folder for folder in (path, *path.parents) if not folder.exists()]
    for folder in reversed(missing):
        with suppress(FileExistsError):  # another process was quicker
            folder.mkdir(mode=FOLDER_MODE)
    if not path.is_dir():
        raise NotADirectoryError(f"{path} is not a folder")
    whole = path.resolve()
    home = Path(os.path.realpath(os.path.expanduser("~")))  # noqa: PTH111 - raises no error
    if not any(place.is_relative_to(whole) for place in (Path.cwd(), home)):
        _narrow(whole, FOLDER_MODE)


def private_file(path: Path) -> None:
    """Make sure that a file exists and that only its owner may read it."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, FILE_MODE))
    _narrow(path, FILE_MODE)


def replace_file(path: Path, data: bytes, *, mode: int = FILE_MODE) -> None:
    """Put a file in the place of an old one, in one step: readers see the old content or the new
    one, and after a failure the old one is there still. The folder must exist.

    Args:
        mode: its permissions; unless told otherwise, only its owner may read it.
    """
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # mode 0600
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(name).chmod(mode)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def narrow_tree(path: Path) -> None:
    """Take the permissions of everybody else off a folder and all that it holds. Links are not
    followed. Use it for folders in which a library makes files with wider permissions."""
    _narrow(path, FOLDER_MODE)
    for folder, folders, files in os.walk(path):
        for name in folders:
            _narrow(Path(folder, name), FOLDER_MODE)
        for name in files:
            _narrow(Path(folder, name), FILE_MODE)


def _narrow(path: Path, mode: int) -> None:
    """Take off what a mode does not allow, where the file is the user's own."""
    if os.name != "posix":
        return
    with suppress(OSError):  # gone meanwhile, or a file system without permissions
        found = path.lstat()
        if stat.S_ISLNK(found.st_mode) or found.st_uid != os.geteuid():
            return
        if found.st_mode & 0o777 & ~mode:
            path.chmod(found.st_mode & mode)
