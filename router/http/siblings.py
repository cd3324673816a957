"""Asks the other worker processes of one server for what only one of them knows.

Answers, caches and evidence are shared through ``state_dir``. The latest decisions and the events
are not: a worker asks the others for them, over sockets in a folder that only this user can enter.
"""

from __future__ import annotations

import asyncio
import hmac
import secrets
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import httpx
from starlette.datastructures import Headers
from starlette.responses import Response

HEADER: Final = "router-worker"
"""The header with the server's secret, by which a worker knows requests of other workers."""
SECONDS: Final = 10.0
"""How long an answer of another worker may take."""
RETRY_SECONDS: Final = 1.0
_SECRET: Final = "secret"  # noqa: S105 - the name of a file
_PASSED_ON: Final = ("authorization", "x-api-key", "cookie", "hx-request", "host")


class Siblings:
    """The other workers. Belongs to one event loop."""

    def __init__(self, folder: Path, own: int, workers: int) -> None:
        """
        Args:
            folder: as ``make_ready`` left it.
            own: number of this worker.
            workers: how many there are, this one included; some may not listen yet.
        """
        self._own = folder / f"{own}.sock"
        self._others = [folder / f"{other}.sock" for other in range(workers) if other != own]
        self.secret: Final = (folder / _SECRET).read_text(encoding="ascii")

    def listen(self) -> socket.socket:
        """The socket on which this worker answers the others."""
        self._own.unlink(missing_ok=True)
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        listening.bind(str(self._own))
        listening.listen()
        return listening

    def is_one(self, headers: Headers) -> bool:
        """Whether a request with these headers is from another worker."""
        shown = headers.get(HEADER, "")
        return hmac.compare_digest(shown.encode("utf-8", "replace"), self.secret.encode())

    async def ask(
        self, method: str, path: str, headers: Headers, arguments: Mapping[str, Any] | None
    ) -> Response | None:
        """The answer of the worker that knows what the path names; None if none does.

        The path is that of the client's request, unescaped."""
        passed = {name: headers[name] for name in _PASSED_ON if name in headers}
        for place in self._others:
            async with self._client(place) as client:
                with suppress(httpx.HTTPError):
                    answer = await client.request(
                        method, quote(path), json=arguments, headers={**passed, HEADER: self.secret}
                    )
                    if answer.status_code != 404:
                        kind = answer.headers.get("content-type", "application/json")
                        return Response(answer.content, answer.status_code, media_type=kind)
        return None

    def streams(self, path: str) -> list[AsyncIterator[str]]:
        """A stream of server-sent events of each other worker; a comment, such as
        the one that says that the stream stands, is an empty text."""
        return [self._events(place, path) for place in self._others]

    async def _events(self, place: Path, path: str) -> AsyncIterator[str]:
        headers = {HEADER: self.secret, "host": "localhost"}
        while True:  # a worker that is started later, or again, has its place from the beginning
            lines: list[str] = []
            with suppress(httpx.HTTPError):
                async with (
                    self._client(place) as client,
                    client.stream("GET", path, headers=headers, timeout=None) as answer,
                ):
                    async for line in answer.aiter_lines():
                        if line:
                            lines.append(line)
                            continue
                        is_comment = not lines or lines[0].startswith(":")
                        yield "" if is_comment else "\n".join(lines) + "\n\n"
                        lines = []
            await asyncio.sleep(RETRY_SECONDS)

    def _client(self, place: Path) -> httpx.AsyncClient:
        return httpx.AsyncClient(
            transport=httpx.AsyncHTTPTransport(uds=str(place)),
            base_url="http://localhost",
            timeout=SECONDS,
        )


def make_ready(folder: Path) -> None:
    """Make a folder ready for the workers of one server."""
    folder.chmod(0o700)
    (folder / "metrics").mkdir()
    (folder / _SECRET).write_text(secrets.token_hex(32), encoding="ascii")
