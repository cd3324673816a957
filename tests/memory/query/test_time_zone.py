"""The time zone of who asks."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from router.errors import InvalidRequest
from router.memory.model import zone_of


def test_a_zone_is_known_by_its_name_or_given_as_it_is() -> None:
    moment = datetime(2026, 7, 1, 12, tzinfo=UTC)
    assert moment.astimezone(zone_of("Europe/Berlin")).hour == 14
    east = timezone(timedelta(hours=5))
    assert zone_of(east) is east


def test_without_a_name_it_is_the_zone_of_this_machine() -> None:
    assert zone_of(None).utcoffset(datetime.now(UTC)) == datetime.now().astimezone().utcoffset()


@pytest.mark.parametrize("name", ["Mars/Olympus", "../etc/passwd", ""])
def test_an_unknown_zone_is_named(name: str) -> None:
    with pytest.raises(InvalidRequest, match="named like Europe/Berlin"):
        zone_of(name)
