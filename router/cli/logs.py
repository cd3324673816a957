"""What a server logs, as lines of text or of JSON, on standard error."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Final

import typer

from router.web.exchanges import request_id

_log: Final = logging.getLogger("router.serve")


class LogFormat(StrEnum):
    """How a line of the log is written."""

    TEXT = "text"
    JSON = "json"


class _TextLines(logging.Formatter):
    """As logging does by itself, with the id of the request that is being answered at the end."""

    def __init__(self) -> None:
        super().__init__(logging.BASIC_FORMAT)

    def format(self, record: logging.LogRecord) -> str:
        text = super().format(record)
        own = request_id.get()
        return f"{text} [{own}]" if own else text


class _JsonLines(logging.Formatter):
    """One object a line."""

    def format(self, record: logging.LogRecord) -> str:
        told: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if own := request_id.get():
            told["request_id"] = own
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=False)


def log_to_standard_error(form: LogFormat, *, access: bool) -> None:
    """Log warnings and errors, and with ``access`` a line for each request."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines() if form is LogFormat.JSON else _TextLines())
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
    logging.getLogger("router.access").setLevel(logging.INFO if access else logging.WARNING)
    logging.getLogger("watchfiles").setLevel(logging.WARNING)  # at INFO it tells of every event
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # a line for each broken client


def announce(said: str, form: LogFormat) -> None:
    """Say on standard error where the server is: as it stands for a person and for programs that
    wait for it, and as an object like all other lines where those are JSON."""
    if form is LogFormat.JSON:
        _log.setLevel(logging.INFO)
        _log.info(said)
    else:
        typer.echo(said, err=True)
