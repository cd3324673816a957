"""The parts of a process that share data with other processes through Redis.

Without the setting ``cluster.url``, nothing of this package is imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from router.cluster.answers import SharedAnswers
from router.cluster.enrichment import SharedEnrichment
from router.cluster.flight import SharedFlight
from router.cluster.keys import Keys
from router.cluster.learning import SharedLearning
from router.cluster.link import Link
from router.cluster.members import Members
from router.cluster.tools import ToolSharing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from router.events import Events
    from router.learning.learner import Learner
    from router.settings.settings import Settings
    from router.skills.catalog import Catalog
    from router.skills.changes import CatalogChange
    from router.skills.manager import SkillManager
    from router.skills.sources import SkillSource


class Cluster:
    """One process of a cluster. Belongs to one event loop. It is an observer of the catalog."""

    name: Final = "cluster"

    def __init__(self, settings: Settings, events: Events) -> None:
        """Nothing is connected yet. ``events`` get an event when the server is lost and when it is
        back.

        Raises:
            ConfigurationError: the address is not one, or the extra ``redis`` is not installed.
        """
        keys = Keys(settings.cluster.namespace)
        self.link = Link(settings.cluster, events)
        self.members = Members(self.link, keys)
        self.answers = SharedAnswers(self.link, keys, settings)
        self.flight = SharedFlight(self.link, keys)
        self.learning = SharedLearning(self.link, keys, settings, name=self.members.name)
        self.enrichment = SharedEnrichment(self.link, keys, settings)
        self.tools = ToolSharing(self.link, keys, settings)

    async def begin(
        self, catalog: Catalog, learner: Learner | None, sources: Iterable[SkillSource]
    ) -> None:
        """Join the cluster with the first catalog. It is no error where the server cannot be
        reached. The steps that can fail come first, so that this may be called again.

        Raises:
            StoreError: a file with changes that are still to be sent cannot be opened.
        """
        await self.tools.open(sources)
        if learner is not None:
            await self.learning.open()
        await self.members.begin(catalog.version)
        if learner is not None:
            self.learning.begin(learner)

    async def learn_late(self, learner: Learner) -> None:
        """Share a learner whose evidence file could be opened only after ``begin``; raises as that
        does."""
        await self.learning.open()
        self.learning.begin(learner)

    def follow_skills(self, manager: SkillManager) -> None:
        """Take over enrichments and tools of the other processes into the catalog from now on."""
        self.enrichment.begin(manager)
        self.tools.begin()

    async def on_catalog_change(self, change: CatalogChange) -> None:
        """Tell the others which catalog this process has now."""
        await self.members.changed(change.after.version)
        self.enrichment.skills_changed()

    async def stop_taking(self) -> None:
        """Take over nothing more from the other processes. Calling it twice is fine."""
        await self.tools.aclose()
        await self.enrichment.aclose()
        await self.learning.aclose()

    async def aclose(self) -> None:
        """Leave the cluster and close the connections. The answers must be closed before. Closing
        twice is fine."""
        await self.stop_taking()
        await self.members.aclose()
        await self.link.aclose()
