"""In which time zone somebody says "yesterday"."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from router.errors import InvalidRequest


def zone_of(given: str | tzinfo | None) -> tzinfo:
    """A time zone by its IANA name, such as ``Europe/Berlin``. None is the offset from UTC that
    this machine has now, without changes for daylight saving, and UTC where that is not known.
    Raises InvalidRequest for a name that is none."""
    if isinstance(given, tzinfo):
        return given
    if given is None:
        return datetime.now(UTC).astimezone().tzinfo or UTC
    try:
        return ZoneInfo(given)
    except (ValueError, OSError) as error:
        raise InvalidRequest(f"time_zone: {given!r} is no time zone: {error}") from None
    except KeyError:  # ZoneInfoNotFoundError is one
        raise InvalidRequest(
            f"time_zone: {given!r} is no time zone; it is named like Europe/Berlin"
        ) from None
