from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest
from clusters import SettingsOf, opened_answers, skills_of
from servers.redis_server import RedisServer

from router.cluster.answers import AnswerChange
from router.cluster.keys import entry_of
from router.cluster.link import NoRedis
from router.cluster.outbox import Outbox
from router.stages.conformance import kept_answer


async def refuse(_: Sequence[str]) -> None:
    raise NoRedis("the server is away")


async def test_all_that_waits_is_told_when_the_file_is_opened_again(tmp_path: Path) -> None:
    """An answer whose drop waits must not be given, however many wait."""
    messages = [str(number) for number in range(501)]
    outbox = Outbox("answers", refuse, read=str, max_batch=1)
    assert await outbox.open(tmp_path / "file") == []
    await outbox.put(messages)
    await outbox.aclose()
    again = Outbox("answers", refuse, read=str, max_batch=1)
    assert await again.open(tmp_path / "file") == messages
    await again.aclose()


async def test_letters_go_in_order_once_and_no_other_kind_holds_them_up(tmp_path: Path) -> None:
    sent: list[list[str]] = []

    async def send(messages: Sequence[str]) -> None:
        sent.append(list(messages))

    stuck = Outbox("tools", refuse, read=str, max_batch=9)
    outbox = Outbox("labels", send, read=str, max_batch=2)
    for one in (stuck, outbox):
        await one.open(tmp_path / "file")
    await stuck.put(["x"])
    await outbox.put(["a", "b", "c"])
    await outbox.deliver()
    await outbox.deliver()
    assert [letter for batch in sent for letter in batch] == ["a", "b", "c"]
    assert max(map(len, sent)) == 2
    for one in (stuck, outbox):
        await one.aclose()


async def test_a_letter_that_cannot_be_read_is_left_out_and_holds_no_other_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sent: list[str] = []

    async def send(messages: Sequence[int]) -> None:
        sent.extend(map(str, messages))

    outbox = Outbox("tools", send, read=int, max_batch=100)
    await outbox.open(tmp_path / "file")
    await outbox.put(["1", "of a later version", "2", "3"])
    await outbox.deliver()
    assert sent == ["1", "2", "3"]
    [said] = [record.message for record in caplog.records if record.levelname == "ERROR"]
    assert "invalid literal" in said
    await outbox.aclose()


async def test_a_letter_that_is_not_sent_by_a_fault_of_ours_waits_and_holds_no_other_up(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    sent: list[str] = []

    async def send(messages: Sequence[str], fault: str = "2") -> None:
        if fault in messages:
            raise KeyError("a fault of ours")
        sent.extend(messages)

    before = Outbox("answers", refuse, read=str, max_batch=100)
    await before.open(tmp_path / "file")
    await before.put(["1", "2", "3"])
    await before.aclose()

    outbox = Outbox("answers", send, read=str, max_batch=100)
    assert await outbox.open(tmp_path / "file") == ["1", "2", "3"]
    await outbox.deliver()
    await outbox.put(["4"])
    await outbox.deliver()
    assert (sent, outbox.caught_up) == (["1", "3", "4"], False)
    assert "a fault of ours" in caplog.text
    await outbox.aclose()

    mended = Outbox("answers", partial(send, fault=""), read=str, max_batch=100)
    assert await mended.open(tmp_path / "file") == ["2"]
    await mended.deliver()
    assert (sent, mended.caught_up) == (["1", "3", "4", "2"], True)
    await mended.aclose()


async def test_a_later_letter_that_cannot_be_sent_does_not_bring_back_what_lay_there(
    tmp_path: Path,
) -> None:
    async def send(messages: Sequence[str]) -> None:
        if "2" in messages:
            raise KeyError("a fault of ours")

    outbox = Outbox("answers", send, read=str, max_batch=1)
    await outbox.open(tmp_path / "file")
    await outbox.put(["1"])
    await outbox.deliver()
    await outbox.put(["2"])
    await outbox.deliver()
    assert outbox.caught_up
    await outbox.aclose()


async def test_a_letter_that_is_sent_at_once_leaves_nothing_to_wait_for(
    redis_server: RedisServer, settings_of: SettingsOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened_answers(settings_of(redis_server.url)) as answers:
        outbox, entry = answers._outbox, entry_of("squash my commits", "c")
        put = outbox.put

        async def put_and_deliver(messages: Sequence[str]) -> None:
            await put(messages)
            await outbox.deliver()

        monkeypatch.setattr(outbox, "put", put_and_deliver)
        await answers._queue(AnswerChange(entry=entry, text="squash my commits", context="c"))
        assert not answers._has_unsent_change(entry)


async def test_a_damaged_letter_keeps_no_process_from_beginning(
    tmp_path: Path, redis_server: RedisServer, settings_of: SettingsOf
) -> None:
    settings = settings_of(redis_server.url)
    outbox = Outbox("answers", refuse, read=str, max_batch=1)
    await outbox.open(settings.state_dir / "cluster.sqlite3")
    await outbox.put(["{", "[]", '"x"', "{}"])
    await outbox.aclose()
    async with opened_answers(settings) as answers:
        await answers._outbox.deliver()
        await answers.keep("squash my commits", "c", kept_answer("git"), similar=False)
        assert await skills_of(answers, "squash my commits") == ("git",)
