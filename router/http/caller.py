"""The caller of a request, found by its key, and what the caller may do.

A request may narrow the scope of its key, but never widen it: a key for ``shop`` may be used in the
scopes ``shop`` and ``shop/ada``; a request that names no scope is in ``shop``.
"""

from __future__ import annotations

import hmac
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from router.errors import ConfigurationError
from router.http.keys import Key, KeyFile, Right, digest_of
from router.http.limits import Places
from router.http.problems import Refused
from router.web.names import NamesChecked, bearer_token
from router.web.problems import problem

_log: Final = logging.getLogger(__name__)

ALL_RIGHTS: Final = frozenset(Right)
NOTED_EVERY_SECONDS: Final = 60.0
"""The log mentions unknown keys once in this time, with their number."""


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request.

    Attributes:
        id: the id of the key; ``local`` for the user of this machine.
        rights: what the caller may do.
        scopes: the scopes that may be used, with those below them; empty: any scope.
        namespaces: the namespaces whose tools may be seen; empty: all tools and skills.
    """

    id: str
    rights: frozenset[Right]
    scopes: tuple[str, ...] = ()
    namespaces: tuple[str, ...] = ()

    def require(self, right: Right) -> None:
        """Raises Refused when the caller has not this right."""
        if right not in self.rights:
            raise Refused(403, "this key may not do that", f"the right {right.value} is missing")

    def require_all_namespaces(self) -> None:
        """Raises Refused when the caller is bound to some namespaces."""
        if self.namespaces:
            raise Refused(
                403, "this key may not do that", "it reaches all namespaces, and the key has some"
            )

    def require_namespace(self, namespace: str) -> None:
        """Raises Refused when the caller may not use this namespace."""
        if self.namespaces and namespace not in self.namespaces:
            raise Refused(
                403, "this key may not use that namespace", "it is not one of the key's namespaces"
            )

    @property
    def is_unbound(self) -> bool:
        """Whether the caller may do everything, in any scope and namespace."""
        return not self.scopes and not self.namespaces and self.rights == ALL_RIGHTS

    def may_see(self, scope: str | None) -> bool:
        """Whether a scope lies inside the caller's."""
        return not self.scopes or any(
            scope == own or (scope or "").startswith(f"{own}/") for own in self.scopes
        )

    def scope_for(self, requested: str | None) -> str | None:
        """The scope of a request that names ``requested`` as its scope.

        Raises:
            Refused: it lies outside the caller's scopes.
        """
        if not self.scopes:
            return requested
        if requested is None:
            return self.scopes[0]
        if self.may_see(requested):
            return requested
        raise Refused(403, "this key may not use that scope", "it is outside the key's scopes")


LOCAL: Final = Caller("local", ALL_RIGHTS)
"""The one user of this machine, who needs no key on its own addresses."""
_ENVIRONMENT: Final = Caller("environment", ALL_RIGHTS)
"""A caller with the key that is set in the environment."""
asking: Final[ContextVar[Caller | None]] = ContextVar("asking", default=None)
"""The caller whose request the current task answers, also if it is refused; None until it is
known."""


class Callers:
    def __init__(
        self,
        keys: KeyFile,
        *,
        secret: str | None,
        required: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """
        Args:
            keys: the keys of the users of the server.
            secret: one more key, with all rights, which is set in the environment.
            required: whether a key is needed even while there is none in the file.
            clock: monotonic seconds.
        """
        self._keys = keys
        self._secret = secret
        self._required = required
        self._clock = clock
        self._unread = ""
        self._unknown = 0
        self._noted_at = -NOTED_EVERY_SECONDS

    def identify(self, headers: Headers) -> Caller:
        """The caller of a request with these headers. Raises Refused if a key is needed and there
        is none, or if it is unknown."""
        shown = bearer_token(headers) or headers.get("x-api-key")
        if shown is None:
            with self._reading():
                is_open = not (self._required or "authorization" in headers or self._keys.all())
            if not is_open:
                raise Refused(401, "a key is required", "send it as Authorization: Bearer <key>")
            return LOCAL
        return self.of_key(shown)

    def of_key(self, shown: str) -> Caller:
        """The caller with this key. Raises Refused if it is unknown."""
        if self._secret is not None and hmac.compare_digest(
            shown.encode("utf-8", "replace"), self._secret.encode("utf-8", "replace")
        ):
            return _ENVIRONMENT
        with self._reading():
            key = self._keys.find(shown)
        if key is None:
            self._note_unknown()
            raise Refused(401, "this key is not known", "it may have been revoked")
        return _caller_of(key)

    def _note_unknown(self) -> None:
        """Log at most once a minute that unknown keys are used, and never the keys."""
        self._unknown += 1
        if (now := self._clock()) - self._noted_at >= NOTED_EVERY_SECONDS:
            _log.warning("unknown keys were shown: %d", self._unknown)
            self._unknown, self._noted_at = 0, now

    def of_id(self, key_id: str) -> tuple[Caller, str] | None:
        """The caller who has the key of this id, and the key's digest; None when it was revoked."""
        if key_id == _ENVIRONMENT.id and self._secret is not None:
            return _ENVIRONMENT, digest_of(self._secret)
        with self._reading():
            key = next((key for key in self._keys.all() if key.id == key_id), None)
        return None if key is None else (_caller_of(key), key.digest)

    def locked_out(self) -> bool:
        """Whether nobody can be let in, because the keys cannot be read and there is no secret."""
        try:
            with self._reading():
                self._keys.all()
        except Refused:
            return self._secret is None
        return False

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Refuse the request if the file of keys cannot be read. The reason is written to the log,
        once, and not to the answer: it names a folder of this machine, and the caller is not known
        yet."""
        try:
            yield
        except ConfigurationError as error:
            if self._unread != (reason := str(error)):
                self._unread = reason
                _log.error("%s", reason)
            raise Refused(503, "the keys cannot be read", "the server's log says why") from None
        self._unread = ""


def _caller_of(key: Key) -> Caller:
    return Caller(key.id, frozenset(key.rights), key.scopes, key.namespaces)


class OwnersOnly:
    """Refuses callers who may not do everything, because the tools of MCP reach all scopes. When
    the server stops, requests that take too long are refused, as by ``Api.guarded``."""

    def __init__(self, app: ASGIApp, callers: Callers, places: Places) -> None:
        self._app = app
        self._callers = callers
        self._places = places

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begun = False

        async def passed_on(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        try:
            caller = self._callers.identify(Headers(scope=scope))
            asking.set(caller)
            if not caller.is_unbound:
                raise Refused(
                    403,
                    "this key may not use MCP",
                    "the tools reach all scopes: it needs a key with all rights and no scopes",
                )
            with self._places.refusing_when_stopped():
                # A copy: the application would write its own endpoint over the one found here,
                # by which the request is logged and counted.
                await self._app({**scope}, receive, passed_on)
        except Refused as error:
            if not begun:
                await problem(error.status, error.title, str(error))(scope, receive, send)


def for_owners(app: ASGIApp, *, names: Sequence[str], callers: Callers, places: Places) -> ASGIApp:
    """An application that is open only to callers who may do everything. ``names`` are those of
    ``served_names``; ``places`` know when the server is stopping."""
    return NamesChecked(OwnersOnly(app, callers, places), names)
