"""The lines that a server logs."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from datetime import datetime

import pytest

from router.cli.logs import LogFormat, announce, log_to_standard_error
from router.web.exchanges import request_id


@pytest.fixture(autouse=True)
def _own_handlers() -> Iterator[None]:
    """Nothing that a test sets up stays."""
    loggers = [
        logging.getLogger(name) for name in ("", "router.access", "router.serve", "watchfiles")
    ]
    levels, handlers = [log.level for log in loggers], loggers[0].handlers[:]
    yield
    loggers[0].handlers[:] = handlers
    for log, level in zip(loggers, levels, strict=True):
        log.setLevel(level)


def set_up(form: LogFormat, *, access: bool = False) -> None:
    """As in a process of its own: pytest has handlers at the root."""
    logging.getLogger().handlers.clear()
    log_to_standard_error(form, access=access)


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return capsys.readouterr().err.splitlines()


def test_a_line_of_text_ends_with_the_id_of_its_request(capsys: pytest.CaptureFixture[str]) -> None:
    set_up(LogFormat.TEXT)
    log = logging.getLogger("router.test")
    log.warning("outside")
    token = request_id.set("7f3a")
    log.warning("inside")
    request_id.reset(token)
    assert lines(capsys) == ["WARNING:router.test:outside", "WARNING:router.test:inside [7f3a]"]


def test_a_line_of_json_holds_time_level_logger_message_and_id(
    capsys: pytest.CaptureFixture[str],
) -> None:
    set_up(LogFormat.JSON)
    token = request_id.set("7f3a")
    try:
        raise ValueError("a bug\nin two lines")
    except ValueError:
        logging.getLogger("router.test").exception("%s failed", "POST")
    request_id.reset(token)
    [line] = lines(capsys)
    told = json.loads(line)
    assert datetime.fromisoformat(told.pop("time")).tzinfo is not None
    assert "ValueError: a bug\nin two lines" in told.pop("traceback")
    assert told == {
        "level": "ERROR",
        "logger": "router.test",
        "message": "POST failed",
        "request_id": "7f3a",
    }


@pytest.mark.parametrize("access", [True, False])
def test_requests_are_logged_where_that_is_asked_for(
    capsys: pytest.CaptureFixture[str], *, access: bool
) -> None:
    set_up(LogFormat.TEXT, access=access)
    logging.getLogger("router.access").info("GET /v1/route 200")
    logging.getLogger("router.other").info("of no interest")
    assert lines(capsys) == ["INFO:router.access:GET /v1/route 200"] * access


@pytest.mark.parametrize("form", LogFormat)
def test_where_the_server_is_stands_in_a_line_like_the_others(
    capsys: pytest.CaptureFixture[str], form: LogFormat
) -> None:
    set_up(form)
    announce("serving at http://127.0.0.1:8017", form)
    [line] = lines(capsys)
    told = json.loads(line)["message"] if form is LogFormat.JSON else line
    assert told == "serving at http://127.0.0.1:8017"
