"""Tools as the product's skills, and scores of whether a request needs any of them."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from benchmarks.baselines import Floats
from router.request import Request
from router.retrieval.encoders import Encoder
from router.retrieval.index import SkillIndex
from router.retrieval.vectors import VectorStore
from router.skills.catalog import Catalog
from router.skills.enrichment import Enrichment
from router.skills.manifest import SkillManifest
from router.stages.retrieval import decide


class Tool(NamedTuple):
    """One tool; ``name`` is unique and is what a person reads, ``parameters`` are in words."""

    name: str
    description: str
    parameters: str = ""

    @property
    def text(self) -> str:
        return f"{self.name}. {self.description}"


@dataclass(frozen=True)
class Refusals:
    """One method's scores of requests that need a tool, and of those that need none."""

    method: str
    learnt: str
    needed: Floats
    needless: Floats


@contextmanager
def indexed(
    tools: Sequence[Tool],
    encoder: Encoder,
    enrichment: Mapping[str, Enrichment] = MappingProxyType({}),
) -> Iterator[SkillIndex]:
    """The product's index over tools as skills, with what an LLM wrote for them, by name."""
    skills = {
        tool.name: SkillManifest(
            name=tool.name,
            description=tool.description,
            body=tool.parameters,
            path=Path(tool.name, "SKILL.md"),
            digest=hashlib.sha256("\n".join(tool).encode()).hexdigest(),
            enrichment=enrichment.get(tool.name),
        )
        for tool in sorted(tools)
    }
    with tempfile.TemporaryDirectory() as folder:
        store = VectorStore(Path(folder), identity=encoder.identity)
        index = SkillIndex.build(Catalog(skills), encoder=encoder, store=store)
        yield index
        index.close()


async def judged(
    index: SkillIndex, texts: Sequence[str], among: Sequence[Sequence[str] | None]
) -> Mapping[str, Floats]:
    """Two figures of the product's decision by retrieval alone: ``fits``, its estimate of whether
    anything fits, and ``score``, the fused score of the best skill."""
    found: dict[str, list[Any]] = {"fits": [], "score": []}
    for text, names in zip(texts, among, strict=True):
        decision = await decide(Request(text, None if names is None else tuple(names)), index)
        # A request that speaks to the router is refused without them.
        found["fits"].append(decision.evidence.get("fits", 0.0))
        found["score"].append(decision.matches[0].score if decision.matches else 0.0)
    return {figure: np.array(values) for figure, values in found.items()}
