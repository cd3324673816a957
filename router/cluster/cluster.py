"""One process's part in a cluster, put together from the settings.

Without ``cluster.url`` there is none, and nothing of this package is imported.
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
    """What a process shares, and with whom. Belongs to one event loop; observes the catalog."""

    name: Final = "cluster"

    def __init__(self, settings: Settings, events: Events) -> None:
        """Nothing is connected yet. ``events`` are told when the server is lost and back.

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
        """Join the others with the first catalog. A server that cannot be reached is no error. What
        can fail comes first, so that this may be called again.

        Raises:
            StoreError: a file of what is to be sent cannot be opened.
        """
        await self.tools.open(sources)
        if learner is not None:
            await self.learning.open()
        await self.members.begin(catalog.version)
        if learner is not None:
            self.learning.begin(learner)

    async def learn_late(self, learner: Learner) -> None:
        """Share a learner that there was not yet when this process began; raises as ``begin``."""
        await self.learning.open()
        self.learning.begin(learner)

    def follow_skills(self, manager: SkillManager) -> None:
        """From here on what others know of skills and tools changes the catalog."""
        self.enrichment.begin(manager)
        self.tools.begin()

    async def on_catalog_change(self, change: CatalogChange) -> None:
        """Tell the others which catalog this process has now."""
        await self.members.changed(change.after.version)
        self.enrichment.skills_changed()

    async def stop_taking(self) -> None:
        """Take nothing more from the others. Closing twice is fine."""
        await self.tools.aclose()
        await self.enrichment.aclose()
        await self.learning.aclose()

    async def aclose(self) -> None:
        """Leave the others and close the connections, after the answers. Closing twice is fine."""
        await self.stop_taking()
        await self.members.aclose()
        await self.link.aclose()
