from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from router.cluster.link import NoRedis
from router.cluster.outbox import Delivery


async def refuse(_: Sequence[str]) -> None:
    raise NoRedis("the server is away")


async def test_all_that_waits_is_told_when_the_file_is_opened_again(tmp_path: Path) -> None:
    """An answer whose drop waits must not be given, however many wait."""
    letters = [str(number) for number in range(501)]
    delivery = Delivery("answers", refuse, most=1)
    assert await delivery.open(tmp_path / "file") == []
    await delivery.put(letters)
    await delivery.aclose()
    again = Delivery("answers", refuse, most=1)
    assert await again.open(tmp_path / "file") == letters
    await again.aclose()


async def test_letters_go_in_order_once_and_no_other_kind_holds_them_up(tmp_path: Path) -> None:
    sent: list[list[str]] = []

    async def send(letters: Sequence[str]) -> None:
        sent.append(list(letters))

    stuck = Delivery("tools", refuse, most=9)
    delivery = Delivery("labels", send, most=2)
    for one in (stuck, delivery):
        await one.open(tmp_path / "file")
    await stuck.put(["x"])
    await delivery.put(["a", "b", "c"])
    await delivery.deliver()
    await delivery.deliver()
    assert [letter for batch in sent for letter in batch] == ["a", "b", "c"]
    assert max(map(len, sent)) == 2
    for one in (stuck, delivery):
        await one.aclose()
