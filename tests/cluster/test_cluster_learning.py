"""Evidence, models and outcomes of several processes."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import numpy as np
import pytest
from clusters import SettingsOf, caught_up, few_skills_router, until
from servers.redis_server import FaultyProxy, RedisServer

from router import SemanticRouter, Settings
from router.cluster.learning import SharedLearning
from router.learning.bound import ErrorBound
from router.learning.evidence import Source

FIRST = "squash the last four commits on this branch"
SECOND = "undo the merge that I have just made"


@asynccontextmanager
async def processes(*settings: Settings) -> AsyncIterator[list[SemanticRouter]]:
    """Routers of one cluster, each with evidence of its own."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(few_skills_router(some)) for some in settings]


async def corrected(router: SemanticRouter, text: str, skill: str) -> None:
    """A person says which skill is right for a request."""
    result = await router.route(text)
    await router.feedback(result.id, [skill])


async def knows(router: SemanticRouter, text: str, skill: str) -> bool:
    """Whether a label has arrived in a process's own evidence."""
    return any(
        label[2] == text and f'"{skill}"' in label[3] for label in await router.learner.labels()
    )


async def test_a_correction_reaches_the_evidence_of_every_process(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    url = redis_server.url
    async with processes(settings_of(url), settings_of(url)) as (one, other):
        await corrected(one, FIRST, "debugging")
        await until(lambda: knows(other, FIRST, "debugging"))
        counts = other.learner.status()["examples"]
        assert counts[Source.FEEDBACK.value] == 1
        assert (await other.route(FIRST)).selected_skills == ("debugging",)


async def test_a_new_process_is_told_what_the_others_know(
    own_server: RedisServer, settings_of: SettingsOf
) -> None:
    async with processes(settings_of(own_server.url)) as (one,):
        await corrected(one, FIRST, "debugging")
        cluster = one.cluster
        assert cluster is not None
        await caught_up(cluster.learning.follower)
        await cluster.link.run(lambda redis: redis.flushall())
        async with processes(settings_of(own_server.url)) as (late,):
            await until(lambda: knows(late, FIRST, "debugging"))


async def test_a_label_that_cannot_be_sent_is_sent_when_it_can_be(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    async with FaultyProxy(redis_server.port) as proxy:
        cut_off = settings_of(proxy.url)
        async with processes(settings_of(redis_server.url)) as (other,):
            async with processes(cut_off) as (one,):
                proxy.cut()
                await corrected(one, FIRST, "debugging")  # acknowledged: it is on the disk
            proxy.mend()
            assert not await knows(other, FIRST, "debugging")
            async with processes(cut_off) as (one,):  # after its process has ended, too
                await until(lambda: knows(other, FIRST, "debugging"))


async def test_one_process_fits_and_all_serve_its_model(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    url = redis_server.url
    async with processes(settings_of(url), settings_of(url)) as routers:
        one, other = routers
        await corrected(one, FIRST, "git")
        await corrected(one, SECOND, "git")
        await corrected(one, "write a letter to my landlord", "writer")
        await until(lambda: knows(other, "write a letter to my landlord", "writer"))
        for router in (*routers, *routers):
            await router.learned()
        models = [router.learner.trainer.model for router in routers]
        assert models[0] is not None
        assert models[1] is not None
        assert models[0].evidence_digest == models[1].evidence_digest
        leads = [len(router.cluster.learning._lease_tokens) for router in routers if router.cluster]
        assert sorted(leads) == [0, 1]


async def test_a_replaced_leader_publishes_nothing(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    url = redis_server.url
    async with processes(settings_of(url), settings_of(url)) as (one, other):
        old, new = (_learning(router) for router in (one, other))
        assert await old.may_fit("some skills")
        assert not await new.may_fit("some skills")
        # The old leader is stopped, and its lease runs out.
        await old._link.run(lambda redis: redis.delete(old._keys.fitting("some skills")))
        assert await new.may_fit("some skills")
        await new.publish("some skills", b"new")
        await old.publish("some skills", b"old")
        assert await old.published("some skills") == b"new"
        assert not await old.may_fit("some skills")


def _learning(router: SemanticRouter) -> SharedLearning:
    assert router.cluster is not None
    return router.cluster.learning


def test_outcomes_are_pooled_and_accounts_are_not() -> None:
    random = np.random.default_rng(1)
    one, other = ErrorBound(0.05), ErrorBound(0.05)
    for _ in range(400):
        signals = random.normal(size=3)
        decision = one.decide(signals, answer="git")
        outcome = one.outcome_of(decision, right=True)
        one.observe(decision, right=True)
        assert outcome is not None
        other.pool(outcome)
    assert other.status().outcomes == 400
    assert other.status().requests == 0
    other.refit()
    assert other.decide(np.zeros(3), answer="git").evidence_count == 400


@pytest.mark.parametrize(
    "outcome",
    [
        None,
        [],
        ["git", [1.0], True, 0.1, 0.0],
        ["git", ["x"], True, 0.1, 1.0],
        ["git", [math.nan], True, 0.1, 1.0],
        ["git", [1.0], True, math.nan, 1.0],
        ["git", [10**400], True, 0.1, 1.0],
        ["git", [1.0], True, 10**400, 1.0],
    ],
)
def test_an_outcome_that_is_none_is_refused(outcome: list[object] | None) -> None:
    with pytest.raises(ValueError, match=r"."):
        ErrorBound(0.05).pool(outcome)  # type: ignore[arg-type]
