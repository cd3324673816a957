"""One request and its answer as whoever runs the server sees them: an id, a line, a count.

The id is the caller's own ``X-Request-Id``, such as a proxy gives one, or a new one. It goes back
with the answer, stands in problems and in each line that is logged meanwhile, and is an attribute
of the spans. Neither a query nor a key is logged, and paths are counted by their template.
"""

from __future__ import annotations

import logging
import re
import secrets
from collections.abc import Callable, Mapping
from contextvars import ContextVar
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_log: Final = logging.getLogger("router.access")

request_id: Final[ContextVar[str]] = ContextVar("request_id", default="")
"""The id of the request that is being answered; empty outside of one."""
HEADER: Final = b"x-request-id"
ELSEWHERE: Final = "other"
"""The template of every path that the server does not have."""
QUIET: Final = frozenset({"/healthz", "/readyz", "/metrics"})
"""Asked for every few seconds by machines; only a failure of theirs is logged."""
METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"})
_WELL_FORMED: Final = re.compile(rb"[\w.:/+=@-]{1,128}", re.ASCII)
"""What an id of a caller may be; another one is replaced, because it goes into logs."""
_ID_BYTES: Final = 8


class Exchanges:
    """Gives each request its id, logs it, and counts it, around an application."""

    def __init__(
        self,
        app: ASGIApp,
        templates: Mapping[object, str],
        count: Callable[[str, str, int, float], None],
        caller: Callable[[], str],
    ) -> None:
        """
        Args:
            templates: of the paths, by the endpoint that the application finds for each.
            count: is told of each answer: the template of its path, its method, its status and how
                many seconds it took.
            caller: whose request is being answered, for the log; empty where nobody knows.
        """
        self._app = app
        self._templates = templates
        self._count = count
        self._caller = caller

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = perf_counter(), 500  # as the server answers where the application fails
        own = _id_of(scope)
        token = request_id.set(own)

        async def with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (HEADER, own.encode())]
            await send(message)

        try:
            await self._app(scope, receive, with_id)
        finally:
            seconds = perf_counter() - began
            template = self._template(scope)
            method = scope["method"] if scope["method"] in METHODS else ELSEWHERE
            self._count(template, method, status, seconds)
            if status >= 400 or template not in QUIET:
                who = self._caller() or "-"
                _log.info("%s %s %d %.1f ms %s", method, template, status, seconds * 1000, who)
            request_id.reset(token)

    def _template(self, scope: Scope) -> str:
        """The path as the API describes it: ``/v1/skills/{name}``."""
        found: Any = scope.get("endpoint", scope["path"])
        return self._templates.get(found, ELSEWHERE)


def _id_of(scope: Scope) -> str:
    given = next((value for name, value in scope["headers"] if name == HEADER), b"")
    if _WELL_FORMED.fullmatch(given) is None:
        return secrets.token_hex(_ID_BYTES)
    return bytes(given).decode()
