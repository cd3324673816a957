"""What the tests of clusters share: the answers, or a small router, of one process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from cascade import WAIT_SECONDS, bundled_encoder, some_skills
from servers.redis_server import FaultyProxy, RedisServer

from router import SemanticRouter, Settings
from router.cluster.answers import SharedAnswers
from router.cluster.follower import Follower, order_of
from router.cluster.keys import Keys
from router.cluster.link import Link
from router.cluster.members import Members
from router.events import Events
from router.llm.protocol import ChatModel
from router.skills.sources import SkillSource

SKILLS = ("git", "debugging", "writer")


def skills_folder(settings: Settings) -> Path:
    """The process's own copies of three shipped skills, beside its ``state_dir``."""
    folder = settings.state_dir.with_name(f"{settings.state_dir.name}-skills")
    if not folder.exists():
        some_skills(folder, *SKILLS)
    return folder


def few_skills_router(
    settings: Settings,
    *sources: SkillSource,
    models: Sequence[ChatModel] | None = None,
) -> SemanticRouter:
    """A router over three skills and more sources; not open yet."""
    folder = skills_folder(settings)
    return SemanticRouter(
        settings, sources=[folder, *sources], models=models, encoder=bundled_encoder()
    )


class OpenedAnswers(SharedAnswers):
    """Answers that join and leave by themselves, as a whole cluster does."""

    def __init__(
        self, settings: Settings, version: str = "v1", *, keys: Keys | None = None
    ) -> None:
        self.link = Link(settings.cluster, Events())
        keys = Keys(settings.cluster.namespace) if keys is None else keys
        self.members = Members(self.link, keys)
        self._version = version
        super().__init__(self.link, keys, settings)

    async def open(self) -> None:
        await super().open()
        await self.members.begin(self._version)

    async def aclose(self) -> None:
        await super().aclose()
        await self.members.aclose()
        await self.link.aclose()


SettingsOf = Callable[..., Settings]
"""Makes settings over the server of an address, each with a state folder of its own."""


@asynccontextmanager
async def opened_answers(
    settings: Settings, version: str = "v1", *, keys: Keys | None = None
) -> AsyncIterator[OpenedAnswers]:
    """The answers of one process of the cluster."""
    answers = OpenedAnswers(settings, version, keys=keys)
    await answers.open()
    try:
        yield answers
    finally:
        await answers.aclose()


@asynccontextmanager
async def two_processes(
    settings_of: SettingsOf, url: str
) -> AsyncIterator[tuple[OpenedAnswers, OpenedAnswers]]:
    """The answers of two processes of one cluster."""
    async with opened_answers(settings_of(url)) as one, opened_answers(settings_of(url)) as other:
        yield one, other


@asynccontextmanager
async def one_behind_a_proxy(
    server: RedisServer, settings_of: SettingsOf, **options: float
) -> AsyncIterator[tuple[FaultyProxy, OpenedAnswers, OpenedAnswers]]:
    """The proxy, the answers of a process that needs none, and of one that is behind it; the
    options are settings of the second one."""
    async with (
        FaultyProxy(server.port) as proxy,
        opened_answers(settings_of(server.url)) as one,
        opened_answers(settings_of(proxy.url, **options)) as other,
    ):
        yield proxy, one, other


async def skills_of(answers: SharedAnswers, text: str, *, similar: bool = True) -> tuple[str, ...]:
    """The skills of the answer; empty where there is none."""
    kept = (await answers.find(text, "c", similar=similar)).kept
    return () if kept is None else kept.result.selected_skills


async def until(holds: Callable[[], bool | Awaitable[bool]]) -> None:
    """Wait for what a background task does."""
    async with asyncio.timeout(WAIT_SECONDS):
        while True:
            said = holds()
            if said if isinstance(said, bool) else await said:
                return
            await asyncio.sleep(0.01)  # nothing tells a test


async def caught_up(follower: Follower) -> None:
    """Wait until a follower has read everything that its stream has now."""
    last: Any = await follower._redis.xrevrange(follower._stream, count=1)
    newest = last[0][0].decode() if last else ""
    await until(lambda: follower.read_at > 0 and order_of(follower.position) >= order_of(newest))


def link_of(router: SemanticRouter) -> Link:
    """The connection of a process to Redis."""
    assert router.cluster is not None
    return router.cluster.link


async def corrected(router: SemanticRouter, text: str, skill: str) -> None:
    """A person says which skill is right for a request."""
    await router.feedback((await router.route(text)).id, [skill])


async def known(router: SemanticRouter) -> set[str]:
    """The requests whose labels a process has in its evidence."""
    return {label[2] for label in await router.learner.labels()}
