"""The use cases of one router.

A service knows neither MCP nor HTTP nor a terminal. It takes the arguments of
``router/service/shapes.py`` and gives the answers described there. A fault that the caller can
correct is raised as a ``RouterError``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any, Final

from cachetools import LRUCache

from router.concurrency.single_flight import SingleFlight
from router.concurrency.tasks import in_thread
from router.errors import ConfigurationError, SourceError, StoreError, UnknownSkill
from router.llm.protocol import Price
from router.ranking import RankedSkills, rank
from router.request import Request
from router.result import RoutingResult
from router.retrieval.index import SkillIndex
from router.router import SemanticRouter
from router.service.explaining import Explanation, explain
from router.service.shapes import (
    MAX_FAILURES,
    CacheSays,
    CacheStatus,
    CacheTested,
    Constraints,
    EnrichArguments,
    Enriched,
    Failure,
    FeedbackArguments,
    FindArguments,
    Forgotten,
    FoundSkill,
    FoundSkills,
    LLMModel,
    LoadArguments,
    LoadedSkill,
    NoArguments,
    Noted,
    RankArguments,
    Ranked,
    RouteArguments,
    RouterStatus,
    SkillCounts,
    Why,
)
from router.skills.catalog import Catalog
from router.skills.discovery import SKILL_FILE
from router.skills.files import NotServed, list_files, uri_of
from router.skills.registry import SkillRegistry
from router.stages.answers import LocalAnswers
from router.tools.source import ToolSource
from router.version import package_version

MAX_CACHED_TOOLS: Final = 20_000
"""The size of the cache of tool sets: the number of tools in all sets together."""
MIN_SET_SIZE: Final = 20
"""A smaller set counts as so many tools in the cache, because its index takes memory, too."""


class Service:
    """Every use case is one method. The router is opened by the first one that needs it."""

    def __init__(self, router: SemanticRouter) -> None:
        """The caller closes the router."""
        self.router: Final = router
        self._tool_sets = ToolSets(router)

    @property
    def catalog(self) -> Catalog | None:
        """The skills as they are now; None while the router is not open yet."""
        try:
            return self.router.catalog
        except RuntimeError:
            return None

    async def route(self, arguments: RouteArguments) -> RoutingResult:
        """Decide which skills to load for a request."""
        return await self.router.route(
            arguments.request,
            **_cache_key_arguments(arguments),
            use_semantic_cache=arguments.use_semantic_cache,
        )

    async def explain(self, arguments: RouteArguments, result: RoutingResult) -> Explanation:
        """The evidence behind an answer to a request."""
        return await explain(_request_of(arguments), result, (await self.router.open()).index)

    async def test_cache(self, arguments: RouteArguments) -> CacheTested:
        """Whether a cache would answer a request, and why or why not."""
        result, trace = await self.router.look_up(
            arguments.request,
            **_cache_key_arguments(arguments),
            use_semantic_cache=arguments.use_semantic_cache,
        )
        return CacheTested(
            hit=result is not None,
            skills=[] if result is None else list(result.selected_skills),
            caches=[
                CacheSays(cache=entry.stage.value, outcome=entry.outcome.value, reason=entry.reason)
                for entry in trace
            ],
        )

    async def forget(self, arguments: RouteArguments) -> Forgotten:
        """Drop the cached answer to a request."""
        await self.router.forget(arguments.request, **_cache_key_arguments(arguments))
        return Forgotten(request=arguments.request)

    async def find(self, arguments: FindArguments) -> FoundSkills:
        """Rank the skills for a query, with reasons; decides nothing."""
        catalog = (await self.router.open()).catalog  # the one that is searched, see discover
        found = await self.router.discover(
            arguments.query,
            limit=arguments.limit,
            installed_only=arguments.installed_only,
            **_constraints(arguments),
        )
        return FoundSkills(
            catalog_version=catalog.version,
            left_out=catalog.count_without(arguments.available_skills),
            skills=[
                FoundSkill(
                    name=skill.name,
                    description=skill.description,
                    installed=skill.installed,
                    url=skill.url,
                    score=skill.match.score,
                    reason=skill.reason,
                    why=Why(
                        terms=list(skill.match.terms),
                        lexical=skill.match.lexical,
                        cosine=skill.match.cosine,
                        examples=skill.match.examples if skill.match.examples_weight else None,
                    ),
                )
                for skill in found
            ],
        )

    async def load(
        self, arguments: LoadArguments, *, available: Collection[str] | None = None
    ) -> LoadedSkill:
        """A skill's instructions and the paths of its other files.

        The text is the catalog's and not the file's: the file may be half-written at the moment.

        Args:
            available: the names that the caller may see; None: all.
        """
        catalog = (await self.router.open()).catalog
        skill = catalog.skills.get(arguments.name)
        names = offered_names(catalog) if available is None else available
        if skill is None or skill.disable_model_invocation or arguments.name not in names:
            raise UnknownSkill.among(arguments.name, names)
        folder, note = skill.path.parent, None
        try:
            if not skill.has_file:
                raise NotServed("the skill is held in memory")
            paths = list(await in_thread(partial(list_files, folder), leaves=True))
        except NotServed as error:
            paths, note = [], f"the files are not listed: {error}"
        return LoadedSkill(
            name=skill.name,
            description=skill.description,
            instructions=skill.body,
            tool=skill.payload if isinstance(skill.payload, dict) else None,
            folder=_shown(folder),
            uri=uri_of(skill.name),
            resources=[path for path in paths if path != SKILL_FILE],
            note=note,
        )

    async def feedback(self, arguments: FeedbackArguments) -> Noted:
        """Say what an earlier answer should have been; the router learns from it."""
        await self.router.feedback(
            arguments.id, arguments.skills, right=arguments.right, scope=arguments.scope
        )
        return Noted(id=arguments.id)

    async def enrich(self, arguments: EnrichArguments) -> Enriched:
        """Have the LLM write requests for the skills that have none, or have changed since."""
        from router.enrichment.asking import plan_of  # only this use case needs it

        price = None
        if arguments.input_price is not None and arguments.output_price is not None:
            price = Price(arguments.input_price, arguments.output_price)
        if arguments.dry_run:
            plan = plan_of((await self.router.open()).catalog, arguments.skills, price=price)
            return Enriched(
                written=[],
                requests=0,
                failed={},
                left=[],
                planned=list(plan.skills),
                input_tokens=plan.input_tokens,
                output_tokens=plan.output_tokens,
                cost=plan.cost,
                most=plan.most,
                ended="",
            )
        report = await self.router.enrich(
            arguments.skills,
            price=price,
            max_cost=arguments.max_cost,
            concurrency=arguments.concurrency,
        )
        return Enriched.model_validate(report)

    async def status(self, _asked: NoArguments) -> RouterStatus:
        """Which skills are loaded or faulty, and the state of caches, encoder and LLMs."""
        router = self.router
        installed = await router.open()
        catalog = installed.catalog
        return RouterStatus(
            version=package_version(),
            catalog_version=catalog.version,
            skills=SkillCounts(
                routable=len(catalog.routable),
                hidden=len(catalog.skills) - len(catalog.routable),
                shadowed=len(catalog.shadowed),
                not_loaded=len(catalog.left_out),
            ),
            watching=router.manager.report().watch.mode.value,
            failures=[
                Failure(path=_shown(failure.path), line=failure.line, reason=failure.message)
                for failure in catalog.left_out[:MAX_FAILURES]
            ],
            caches={
                "fuzzy": CacheStatus(**asdict(router.fuzzy.stats)),
                "exact": CacheStatus(**asdict(router.exact.stats)),
            }
            if isinstance(router.cache, LocalAnswers)  # others count for all who share them
            else {},
            encoder=_encoder_name(installed.encoder),
            models=[
                LLMModel(provider=model.provider, model=model.model) for model in router.models
            ],
        )

    async def learning(self, _asked: NoArguments) -> dict[str, Any]:
        """The evidence, the local model, the account of the error bound, the calibrations."""
        await self.router.open()
        return self.router.learner.status()

    def learning_now(self) -> dict[str, Any] | None:
        """As ``learning``, but without waiting; None while the router is not open, or where
        learning is off."""
        try:
            return self.router.learner.status()
        except (RuntimeError, ConfigurationError, StoreError):
            return None

    async def rank(self, arguments: RankArguments) -> Ranked:
        """The best skills for a request, or the best of the tools that it brings along, in any
        case; never refuses."""
        if arguments.tools is None:
            found = await self.router.rank(
                arguments.request, limit=arguments.limit, **_constraints(arguments)
            )
        else:
            found = await self._tool_sets.rank(arguments, arguments.tools)
        return Ranked.model_validate(found)


def offered_names(catalog: Catalog) -> tuple[str, ...]:
    """The skills that may be loaded."""
    return tuple(skill.name for skill in catalog.routable)


def _request_of(arguments: RouteArguments | RankArguments) -> Request:
    return Request.parse(
        arguments.request,
        available=arguments.available_skills,
        history=arguments.history,
        scope=arguments.scope,
    )


def _cache_key_arguments(arguments: RouteArguments) -> dict[str, Any]:
    """The arguments of ``route`` that are part of the key of a cached answer, beside the text."""
    return {
        "available_skills": arguments.available_skills,
        "history": arguments.history,
        "scope": arguments.scope,
    }


def _constraints(arguments: Constraints) -> dict[str, Any]:
    """The arguments of ``rank`` that limit a ranking."""
    return {
        "available": arguments.available_skills,
        "always_include": arguments.always_include,
        "history": arguments.history,
        "scope": arguments.scope,
    }


def _encoder_name(identity: str) -> str:
    """The encoder's kind and model. The part between them is left out: it may be an address that
    contains a key."""
    kind, *_, model = identity.split("/")
    return f"{kind} {model}"


def _shown(path: Path) -> str:
    """The path with escapes for bytes that are no UTF-8, which JSON cannot carry."""
    return str(path).encode("utf-8", "backslashreplace").decode()


class ToolSets:
    """Ranks tools that are sent with a request, for programs that have no catalog on the server.

    An agent sends the same tools with each of its requests, so the index over a set of tools is
    cached. The key is a digest of the set, and the least recently used sets are dropped. Belongs to
    the event loop of the router, whose encoder it uses.
    """

    def __init__(self, router: SemanticRouter) -> None:
        self._router = router
        self._indexes: LRUCache[str, SkillIndex] = LRUCache(
            MAX_CACHED_TOOLS,
            getsizeof=lambda index: max(len(index.catalog.skills), MIN_SET_SIZE),
        )
        self._reading: SingleFlight[SkillIndex] = SingleFlight()

    async def rank(self, arguments: RankArguments, tools: Sequence[dict[str, Any]]) -> RankedSkills:
        """The best of some tools.

        Raises:
            SourceError: a tool cannot be used, or two have one name.
            InvalidRequest: the request cannot be ranked.
        """
        request = _request_of(arguments)
        try:
            text = json.dumps(tools, ensure_ascii=False, allow_nan=False).encode()
        except ValueError as error:  # no answer could carry it either
            raise SourceError("the request", "tools", f"they are not JSON: {error}") from None
        digest = hashlib.sha256(text).hexdigest()
        index = self._indexes.get(digest)
        if index is None:
            index = await self._reading.do(digest, lambda: self._read(digest, tools))
        return await rank(
            request,
            catalog=index.catalog,
            index=index,
            limit=arguments.limit,
            always_include=arguments.always_include,
            caution=self._router.settings.vector.least_right,
        )

    async def _read(self, digest: str, tools: Sequence[dict[str, Any]]) -> SkillIndex:
        own = (await self._router.open()).index

        def build() -> SkillIndex:
            return own.over(SkillRegistry([ToolSource(tools, name="the request")]).catalog)

        built = await in_thread(build)
        self._indexes[digest] = built
        return built
