from __future__ import annotations

import httpx
import pytest

from router.web.loopback import is_loopback, without_proxy


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


@pytest.mark.parametrize(
    ("address", "asked", "direct"),
    [
        ("http://127.8.9.1:80/v1", "http://127.8.9.1/v1", True),
        ("127.8.9.1:11434", "http://127.8.9.1:11434", True),
        (":11434", "http://127.0.0.1:11434", True),
        ("0.0.0.0:11434", "http://0.0.0.0:11434", True),
        ("http://[::]:5", "http://[::]:5", True),
        ("https://localhost:1", "https://localhost:1", True),
        ("http://[::1]:5", "http://[::1]:5", True),
        (None, "http://LOCALHOST", True),
        ("https://api.example", "https://api.example", False),
        ("http://localhost", "https://api.example", False),  # as after a redirect
    ],
)
def test_only_this_machine_is_asked_without_the_proxy(
    address: str | None, asked: str, direct: bool
) -> None:
    def answer(_: httpx.Request) -> httpx.Response:
        return httpx.Response(200, text="through the proxy")

    mounts = {"all://": httpx.MockTransport(answer), **without_proxy(address)}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, text="direct"))
    with httpx.Client(transport=transport, mounts=mounts) as client:
        assert client.get(asked).text == ("direct" if direct else "through the proxy")


def test_a_malformed_address_is_refused() -> None:
    with pytest.raises(ValueError, match="IPv6"):
        without_proxy("http://[::")
