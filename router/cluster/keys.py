"""The names of everything that a cluster keeps in Redis, and how much of it for how long.

All names lie under the namespace and the format of what is kept, so that two versions of this
program that write different formats never read each other's entries. A request and its context
appear only as a digest.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from router.text import normalise

FORMAT: Final = "2"
"""The format of everything that is kept. Change it when an older version could not read the new
form."""
KEPT_SECONDS: Final = 30 * 24 * 3600
"""How long models, enrichments and tools are kept after they were last put."""
STREAM_RECORDS: Final = 10_000
"""Records that the stream of enrichments holds, and that of tools."""


@dataclass(frozen=True, slots=True)
class Keys:
    """The names under one namespace."""

    namespace: str

    def _named(self, *parts: str) -> str:
        return ":".join((self.namespace, FORMAT, *parts))

    def answer(self, entry: str) -> str:
        """An answer; ``entry`` is what ``entry_of`` gives, here and below."""
        return self._named("answer", entry)

    def dropped(self, entry: str) -> str:
        """When the answer was dropped."""
        return self._named("dropped", entry)

    def lease(self, entry: str) -> str:
        """Who decides the request now."""
        return self._named("lease", entry)

    def outcome(self, entry: str) -> str:
        """What was decided and is kept by no cache, for those who waited for it."""
        return self._named("outcome", entry)

    def marks(self, catalog_version: str) -> str:
        """The marks of a catalog."""
        return self._named("marks", catalog_version)

    @property
    def token(self) -> str:
        """The last fencing token."""
        return self._named("token")

    @property
    def answers(self) -> str:
        """The stream of answers that were learnt and dropped."""
        return self._named("answers")

    @property
    def evidence(self) -> str:
        """The stream of labels and outcomes."""
        return self._named("evidence")

    @property
    def resync(self) -> str:
        """Set when somebody has missed labels, and needs all of them again."""
        return self._named("resync")

    def fitting(self, model: str) -> str:
        """Who fits a model; ``model`` is a digest of the skills and the encoder, here and below."""
        return self._named("fitting", model)

    def newest(self, model: str) -> str:
        """The digest of the newest model, and the token of who published it."""
        return self._named("newest", model)

    def model(self, digest: str) -> str:
        """A fitted model."""
        return self._named("model", digest)

    @property
    def members(self) -> str:
        """The processes, with the time until which each counts as alive."""
        return self._named("members")

    @property
    def versions(self) -> str:
        """The catalog of each process."""
        return self._named("versions")

    @property
    def catalog(self) -> str:
        """The catalog that most processes have, and its number in the sequence."""
        return self._named("catalog")

    def enrichment(self, digest: str) -> str:
        """The enrichment of the skill whose text has this digest."""
        return self._named("enrichment", digest)

    @property
    def enrichments(self) -> str:
        """The stream of digests that have an enrichment now."""
        return self._named("enrichments")

    def tools(self, source: str) -> str:
        """What was put into and dropped from a source, by the tool's name."""
        return self._named("tools", source)

    def tool(self, digest: str) -> str:
        """The definition of a tool."""
        return self._named("tool", digest)

    @property
    def tool_changes(self) -> str:
        """The stream of tools that were put and dropped."""
        return self._named("tool-changes")

    @property
    def notices(self) -> str:
        """The channel of notices for MCP clients."""
        return self._named("notices")


def entry_of(text: str, context: str) -> str:
    """32 hex digits by which a request in its context is filed."""
    said = f"{context}\0{normalise(text)}".encode("utf-8", "surrogatepass")
    return hashlib.blake2b(said, digest_size=16).hexdigest()
