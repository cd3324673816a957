"""The endpoints, as one table: arguments, answer, the right that is needed, and the function.

The routes and ``/openapi.json`` are both made from this table, so they cannot differ.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from functools import cached_property, partial, wraps
from http import HTTPStatus
from inspect import getdoc
from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    Field,
    InstanceOf,
    ValidationError,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)
from pydantic.json_schema import SkipJsonSchema

from router.concurrency.tasks import in_thread
from router.errors import ConfigurationError, RouterError
from router.http.api import Api
from router.http.caller import Caller
from router.http.keys import Right
from router.http.problems import Refused, faults_of
from router.router import SemanticRouter
from router.service.explaining import Explanation
from router.service.memory import MemoryService
from router.service.schemas import shapes_of
from router.service.service import Service
from router.service.shapes import Arguments, LoadArguments, LoadedSkill, NoArguments, RouteArguments
from router.tools.folder import ToolFolder, routed_name

MAX_BATCH: Final = 1_000
"""How many requests a batch may hold."""
BATCH_WINDOW: Final = 16
"""How many requests of one batch are under way at the same time."""


def _or_its_faults(
    given: object, read: ValidatorFunctionWrapHandler
) -> RouteArguments | ValidationError:
    """One request of a batch, or its faults, which become the error in its line of the answer: they
    must not keep the other requests from being answered."""
    try:
        arguments: RouteArguments = read(given)
    except ValidationError as error:
        return error
    return arguments


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


class DecisionFound(BaseModel):
    request: str
    scope: str | None
    seconds: float = Field(description="From the request to its answer.")
    result: dict[str, Any] = Field(description="The answer with its whole trace.")


class Explained(BaseModel):
    """An answer and the evidence behind it."""

    result: dict[str, Any] = Field(description="The answer with its whole trace.")
    why: Explanation


class ToolPlace(Arguments):
    namespace: str = Field(description="Lower-case letters, digits and hyphens, at most 64.")
    name: str = Field(description="The tool's own name, at most 80 characters.")


class PutToolArguments(ToolPlace):
    definition: dict[str, Any] = Field(
        description="The tool as OpenAI, Anthropic or MCP define it, with the name of the path."
    )


class ToolDeleted(BaseModel):
    """The tool is not routed to any more."""

    skill: str
    catalog_version: str


class ToolPut(BaseModel):
    """The tool is routable from now on."""

    skill: str = Field(description="The name that answers use: `namespace__name`.")
    new: bool = Field(description="Whether there was none of that name.")
    catalog_version: str


@dataclass(frozen=True)
class Endpoint:
    """One method of one path.

    Attributes:
        path: with its arguments in braces.
        right: what the caller must be allowed to do.
        work: the function that does the work. Its signature gives the types of the arguments and of
            the answer, and its docstring is the summary in ``/openapi.json``.
        pieces: the type of one piece, if ``work`` gives the answer piece by piece.
        media_type: of the answer.
        body: the argument that is the whole body; None: the fields of the body are the arguments.
        etag: whether the answer changes only when the catalog does.
        of_one_worker: whether it is about a decision, which only one worker of the server knows.
        body_names: whether the body names something that must exist, so that 404 may be answered.
    """

    method: Literal["GET", "POST", "PUT", "DELETE"]
    path: str
    right: Right
    work: Callable[[Api, Caller, Any], Any]
    pieces: type | None = None
    media_type: str = "application/json"
    body: str | None = None
    etag: bool = False
    of_one_worker: bool = False
    body_names: bool = False

    @cached_property
    def summary(self) -> str:
        return " ".join((getdoc(self.work) or "").split("\n\n")[0].split()).removesuffix(".")

    @cached_property
    def arguments(self) -> type[Arguments]:
        return shapes_of(self.work)[0]

    @cached_property
    def answer(self) -> Any:
        """The type of the answer, or of one piece of it."""
        return self.pieces or shapes_of(self.work)[1]

    @cached_property
    def in_path(self) -> tuple[str, ...]:
        return tuple(re.findall(r"\{(\w+)\}", self.path))

    @property
    def takes(self) -> Literal["body", "query"]:
        """Where the arguments are that are not in the path."""
        return "body" if self.method in ("POST", "PUT") else "query"

    @property
    def reaches_all(self) -> bool:
        """Whether it shows or changes what belongs to all namespaces."""
        return self.right is Right.MANAGE and "namespace" not in self.in_path

    @property
    def statuses(self) -> tuple[HTTPStatus, ...]:
        """The statuses of the problems that may be answered."""
        codes = [400, 401, 403, 408, 409, 413, 415, 421, 422, 429, 500, 503]
        if self.in_path or self.body_names:
            codes.append(404)
        return tuple(HTTPStatus(code) for code in sorted(codes))


def _of(part: str, use_case: Callable[..., Awaitable[Any]]) -> Callable[..., Any]:
    """The work of an endpoint that calls a use case of a part of ``Api``."""

    @wraps(use_case)
    def work(api: Api, _caller: Caller, arguments: Any) -> Awaitable[Any]:
        return use_case(getattr(api, part), arguments)

    return work


_of_service = partial(_of, "service")
_of_memory = partial(_of, "memory")


async def _explain(api: Api, _caller: Caller, arguments: RouteArguments) -> Explained:
    """Decide, and say why the best skill is ahead of the next one."""
    result = await api.service.route(arguments)
    return Explained(result=result.to_dict(), why=await api.service.explain(arguments, result))


async def _load(api: Api, caller: Caller, arguments: LoadArguments) -> LoadedSkill:
    """A skill's instructions and the paths of its other files."""
    return await api.service.load(arguments, available=await api.narrowing.names_for(caller))


async def _find_decision(api: Api, caller: Caller, arguments: DecisionArguments) -> DecisionFound:
    """An answer with its whole trace."""
    found = api.decisions.find(arguments.id, caller)
    return DecisionFound(
        request=found.request,
        scope=found.scope,
        seconds=found.seconds,
        result=found.result.to_dict(),
    )


async def put_tool(api: Api, caller: Caller, arguments: PutToolArguments) -> ToolPut:
    """Keep a tool in a namespace, to be routed to from now on."""
    caller.require_namespace(arguments.namespace)
    router, routed = api.service.router, routed_name(arguments.namespace, arguments.name)
    folder = await _folder(router)
    new = await in_thread(
        partial(folder.put, arguments.namespace, arguments.name, arguments.definition)
    )
    await router.reload()
    skill = router.catalog.skills.get(routed)
    if skill is None or skill.payload != arguments.definition:
        raise Refused(
            409,
            "the tool is not routable",
            "another source has its name, or it was changed again meanwhile",
        )
    return ToolPut(skill=routed, new=new, catalog_version=router.catalog.version)


async def delete_tool(api: Api, caller: Caller, arguments: ToolPlace) -> ToolDeleted:
    """Drop a tool of a namespace."""
    caller.require_namespace(arguments.namespace)
    router, routed = api.service.router, routed_name(arguments.namespace, arguments.name)
    folder = await _folder(router)
    if not await in_thread(partial(folder.delete, arguments.namespace, arguments.name)):
        raise Refused(404, "there is no such tool", f"none in the namespace {arguments.namespace}")
    await router.reload()
    return ToolDeleted(skill=routed, catalog_version=router.catalog.version)


async def _folder(router: SemanticRouter) -> ToolFolder:
    """The source that keeps the tools of namespaces, as files."""
    await router.open()
    for source in router.manager.registry.sources:
        if isinstance(source, ToolFolder):
            return source
    raise ConfigurationError("it keeps no tools")


async def _batch(
    api: Api, caller: Caller, arguments: BatchArguments
) -> AsyncGenerator[bytes, None]:
    """Route many requests; the answer is JSON Lines.

    Each line is sent as soon as it and those before it are there."""
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

    tasks = [asyncio.create_task(one(*item)) for item in enumerate(arguments.requests)]
    try:
        for task in tasks:
            line = (await task).model_dump(exclude_none=True)
            yield json.dumps(line, ensure_ascii=False).encode() + b"\n"
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _events(api: Api, _caller: Caller, _asked: NoArguments) -> AsyncGenerator[bytes, None]:
    """What happens from now on, as server-sent events."""
    return api.events.listen()


ENDPOINTS: Final = (
    Endpoint("POST", "/v1/route", Right.ROUTE, _of_service(Service.route)),
    Endpoint("POST", "/v1/route/explain", Right.ROUTE, _explain),
    Endpoint("POST", "/v1/route/batch", Right.ROUTE, _batch, BatchLine, "application/jsonl"),
    Endpoint("POST", "/v1/rank", Right.ROUTE, _of_service(Service.rank)),
    Endpoint("GET", "/v1/skills", Right.ROUTE, _of_service(Service.find), etag=True),
    Endpoint("GET", "/v1/skills/{name}", Right.ROUTE, _load, etag=True),
    Endpoint(
        "PUT", "/v1/catalogs/{namespace}/tools/{name}", Right.MANAGE, put_tool, body="definition"
    ),
    Endpoint("DELETE", "/v1/catalogs/{namespace}/tools/{name}", Right.MANAGE, delete_tool),
    Endpoint("GET", "/v1/decisions/{id}", Right.ROUTE, _find_decision, of_one_worker=True),
    Endpoint(
        "POST",
        "/v1/decisions/{id}/feedback",
        Right.FEEDBACK,
        _of_service(Service.feedback),
        of_one_worker=True,
    ),
    Endpoint("POST", "/v1/cache/test", Right.ROUTE, _of_service(Service.test_cache)),
    Endpoint("POST", "/v1/cache/forget", Right.FEEDBACK, _of_service(Service.forget)),
    Endpoint("GET", "/v1/status", Right.MANAGE, _of_service(Service.status)),
    Endpoint("GET", "/v1/learning", Right.MANAGE, _of_service(Service.learning)),
    Endpoint("GET", "/v1/events", Right.MANAGE, _events, str, "text/event-stream"),
    Endpoint("POST", "/v1/memory/recall", Right.MEMORY, _of_memory(MemoryService.recall)),
    Endpoint("POST", "/v1/memory/context", Right.MEMORY, _of_memory(MemoryService.assemble)),
    Endpoint(
        "POST", "/v1/memory/save", Right.MEMORY, _of_memory(MemoryService.save), body_names=True
    ),
    Endpoint("GET", "/v1/memory/status", Right.MEMORY, _of_memory(MemoryService.status)),
)
