"""Notices of changes for MCP clients of every process, over Redis publish and subscribe.

A ``SubscriptionBus`` of the SDK: what one process publishes reaches the clients that listen to any.
Notices are not kept, as the protocol says; a client that may have missed some asks again. While
Redis cannot be used, a process tells its own clients.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)

from router.cluster.follower import BLOCK_SECONDS, RETRY_SECONDS
from router.cluster.keys import Keys
from router.cluster.link import NoRedis, connect, troubles
from router.concurrency.tasks import BackgroundTasks

if TYPE_CHECKING:
    from router.cluster.cluster import Cluster
    from router.settings.settings import ClusterSettings

_log: Final = logging.getLogger(__name__)

_PLAIN: Final[dict[str, Callable[[], ServerEvent]]] = {
    "tools": ToolsListChanged,
    "prompts": PromptsListChanged,
    "resources": ResourcesListChanged,
}
MAX_NOTICE_BYTES: Final = 8_192


class SharedBus:
    """The bus of one process. Belongs to one event loop; ``start`` it, and close it at the end.

    Attributes:
        listening: is set once notices of others are heard.
    """

    def __init__(self, cluster: Cluster, settings: ClusterSettings) -> None:
        self._link = cluster.link
        self._channel = Keys(settings.namespace).notices
        self._name = cluster.members.name
        self._local = InMemorySubscriptionBus()
        self._redis = connect(settings, socket_timeout=2 * BLOCK_SECONDS)
        self._background = BackgroundTasks(_log)
        self.listening = asyncio.Event()

    def start(self) -> None:
        """Begin to listen for the notices of other processes."""
        self._background.run(self._listen())

    def subscribe(self, listener: Callable[[ServerEvent], None]) -> Callable[[], None]:
        """See the SDK's ``SubscriptionBus``."""
        return self._local.subscribe(listener)

    async def publish(self, event: ServerEvent) -> None:
        """Tell the clients of this process now, and those of the others as soon as they hear."""
        await self._local.publish(event)
        kind = next((kind for kind, made in _PLAIN.items() if event == made()), "resource")
        notice = json.dumps([self._name, kind, getattr(event, "uri", None)])
        try:
            await self._link.run(lambda redis: redis.publish(self._channel, notice))
        except NoRedis as fault:
            _log.debug("others are not told of a change: %s", fault)

    async def _listen(self) -> None:
        while True:
            try:
                async with aclosing(self._redis.pubsub()) as channel:
                    await channel.subscribe(self._channel)
                    while True:
                        message: Any = await channel.get_message(timeout=BLOCK_SECONDS)
                        if message is None:
                            continue
                        if message["type"] == "subscribe":
                            self.listening.set()
                        elif (event := self._event(message["data"])) is not None:
                            await self._local.publish(event)
            except troubles() as error:  # of the closing, too
                _log.debug("notices of others are not heard: %s", error)
                await asyncio.sleep(RETRY_SECONDS)

    def _event(self, data: object) -> ServerEvent | None:
        """A notice of another process; None for one's own and for what cannot be read."""
        if not isinstance(data, bytes) or len(data) > MAX_NOTICE_BYTES:
            return None
        try:
            sender, kind, uri = json.loads(data)
        except (ValueError, TypeError, RecursionError):
            return None
        if sender == self._name:
            return None
        if kind == "resource" and isinstance(uri, str):
            return ResourceUpdated(uri)
        made = _PLAIN.get(kind) if isinstance(kind, str) else None
        return None if made is None else made()

    async def aclose(self) -> None:
        """Stop listening. Closing twice is fine."""
        await self._background.aclose()
        await self._redis.aclose()
