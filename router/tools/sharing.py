"""Sources of tools whose changes reach every process of a cluster.

Each process begins with the tools of its own program or folder. A tool that is put or dropped while
the process runs is put or dropped in every process; if there are several changes of one name, the
latest wins. Only definitions that are JSON can be sent: a Python function stays in its process.

``router.cluster.tools`` transports the changes.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Final, Protocol, TypeAlias

from router.errors import SourceError
from router.skills.sources import SkillSource

MAX_DEFINITION_BYTES: Final = 256 * 1024

Share: TypeAlias = Callable[[str, object], None]
"""Sends a tool's definition to the other processes; None drops the tool there. Any thread may call
it. When it returns, the change is certain to be delivered, now or later."""


class SharedTools(SkillSource, Protocol):
    """A source of tools that may be shared.

    Attributes:
        shared: whether its changes are shared.
        share: the function that the source calls after each change in this process; it is set by
            the cluster, and None without one.
    """

    shared: bool
    share: Share | None

    def take(self, name: str, definition: object) -> None:
        """Apply a change of another process, or one of this process that comes back. ``name`` is
        the name by which the tool is routed to; its definition is untrusted, None drops the tool.

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
