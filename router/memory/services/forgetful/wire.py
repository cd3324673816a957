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
from collections.abc import Awaitable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final, NamedTuple, TypeVar
from urllib.parse import quote, unquote, urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from router.errors import ConfigurationError, MemoryServiceError
from router.memory.model import aware
from router.plain_json import first_fault
from router.web.loopback import is_loopback

MAX_CONTENT: Final = 2_000
MAX_TITLE: Final = 200
MAX_CONTEXT: Final = 500
MAX_TAGS: Final = 10
MAX_K: Final = 20
IMPORTANCE: Final = 7
"""Forgetful's own default."""
AGENT: Final = "cascade-router"
CALL_SECONDS: Final = 10.0
"""What a call may take, to the reply's last byte: embeddings are computed before it is sent."""
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
        store: tells the folders apart that hold files of the same name.
        digest: of the whole file's content and tags.
        part: its number, from 1 to ``parts``.
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
    """A memory to create, as the service's create request names its parts."""

    title: str
    content: str
    context: str
    keywords: tuple[str, ...]
    tags: tuple[str, ...]
    source_url: str
    importance: int = IMPORTANCE
    encoding_agent: str = AGENT


def _in_utc(moment: datetime) -> datetime:
    """SQLite gives the service's times back without their zone, which is UTC."""
    try:
        return aware(moment).astimezone(UTC)
    except OverflowError:
        raise ValueError(f"time {moment}") from None


class _Wire(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, allow_inf_nan=False, frozen=True)


class RemoteMemory(_Wire):
    id: int = Field(ge=0)
    title: str = Field(max_length=1_000)
    content: str = Field(max_length=2 * MAX_CONTENT)
    tags: list[Annotated[str, Field(max_length=200)]] = Field(default=[], max_length=50)
    importance: int = IMPORTANCE
    created: Annotated[datetime, AfterValidator(_in_utc)] = Field(validation_alias="created_at")
    is_obsolete: bool = False
    source_url: str | None = Field(default=None, max_length=4_000)

    @property
    def origin(self) -> Origin | None:
        """The file it was made from; None when somebody else made it."""
        return Origin.from_url(self.source_url)


class Match(NamedTuple):
    """A memory that was found, and its similarity to the query, in [-1, 1] but for rounding; None
    when the service is silent about it."""

    memory: RemoteMemory
    similarity: float | None


class _Score(_Wire):
    similarity: float | None = Field(default=None, ge=-1.01, le=1.01)


class _QueryResult(_Wire):
    primary_memories: list[RemoteMemory] = Field(max_length=MAX_K)
    scores: list[_Score] | None = Field(default=None, max_length=MAX_K)


class _Created(_Wire):
    id: int = Field(ge=0)


T = TypeVar("T")
_W = TypeVar("_W", bound=_Wire)


def _parsed(model: type[_W], body: bytes) -> _W:
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise MemoryServiceError(
            f"the memory service's reply is malformed: {first_fault(error)}"
        ) from None


class ForgetfulService(ABC):
    """Forgetful over one of its transports.

    Every call ends in bounded time and leaves nothing running. Each raises MemoryServiceError when
    the service cannot be reached or answers what cannot be used, ServiceLate when it is late, and
    RequestRefused when it will not take the request. The token is shown to nobody else.
    """

    def __init__(self, url: str, *, token: str | None) -> None:
        """Nothing is sent yet. Raises as ``check_endpoint``."""
        check_endpoint(url, token)
        self._headers = {"Accept-Encoding": "identity"}  # so that a reply's size is what arrives
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"

    async def search(self, query: str, *, k: int) -> list[Match]:
        """At most ``k`` (1 to 20) memories that are not obsolete, in the service's order."""
        arguments = {"query": query, "query_context": QUERY_CONTEXT, "k": k, "include_links": 0}
        found = _parsed(_QueryResult, await self._call("query_memory", arguments))
        scores: Sequence[_Score] = found.scores or ()
        if len(scores) != len(found.primary_memories):
            scores = [_Score()] * len(found.primary_memories)
        return [
            Match(memory, score.similarity)
            for memory, score in zip(found.primary_memories, scores, strict=True)
            if not memory.is_obsolete and memory.content.strip()
        ][:k]

    async def create(self, memory: NewMemory) -> int:
        return _parsed(_Created, await self._call("create_memory", asdict(memory))).id

    async def get(self, memory_id: int) -> RemoteMemory:
        memory = _parsed(RemoteMemory, await self._call("get_memory", {"memory_id": memory_id}))
        if not memory.content.strip():
            raise MemoryServiceError(f"the memory service's memory {memory.id} is empty")
        return memory

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
        return await within(self._send(tool, arguments), CALL_SECONDS)

    @abstractmethod
    async def _send(self, tool: str, arguments: dict[str, Any]) -> bytes:
        """The JSON that one of the service's tools answers."""

    @abstractmethod
    async def aclose(self) -> None:
        """Close what is open."""


async def within(work: Awaitable[T], seconds: float) -> T:
    """The result of a call that must end in time; raises ServiceLate if it does not."""
    deadline = asyncio.timeout(seconds)
    try:
        async with deadline:
            return await work
    except (TimeoutError, MemoryServiceError) as error:
        # A client that is cancelled at its deadline may end with an error of its own.
        if isinstance(error, MemoryServiceError) and not deadline.expired():
            raise
        raise ServiceLate(f"the memory service gave no answer within {seconds:g} s") from None


def check_endpoint(url: str, token: str | None) -> None:
    """Refuse an address to which memories must not be sent.

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
    if not is_loopback(host) and (parts.scheme != "https" or token is None):
        raise ConfigurationError(
            f"memory.service.url: {host} is not this machine, so it needs https and a token "
            "(ROUTER_MEMORY__SERVICE__TOKEN)"
        )


def unreachable(url: str, fault: BaseException) -> MemoryServiceError:
    """What to say of a service that gave no answer; by its address, without what else is in it."""
    host = urlsplit(url).netloc.rpartition("@")[2]
    what = str(fault) or type(fault).__name__
    return MemoryServiceError(f"the memory service at {host} cannot be reached: {what}")
