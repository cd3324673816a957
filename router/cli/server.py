"""Asking a running ``router serve`` in place of a router of one's own."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, Final, Self, TypeAlias

import typer

from router.cli.mcp import read_token
from router.errors import ConfigurationError, RouterError
from router.replies import RefusedReply, blocking_reply_bounds
from router.result import RoutingResult

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from router.request import Turn
    from router.service.explaining import Explanation

SECONDS: Final = 120.0
"""An answer may wait for an LLM, and for a server that is still reading its skills."""

MAX_ANSWER_BYTES: Final = 1 << 24
"""Far more than the longest answer, with its trace and evidence."""

WINDOW: Final = 8
"""A server works on this many requests of a batch at the same time."""

ServerUrl: TypeAlias = Annotated[
    str | None,
    typer.Option("--server", metavar="URL", help="Ask a router serve, and read no skills here."),
]
KeyVariable: TypeAlias = Annotated[
    str | None,
    typer.Option("--key-env", metavar="NAME", help="Variable that holds the key for the server."),
]


class ServerFailed(RouterError):
    """A server did not answer as it should; the text says why, and what to do about it."""


class Server:
    """A server, with the connections to it; closed by the end of a ``with`` block."""

    def __init__(self, url: str, key_variable: str | None) -> None:
        """Nothing is sent yet.

        Raises:
            ConfigurationError: the address or the variable cannot be used.
        """
        import httpx

        try:
            parsed = httpx.URL(url)
        except (httpx.InvalidURL, UnicodeEncodeError) as error:
            raise ConfigurationError(f"--server {url}: {error}") from error
        if parsed.scheme not in ("http", "https") or not parsed.host or parsed.userinfo:
            raise ConfigurationError(f"--server {url}: expected http://HOST:PORT or https://HOST")
        self._url = str(parsed).rstrip("/")
        headers = (
            {} if key_variable is None else {"Authorization": f"Bearer {read_token(key_variable)}"}
        )
        bounds = blocking_reply_bounds(seconds=SECONDS, max_bytes=MAX_ANSWER_BYTES)
        self._client = httpx.Client(headers=headers, timeout=SECONDS, event_hooks=bounds)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def ask(self, method: str, path: str, **sent: Any) -> Any:
        """What the server answers, as JSON values.

        Raises:
            ServerFailed: it cannot be reached, refuses, or answers something else.
        """
        import httpx

        try:
            answer = self._client.request(method, self._url + path, **sent)
        except (httpx.HTTPError, RefusedReply) as error:
            reason = str(error) or type(error).__name__
            raise ServerFailed(
                f"{self._url} cannot be reached: {reason}; is router serve running there?"
            ) from error
        try:
            told = answer.json()
        except (ValueError, RecursionError) as error:
            raise ServerFailed(
                f"{self._url} answers {answer.status_code} and no JSON; it is no router serve"
            ) from error
        if answer.is_success:
            return told
        raise ServerFailed(f"{self._url}: {_reason(told, answer.status_code)}")

    async def route(
        self, request: str, *, history: Sequence[Turn] = (), **options: Any
    ) -> RoutingResult:
        """What the server decides. Takes what ``SemanticRouter.route`` takes.

        Raises:
            ServerFailed: it does not answer, or with something else.
        """
        turns = [asdict(turn) for turn in history]
        asked = {"request": request, "trace": True, "history": turns, **options}
        told = await asyncio.to_thread(self.ask, "POST", "/v1/route", json=asked)
        try:
            return RoutingResult.from_dict(told)
        except ValueError as error:
            raise self._unreadable(error) from error

    def explain(self, request: str, **options: Any) -> tuple[RoutingResult, Explanation]:
        """What the server decides, and the evidence behind it; raises what ``route`` does."""
        from router.service.explaining import Explanation
        from router.service.schemas import adapter_of

        told = self.ask("POST", "/v1/route/explain", json={"request": request, **options})
        try:
            why: Explanation = adapter_of(Explanation).validate_python(told["why"])
            return RoutingResult.from_dict(told["result"]), why
        except (KeyError, TypeError, ValueError) as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> ServerFailed:
        return ServerFailed(f"{self._url}: its answer cannot be read: {error}")


def _reason(problem: Any, status: int) -> str:
    """What a problem says."""
    if not isinstance(problem, dict) or "title" not in problem:
        return f"it answers {status}"
    text = f"{problem['title']}: {problem.get('detail', '')}"
    faults: list[Mapping[str, Any]] = problem.get("faults") or []
    if faults:
        text += "; " + ", ".join(f"{fault['where']}: {fault['what']}" for fault in faults)
    if status == 401:
        text += " (name a variable that holds a key: --key-env)"
    return text
