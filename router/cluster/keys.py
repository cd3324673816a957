"""The names of everything that a cluster keeps in Redis, and how much of it for how long.

All names lie under the namespace and the format of what is kept, so that two versions of this
program that write different formats never read each other's entries. A request and its context
appear only as a digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final

from router.text import normalise

FORMAT: Final = "2"
"""The format of everything that is kept. Change it when an older version could not read the new
form."""
KEPT_SECONDS: Final = 30 * 24 * 3600
"""How long models, enrichments and tools are kept after they were last put."""
STREAM_RECORDS: Final = 10_000
"""Records that the stream of enrichments holds, and that of tools."""


class Keys:
    """The names under one namespace. Where there are many of a kind, the attribute is a function of
    what tells them apart."""

    def __init__(self, namespace: str) -> None:
        prefix = f"{namespace}:{FORMAT}"

        def one(kind: str) -> str:
            return f"{prefix}:{kind}"

        def each(kind: str) -> Callable[[str], str]:
            return lambda which: one(f"{kind}:{which}")

        self.token = one("token")
        """The last fencing token."""

        self.answers = one("answers")
        """The stream of answers that were learnt and dropped."""
        self.answer = each("answer")
        """An answer, by what ``entry_of`` gives, as in the next three."""
        self.dropped = each("dropped")
        """When the answer was dropped."""
        self.lease = each("lease")
        """Who decides the request now."""
        self.outcome = each("outcome")
        """What was decided and is kept by no cache, for those who waited for it."""
        self.marks = each("marks")
        """The marks of a catalog, by its version."""

        self.evidence = one("evidence")
        """The stream of labels and outcomes."""
        self.resync = one("resync")
        """Set when somebody has missed labels, and needs all of them again."""
        self.fitting = each("fitting")
        """Who fits a model, by the digest of the skills and the encoder."""
        self.newest = each("newest")
        """By the same, the digest of the newest model, and the token of who published it."""
        self.model = each("model")
        """A fitted model, by its digest."""

        self.members = one("members")
        """The processes, with the time until which each counts as alive."""
        self.versions = one("versions")
        """The catalog of each process."""
        self.catalog = one("catalog")
        """The catalog that most processes have."""

        self.enrichments = one("enrichments")
        """The stream of digests that have an enrichment now."""
        self.enrichment = each("enrichment")
        """The enrichment of a skill, by the digest of its text."""

        self.tool_changes = one("tool-changes")
        """The stream of tools that were put and dropped."""
        self.tools = each("tools")
        """What was put into and dropped from a source, by the source's name."""
        self.tool = each("tool")
        """The definition of a tool, by its digest."""

        self.notices = one("notices")
        """The channel of notices for MCP clients."""


def entry_of(text: str, context: str) -> str:
    """32 hex digits by which a request in its context is filed."""
    said = f"{context}\0{normalise(text)}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(said, digest_size=16).hexdigest()
