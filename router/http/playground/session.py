"""Signing in: a person shows a key once, and the browser then shows a session in its place.

The session is a cookie that no script can read and that no other site's page can make the browser
send. It names the key, says how long it holds, and is signed with a secret of this server and the
key's digest; so nothing is kept on the server, the key itself is not in it, and a key that is
revoked ends its sessions at once. Cookies do not know ports: another server on the same host name
may see one, which is why it holds for half a day only.
"""

from __future__ import annotations

import hashlib
import hmac
import time
from collections.abc import Callable
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from router.http.caller import Caller, Callers
from router.http.keys import digest_of
from router.http.problems import Refused

COOKIE: Final = "router_session"
SESSION_SECONDS: Final = 12 * 3600


class Sessions:
    """Knows people by their sessions, and programs by their keys."""

    def __init__(
        self, callers: Callers, *, secret: bytes, clock: Callable[[], float] = time.time
    ) -> None:
        """
        Args:
            callers: who may call.
            secret: signs the sessions; another one ends all of them.
            clock: seconds since the epoch.
        """
        self._callers = callers
        self._secret = secret
        self._clock = clock

    def identify(self, request: Request) -> Caller:
        """Who sends a request; raises what ``Callers.identify`` does."""
        cookie = request.cookies.get(COOKIE)
        if cookie is not None and (caller := self._of(cookie)) is not None:
            return caller
        return self._callers.identify(request.headers)

    def sign_in(self, response: Response, key: str, *, secure: bool) -> None:
        """Give the browser a session.

        Args:
            response: that takes the cookie along.
            key: as the person shows it.
            secure: whether the browser may send it over TLS only.

        Raises:
            Refused: there is no such key.
        """
        key_id, digest = self._callers.of_key(key).id, digest_of(key)
        ends = int(self._clock()) + SESSION_SECONDS
        response.set_cookie(
            COOKIE,
            f"{key_id}.{ends}.{self._signature(key_id, ends, digest)}",
            max_age=SESSION_SECONDS,
            httponly=True,
            samesite="strict",
            secure=secure,
        )

    def sign_out(self, response: Response) -> None:
        """Take the session from the browser."""
        response.delete_cookie(COOKIE, httponly=True, samesite="strict")

    def _of(self, cookie: str) -> Caller | None:
        key_id, _, rest = cookie.partition(".")
        ends, _, signature = rest.partition(".")
        known = self._callers.of_id(key_id)
        if known is None or not ends.isdecimal() or len(ends) > 12 or int(ends) < self._clock():
            return None
        caller, digest = known
        right = self._signature(key_id, int(ends), digest)
        return caller if hmac.compare_digest(signature.encode(), right.encode()) else None

    def _signature(self, key_id: str, ends: int, digest: str) -> str:
        signed = f"{key_id}.{ends}.{digest}".encode()
        return hmac.new(self._secret, signed, hashlib.sha256).hexdigest()


def from_this_site(request: Request) -> None:
    """Whether a request that changes something was sent by a page of this server.

    Browsers say with every such request where it comes from, and pages cannot change what they say.

    Raises:
        Refused: it comes from another site's page, or does not say where it comes from.
    """
    site = request.headers.get("sec-fetch-site")
    origin = request.headers.get("origin", "")
    own = origin.partition("://")[2].lower() == request.headers.get("host", "").lower()
    if (site is None or site == "same-origin") and origin and own:
        return
    raise Refused(
        403,
        "this did not come from a page of this server",
        "open the page again and repeat what you did",
    )
