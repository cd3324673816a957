"""What goes over the wire to Forgetful and back, whichever way it travels.

Facts of its published schema that matter here: a query needs a context, and gives at most 20
memories, sorted by importance, with scores beside them from version 0.6; a memory's content has at
most 2,000 characters. Replies are checked as strictly as anything from outside: one that is
malformed is no answer at all.
"""

from __future__ import annotations

import asyncio
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final, TypeVar
from urllib.parse import quote, unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from router.errors import ConfigurationError, MemoryServiceError
from router.web.names import is_loopback

MAX_CONTENT: Final = 2_000
MAX_TITLE: Final = 200
MAX_CONTEXT: Final = 500
MAX_TAGS: Final = 10
MAX_K: Final = 20
IMPORTANCE: Final = 7
"""Forgetful's own default."""
AGENT: Final = "cascade-router"
QUERY_CONTEXT: Final = "An agent looks for memories that bear on its request."


class RequestRefused(MemoryServiceError):
    """The service answers that it does not take this request: sending it again is useless."""


class ServiceLate(MemoryServiceError):
    """The service did not answer in time."""


class ServiceResting(MemoryServiceError):
    """The service was not asked, because it failed lately."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Which part of which file a remote memory was made from.

    Attributes:
        name: the file memory's name.
        store: tells the stores apart that hold files of the same name.
        digest: of the whole file's content and tags.
        part: its number, from 1.
        parts: how many there are.
    """

    name: str
    store: str
    digest: str
    part: int
    parts: int

    def to_url(self) -> str:
        """The form in which a remote memory's ``source_url`` holds it."""
        place = f"part={self.part}/{self.parts}&store={self.store}&digest={self.digest}"
        return f"mem:{quote(self.name)}?{place}"

    @classmethod
    def from_url(cls, url: str | None) -> Origin | None:
        """None when the memory was not made from a file by us."""
        match = _ORIGIN.fullmatch(url or "")
        if match is None or not 1 <= int(match[2]) <= int(match[3]):
            return None
        return cls(unquote(match[1]), match[4], match[5], int(match[2]), int(match[3]))


_ORIGIN: Final = re.compile(
    r"mem:([^?]{1,1800})\?part=(\d{1,3})/(\d{1,3})&store=([0-9a-f]{1,64})&digest=([0-9a-f]{1,64})"
)


@dataclass(frozen=True, slots=True)
class NewMemory:
    """A memory to create; within the service's limits."""

    title: str
    content: str
    context: str
    keywords: tuple[str, ...]
    tags: tuple[str, ...]
    origin: Origin

    def to_arguments(self) -> dict[str, Any]:
        """The JSON of a create request."""
        return {
            "title": self.title,
            "content": self.content,
            "context": self.context,
            "keywords": list(self.keywords),
            "tags": list(self.tags),
            "importance": IMPORTANCE,
            "source_url": self.origin.to_url(),
            "encoding_agent": AGENT,
        }


@dataclass(frozen=True, slots=True)
class RemoteMemory:
    """A memory as the service holds it.

    Attributes:
        similarity: to the query, in [-1, 1]; None outside a query, or when the service is silent.
        origin: the file it was made from; None when somebody else made it.
    """

    id: int
    title: str
    content: str
    tags: tuple[str, ...]
    importance: int
    created: datetime
    is_obsolete: bool
    origin: Origin | None
    similarity: float | None = None


class ForgetfulService(ABC):
    """Forgetful over one of its transports.

    Every call ends in bounded time and leaves nothing running. Each raises MemoryServiceError when
    the service cannot be reached or answers what cannot be used, ServiceLate when it is late, and
    RequestRefused when it will not take the request.
    """

    def __init__(
        self, url: str, *, token: str | None = None, timeout_seconds: float = 10.0
    ) -> None:
        """Nothing is sent yet.

        Args:
            url: where the server is, such as ``http://127.0.0.1:8020``.
            token: what it wants to be shown; never shown anywhere else.
            timeout_seconds: of each call, from connecting to the reply's last byte.

        Raises:
            ConfigurationError: as ``check_endpoint``.
        """
        self._is_local = check_endpoint(url, token)
        self._headers = headers_with(token)
        self._timeout = timeout_seconds

    async def search(self, query: str, *, k: int) -> list[RemoteMemory]:
        """At most ``k`` (1 to 20) memories that are not obsolete, in the service's order."""
        arguments = {"query": query, "query_context": QUERY_CONTEXT, "k": k, "include_links": 0}
        return parse_query(await self._call("query_memory", arguments))[:k]

    async def create(self, memory: NewMemory) -> int:
        """Store a memory; its id."""
        return parse_created(await self._call("create_memory", memory.to_arguments()))

    async def get(self, memory_id: int) -> RemoteMemory:
        """One memory by its id."""
        return parse_memory(await self._call("get_memory", {"memory_id": memory_id}))

    async def obsolete(self, memory_id: int, *, reason: str, superseded_by: int | None) -> None:
        """Mark a memory obsolete, the service's way of deleting."""
        arguments: dict[str, Any] = {"memory_id": memory_id, "reason": reason}
        if superseded_by is not None:
            arguments["superseded_by"] = superseded_by
        await self._call("mark_memory_obsolete", arguments)

    async def probe(self) -> None:
        """Return if the service can answer a real query now, and raise if not."""
        await self.search("probe", k=1)

    async def _call(self, tool: str, arguments: dict[str, Any]) -> bytes:
        try:
            async with asyncio.timeout(self._timeout):
                return await self._send(tool, arguments)
        except TimeoutError:
            raise ServiceLate(
                f"the memory service gave no answer within {self._timeout:g} s"
            ) from None

    @abstractmethod
    async def _send(self, tool: str, arguments: dict[str, Any]) -> bytes:
        """The JSON that one of the service's tools answers."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close what is open."""


def check_endpoint(url: str, token: str | None) -> bool:
    """Whether the service is on this machine.

    Raises:
        ConfigurationError: the URL is malformed or holds credentials; or it leads off this machine
            without https or without a token, so that anybody on the way could read memories or
            plant them.
    """
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise ConfigurationError(f"memory.service.url: {error}") from None
    if parts.scheme not in ("http", "https") or not host:
        raise ConfigurationError("memory.service.url: expected http(s)://host[:port]")
    if parts.username is not None or parts.password is not None:
        raise ConfigurationError("memory.service.url: no credentials in it; set the token")
    if parts.query or parts.fragment:
        raise ConfigurationError("memory.service.url: no query and no fragment in it")
    if is_loopback(host):
        return True
    if parts.scheme != "https" or token is None:
        raise ConfigurationError(
            f"memory.service.url: {host} is not this machine, so it needs https and a token "
            "(ROUTER_MEMORY__SERVICE__TOKEN)"
        )
    return False


class _Wire(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False)


_W = TypeVar("_W", bound=_Wire)


class _Memory(_Wire):
    id: int = Field(ge=0)
    title: str = Field(max_length=1_000)
    content: str = Field(max_length=2 * MAX_CONTENT)
    tags: list[Annotated[str, Field(max_length=200)]] = Field(default=[], max_length=50)
    importance: int = IMPORTANCE
    created_at: datetime
    is_obsolete: bool = False
    source_url: str | None = Field(default=None, max_length=4_000)


class _Score(_Wire):
    similarity: float | None = Field(default=None, ge=-1.01, le=1.01)


class _QueryResult(_Wire):
    primary_memories: list[_Memory] = Field(max_length=MAX_K)
    scores: list[_Score] | None = Field(default=None, max_length=MAX_K)


class _Created(_Wire):
    id: int = Field(ge=0)


def parse_query(body: bytes) -> list[RemoteMemory]:
    """The memories of a search reply that are not obsolete, with their similarities where the
    service gives one for each.

    Raises:
        MemoryServiceError: it is malformed.
    """
    result = _parsed(_QueryResult, body)
    scores = result.scores or []
    if len(scores) != len(result.primary_memories):
        scores = [_Score()] * len(result.primary_memories)
    return [
        _remote(memory, score.similarity)
        for memory, score in zip(result.primary_memories, scores, strict=True)
        if not memory.is_obsolete and memory.content.strip()
    ]


def parse_memory(body: bytes) -> RemoteMemory:
    """The memory of a reply; raises as ``parse_query``."""
    memory = _parsed(_Memory, body)
    if not memory.content.strip():
        raise MemoryServiceError(f"the memory service's memory {memory.id} is empty")
    return _remote(memory, None)


def parse_created(body: bytes) -> int:
    """The new id in a reply; raises as ``parse_query``."""
    return _parsed(_Created, body).id


def _remote(memory: _Memory, similarity: float | None) -> RemoteMemory:
    created = memory.created_at
    try:
        # SQLite gives the service's times back without their zone, which is UTC.
        created = created.replace(tzinfo=created.tzinfo or UTC).astimezone(UTC)
    except OverflowError:
        raise MemoryServiceError(
            f"the memory service's reply is malformed: time {created}"
        ) from None
    return RemoteMemory(
        id=memory.id,
        title=memory.title,
        content=memory.content,
        tags=tuple(memory.tags),
        importance=memory.importance,
        created=created,
        is_obsolete=memory.is_obsolete,
        origin=Origin.from_url(memory.source_url),
        similarity=None if similarity is None else min(1.0, max(-1.0, similarity)),
    )


def _parsed(model: type[_W], body: bytes) -> _W:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        fault = error.errors(include_input=False, include_url=False)[0]
        place = ".".join(str(part) for part in fault["loc"])
        raise MemoryServiceError(
            f"the memory service's reply is malformed: {place}: {fault['msg']}"
        ) from None


def unreachable(url: str, fault: BaseException) -> MemoryServiceError:
    """What to say of a service that gave no answer; by its address, without what else is in it."""
    host = urlsplit(url).netloc.rpartition("@")[2]
    what = str(fault) or type(fault).__name__
    return MemoryServiceError(f"the memory service at {host} cannot be reached: {what}")


def headers_with(token: str | None) -> Mapping[str, str]:
    """The headers of every request. Without compression a reply's size is what arrives."""
    plain = {"Accept-Encoding": "identity"}
    return plain if token is None else plain | {"Authorization": f"Bearer {token}"}
