"""The endpoints, as one table: what each takes and gives, who may use it, and what does the work.

The routes and ``/openapi.json`` are both made from this table, so they cannot say different things.
"""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Hashable
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, Field

from router.http.keys import Right
from router.result import RoutingResult
from router.service.memory import (
    AssembleArguments,
    Context,
    MemoryNow,
    RecallArguments,
    Recalled,
    SaveArguments,
    Saved,
)
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
    routed,
)

if TYPE_CHECKING:
    from router.http.api import Api
    from router.http.caller import Caller

MAX_BATCH: Final = 1_000
"""Requests in one batch."""


class BatchArguments(Arguments):
    requests: list[RouteArguments] = Field(min_length=1, max_length=MAX_BATCH)


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


Run: TypeAlias = Callable[["Api", "Caller", Any], Awaitable[Any]]
Stream: TypeAlias = Callable[["Api", "Caller", Any], AsyncGenerator[bytes, None]]


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One method of one path.

    Attributes:
        takes: where the arguments are that the path does not hold.
        right: what the caller must be allowed to do.
        answer: the type of the answer, or of one line of it where it is streamed.
        run: does the work; None for one that streams.
        stream: gives the answer piece by piece.
        media_type: of what is streamed.
        etag: whether the answer changes with the catalog only.
    """

    method: Literal["GET", "POST"]
    path: str
    summary: str
    right: Right
    arguments: type[Arguments]
    answer: Hashable
    takes: Literal["body", "query"] = "body"
    run: Run | None = None
    stream: Stream | None = None
    media_type: str = "application/json"
    etag: bool = False

    @property
    def in_path(self) -> tuple[str, ...]:
        """Arguments that the path holds."""
        return tuple(re.findall(r"\{(\w+)\}", self.path))

    @property
    def statuses(self) -> tuple[HTTPStatus, ...]:
        """Of the problems that may be answered."""
        codes = [401, 403, 408, 413, 415, 422, 429, 500, 503]
        if self.takes == "body":
            codes.append(400)
        if self.in_path:
            codes.append(404)
        return tuple(HTTPStatus(code) for code in sorted((*codes, 409)))


async def _route(api: Api, _caller: Caller, asked: RouteArguments) -> dict[str, Any]:
    return routed(await api.service.route(asked), trace=asked.trace)


async def _find_decision(api: Api, caller: Caller, asked: DecisionArguments) -> DecisionFound:
    found = api.decisions.find(asked.id, caller)
    return DecisionFound(
        request=found.request,
        scope=found.scope,
        seconds=found.seconds,
        result=found.result.to_dict(),
    )


ENDPOINTS: Final = (
    Endpoint(
        "POST",
        "/v1/route",
        "Decide which skills to load for a request",
        Right.ROUTE,
        RouteArguments,
        RoutingResult,
        run=_route,
    ),
    Endpoint(
        "POST",
        "/v1/route/batch",
        "Route many requests; the answer is JSON Lines",
        Right.ROUTE,
        BatchArguments,
        BatchLine,
        stream=lambda api, caller, asked: api.batch(caller, asked),
        media_type="application/jsonl",
    ),
    Endpoint(
        "POST",
        "/v1/rank",
        "The best skills for a request in any case; never refuses",
        Right.ROUTE,
        RankArguments,
        Ranked,
        run=lambda api, _caller, asked: api.service.rank(asked),
    ),
    Endpoint(
        "GET",
        "/v1/skills",
        "Rank the skills for a query, with reasons; decides nothing",
        Right.ROUTE,
        FindArguments,
        FoundSkills,
        takes="query",
        run=lambda api, _caller, asked: api.service.find(asked),
        etag=True,
    ),
    Endpoint(
        "GET",
        "/v1/skills/{name}",
        "A skill's instructions and the paths of its other files",
        Right.ROUTE,
        LoadArguments,
        LoadedSkill,
        takes="query",
        run=lambda api, _caller, asked: api.service.load(asked),
    ),
    Endpoint(
        "GET",
        "/v1/decisions/{id}",
        "An answer with its whole trace",
        Right.ROUTE,
        DecisionArguments,
        DecisionFound,
        takes="query",
        run=_find_decision,
    ),
    Endpoint(
        "POST",
        "/v1/decisions/{id}/feedback",
        "Say what an answer should have been",
        Right.FEEDBACK,
        FeedbackArguments,
        Noted,
        run=lambda api, _caller, asked: api.service.feedback(asked),
    ),
    Endpoint(
        "POST",
        "/v1/cache/test",
        "Whether a cache would answer a request, and why or why not",
        Right.ROUTE,
        RouteArguments,
        CacheTested,
        run=lambda api, _caller, asked: api.service.test_cache(asked),
    ),
    Endpoint(
        "POST",
        "/v1/cache/forget",
        "Drop the cached answer to a request",
        Right.FEEDBACK,
        RouteArguments,
        Forgotten,
        run=lambda api, _caller, asked: api.service.forget(asked),
    ),
    Endpoint(
        "GET",
        "/v1/status",
        "Which skills are loaded or faulty; caches, encoder and LLMs",
        Right.MANAGE,
        NoArguments,
        RouterStatus,
        takes="query",
        run=lambda api, _caller, asked: api.service.status(asked),
    ),
    Endpoint(
        "GET",
        "/v1/learning",
        "The evidence, the local model, the account of the error bound",
        Right.MANAGE,
        NoArguments,
        dict[str, Any],
        takes="query",
        run=lambda api, _caller, asked: api.service.learning(asked),
    ),
    Endpoint(
        "GET",
        "/v1/events",
        "What happens from now on, as server-sent events",
        Right.MANAGE,
        NoArguments,
        str,
        takes="query",
        stream=lambda api, _caller, _asked: api.events.listen(),
        media_type="text/event-stream",
    ),
    Endpoint(
        "POST",
        "/v1/memory/recall",
        "Answer a query from the memory layers that fit it",
        Right.MEMORY,
        RecallArguments,
        Recalled,
        run=lambda api, _caller, asked: api.memory.recall(asked),
    ),
    Endpoint(
        "POST",
        "/v1/memory/context",
        "Gather what memories and documents say into a text within a budget of tokens",
        Right.MEMORY,
        AssembleArguments,
        Context,
        run=lambda api, _caller, asked: api.memory.assemble(asked),
    ),
    Endpoint(
        "POST",
        "/v1/memory/save",
        "Remember a text",
        Right.MEMORY,
        SaveArguments,
        Saved,
        run=lambda api, _caller, asked: api.memory.save(asked),
    ),
    Endpoint(
        "GET",
        "/v1/memory/status",
        "How the layers, the memory files and the memory service are",
        Right.MEMORY,
        NoArguments,
        MemoryNow,
        takes="query",
        run=lambda api, _caller, asked: api.memory.status(asked),
    ),
)
