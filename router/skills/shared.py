"""The shared registry of a process: the installed skills, for code that has no router.

``get_skill_registry`` gives the same registry for the same roots, so that a folder is read once in
a process. The registry has the snapshot of its last ``reload``; to keep it up to date with the
disk, pass it to a ``SkillManager`` and watch.

A router does not use it, because a router's catalog may change only together with its index, and a
reload by other code would change the catalog alone. An open router has its own: ``router.catalog``
and ``router.manager``.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Final

from router.skills.discovery import configured_roots
from router.skills.folders import absolute
from router.skills.manifest import SkillManifest
from router.skills.registry import SkillRegistry

if TYPE_CHECKING:
    from router.settings.settings import Settings

_registries: Final[dict[tuple[Path | None, ...], SkillRegistry]] = {}
_creating: Final = threading.Lock()


def get_skill_registry(settings: Settings | None = None) -> SkillRegistry:
    """The shared registry over the configured roots. Safe to call from several threads.

    Args:
        settings: None reads them from the environment and the working directory, each time, so a
            process that changes its project gets the registry of the new one.

    Returns:
        The same object for the same roots and file of enrichments, for the life of the process.

    Raises:
        ConfigurationError: a setting is malformed, or a root is not a folder when its registry is
            made.
    """
    if settings is None:
        from router.settings.settings import Settings

        settings = Settings()
    roots = tuple(absolute(root) for root in configured_roots(settings, later_ones=True))
    with _creating:
        key = (settings.enrichment, *roots)
        registry = _registries.get(key)
        if registry is None:
            registry = _registries[key] = SkillRegistry.configured(settings)
        return registry


def list_available_skills() -> tuple[str, ...]:
    """Names of the skills that may be offered for routing, in order, from the shared registry.

    Raises:
        ConfigurationError: as for ``get_skill_registry``.
    """
    return get_skill_registry().list_available_skills()


def get_skill_manifest(name: str) -> SkillManifest:
    """The manifest of an installed skill, offered for routing or not, from the shared registry.

    Raises:
        UnknownSkill: there is none of that name; the error carries close names.
        ConfigurationError: as for ``get_skill_registry``.
    """
    return get_skill_registry().get_skill_manifest(name)
