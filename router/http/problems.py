"""Errors of the API as problems (``router/web/problems.py``): which status each one has."""

from __future__ import annotations

import logging
from typing import Final

from pydantic import ValidationError
from starlette.requests import Request
from starlette.responses import Response

from router.errors import (
    ConfigurationError,
    EncoderError,
    InvalidRequest,
    Overloaded,
    ReadOnlyMemory,
    RouterError,
    SourceError,
    StoreAway,
    StoreError,
    UnknownAnswer,
    UnknownMemory,
    UnknownSkill,
)
from router.plain_json import faults_in
from router.web.problems import Fault, problem

_log: Final = logging.getLogger(__name__)

MAX_FAULTS: Final = 10


class Refused(Exception):
    """A request that is not carried out."""

    def __init__(self, status: int, title: str, detail: str) -> None:
        super().__init__(detail)
        self.status = status
        self.title = title


def problem_of(error: Exception, request: Request) -> Response:
    """The response for an error, which is being handled, of a request. A bug is told in the log
    alone: its text may hold anything."""
    if isinstance(error, Refused):
        return problem(error.status, error.title, str(error))
    if isinstance(error, ValidationError):
        return problem(
            422,
            "the request is not as it should be",
            f"{error.error_count()} of its fields cannot be used",
            faults=faults_of(error),
        )
    if not isinstance(error, RouterError):
        _log.exception("%s %s failed", request.method, request.url.path)
        return problem(500, "an internal error", "the server's log has the details")
    status, title = next(
        (known[1:] for known in _KNOWN if isinstance(error, known[0])),
        (500, "a part of the router failed"),
    )
    # Such as a full disk; who runs the server sees no answers.
    if status == 500 or isinstance(error, StoreAway):
        _log.error("%s %s failed: %s", request.method, request.url.path, error)
    if isinstance(error, StoreAway):  # its reason may name the database's address and role
        return problem(status, title, "the database of memories does not answer; ask again later")
    # Where the server keeps its files is nothing for clients.
    return problem(status, title, error.reason if isinstance(error, StoreError) else str(error))


def faults_of(error: ValidationError) -> list[Fault]:
    """What is wrong with the fields of a request, the first ``MAX_FAULTS`` of it."""
    return [
        Fault(where=place or "request", what=why)
        for place, why in faults_in(error, most=MAX_FAULTS)
    ]


_KNOWN: Final = (
    (Overloaded, 503, "too many requests are under way"),
    (UnknownAnswer, 404, "there is no such decision"),
    (UnknownSkill, 404, "there is no such skill"),
    (UnknownMemory, 404, "there is no such memory"),
    (ReadOnlyMemory, 409, "this memory may not be written"),
    (InvalidRequest, 422, "the request cannot be used"),
    (SourceError, 422, "a tool cannot be used"),
    (ConfigurationError, 409, "the server is not set up for that"),
    (EncoderError, 503, "the encoder does not answer"),
    (StoreAway, 503, "memory is away"),
)
