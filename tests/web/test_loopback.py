from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import httpx2
import openai
import pytest
from certificates import self_signed

from router.web.loopback import direct, is_loopback, why_no_client


@pytest.mark.parametrize(
    ("host", "loopback"),
    [
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),  # noqa: S104 - is the case
        ("10.0.0.1", False),
        ("localhost.example", False),
        ("", False),
    ],
)
def test_which_hosts_are_loopback(host: str, loopback: bool) -> None:
    assert is_loopback(host) is loopback


LIBRARIES = pytest.mark.parametrize(
    "client", [httpx.Client, httpx.AsyncClient, httpx2.AsyncClient, openai.DefaultHttpxClient]
)


@pytest.mark.parametrize(
    ("address", "here"),
    [
        ("http://127.8.9.1:80/v1", True),
        ("127.8.9.1:11434", True),
        (":11434", True),
        ("", True),
        ("0.0.0.0:11434", True),
        ("http://[::]:5", True),
        ("http://[::1]:5", True),
        ("HTTP://LOCALHOST", True),
        ("https://api.example", False),
        ("api.example:11434", False),
        (None, False),
    ],
)
@LIBRARIES
@pytest.mark.usefixtures("proxy")
def test_only_this_machine_is_asked_without_the_proxy(
    address: str | None, here: bool, client: type[Any]
) -> None:
    if here:
        assert client(**direct(client, address))._mounts == {}
    else:
        assert direct(client, address) == {}


@LIBRARIES
@pytest.mark.usefixtures("proxy")
def test_the_certificates_of_the_environment_count_on_this_machine_too(
    client: type[Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certificate, _ = self_signed(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    made = client(**direct(client, "https://127.0.0.1:1"))
    [known] = made._transport._pool._ssl_context.get_ca_certs()
    assert known["subject"] == ((("commonName", "loopback"),),)


@LIBRARIES
@pytest.mark.usefixtures("proxy")
@pytest.mark.skipif(find_spec("socksio") is not None, reason="the library for SOCKS is there")
def test_the_variable_that_names_a_proxy_which_needs_a_library_is_told(client: type[Any]) -> None:
    with pytest.raises(ImportError) as raised:
        client()
    told = why_no_client(raised.value)
    assert told.startswith("ALL_PROXY names a SOCKS proxy")
    assert "pip install socksio" in told
    assert why_no_client(ImportError("something else")) == "something else"


def test_a_malformed_address_is_refused() -> None:
    with pytest.raises(ValueError, match="IPv6"):
        direct(httpx.Client, "http://[::")
