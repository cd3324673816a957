"""Enriching a skill by itself when it is saved, while the router watches."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from router.skills.changes import CatalogChange


class EnrichOnSave:
    """An observer that has skills asked about when they come or change.

    What it writes changes the catalog in its turn; a skill whose enrichment is up to date is not
    asked about again, so that this ends there.
    """

    name: Final = "enrichment on save"

    def __init__(self, enrich: Callable[[Sequence[str]], Awaitable[object]]) -> None:
        """``enrich`` asks about the skills of these names, those that need it."""
        self._enrich = enrich

    async def on_catalog_change(self, change: CatalogChange) -> None:
        skills = change.after.skills
        names = [
            name
            for name in (*change.added, *change.changed)
            if name in skills
            and (skills[name].enrichment is None or skills[name].enrichment_is_stale)
        ]
        if names:
            await self._enrich(names)
