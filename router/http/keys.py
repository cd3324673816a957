"""API keys: who may call, in whose name, and what for.

A key is 256 random bits, so its SHA-256 digest is all that has to be kept: nobody can guess a key
from it. The file is read again whenever it has changed, so that a key that is revoked is refused by
running servers at once.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Final

from filelock import FileLock
from pydantic import BaseModel, Field, ValidationError

from router.bounded.files import Unreadable, read_bounded
from router.errors import ConfigurationError, InvalidRequest, SourceError, StoreError
from router.plain_json import first_fault
from router.request import MAX_SCOPE_CHARACTERS, check_text
from router.storage.private_files import FILE_MODE, private_folder, replace_file
from router.tools.folder import check_namespace

FILE_NAME: Final = "api_keys.json"
PREFIX: Final = "crk_"
"""Every key begins with it, so that a key in a wrong place is recognised as one."""
MAX_KEYS: Final = 10_000
MAX_FILE_BYTES: Final = 16 * 1024 * 1024
LOCK_SECONDS: Final = 10.0
"""How long a change waits for that of another process."""


class Right(StrEnum):
    """What a key may be used for."""

    ROUTE = "route"
    """Routing, ranking, reading skills and one's own decisions."""
    FEEDBACK = "feedback"
    """Saying what an answer should have been."""
    MANAGE = "manage"
    """Learning, events and metrics, of all scopes; and the tools of namespaces."""
    MEMORY = "memory"
    """Reading and writing memories, of all scopes."""


@dataclass(frozen=True, slots=True)
class Key:
    """A key as it is kept.

    Attributes:
        id: names the key to people; no secret.
        name: what it is for.
        digest: SHA-256 of the key itself, as 64 hex digits.
        rights: what it may be used for.
        scopes: whose requests it may route; with the first as the usual one. Empty: any.
        created: when it was made, in UTC, as ISO 8601.
        namespaces: whose tools it may see; ``skills`` are the skills of folders. Empty: all.
    """

    id: str
    name: str
    digest: str
    rights: tuple[Right, ...]
    scopes: tuple[str, ...]
    created: str
    namespaces: tuple[str, ...] = ()


class KeyFile:
    """The keys in one file, which only its owner may read.

    Raises:
        ConfigurationError: the file cannot be read, or is not one of ours.
        StoreError: it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path: Final = path
        self._seen: tuple[int, int, int] | None = None
        self._keys: Mapping[str, Key] = {}

    def all(self) -> tuple[Key, ...]:
        """The keys, oldest first."""
        return tuple(self._current().values())

    def find(self, secret: str) -> Key | None:
        """The key that somebody shows; None when there is none."""
        return self._current().get(digest_of(secret))

    def make(
        self,
        name: str,
        *,
        rights: Iterable[Right],
        scopes: Iterable[str] = (),
        namespaces: Iterable[str] = (),
    ) -> str:
        """Make a key and give it, for the only time.

        Raises:
            ConfigurationError: it could reach more than its scopes, or there are too many keys.
            InvalidRequest: the name or a scope is no usable text, or no namespace can have a name.
        """
        given, bound = tuple(dict.fromkeys(rights)), tuple(dict.fromkeys(scopes))
        check_text("name", name, 200)
        for scope in bound:
            check_text("scope", scope, MAX_SCOPE_CHARACTERS)
        if bound and (wide := sorted({Right.MANAGE, Right.MEMORY} & set(given))):
            raise ConfigurationError(
                f"a key with scopes cannot have the right {wide[0].value}, which reaches all scopes"
            )
        seen = tuple(dict.fromkeys(namespaces))
        for namespace in seen:
            try:
                check_namespace(namespace)
            except SourceError as error:
                raise InvalidRequest(f"namespace {error.entry!r}: {error.reason}") from None
        secret = PREFIX + secrets.token_urlsafe(32)
        created = datetime.now(UTC).isoformat(timespec="seconds")
        key = Key(secrets.token_hex(4), name, digest_of(secret), given, bound, created, seen)
        with self._locked():
            self._write([*self.all(), key])
        return secret

    def revoke(self, key_id: str) -> bool:
        """Refuse a key from now on; says whether there was one of this id."""
        with self._locked():
            keys = self.all()
            left = [key for key in keys if key.id != key_id]
            if len(left) < len(keys):
                self._write(left)
            return len(left) < len(keys)

    def _current(self) -> Mapping[str, Key]:
        """The keys by their digests, read again if the file has changed."""
        try:
            status = self.path.stat()
        except FileNotFoundError:
            self._seen, self._keys = None, {}
            return self._keys
        except OSError as error:
            raise ConfigurationError(f"{self.path}: {error.strerror}") from error
        seen = (status.st_mtime_ns, status.st_size, status.st_ino)
        if seen != self._seen:
            self._keys = {key.digest: key for key in _read(self.path)}
            self._seen = seen
        return self._keys

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """No other process changes the file meanwhile: of two that did so at once, one would write
        the keys without that of the other, or with one that the other has revoked."""
        try:
            private_folder(self.path.parent)
            with FileLock(f"{self.path}.lock", timeout=LOCK_SECONDS, mode=FILE_MODE):
                yield
        except OSError as error:  # FileLock's Timeout is one
            raise StoreError(self.path, f"cannot be written: {error}") from error

    def _write(self, keys: Sequence[Key]) -> None:
        """Put a new file in the place of the old one, in one step. One that could not be read again
        would lock everybody out."""
        text = json.dumps({"keys": [asdict(key) for key in keys]}, indent=2, ensure_ascii=False)
        data = text.encode()
        if len(keys) > MAX_KEYS or len(data) > MAX_FILE_BYTES:
            raise ConfigurationError(f"{self.path}: there are too many keys: revoke some")
        replace_file(self.path, data)


def digest_of(secret: str) -> str:
    """What is kept of a key."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


class _File(BaseModel):
    keys: Annotated[list[Key], Field(max_length=MAX_KEYS)]


def _read(path: Path) -> list[Key]:
    try:
        return _File.model_validate_json(read_bounded(path, most=MAX_FILE_BYTES)).keys
    except ValidationError as error:
        raise ConfigurationError(
            f"{path} is not a file of API keys: {first_fault(error)}"
        ) from None
    except Unreadable as error:
        raise ConfigurationError(f"{path} is not a file of API keys: {error}") from error
