"""What pages are made of: templates, texts of others made harmless, and the files that go along.

The template engine escapes every value. Beside that, characters that cannot be seen and that change
how others are shown (control characters, overrides of the direction of writing, zero-width ones)
are shown by their code, and texts are cut to a length that fits their place.

``htmx.min.js`` is htmx 4.0.1 as its package on npm has it, under the Zero-Clause BSD licence that
lies beside it.
"""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime
from importlib.resources import files
from typing import Any, Final

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

_UNSEEN: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f"
    "\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
LONG: Final = 1_000
"""A text of more characters than this is long."""
_TYPES: Final = {
    "playground.css": "text/css; charset=utf-8",
    "playground.js": "text/javascript; charset=utf-8",
    "htmx.min.js": "text/javascript; charset=utf-8",
    "icon.svg": "image/svg+xml",
}


class Verbatim(str):
    """A text that is shown in a form field, where it is to be sent again as it is."""

    __slots__ = ()


def templates() -> Environment:
    """The templates of all screens."""
    made = Environment(
        loader=PackageLoader("router.http.playground"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "cut": cut,
        "clock": clock,
        "duration": duration,
        "moment": moment,
        "verbatim": Verbatim,
    }
    return made


def shown(value: Any) -> Any:
    """A value as a template puts it out, before it is escaped."""
    if not isinstance(value, str) or isinstance(value, Markup | Verbatim):
        return value
    return _UNSEEN.sub(lambda found: f"\u2423U+{ord(found[0]):04X}\u2423", value)


def cut(text: str, length: int) -> str:
    """A text of at most ``length`` characters; of a longer one the beginning and, where most of it
    is left out, how long it is."""
    if len(text) <= length:
        return text
    whole = f" ({len(text):,} characters)" if len(text) >= LONG else ""
    return f"{text[:length].rstrip()}\u2026{whole}"


def duration(seconds: float) -> str:
    """A time for a person, such as ``12 µs``, ``3.4 ms``, ``1.2 s`` or ``3 h``."""
    for unit, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} \u00b5s"
    return f"{seconds * 1e3:.1f} ms" if seconds < 1 else f"{seconds:.1f} s"


def clock(at: float) -> str:
    """The time of day of the server, ``14:03:27``, for seconds since the epoch."""
    return datetime.fromtimestamp(at).astimezone().strftime("%H:%M:%S")


def moment(at: float) -> str:
    """The same for programs, in full."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


class Assets:
    """Style, htmx and a little script of our own, kept in memory. A browser asks each time whether
    anything has changed."""

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
