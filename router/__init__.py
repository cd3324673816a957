"""cascade-router: which skills to load for a request and which memories to read, with a confidence
that means what it says."""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

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
from router.memory.model import MemoryItem, Scope
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
from router.router import SemanticRouter
from router.stages.exact import ExactCache
from router.stages.fuzzy import FuzzyCache
from router.sync import SyncSemanticRouter

if TYPE_CHECKING:
    from router.memory.memory import Memory
    from router.memory.sync_memory import SyncMemory
    from router.ranking import RankedSkill, RankedSkills
    from router.retrieval.discover import Discovered
    from router.settings import Settings
    from router.skills.shared import (
        get_skill_manifest,
        get_skill_registry,
        list_available_skills,
    )
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


def __getattr__(name: str) -> Any:
    """What needs a large library is imported when it is first asked for."""
    if name not in _LATE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATE[name]), name)


_LATE: Final = {
    "Discovered": "router.retrieval.discover",
    "Memory": "router.memory.memory",
    "RankedSkill": "router.ranking",
    "RankedSkills": "router.ranking",
    "Settings": "router.settings",
    "SyncMemory": "router.memory.sync_memory",
    "Tool": "router.tools.tool",
    "ToolSource": "router.tools.source",
    "get_skill_manifest": "router.skills.shared",
    "get_skill_registry": "router.skills.shared",
    "list_available_skills": "router.skills.shared",
}
