"""Refusals as ``application/problem+json`` (RFC 9457): what was wrong, and where."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from pydantic import BaseModel, Field
from starlette.responses import Response

from router.web.exchanges import request_id

MEDIA_TYPE: Final = "application/problem+json"
MAX_DETAIL_CHARACTERS: Final = 2_000
"""A detail may name what was given, which is as long as the caller makes it."""
RETRY_SECONDS: Final = 1
"""What a client that met a full server is asked to wait."""


class Fault(BaseModel):
    """One thing that is wrong with a request."""

    where: str = Field(description="The field, such as `history.0.role`.")
    what: str


class Problem(BaseModel):
    """Why a request was not answered."""

    type: str = Field("about:blank", description="Always about:blank; the title says what it is.")
    title: str
    status: int
    detail: str
    faults: list[Fault] = Field([], description="What is wrong with the fields, if that is it.")
    request_id: str = Field(
        "", description="The answer's X-Request-Id, by which its server finds it."
    )


def problem(
    status: int,
    title: str,
    detail: str,
    *,
    faults: list[Fault] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    told = dict(headers or {})
    if status in (429, 503):
        told.setdefault("Retry-After", str(RETRY_SECONDS))
    if status == 401:
        told.setdefault("WWW-Authenticate", "Bearer")
    body = Problem(
        title=title,
        status=status,
        detail=detail[:MAX_DETAIL_CHARACTERS],
        faults=faults or [],
        request_id=request_id.get(),
    )
    text = json.dumps(body.model_dump(), ensure_ascii=False)
    return Response(text.encode("utf-8", "replace"), status, told, MEDIA_TYPE)
