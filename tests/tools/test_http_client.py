"""What a server of the older protocol leaves unanswered holds no connection."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from cascade import WAIT_SECONDS
from servers.loopback import HANG, QueuedServer, Recorded, Reply
from servers.older_mcp_server import OlderServer

from router.errors import SourceError
from router.tools.servers import McpServers

STREAM = {"Content-Type": "text/event-stream"}


class SilentServer(OlderServer):
    """Answers no call as it should."""

    def __init__(self, silence: Reply) -> None:
        super().__init__({"Mcp-Session-Id": "s"})
        self.silence = silence

    def respond(self, request: Recorded) -> Reply:
        if request.method == "DELETE":
            return HANG
        if request.method == "POST" and request.body.get("method") == "tools/call":
            return self.silence
        return super().respond(request)

    def asked(self, method: str) -> int:
        """How often something was asked."""
        return sum((one.body or {}).get("method") == method for one in self.requests)


@contextmanager
def silent_server(silence: Reply) -> Iterator[tuple[SilentServer, McpServers]]:
    server = SilentServer(silence)
    config = {"bank": {"url": f"{server.address}/mcp"}}
    try:
        with McpServers(config, timeout_seconds=1, rescan_seconds=10 * WAIT_SECONDS) as source:
            assert [skill.name for skill in source.read().skills] == ["bank__refund"]
            yield server, source
    finally:
        server.close()


def test_no_proxy_has_a_part_in_what_stays_on_this_machine(proxy: QueuedServer) -> None:
    with silent_server(HANG) as (server, _):
        assert server.asked("tools/list") == 1
    assert proxy.requests == []


@pytest.mark.parametrize(
    "silence",
    [
        HANG,
        Reply(b'{"jsonrpc": ', pause=True),
        Reply(b'id: 1\ndata: {"jsonrpc": "2.0", "method": "x"}\n\n', headers=STREAM, pause=True),
    ],
    ids=["without a word", "within an answer", "within a stream of events"],
)
async def test_a_call_that_is_given_up_ends_and_its_connection_to_the_server_stays(
    silence: Reply,
) -> None:
    with silent_server(silence) as (server, source):
        for _ in range(2):
            with pytest.raises(SourceError, match=r"no answer within 0\.2 s"):
                await source.call("bank__refund", {}, timeout_seconds=0.2)
            assert server.abandoned.wait(WAIT_SECONDS)
            server.abandoned.clear()
        assert server.asked("tools/call") == server.asked("notifications/cancelled") == 2
        assert server.asked("initialize") == 1


def test_a_server_that_does_not_answer_the_end_of_the_session_is_left() -> None:
    with silent_server(HANG) as (server, source):
        source.close()
        assert server.abandoned.wait(WAIT_SECONDS)
