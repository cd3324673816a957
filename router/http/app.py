"""The application: endpoints, health, metrics, and MCP under ``/mcp``, in one process.

Every request takes the same way: identify the caller, check its rights, read the arguments, wait
for a place, and call the service. A refusal is answered as a problem of
``router/http/problems.py``.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any

from opentelemetry import context, propagate
from pydantic_core import to_json
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from router.http.api import Api, Handler
from router.http.caller import LOCAL, Caller, OwnersOnly, asking
from router.http.endpoints import ENDPOINTS, Endpoint
from router.http.keys import Right
from router.http.limits import read_json
from router.http.metrics import CONTENT_TYPE
from router.http.openapi import openapi
from router.http.playground.playground import playground
from router.http.problems import Refused
from router.http.stream import PATH as EVENTS_PATH
from router.http.stream import streamed, while_known
from router.service.schemas import adapter_of, as_described, input_schema
from router.service.shapes import Arguments
from router.web.exchanges import Exchanges
from router.web.names import NamesChecked
from router.web.problems import problem

if TYPE_CHECKING:
    from router.mcp.http import McpApp


def http_app(api: Api, *, names: Sequence[str], mcp: McpApp | None) -> ASGIApp:
    """The ASGI application.

    Args:
        api: what it works on.
        names: host names that it is known by, as ``router.web.names.served_names`` gives them.
        mcp: the MCP server, under ``/mcp``; for callers who may do everything.
    """
    described = json.dumps(openapi(), ensure_ascii=False).encode()

    async def health(_request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def ready(_request: Request) -> Response:
        is_ready, state = api.ready()
        return JSONResponse(state, 200 if is_ready else 503)

    async def metrics(request: Request) -> Response:
        caller = api.callers.identify(request.headers)
        asking.set(caller)
        caller.require(Right.MANAGE)
        caller.require_all_namespaces()
        return Response(api.metrics.text(), media_type=CONTENT_TYPE)

    async def description(_request: Request) -> Response:
        return Response(described, media_type="application/json")

    handlers = [(endpoint, api.guarded(_handler(api, endpoint))) for endpoint in ENDPOINTS]
    by_path: dict[str, dict[str, Handler]] = {}
    for endpoint, handler in handlers:
        by_path.setdefault(endpoint.path, {})[endpoint.method] = handler
    # One route for all methods of a path, so that a refused method is answered with the allowed
    # ones.
    routes = [Route(path, _by_method(some), methods=list(some)) for path, some in by_path.items()]
    routes += [
        Route("/healthz", health),
        Route("/readyz", ready),
        Route("/metrics", api.guarded(metrics)),
        Route("/openapi.json", description),
    ]
    secret = None if api.siblings is None else api.siblings.secret.encode()
    routes += playground(api, secret=secret)
    if mcp is not None:
        from router.mcp.http import PATH  # loads the MCP SDK, as ``mcp`` has

        routes.append(Route(PATH, OwnersOnly(mcp.wrapped, api.callers, api.places)))

    lifespan: Any = None if mcp is None else lambda _: mcp.inner.router.lifespan_context(mcp.inner)
    refusals = {HTTPException: _http_problem}
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=refusals)
    fixed: dict[tuple[str, str], Handler] = {
        (one.method, one.path): handler for one, handler in handlers if not one.in_path
    }
    templates: dict[object, str] = {route.endpoint: route.path for route in routes}
    templates |= {path: path for _, path in fixed}
    named = NamesChecked(_FixedFirst(fixed, app), names)
    return Exchanges(named, templates, api.metrics.count_exchange, _caller_id)


def _caller_id() -> str:
    """The id of the key with which the current request was sent; empty without one."""
    caller = asking.get()
    return "" if caller is None else caller.id


class _FixedFirst:
    """Finds the handlers of fixed paths by one look-up, and leaves all other paths to Starlette.
    Starlette's search and its handling of errors take 0.1 ms a request. These handlers need
    neither: they turn errors into answers themselves (``Api.guarded``), and an error within a
    stream ends the connection."""

    def __init__(self, handlers: Mapping[tuple[str, str], Handler], rest: ASGIApp) -> None:
        self._handlers = handlers
        self._rest = rest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        handler = None
        if scope["type"] == "http":
            handler = self._handlers.get((scope["method"], scope["path"]))
        if handler is None:
            await self._rest(scope, receive, send)
            return
        response = await handler(Request(scope, receive, send))
        await response(scope, receive, send)


def _handler(api: Api, endpoint: Endpoint) -> Handler:
    answers = adapter_of(endpoint.answer)

    async def handle(request: Request) -> Response:
        if endpoint.path == EVENTS_PATH and api.is_from_sibling(request):
            return await _stream(api, endpoint, api.events.listen(everywhere=False), LOCAL)
        caller = api.callers.identify(request.headers)
        asking.set(caller)
        caller.require(endpoint.right)
        if endpoint.reaches_all:
            caller.require_all_namespaces()
        raw = await _raw_arguments(request, endpoint)
        arguments = endpoint.arguments.model_validate(raw)
        arguments = await api.narrowing.narrowed(arguments, caller)
        if endpoint.of_one_worker:
            rest = {name: raw[name] for name in raw if name not in endpoint.in_path} or None
            answered = await api.answer_of_sibling(request, arguments.id, rest)
            if answered is not None:
                return answered
        if endpoint.pieces is not None:
            pieces = endpoint.work(api, caller, arguments)
            if endpoint.path == EVENTS_PATH:
                pieces = while_known(pieces, lambda: api.callers.identify(request.headers))
            return await _stream(api, endpoint, pieces, caller)
        headers = {}
        if endpoint.etag:
            headers["ETag"] = f'"{(await api.service.router.open()).catalog.version}"'
        async with api.places.take(caller.id):
            with _inside(request) if api.traced else nullcontext():
                found = as_described(arguments, await endpoint.work(api, caller, arguments))
        if endpoint.etag and _is_known(request, headers["ETag"]):
            return Response(status_code=304, headers=headers)
        body = to_json(found) if isinstance(found, dict) else answers.dump_json(found)
        return Response(body, headers=headers, media_type="application/json")

    return handle


def _by_method(handlers: Mapping[str, Handler]) -> Handler:
    """The handlers of one path; HEAD is answered as GET is."""

    async def handle(request: Request) -> Response:
        return await handlers[request.method if request.method in handlers else "GET"](request)

    return handle


def _is_known(request: Request, tag: str) -> bool:
    """Whether the client has this version already, by its header ``If-None-Match``."""
    known = request.headers.get("if-none-match", "").replace("W/", "")
    return tag in map(str.strip, known.split(",")) or known.strip() == "*"


@contextmanager
def _inside(request: Request) -> Iterator[None]:
    """Makes the block a part of the trace that the request's headers name."""
    token = context.attach(propagate.extract(dict(request.headers)))
    try:
        yield
    finally:
        context.detach(token)


async def _raw_arguments(request: Request, endpoint: Endpoint) -> Any:
    """The arguments of a request, not checked yet: from its body or its query, and its path."""
    if endpoint.takes == "query":
        query, lists = request.query_params, _lists(endpoint.arguments)
        raw: Any = {n: query.getlist(n) if n in lists else query[n] for n in query}
    else:
        raw = await read_json(request)
        if not isinstance(raw, dict):
            raise Refused(400, "the body is no object", f"it is {type(raw).__name__}")
        if endpoint.body is not None:
            raw = {endpoint.body: raw}
    for name in endpoint.in_path:
        if name in raw:
            raise Refused(400, "an argument is given twice", f"{name}: it stands in the path")
        raw[name] = request.path_params[name]
    return raw


@cache
def _lists(arguments: type[Arguments]) -> frozenset[str]:
    """The arguments that are lists, which a query gives by repeating their name."""
    properties = input_schema(arguments)["properties"]
    return frozenset(
        name
        for name, schema in properties.items()
        if "array" in (schema.get("type"), *(one.get("type") for one in schema.get("anyOf", ())))
    )


async def _stream(
    api: Api, endpoint: Endpoint, pieces: AsyncGenerator[bytes, None], caller: Caller
) -> Response:
    async def in_its_place() -> AsyncGenerator[bytes, None]:
        async with api.places.take(caller.id), aclosing(pieces):
            async for piece in pieces:
                yield piece

    listens = endpoint.media_type == "text/event-stream"  # listeners have a bound of their own
    return await streamed(pieces if listens else in_its_place(), endpoint.media_type)


async def _http_problem(request: Request, error: Any) -> Response:
    detail = f"{request.method} {request.url.path}: /openapi.json lists what there is"
    return problem(error.status_code, error.detail, detail, headers=error.headers)
