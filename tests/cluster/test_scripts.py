"""What Redis runs decides by its own clock and tokens."""

from __future__ import annotations

import time

from cascade import SQUASH
from clusters import SettingsOf, caught_up, opened_answers, skills_of, until
from servers.redis_server import RedisServer

from router.cluster.answers import fencing_token
from router.cluster.keys import Keys
from router.stages.conformance import kept_answer

SIMILAR = f"Please {SQUASH}!"


HOUR_MICROSECONDS = 3600 * 10**6


async def test_a_clock_that_has_stepped_back_lets_no_late_answer_in(
    redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    settings = [settings_of(redis_server.url) for _ in range(2)]
    keys = Keys(settings[0].cluster.namespace)
    async with opened_answers(settings[0]) as one, opened_answers(settings[1]) as other:
        # What the server was told while its clock was an hour ahead.
        now = time.time_ns() // 1000
        ahead = now + HOUR_MICROSECONDS
        await one.link.run(lambda redis: redis.set(keys.token, str(ahead)))
        record = {"before": "", "kind": "drop", "text": "another request", "context": "c"}
        await one.link.run(lambda redis: redis.xadd(keys.answers, record, id=f"{ahead // 1000}-0"))
        await one.keep(SQUASH, "c", kept_answer("git"), similar=True)
        await caught_up(other.follower)
        await until(lambda: other.follower.position > f"{ahead // 1000}-0")
        assert await skills_of(other, SIMILAR) == ("git",)
        await other.forget(SQUASH, "c")
        assert await skills_of(one, SQUASH) == ()
        marker = fencing_token.set(str(now))  # decided since before the drop
        await one.keep(SQUASH, "c", kept_answer("git"), similar=True)
        fencing_token.reset(marker)
        assert await skills_of(one, SQUASH) == ()
        # The server begins anew, and its records are older than those that were read.
        await one.link.run(lambda redis: redis.delete(keys.answers, keys.token))
        await until(lambda: other.follower.position == "")
        await one.keep(SQUASH, "c", kept_answer("debugging"), similar=True)
        assert await skills_of(other, SQUASH) == ()  # older than the drop, as its token says
        await one.keep("rotate the log files", "c", kept_answer("writer"), similar=True)
        await until(lambda: len(other._index) == 1)
        assert await skills_of(other, "please rotate the log files") == ("writer",)
