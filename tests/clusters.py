"""What the tests of clusters share: a small router with the settings of one process."""

from __future__ import annotations

from collections.abc import Sequence

from cascade import bundled_encoder, some_skills

from router import SemanticRouter, Settings
from router.llm.protocol import ChatModel

SKILLS = ("git", "debugging", "writer")


def few_skills_router(
    settings: Settings, *, models: Sequence[ChatModel] | None = None
) -> SemanticRouter:
    """A router over copies of three shipped skills, beside its ``state_dir``; not open yet."""
    folder = settings.state_dir.with_name(f"{settings.state_dir.name}-skills")
    if not folder.exists():
        some_skills(folder, *SKILLS)
    return SemanticRouter(settings, roots=[folder], models=models, encoder=bundled_encoder())
