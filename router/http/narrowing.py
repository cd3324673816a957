"""Narrows the arguments of a request to what its caller may see.

A key that is bound to namespaces sees the tools of those namespaces, and nothing else of the
catalog. ``skills`` is the namespace of all skills that come from folders. A request may ask for
fewer names than its key sees. Names that the key does not see are treated as if they were not
installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from router.errors import InvalidRequest
from router.http.caller import Caller
from router.request import Group
from router.service.service import Service
from router.skills.catalog import Catalog
from router.tools.folder import SKILLS, namespace_of


class Narrowing:
    """Narrows arguments to what their caller may see. Belongs to one event loop."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._catalog: Catalog | None = None
        self._names: Mapping[str, tuple[str, ...]] = MappingProxyType({})

    async def names_for(self, caller: Caller) -> tuple[str, ...] | None:
        """The skills and tools that a caller may see; None means all of them."""
        if not caller.namespaces:
            return None
        catalog = (await self._service.router.open()).catalog
        if catalog is not self._catalog:
            found: dict[str, list[str]] = {}
            for skill in catalog.routable:
                found.setdefault(namespace_of(skill) or SKILLS, []).append(skill.name)
            self._catalog = catalog
            self._names = {namespace: tuple(names) for namespace, names in found.items()}
        return tuple(
            name for namespace in caller.namespaces for name in self._names.get(namespace, ())
        )

    async def narrowed(self, arguments: Any, caller: Caller) -> Any:
        """Arguments with the scope and the names that their caller may use.

        Raises:
            Refused: they ask for another scope.
            InvalidRequest: feedback names a skill that the caller may not see.
        """
        if not caller.scopes and not caller.namespaces:
            return arguments
        fields = type(arguments).model_fields
        new: dict[str, Any] = {}
        if "scope" in fields and caller.scopes:
            new["scope"] = caller.scope_for(arguments.scope)
        if caller.namespaces and not getattr(arguments, "tools", None):
            seen = await self.names_for(caller) or ()
            allowed = frozenset(seen)
            if "available_skills" in fields:
                if arguments.available_skills is None:
                    label = " ".join(sorted(caller.namespaces))
                    new["available_skills"] = Group(label, seen)
                else:
                    requested = arguments.available_skills
                    new["available_skills"] = [name for name in requested if name in allowed]
            if "installed_only" in fields:  # what could be installed is in no namespace
                new["installed_only"] = True
            if "skills" in fields:
                for name in arguments.skills or ():
                    if name not in allowed:
                        reason = f"feedback: no skill named {name[:200]!r} is installed"
                        raise InvalidRequest(reason)
        return arguments.model_copy(update=new) if new else arguments
