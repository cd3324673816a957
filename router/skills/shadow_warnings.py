"""Warnings of skills that lose their name to one from the other side of the project's border.

The working directory may be a cloned repository. Where a skill of it takes the name of one from
elsewhere, an agent loads a stranger's text in place of the one that the user knows; the other way
round, who works on the project's skill wonders why nothing changes. Both are told when a router
opens and when it reads the skills again. Skills of one side, such as two of a bundle, are in
``Catalog.diagnostics`` only: whoever put them there decides about both.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Final

from router.settings.files import warn_once
from router.skills.catalog import Catalog, ShadowedSkill

_log: Final = logging.getLogger(__name__)

MAX_WARNINGS: Final = 5
"""How many are told one by one; one more warning counts the rest."""


def warn_of_shadowed(catalog: Catalog, before: Catalog | None = None) -> None:
    """Log a warning for each skill that lost its name across the border of the working directory,
    and had not in the catalog before. A process repeats none."""
    known = (
        set() if before is None else {(one.manifest.path, one.by.path) for one in before.shadowed}
    )
    try:
        here = Path.cwd()
    except FileNotFoundError:  # a folder that is gone has no skills
        return
    lost = [
        one
        for one in catalog.shadowed
        if (one.manifest.path, one.by.path) not in known and _is_across(one, here)
    ]
    for one in lost[:MAX_WARNINGS]:
        warn_once(str(one.diagnostic))
    if len(lost) > MAX_WARNINGS:
        more = len(lost) - MAX_WARNINGS
        _log.warning(
            "%d more skills have the name of a stronger one: router skills check names them", more
        )


def _is_across(lost: ShadowedSkill, here: Path) -> bool:
    return lost.manifest.path.is_relative_to(here) != lost.by.path.is_relative_to(here)
