"""Under which names a server may be addressed: whole names, in any case, at any port."""

from __future__ import annotations

import pytest
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from router.errors import ConfigurationError
from router.web.names import NamesChecked, bearer_token, served_names


@pytest.mark.parametrize(
    ("host", "allowed", "guarded", "names"),
    [
        ("127.0.0.1", (), False, ("127.0.0.1", "localhost", "[::1]")),
        ("localhost", ("box.example",), False, ("127.0.0.1", "localhost", "[::1]", "box.example")),
        ("192.0.2.1", (), True, ("192.0.2.1",)),
        ("2001:db8::1", ("box.example",), True, ("[2001:db8::1]", "box.example")),
        ("0.0.0.0", ("box.example",), True, ("box.example",)),  # noqa: S104 - is the case
    ],
)
def test_the_names_follow_from_the_address(
    host: str, allowed: tuple[str, ...], guarded: bool, names: tuple[str, ...]
) -> None:
    assert served_names(host, allowed=allowed, guarded=guarded) == names


@pytest.mark.parametrize(
    ("host", "guarded", "said"),
    [
        ("0.0.0.0", False, "router keys new NAME"),  # noqa: S104 - is the case
        ("192.0.2.1", False, "router keys new NAME"),
        ("box.example", False, "router keys new NAME"),
        ("0.0.0.0", True, "--allow-host"),  # noqa: S104 - is the case
        ("::", True, "--allow-host"),
    ],
)
def test_an_open_address_without_its_guards_is_refused(host: str, guarded: bool, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        served_names(host, allowed=(), guarded=guarded)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "localhost"}, 200),
        ({"host": "LocalHost:8017"}, 200),
        ({"host": "[::1]:8017"}, 200),
        ({"host": "localhost:evil.com"}, 421),
        ({"host": "localhost:80:evil.com"}, 421),
        ({"host": "localhost.evil.com"}, 421),
        ({"host": "localhost@evil.com"}, 421),
        ({"host": ""}, 421),
        ({"host": "box.example"}, 200),
        ({"host": "localhost", "origin": "http://LOCALHOST:6274"}, 200),
        ({"host": "localhost", "origin": "HTTPS://box.example"}, 200),
        ({"host": "localhost", "origin": "http://localhost:evil.com"}, 403),
        ({"host": "localhost", "origin": "http://localhost:80.evil.com"}, 403),
        ({"host": "localhost", "origin": "http://evil.com"}, 403),
        ({"host": "localhost", "origin": "null"}, 403),
        ({"host": "localhost", "origin": "file://localhost"}, 403),
    ],
    ids=str,
)
def test_only_whole_names_of_this_server_pass(headers: dict[str, str], status: int) -> None:
    names = served_names("127.0.0.1", allowed=["Box.Example"], guarded=False)
    app = NamesChecked(PlainTextResponse("fine"), names)
    assert TestClient(app).get("/", headers=headers).status_code == status


@pytest.mark.parametrize(
    ("path", "status"), [("/mcp", 200), ("/mcp/", 200), ("/mcp//", 200), ("/", 404), ("//", 404)]
)
def test_a_slash_at_the_end_sends_nobody_elsewhere(path: str, status: int) -> None:
    # Behind a proxy the address to go to had neither its prefix nor its TLS.
    app = NamesChecked(Starlette(routes=[Route("/mcp", PlainTextResponse("fine"))]), ["testserver"])
    client = TestClient(app, follow_redirects=False)
    assert client.get(f"http://testserver{path}").status_code == status


@pytest.mark.parametrize(
    ("header", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer abc", "abc"),
        ("BEARER  abc", "abc"),
        ("Basic abc", None),
        ("Bearer", ""),
        ("", None),
    ],
)
def test_the_scheme_of_a_bearer_token_is_read_in_any_case(header: str, token: str | None) -> None:
    assert bearer_token(Headers({"authorization": header})) == token
