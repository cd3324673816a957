"""A running ``router serve``, asked in place of a router of one's own."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

import httpx

from router.bounded.replies import RefusedReply, blocking_reply_bounds
from router.concurrency.loop_thread import ClosedByBlock
from router.concurrency.tasks import in_thread
from router.errors import ConfigurationError, InvalidRequest, RouterError
from router.given import check_kind
from router.request import AnyTurn, kept_turns
from router.result import RoutingResult
from router.web.loopback import direct, why_no_client

if TYPE_CHECKING:
    from router.service.explaining import Explanation

T = TypeVar("T")

SECONDS: Final = 120.0
"""An answer may wait for an LLM, and for a server that is still reading its skills."""
MAX_ANSWER_BYTES: Final = 1 << 24
"""Far more than the longest answer, with its trace and evidence."""
MAX_REASON_CHARACTERS: Final = 1_000
"""What is told of a refusal, which may be as long as the server makes it."""
MAX_PORT: Final = 65_535
"""Above, the system would connect to another port, without a word."""
MAX_CALLS: Final = 16
"""So many requests are sent at the same time; others wait for them."""
_JSON: Final = {"Content-Type": "application/json"}


class RemoteRouter(ClosedByBlock):
    """A server, with the connections to it. Safe to share between threads."""

    def __init__(self, url: str, key: str | None = None, *, seconds: float = SECONDS) -> None:
        """Nothing is sent yet.

        Args:
            url: of the server, such as ``https://router.example.org``.
            key: the API key. It is sent to this address only: redirects are not followed, and
                proxies of the environment are not used for this machine itself.
            seconds: for connecting, for each part of an answer, and for all of its parts together.

        Raises:
            InvalidRequest: this is no address of HTTP, or no key that can be sent.
            ConfigurationError: the variables of the environment that name proxies and certificates
                cannot be used.
        """
        check_kind("server", url, str, error=InvalidRequest)
        if key is not None:
            check_kind("server: the key", key, str, error=InvalidRequest)
        try:
            parsed = httpx.URL(url)
        except (httpx.InvalidURL, UnicodeEncodeError) as error:
            raise InvalidRequest(f"server: {url!r} is no address of HTTP: {error}") from error
        is_http = parsed.scheme in ("http", "https") and parsed.host and not parsed.userinfo
        if not is_http or (parsed.port or 0) > MAX_PORT or parsed.query or parsed.fragment:
            wanted = "expected http://HOST:PORT or https://HOST"
            raise InvalidRequest(f"server: {url!r} is no address of HTTP: {wanted}")
        self._url = str(parsed).rstrip("/")
        if key is not None and (not key.isascii() or not key.isprintable() or " " in key):
            raise InvalidRequest("server: the key cannot be sent in a header")
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._threads = ThreadPoolExecutor(MAX_CALLS, thread_name_prefix="remote-router")
        bounds = blocking_reply_bounds(seconds=seconds, max_bytes=MAX_ANSWER_BYTES)
        try:
            self._client = httpx.Client(
                headers=headers,
                timeout=seconds,
                event_hooks=bounds,
                **direct(httpx.Client, url),
            )
        except (httpx.InvalidURL, ValueError, ImportError, OSError) as error:
            fault = (
                f"server: the proxies or certificates of the environment: {why_no_client(error)}"
            )
            raise ConfigurationError(fault) from error

    def close(self) -> None:
        """End the connections. Closing twice is fine."""
        self._client.close()
        self._threads.shutdown(wait=False)

    async def route(
        self, request: str, *, history: Sequence[AnyTurn] = (), **options: Any
    ) -> RoutingResult:
        """What the server decides. Takes what ``SemanticRouter.route`` takes.

        Raises:
            InvalidRequest: what is asked cannot be sent.
            RouterError: the server cannot be reached, refuses, or answers something else.
        """
        turns = [asdict(turn) for turn in kept_turns(history)]
        arguments = {"request": request, "trace": True, "history": turns, **options}
        ask = partial(self._ask, "/v1/route", arguments, RoutingResult.from_dict)
        return await in_thread(ask, executor=self._threads, leaves=True)

    def explain(self, request: str, **options: Any) -> tuple[RoutingResult, Explanation]:
        """What the server decides, and the evidence behind it; raises what ``route`` does."""
        from router.service.explaining import Explanation
        from router.service.schemas import adapter_of

        def read(answered: Any) -> tuple[RoutingResult, Explanation]:
            why: Explanation = adapter_of(Explanation).validate_python(answered["why"])
            return RoutingResult.from_dict(answered["result"]), why

        return self._ask("/v1/route/explain", {"request": request, **options}, read)

    def rank(self, request: str, **options: Any) -> tuple[str, ...]:
        """The names of the best skills, or of the best of the ``tools`` that are sent along, best
        first. The options are those of ``/v1/rank``; raises what ``route`` does."""
        arguments = {"request": request, **options}
        return self._ask(
            "/v1/rank",
            arguments,
            lambda answered: tuple(str(skill["name"]) for skill in answered["skills"]),
        )

    def _ask(self, path: str, arguments: dict[str, Any], read: Callable[[Any], T]) -> T:
        """What the server answers to a ``POST``, read from its JSON values."""
        try:
            body = json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidRequest(f"the request cannot be sent as JSON: {error}") from error
        try:
            answer = self._client.post(self._url + path, content=body, headers=_JSON)
        except (httpx.HTTPError, RefusedReply, UnicodeError) as error:  # of the name of a host
            reason = str(error) or type(error).__name__
            raise RouterError(
                f"{self._url} cannot be reached: {reason}; is router serve running there?"
            ) from error
        try:
            answered = answer.json()
        except (ValueError, RecursionError) as error:
            raise RouterError(
                f"{self._url} answers {answer.status_code} and no JSON; it is no router serve"
            ) from error
        if not answer.is_success:
            raise RouterError(f"{self._url}: {_reason(answered, answer.status_code)}")
        try:
            return read(answered)
        except (KeyError, TypeError, ValueError) as error:
            reason = f"{self._url}: its answer cannot be read: {error}"
            raise RouterError(reason[:MAX_REASON_CHARACTERS]) from error


def _reason(problem: Any, status: int) -> str:
    try:
        text = f"{problem['title']}: {problem.get('detail', '')}"
        if faults := problem.get("faults"):
            text += "; " + ", ".join(f"{fault['where']}: {fault['what']}" for fault in faults)
    except (KeyError, TypeError):
        text = f"it answers {status}"
    text = text[:MAX_REASON_CHARACTERS]
    if status == 401:
        text += " (for commands, name a variable that holds a key: --key-env)"
    return text
