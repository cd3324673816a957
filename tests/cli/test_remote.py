"""Commands that ask a running server."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import httpx
import pytest
from cascade import SQUASH
from servers.loopback import QueuedServer, Reply
from typer.testing import CliRunner

from router.cli.app import app
from router.errors import InvalidRequest
from router.service.remote import MAX_REASON_CHARACTERS, RemoteRouter


def test_the_command_asks_a_server_and_tells_what_it_would_itself(
    served: tuple[subprocess.Popen[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, url = served
    direct = httpx.post(f"{url}/v1/route", json={"request": SQUASH, "trace": True}, timeout=60)
    done = CliRunner().invoke(app, ["route", SQUASH, "--server", url, "--json"])
    assert done.exit_code == 0, done.output
    told = json.loads(done.stdout)
    assert told.keys() == direct.json().keys()
    assert (told["selected_skills"], told["from_cache"]) == (["git"], True)
    assert "git" in CliRunner().invoke(app, ["route", SQUASH, "--server", url]).stdout
    explained = CliRunner().invoke(app, ["route", SQUASH, "--server", url, "--explain"]).stdout
    assert "git (selected)" in explained and "ahead of" in explained
    lines = f'{SQUASH}\n{{"request": "and now?", "id": 7, "history": ["{SQUASH}"]}}\n{{\n'
    (tmp_path / "lines").write_text(lines, encoding="utf-8")
    batch = CliRunner().invoke(app, ["route", "--batch", f"{tmp_path}/lines", "--server", url])
    first, second, third = map(json.loads, batch.stdout.splitlines())
    assert (batch.exit_code, first["result"]["selected_skills"]) == (1, ["git"])
    assert (second["id"], second["result"]["from_cache"]) == (7, False)
    assert "starts with { but is not JSON" in third["error"]
    follow_up = ["route", "and now?", "--history", SQUASH, "--server", url]
    for form in ("--json", "--explain"):
        assert "an earlier turn" in CliRunner().invoke(app, [*follow_up, form]).stdout
    monkeypatch.setenv("WRONG", "crk_wrong")
    for arguments, code, said in (
        (["--server", url, "--key-env", "WRONG"], 1, "this key is not known"),
        (["--server", "http://127.0.0.1:1"], 1, "is router serve running there?"),
        (["--server", "ftp://x"], 2, "expected http://HOST:PORT"),
        (["--server", url, "--no-llm"], 2, "--server goes without"),
    ):
        failed = CliRunner().invoke(app, ["route", SQUASH, *arguments])
        assert failed.exit_code == code, failed.output
        assert said in " ".join(failed.stderr.replace("│", " ").split())


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (Reply(b"[" * 100_000), "and no JSON; it is no router serve"),
        (Reply(b"<html>"), "and no JSON; it is no router serve"),
        (Reply(b"x" * 65_536, endless=True), "the reply is over"),
        (Reply(b"{}", headers={"Content-Encoding": "gzip"}), "the reply is compressed"),
        (Reply(b"[]"), "its answer cannot be read"),
        (Reply(b'{"title": "no", "faults": ["here"]}', 500), "it answers 500"),
        (Reply(b'{"title": "no", "faults": 5}', 500), "it answers 500"),
    ],
)
def test_an_answer_that_no_router_serve_gives_is_named_in_a_line(reply: Reply, said: str) -> None:
    server = QueuedServer()
    server.queue(reply)
    done = CliRunner().invoke(app, ["route", SQUASH, "--server", server.address])
    server.close()
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (1, "", 1)
    assert said in done.stderr


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1/\udcff", "http://127.0.0.1:99999", "http://127.0.0.1/?to=x", "http://a/#b"],
)
def test_an_address_that_no_url_can_hold_is_refused(address: str) -> None:
    done = CliRunner().invoke(app, ["route", SQUASH, "--server", address])
    assert (done.exit_code, "is no address of HTTP" in done.stderr) == (2, True)


def test_a_host_that_no_name_server_can_be_asked_for_is_named_in_a_line() -> None:
    done = CliRunner().invoke(app, ["route", SQUASH, "--server", "http://router..example"])
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert "cannot be reached" in done.stderr


def test_of_a_long_reason_the_beginning_is_told() -> None:
    server = QueuedServer()
    told = {"title": "no", "detail": "x" * 1_000_000}
    server.queue(Reply(json.dumps(told).encode(), 500))
    done = CliRunner().invoke(app, ["route", SQUASH, "--server", server.address])
    server.close()
    assert (done.exit_code, "no: xxx" in done.stderr) == (1, True)
    assert len(done.stderr) < 2 * MAX_REASON_CHARACTERS


@pytest.mark.parametrize("key", ["s\u00e9cret", "secret ", "secret\r"])
def test_a_key_that_no_header_can_hold_is_refused_and_not_told(key: str) -> None:
    with pytest.raises(InvalidRequest, match="the key cannot be sent") as refused:
        RemoteRouter("http://127.0.0.1:1", key)
    assert "cret" not in str(refused.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])  # noqa: S104 - as some servers show it
def test_no_proxy_has_a_part_in_what_stays_on_this_machine(proxy: QueuedServer, host: str) -> None:
    server = QueuedServer()
    server.queue(Reply.json({"skills": [{"name": "git"}]}))
    with RemoteRouter(server.address.replace("127.0.0.1", host), "secret") as remote:
        assert remote.rank(SQUASH) == ("git",)
    server.close()
    assert (len(server.requests), proxy.requests) == (1, [])


@pytest.mark.parametrize(
    ("server", "name", "value"),
    [
        ("https://router.example", "HTTPS_PROXY", "proxy:none"),
        ("https://router.example", "HTTPS_PROXY", "odd://proxy"),
        ("https://router.example", "SSL_CERT_FILE", "/nowhere"),
        ("https://localhost:1", "SSL_CERT_FILE", "/nowhere"),  # it counts on this machine too
    ],
)
def test_an_environment_that_cannot_be_used_is_named_in_a_line(
    server: str, name: str, value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    done = CliRunner().invoke(app, ["route", SQUASH, "--server", server])
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "proxies or certificates" in done.stderr
