"""The interface of a learner to the other processes of a cluster.

``router.cluster.learning`` implements it over Redis. Without a cluster there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias

Label: TypeAlias = Sequence[Any]
"""One label in the form of ``EvidenceStore.labels``: plain JSON types."""


class Peers(Protocol):
    """The other processes. Its methods do not raise when these cannot be reached."""

    async def tell_labels(self, labels: Sequence[Label]) -> None:
        """Send labels to the others. When this returns they will get them, now or later.

        Raises:
            StoreError: they cannot be reached, and the labels cannot be stored to be sent later.
        """

    def tell_outcome(self, outcome: Sequence[Any]) -> None:
        """Send the outcome of a local answer to the others, if they can be reached."""

    async def may_fit(self, key: str) -> bool:
        """Whether this process fits the model of a key; the others use the model that it
        publishes. True where the others cannot be reached."""

    async def publish(self, key: str, model: bytes) -> None:
        """Give the others a model. Has no effect where another process has become the one that
        fits."""

    async def published(self, key: str) -> bytes | None:
        """The newest model of a key; None where there is none."""
