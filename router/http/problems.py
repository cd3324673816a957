"""Errors as ``application/problem+json`` (RFC 9457): what was wrong, and where."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, Field, ValidationError
from starlette.responses import Response

from router.errors import (
    ConfigurationError,
    EncoderError,
    InvalidRequest,
    Overloaded,
    ReadOnlyMemory,
    RouterError,
    SourceError,
    UnknownMemory,
    UnknownSkill,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

MEDIA_TYPE: Final = "application/problem+json"
MAX_FAULTS: Final = 10
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


class Refused(Exception):
    """A request that is not carried out."""

    def __init__(self, status: int, title: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.title = title


def problem(
    status: int,
    title: str,
    detail: str,
    *,
    faults: list[Fault] | None = None,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """The response for a request that was not answered."""
    told = dict(headers or {})
    if status in (429, 503):
        told.setdefault("Retry-After", str(RETRY_SECONDS))
    if status == 401:
        told.setdefault("WWW-Authenticate", "Bearer")
    body = Problem(title=title, status=status, detail=detail, faults=faults or [])
    text = json.dumps(body.model_dump(), ensure_ascii=False)
    return Response(text.encode("utf-8", "replace"), status, told, MEDIA_TYPE)


def problem_of(error: Exception) -> Response | None:
    """The response for an error that a caller can do something about; None for a bug."""
    if isinstance(error, Refused):
        return problem(error.status, error.title, str(error))
    if isinstance(error, ValidationError):
        return problem(
            422,
            "the request is not as it should be",
            f"{error.error_count()} of its fields cannot be used",
            faults=[
                Fault(where=".".join(map(str, fault["loc"])) or "body", what=fault["msg"])
                for fault in error.errors(
                    include_input=False, include_url=False, include_context=False
                )[:MAX_FAULTS]
            ],
        )
    if not isinstance(error, RouterError):
        return None
    status, title = next(
        (known[1:] for known in _KNOWN if isinstance(error, known[0])),
        (500, "a part of the router failed"),
    )
    return problem(status, title, str(error))


_KNOWN: Final = (
    (Overloaded, 503, "too many requests are under way"),
    (UnknownSkill, 404, "there is no such skill"),
    (UnknownMemory, 404, "there is no such memory"),
    (ReadOnlyMemory, 409, "this memory may not be written"),
    (InvalidRequest, 422, "the request cannot be used"),
    (SourceError, 422, "a tool cannot be used"),
    (ConfigurationError, 409, "the server is not set up for that"),
    (EncoderError, 503, "the encoder does not answer"),
)
