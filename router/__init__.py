"""cascade-router: which skills to load for a request, with a confidence that means what it says."""

from typing import TYPE_CHECKING, Any

from router.errors import (
    ConfigurationError,
    EncoderError,
    InvalidRequest,
    LLMAnswerError,
    LLMError,
    LLMRejected,
    LLMUnavailable,
    ManifestError,
    RouterError,
    StoreError,
    UnknownSkill,
)
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
    from router.settings import Settings

__all__ = [
    "Candidate",
    "ConfigurationError",
    "Decision",
    "EncoderError",
    "ExactCache",
    "FuzzyCache",
    "InvalidRequest",
    "LLMAnswerError",
    "LLMError",
    "LLMRejected",
    "LLMUnavailable",
    "LayerChoice",
    "ManifestError",
    "Outcome",
    "Request",
    "RouterError",
    "RoutingResult",
    "SemanticRouter",
    "Settings",
    "Stage",
    "StageTrace",
    "StoreError",
    "SyncSemanticRouter",
    "Turn",
    "UnknownSkill",
]


def __getattr__(name: str) -> Any:
    """``Settings`` is imported when it is first asked for: its library doubles the import time."""
    if name == "Settings":
        from router.settings import Settings

        return Settings
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
