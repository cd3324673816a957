"""The endpoints, as one table: what each takes and gives, who may use it, and what does the work.

The routes and ``/openapi.json`` are both made from this table, so they cannot say different things.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

from pydantic import (
    BaseModel,
    Field,
    InstanceOf,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic.json_schema import SkipJsonSchema

from router.errors import RouterError
from router.http.keys import Right
from router.http.problems import Refused, faults_of
from router.http.tools import delete_tool, put_tool
from router.result import RoutingResult
from router.service.explaining import Explanation
from router.service.memory import (
    AssembleArguments,
    Context,
    MemoryNow,
    MemoryService,
    RecallAnswer,
    RecallArguments,
    SaveArguments,
    Saved,
)
from router.service.service import Service
from router.service.shapes import (
    Arguments,
    CacheTested,
    FeedbackArguments,
    FindArguments,
    Forgotten,
    FoundSkills,
    LoadArguments,
    LoadedSkill,
    NoArguments,
    Noted,
    RankArguments,
    Ranked,
    RouteArguments,
    RouterStatus,
)
from router.tools.folder import routed_name

if TYPE_CHECKING:
    from router.http.api import Api
    from router.http.caller import Caller

MAX_BATCH: Final = 1_000
"""How many requests a batch may hold."""
BATCH_WINDOW: Final = 16
"""How many requests of one batch are under way at the same time."""


def _or_its_faults(
    given: object, read: ValidatorFunctionWrapHandler
) -> RouteArguments | ValidationError:
    """One request of a batch. What is wrong with it is told in its line of the answer, and the
    others are answered."""
    try:
        asked: RouteArguments = read(given)
    except ValidationError as error:
        return error
    return asked


class BatchArguments(Arguments):
    requests: list[
        Annotated[RouteArguments, WrapValidator(_or_its_faults)]
        | SkipJsonSchema[InstanceOf[ValidationError]]
    ] = Field(min_length=1, max_length=MAX_BATCH)


class BatchLine(BaseModel):
    """One line of the answer to a batch; the lines come in the order of the requests."""

    index: int = Field(description="0-based place of the request in the batch.")
    result: dict[str, Any] | None = Field(None, description="As /v1/route gives it.")
    error: str | None = Field(None, description="Why there is no result.")


class DecisionArguments(Arguments):
    id: str = Field(max_length=200, description="The `id` of an answer.")


class ToolPlace(Arguments):
    namespace: str = Field(description="Lower-case letters, digits and hyphens, at most 64.")
    name: str = Field(description="The tool's own name, at most 80 characters.")


class PutToolArguments(ToolPlace):
    definition: dict[str, Any] = Field(
        description="The tool as OpenAI, Anthropic or MCP define it; its name is that of the path."
    )


class ToolPut(BaseModel):
    """The tool is routable from now on."""

    skill: str = Field(description="The name that answers use: `namespace__name`.")
    new: bool = Field(description="Whether there was none of that name.")
    catalog_version: str


class ToolDeleted(BaseModel):
    """The tool is not routed to any more."""

    skill: str
    catalog_version: str


class DecisionFound(BaseModel):
    request: str
    scope: str | None
    seconds: float = Field(description="From the request to its answer.")
    result: dict[str, Any] = Field(description="The answer with its whole trace.")


class Explained(BaseModel):
    """An answer and the evidence behind it."""

    result: dict[str, Any] = Field(description="The answer with its whole trace.")
    why: Explanation


Run: TypeAlias = Callable[["Api", "Caller", Any], Awaitable[Any]]
Stream: TypeAlias = Callable[["Api", "Caller", Any], AsyncGenerator[bytes, None]]


@dataclass(frozen=True)
class Endpoint:
    """One method of one path.

    Attributes:
        request: the method and the path.
        right: what the caller must be allowed to do.
        arguments: what is asked.
        answer: the type of the answer, or of one line of it where it is streamed.
        run: does the work; None for one that streams.
        stream: gives the answer piece by piece.
        media_type: of what is answered.
        body: the argument that the whole body is; None: its fields are the arguments.
        etag: whether the answer changes with the catalog only.
        of_one_worker: whether it is about a decision, which one worker of the server knows.
    """

    request: str
    right: Right
    arguments: type[Arguments]
    answer: Hashable
    summary: str
    run: Run | None = None
    stream: Stream | None = None
    media_type: str = "application/json"
    body: str | None = None
    etag: bool = False
    of_one_worker: bool = False

    @cached_property
    def method(self) -> str:
        """GET, POST, PUT or DELETE."""
        return self.request.split()[0]

    @cached_property
    def path(self) -> str:
        """With its arguments in braces."""
        return self.request.split()[1]

    @cached_property
    def in_path(self) -> tuple[str, ...]:
        """Arguments that the path holds."""
        return tuple(re.findall(r"\{(\w+)\}", self.path))

    @property
    def takes(self) -> Literal["body", "query"]:
        """Where the arguments are that the path does not hold."""
        return "body" if self.method in ("POST", "PUT") else "query"

    @property
    def reaches_all(self) -> bool:
        """Whether it shows or changes what belongs to all namespaces."""
        return self.right is Right.MANAGE and "namespace" not in self.in_path

    @property
    def statuses(self) -> tuple[HTTPStatus, ...]:
        """Of the problems that may be answered."""
        codes = [400, 401, 403, 408, 409, 413, 415, 421, 422, 429, 500, 503]
        if self.in_path:
            codes.append(404)
        return tuple(HTTPStatus(code) for code in sorted(codes))


def _asked(work: Callable[[Service, Any], Awaitable[Any]]) -> Run:
    """A use case of routing, for whoever may ask for it."""
    return lambda api, _caller, asked: work(api.service, asked)


def _remembered(work: Callable[[MemoryService, Any], Awaitable[Any]]) -> Run:
    """A use case of memory."""
    return lambda api, _caller, asked: work(api.memory, asked)


async def _route(api: Api, _caller: Caller, asked: RouteArguments) -> dict[str, Any]:
    return (await api.service.route(asked)).to_dict(trace=asked.trace)


async def _explain(api: Api, _caller: Caller, asked: RouteArguments) -> Explained:
    result = await api.service.route(asked)
    return Explained(result=result.to_dict(), why=await api.service.explain(asked, result))


async def _load(api: Api, caller: Caller, asked: LoadArguments) -> LoadedSkill:
    return await api.service.load(asked, available=await api.narrowing.names_for(caller))


async def _find_decision(api: Api, caller: Caller, asked: DecisionArguments) -> DecisionFound:
    found = api.decisions.find(asked.id, caller)
    return DecisionFound(
        request=found.request,
        scope=found.scope,
        seconds=found.seconds,
        result=found.result.to_dict(),
    )


async def _put_tool(api: Api, caller: Caller, asked: PutToolArguments) -> ToolPut:
    caller.require_namespace(asked.namespace)
    router = api.service.router
    new, version = await put_tool(router, asked.namespace, asked.name, asked.definition)
    return ToolPut(skill=routed_name(asked.namespace, asked.name), new=new, catalog_version=version)


async def _delete_tool(api: Api, caller: Caller, asked: ToolPlace) -> ToolDeleted:
    caller.require_namespace(asked.namespace)
    version = await delete_tool(api.service.router, asked.namespace, asked.name)
    return ToolDeleted(skill=routed_name(asked.namespace, asked.name), catalog_version=version)


async def _batch(api: Api, caller: Caller, asked: BatchArguments) -> AsyncGenerator[bytes, None]:
    """Route the requests of a batch; each line is sent as soon as it and those before it are
    there."""
    gate = asyncio.Semaphore(BATCH_WINDOW)

    async def one(index: int, arguments: RouteArguments | ValidationError) -> BatchLine:
        if isinstance(arguments, ValidationError):
            faults = faults_of(arguments)
            return BatchLine(
                index=index, error="; ".join(f"{fault.where}: {fault.what}" for fault in faults)
            )
        async with gate:
            try:
                result = await api.service.route(await api.narrowing.narrowed(arguments, caller))
            except (RouterError, Refused) as error:
                return BatchLine(index=index, error=str(error))
            return BatchLine(index=index, result=result.to_dict(trace=arguments.trace))

    tasks = [asyncio.create_task(one(*item)) for item in enumerate(asked.requests)]
    try:
        for task in tasks:
            line = (await task).model_dump(exclude_none=True)
            yield json.dumps(line, ensure_ascii=False).encode() + b"\n"
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


ENDPOINTS: Final = (
    Endpoint("POST /v1/route", Right.ROUTE, RouteArguments, RoutingResult,
        "Decide which skills to load for a request", _route),
    Endpoint("POST /v1/route/explain", Right.ROUTE, RouteArguments, Explained,
        "Decide, and say why the best skill is ahead of the next one", _explain),
    Endpoint("POST /v1/route/batch", Right.ROUTE, BatchArguments, BatchLine,
        "Route many requests; the answer is JSON Lines",
        stream=_batch, media_type="application/jsonl"),
    Endpoint("POST /v1/rank", Right.ROUTE, RankArguments, Ranked,
        "The best skills, or tools of the request, in any case; never refuses",
        _asked(Service.rank)),
    Endpoint("GET /v1/skills", Right.ROUTE, FindArguments, FoundSkills,
        "Rank the skills for a query, with reasons; decides nothing",
        _asked(Service.find), etag=True),
    Endpoint("GET /v1/skills/{name}", Right.ROUTE, LoadArguments, LoadedSkill,
        "A skill's instructions and the paths of its other files", _load, etag=True),
    Endpoint("PUT /v1/catalogs/{namespace}/tools/{name}", Right.MANAGE, PutToolArguments, ToolPut,
        "Keep a tool in a namespace, to be routed to from now on", _put_tool, body="definition"),
    Endpoint("DELETE /v1/catalogs/{namespace}/tools/{name}", Right.MANAGE, ToolPlace, ToolDeleted,
        "Drop a tool of a namespace", _delete_tool),
    Endpoint("GET /v1/decisions/{id}", Right.ROUTE, DecisionArguments, DecisionFound,
        "An answer with its whole trace", _find_decision, of_one_worker=True),
    Endpoint("POST /v1/decisions/{id}/feedback", Right.FEEDBACK, FeedbackArguments, Noted,
        "Say what an answer should have been", _asked(Service.feedback), of_one_worker=True),
    Endpoint("POST /v1/cache/test", Right.ROUTE, RouteArguments, CacheTested,
        "Whether a cache would answer a request, and why or why not", _asked(Service.test_cache)),
    Endpoint("POST /v1/cache/forget", Right.FEEDBACK, RouteArguments, Forgotten,
        "Drop the cached answer to a request", _asked(Service.forget)),
    Endpoint("GET /v1/status", Right.MANAGE, NoArguments, RouterStatus,
        "Which skills are loaded or faulty; caches, encoder and LLMs", _asked(Service.status)),
    Endpoint("GET /v1/learning", Right.MANAGE, NoArguments, dict[str, Any],
        "The evidence, the local model, the account of the error bound",
        _asked(Service.learning)),
    Endpoint("GET /v1/events", Right.MANAGE, NoArguments, str,
        "What happens from now on, as server-sent events",
        stream=lambda api, _caller, _asked: api.events.listen(),
        media_type="text/event-stream"),
    Endpoint("POST /v1/memory/recall", Right.MEMORY, RecallArguments, RecallAnswer,
        "Answer a query from the memory layers that fit it", _remembered(MemoryService.recall)),
    Endpoint("POST /v1/memory/context", Right.MEMORY, AssembleArguments, Context,
        "Gather what memories and documents say into a text within a budget of tokens",
        _remembered(MemoryService.assemble)),
    Endpoint("POST /v1/memory/save", Right.MEMORY, SaveArguments, Saved, "Remember a text",
        _remembered(MemoryService.save)),
    Endpoint("GET /v1/memory/status", Right.MEMORY, NoArguments, MemoryNow,
        "How the layers, the memory files and the memory service are",
        _remembered(MemoryService.status)),
)  # fmt: skip
