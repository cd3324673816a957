"""In which time zone somebody says "yesterday"."""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from router.errors import InvalidRequest


def zone_of(given: str | tzinfo | None) -> tzinfo:
    """A time zone as callers and settings give it.

    Args:
        given: an IANA name such as ``Europe/Berlin``, a ``tzinfo``, or None for the zone of this
            machine; where that is not known it is UTC.

    Raises:
        InvalidRequest: there is no zone of that name.
    """
    if isinstance(given, tzinfo):
        return given
    if given is None:
        return datetime.now(UTC).astimezone().tzinfo or UTC
    try:
        return ZoneInfo(given)
    except (ValueError, OSError) as error:  # ZoneInfoNotFoundError is a KeyError
        raise InvalidRequest(f"time_zone: {given!r} is no time zone: {error}") from None
    except KeyError:
        raise InvalidRequest(
            f"time_zone: {given!r} is no time zone; it is named like Europe/Berlin"
        ) from None
