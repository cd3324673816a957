"""The objects that all endpoints of the HTTP API share: the use cases, the callers and the
limits."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from threading import get_ident
from typing import Any, TypeAlias

from opentelemetry.trace import TracerProvider
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from router.events import Degraded, Event, Events, Recovered
from router.http.caller import Callers
from router.http.decisions import DecisionLog
from router.http.limits import Places
from router.http.metrics import Metrics
from router.http.narrowing import Narrowing
from router.http.problems import problem_of
from router.http.siblings import Siblings
from router.http.stream import EventStream
from router.memory.memory import Memory
from router.router import SemanticRouter
from router.service.memory import MemoryService
from router.service.service import Service
from router.tracing import Spans

Handler: TypeAlias = Callable[[Request], Awaitable[Response]]


class Api:
    """The objects that all endpoints share. Belongs to one event loop.

    Attributes:
        happened: the router's events, emitted in the next round of the event loop. By then the
            answer of a single request has been written, so it does not wait for metrics and spans.
    """

    def __init__(
        self,
        router: SemanticRouter,
        memory: Memory,
        callers: Callers,
        *,
        spans: TracerProvider | None = None,
        siblings: Siblings | None = None,
    ) -> None:
        """
        Args:
            router: may still be closed; what needs it waits until it is open.
            memory: opened by the first call that needs it.
            callers: who may call.
            spans: records what happens as spans; None: nothing is recorded.
            siblings: the other workers of the server; None: it is this process alone.
        """
        self.siblings = siblings
        self.service: Service = Service(router)
        self.memory: MemoryService = MemoryService(memory, router.events)
        self.narrowing: Narrowing = Narrowing(self.service)
        self.decisions: DecisionLog = DecisionLog()
        self.events: EventStream = EventStream(siblings)
        self.metrics: Metrics = Metrics(self.service)
        self.places: Places = Places()
        self.callers: Callers = callers
        self._degraded: dict[str, str] = {}
        self.traced = spans is not None
        if spans is not None:
            router.events.subscribe(Spans(spans))
        for sink in (self.decisions, self._note):
            router.events.subscribe(sink)
        self.happened: Events = Events()
        for sink in (self.events, self.metrics):
            self.happened.subscribe(sink)
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        router.events.subscribe(self._tell_later)

    def is_from_sibling(self, request: Request) -> bool:
        """Whether a request is from another worker of this server."""
        return self.siblings is not None and self.siblings.is_one(request.headers)

    async def answer_of_sibling(
        self, request: Request, decision: str, arguments: Mapping[str, Any] | None
    ) -> Response | None:
        """The answer of another worker about a decision that this one does not know; None if no
        other knows it. A request from another worker is never passed on."""
        if self.siblings is None or decision in self.decisions or self.is_from_sibling(request):
            return None
        path = request.scope["path"]
        return await self.siblings.ask(request.method, path, request.headers, arguments)

    def guarded(
        self,
        handler: Handler,
        answer_to_error: Callable[[Exception, Request], Response] = problem_of,
    ) -> Handler:
        """A handler whose errors become answers, by the function ``answer_to_error``."""

        async def handle(request: Request) -> Response:
            try:
                with self.places.refusing_when_stopped():
                    return await handler(request)
            except ClientDisconnect:  # in the middle of its body: nobody reads the answer
                return Response(status_code=400)
            except Exception as error:  # noqa: BLE001 - a bug is told, too
                return answer_to_error(error, request)

        return handle

    def stop(self) -> None:
        """Refuse new requests and end the streams; requests under way go on."""
        self.places.draining = True
        self.events.close()

    def ready(self) -> tuple[bool, dict[str, Any]]:
        """Whether requests are answered now, and the parts that do not work."""
        catalog = self.service.catalog
        ready = catalog is not None and not (self.places.draining or self.callers.locked_out())
        return ready, {
            "ready": ready,
            "catalog_version": None if catalog is None else catalog.version,
            "skills": 0 if catalog is None else len(catalog.routable),
            "degraded": self._degraded,
        }

    def _tell_later(self, event: Event) -> None:
        """Emit an event in the next round of the event loop. A single request is answered in this
        round, so its answer is sent before anything is counted. Batches and MCP answer later."""
        here = get_ident() == self._thread
        call = self._loop.call_soon if here else self._loop.call_soon_threadsafe
        call(self.happened.emit, event)

    def _note(self, event: Event) -> None:
        if isinstance(event, Degraded):
            self._degraded[event.part] = event.reason
        elif isinstance(event, Recovered):
            self._degraded.pop(event.part, None)
