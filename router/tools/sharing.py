"""Sources of tools whose changes reach every process of a cluster.

Each process begins with the tools that its own program or folder gives. A tool that is put or
dropped while the process runs is put or dropped in every process; of several changes of one name
the latest counts. Only definitions that are JSON can be sent: a Python function stays in its
process.

``router.cluster.tools`` carries the changes. Without a cluster there are no others to tell.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

from router.errors import SourceError
from router.skills.sources import SkillSource

MAX_DEFINITION_BYTES: Final = 256 * 1024

Share: TypeAlias = Callable[[str, object], None]
"""Tells the others of a tool's definition, or with None that the tool is dropped. Any thread may
call it. When it returns they will hear of it, now or later."""


class SharedTools(SkillSource, Protocol):
    """A source of tools that may be shared.

    Attributes:
        shared: whether it is.
        share: what the source calls after each change that was made in this process; set by the
            cluster, None without one.
    """

    shared: bool
    share: Share | None

    def take(self, name: str, definition: object) -> None:
        """Make a change that was made in another process, or was this one's own and comes back. The
        tool has the name by which it is routed to; its definition is untrusted, None drops it.

        Raises:
            SourceError: it cannot be used; nothing has changed then.
        """
        ...


def as_json(definition: object, *, source: str, name: str) -> str:
    """A definition as text, to be written to a file or sent to another process.

    Raises:
        SourceError: it is not JSON, or has more than ``MAX_DEFINITION_BYTES``.
    """
    try:
        text = json.dumps(definition, ensure_ascii=False, allow_nan=False)
        size = len(text.encode())
    except (TypeError, ValueError, RecursionError) as error:
        raise SourceError(source, name[:100], f"the definition is not JSON: {error}") from None
    if size > MAX_DEFINITION_BYTES:
        reason = f"the definition has more than {MAX_DEFINITION_BYTES:,} bytes"
        raise SourceError(source, name[:100], reason)
    return text
