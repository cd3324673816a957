"""cascade-router: which skills to load for a request and which memories to read, with a confidence
that means what it says."""

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
    from router.settings import Settings
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


_MODULES: "Final" = {
    "Candidate": "router.result",
    "ConfigurationError": "router.errors",
    "Decision": "router.result",
    "Discovered": "router.retrieval.discover",
    "EncoderError": "router.errors",
    "ExactCache": "router.stages.exact",
    "ForkedProcess": "router.errors",
    "FuzzyCache": "router.stages.fuzzy",
    "InvalidRequest": "router.errors",
    "LLMAnswerError": "router.errors",
    "LLMError": "router.errors",
    "LLMRejected": "router.errors",
    "LLMUnavailable": "router.errors",
    "LayerChoice": "router.result",
    "LayerError": "router.errors",
    "ManifestError": "router.errors",
    "Memory": "router.memory.memory",
    "MemoryItem": "router.memory.model",
    "MemoryServiceError": "router.errors",
    "Outcome": "router.result",
    "Overloaded": "router.errors",
    "RankedSkill": "router.ranking",
    "RankedSkills": "router.ranking",
    "ReadOnlyMemory": "router.errors",
    "Request": "router.request",
    "RouterError": "router.errors",
    "RoutingResult": "router.result",
    "Scope": "router.memory.model",
    "SemanticRouter": "router.router",
    "Settings": "router.settings",
    "SourceError": "router.errors",
    "Stage": "router.result",
    "StageTrace": "router.result",
    "StoreError": "router.errors",
    "SyncMemory": "router.memory.sync_memory",
    "SyncSemanticRouter": "router.sync",
    "Tool": "router.tools.tool",
    "ToolSource": "router.tools.source",
    "Turn": "router.request",
    "UnknownMemory": "router.errors",
    "UnknownSkill": "router.errors",
    "get_skill_manifest": "router.skills.shared",
    "get_skill_registry": "router.skills.shared",
    "list_available_skills": "router.skills.shared",
}
