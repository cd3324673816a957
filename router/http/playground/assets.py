"""The files of the pages: style, htmx and a little of our own. All of them come from this server.

``htmx.min.js`` is htmx 4.0.1 as its package on npm has it, under the Zero-Clause BSD licence that
lies beside it.
"""

from __future__ import annotations

import hashlib
from importlib.resources import files
from typing import TYPE_CHECKING, Final

from starlette.exceptions import HTTPException
from starlette.responses import Response

if TYPE_CHECKING:
    from starlette.requests import Request

_TYPES: Final = {
    "playground.css": "text/css; charset=utf-8",
    "playground.js": "text/javascript; charset=utf-8",
    "htmx.min.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


class Assets:
    """Keeps the files in memory. A browser asks each time whether anything has changed."""

    def __init__(self) -> None:
        folder = files("router.http.playground") / "static"
        self._bodies = {name: (folder / name).read_bytes() for name in _TYPES}

    async def serve(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._bodies:
            raise HTTPException(404)
        body = self._bodies[name]
        tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
        headers = {"ETag": tag, "Cache-Control": "no-cache", "X-Content-Type-Options": "nosniff"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(body, headers=headers, media_type=_TYPES[name])
