"""A TCP proxy on 127.0.0.1 in front of a server on a Unix socket, which can stop passing bytes on.

The connections stay open then, as behind a server that hangs or a firewall that drops packets.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from typing import Final

_CHUNK: Final = 65_536


class StallingProxy:
    """Passes bytes on in both directions until it stalls; ``close`` ends its connections."""

    def __init__(self, path: str) -> None:
        """``path`` is the server's socket."""
        self._path = path
        self._flows = threading.Event()
        self._flows.set()
        self._stall_at: bytes | None = None
        self._after = b""
        self._passes_on = False
        self._sockets: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def stall(self) -> None:
        """Pass nothing on from now on."""
        self._flows.clear()

    def stall_at(self, words: bytes, *, pass_on: bool, after: bytes = b"") -> None:
        """Stall when a client sends these words, over a connection over which it has sent those of
        ``after``. The server still gets them if ``pass_on``; its answer is held back in any case.
        """
        self._stall_at, self._after, self._passes_on = words, after, pass_on

    def flow(self) -> None:
        """Pass on again, what was held back too."""
        self._stall_at = None
        self._flows.set()

    def close(self) -> None:
        """End all connections, and take no more."""
        self._listener.close()
        self.drop()
        self._flows.set()

    def drop(self) -> None:
        """End all connections; what was held back is lost."""
        for one in self._sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._path)
                self._sockets += [client, server]
                for ends in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._pass, args=ends, daemon=True).start()

    def _pass(self, source: socket.socket, sink: socket.socket, is_asking: bool) -> None:
        """What is read after a stall began waits until it is over."""
        with contextlib.suppress(OSError):
            is_after = False
            while data := source.recv(_CHUNK):
                words = self._stall_at
                is_after = words is not None and (is_after or self._after in data)
                if is_asking and is_after and words is not None and words in data:
                    self.stall()
                    if self._passes_on:
                        sink.sendall(data)
                        continue
                self._flows.wait()
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
