"""Asking a running ``router serve`` in place of a router of one's own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias

import typer

from router.cli.mcp import read_token
from router.errors import ConfigurationError, RouterError
from router.result import RoutingResult

if TYPE_CHECKING:
    from collections.abc import Mapping

SECONDS: Final = 120.0
"""An answer may wait for an LLM, and for a server that is still reading its skills."""

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
    """A server that is asked one thing after another."""

    def __init__(self, url: str, key_variable: str | None) -> None:
        """Nothing is sent yet.

        Raises:
            ConfigurationError: the address or the variable cannot be used.
        """
        import httpx

        try:
            parsed = httpx.URL(url)
        except httpx.InvalidURL as error:
            raise ConfigurationError(f"--server {url}: {error}") from error
        if parsed.scheme not in ("http", "https") or not parsed.host or parsed.userinfo:
            raise ConfigurationError(f"--server {url}: expected http://HOST:PORT or https://HOST")
        self._url = str(parsed).rstrip("/")
        self._headers = (
            {} if key_variable is None else {"Authorization": f"Bearer {read_token(key_variable)}"}
        )

    def ask(self, method: str, path: str, **sent: Any) -> Any:
        """What the server answers, as JSON values.

        Raises:
            ServerFailed: it cannot be reached, refuses, or answers something else.
        """
        import httpx

        try:
            answer = httpx.request(
                method, self._url + path, headers=self._headers, timeout=SECONDS, **sent
            )
        except httpx.HTTPError as error:
            reason = str(error) or type(error).__name__
            raise ServerFailed(
                f"{self._url} cannot be reached: {reason}; is router serve running there?"
            ) from error
        try:
            told = answer.json()
        except ValueError as error:
            raise ServerFailed(
                f"{self._url} answers {answer.status_code} and no JSON; it is no router serve"
            ) from error
        if answer.is_success:
            return told
        raise ServerFailed(f"{self._url}: {_reason(told, answer.status_code)}")

    def routed(self, asked: dict[str, Any]) -> RoutingResult:
        """What the server decides; ``asked`` is the body for ``/v1/route``, with a trace.

        Raises:
            ServerFailed: it does not answer, or with something else.
        """
        try:
            return RoutingResult.from_dict(self.ask("POST", "/v1/route", json=asked))
        except ValueError as error:
            raise ServerFailed(f"{self._url}: its answer cannot be read: {error}") from error


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
