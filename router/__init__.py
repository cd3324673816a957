"""Says which skills and tools an agent should load for a request, and which memories to read.

    from router import SyncSemanticRouter

    with SyncSemanticRouter() as router:
        result = router.route("squash the last four commits on this branch")
    print(result.decision, result.selected_skills, result.confidence, result.reasoning)

``SemanticRouter`` is the same router for asynchronous code. ``Memory`` and ``SyncMemory`` keep and
recall memories. ``Settings`` has every setting with its default.
"""

# Nothing is imported here, so that a command can take Ctrl-C at once; type checkers know this name.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Final

    from router.errors import (
        ConfigurationError,
        EncoderError,
        ForkedProcess,
        InvalidRequest,
        LayerError,
        LLMAnswerError,
        LLMError,
        LLMRejected,
        LLMUnavailable,
        ManifestError,
        MemoryServiceError,
        Overloaded,
        ReadOnlyMemory,
        RouterError,
        SourceError,
        StoreError,
        UnknownAnswer,
        UnknownMemory,
        UnknownSkill,
    )
    from router.memory.memory import Memory
    from router.memory.model import MemoryItem, Scope
    from router.memory.sync_memory import SyncMemory
    from router.ranking import RankedSkill, RankedSkills
    from router.request import Request, Turn
    from router.result import (
        Candidate,
        Decision,
        LayerChoice,
        Outcome,
        RoutingResult,
        Stage,
        StageTrace,
    )
    from router.retrieval.discover import Discovered
    from router.router import SemanticRouter
    from router.settings.settings import Settings
    from router.skills.shared import (
        get_skill_manifest,
        get_skill_registry,
        list_available_skills,
    )
    from router.stages.exact import ExactCache
    from router.stages.fuzzy import FuzzyCache
    from router.sync import SyncSemanticRouter
    from router.tools.source import ToolSource
    from router.tools.tool import Tool

__all__ = [
    "Candidate",
    "ConfigurationError",
    "Decision",
    "Discovered",
    "EncoderError",
    "ExactCache",
    "ForkedProcess",
    "FuzzyCache",
    "InvalidRequest",
    "LLMAnswerError",
    "LLMError",
    "LLMRejected",
    "LLMUnavailable",
    "LayerChoice",
    "LayerError",
    "ManifestError",
    "Memory",
    "MemoryItem",
    "MemoryServiceError",
    "Outcome",
    "Overloaded",
    "RankedSkill",
    "RankedSkills",
    "ReadOnlyMemory",
    "Request",
    "RouterError",
    "RoutingResult",
    "Scope",
    "SemanticRouter",
    "Settings",
    "SourceError",
    "Stage",
    "StageTrace",
    "StoreError",
    "SyncMemory",
    "SyncSemanticRouter",
    "Tool",
    "ToolSource",
    "Turn",
    "UnknownAnswer",
    "UnknownMemory",
    "UnknownSkill",
    "get_skill_manifest",
    "get_skill_registry",
    "list_available_skills",
]


def __getattr__(name: str) -> "Any":
    """Every name is imported when it is first asked for, so that a command starts at once."""
    from importlib import import_module

    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)


def __dir__() -> list[str]:
    """The public names, for shells and notebooks, which complete by them."""
    return sorted((*globals(), *__all__))


_NAMES: "Final" = {
    "errors": "ConfigurationError EncoderError ForkedProcess InvalidRequest LLMAnswerError "
    "LLMError LLMRejected LLMUnavailable LayerError ManifestError MemoryServiceError Overloaded "
    "ReadOnlyMemory RouterError SourceError StoreError UnknownAnswer UnknownMemory "
    "UnknownSkill",
    "memory.memory": "Memory",
    "memory.model": "MemoryItem Scope",
    "memory.sync_memory": "SyncMemory",
    "ranking": "RankedSkill RankedSkills",
    "request": "Request Turn",
    "result": "Candidate Decision LayerChoice Outcome RoutingResult Stage StageTrace",
    "retrieval.discover": "Discovered",
    "router": "SemanticRouter",
    "settings.settings": "Settings",
    "skills.shared": "get_skill_manifest get_skill_registry list_available_skills",
    "stages.exact": "ExactCache",
    "stages.fuzzy": "FuzzyCache",
    "sync": "SyncSemanticRouter",
    "tools.source": "ToolSource",
    "tools.tool": "Tool",
}
"""The public names, by the module of this package that each is imported from."""
_MODULES: "Final" = {n: f"router.{module}" for module, ns in _NAMES.items() for n in ns.split()}
