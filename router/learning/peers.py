"""Others who learn from the same evidence: what a learner asks of them.

``router.cluster.learning`` is the one over Redis. Without a cluster there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

Label: TypeAlias = Sequence[Any]
"""One label as ``EvidenceStore.labels`` gives it: plain JSON types."""


class Peers(Protocol):
    """The other processes. None of its methods raises because they cannot be reached."""

    async def tell_labels(self, labels: Sequence[Label]) -> None:
        """Tell them of labels. When this returns they will hear of them, now or later.

        Raises:
            StoreError: they cannot be reached, and what is to be told cannot be written down.
        """

    def tell_outcome(self, outcome: Sequence[Any]) -> None:
        """Tell them how a local answer did, if they can be reached."""

    async def may_fit(self, key: str) -> bool:
        """Whether this process fits the model of a key; the others use the model that it
        publishes. True where the others cannot be reached."""

    async def publish(self, key: str, model: bytes) -> None:
        """Give the others a model. Refused where another process fits by now."""

    async def published(self, key: str) -> bytes | None:
        """The newest model of a key; None where there is none."""
