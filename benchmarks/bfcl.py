"""BFCL, the Berkeley function-calling leaderboard: questions that none of their functions answers.

Every question has its own few functions. Most can be answered with one of them; for the irrelevant
ones none is right. ``tool_selection.py`` shows how many of those can be told by a score.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.baselines import Floats, bm25, expressed
from benchmarks.inputs import read, say
from benchmarks.tool_index import Refusals, Tool, indexed, judged
from router.retrieval.encoders import Encoder


@dataclass(frozen=True)
class Bfcl:
    """The questions of one half, and the places of each one's functions. ``tools`` is by what is
    read of them: without their parameters, and with."""

    ids: list[str]
    texts: list[str]
    needs: list[bool]
    candidates: list[list[int]]
    tools: dict[str, list[Tool]]

    @classmethod
    def load(cls, folder: Path) -> Bfcl:
        functions = read(folder / "tools.jsonl")
        # Many functions share a name. The id makes it unique; as one word it is no one's request.
        names = [f"{row['name']} {row['id']}" for row in functions]
        full = [
            Tool(name, row["description"] or row["name"], words_of(row))
            for name, row in zip(names, functions, strict=True)
        ]
        places = {row["id"]: place for place, row in enumerate(functions)}
        # Without a label, or without a function to choose from, there is nothing to decide.
        rows = [
            row
            for row in read(folder / "queries.jsonl")
            if row["gold_ids"] is not None and row["candidate_ids"] and measured(row["id"])
        ]
        return cls(
            [row["id"] for row in rows],
            [
                "\n".join(said["content"] for said in row["messages"] if said["role"] == "user")
                for row in rows
            ],
            [bool(row["gold_ids"]) for row in rows],
            [[places[key] for key in row["candidate_ids"]] for row in rows],
            {"": [tool._replace(parameters="") for tool in full], ", parameters": full},
        )

    async def refusals(self, encoder: Encoder) -> list[Refusals]:
        found = []
        asked = encoder.encode(self.texts)
        for suffix, tools in self.tools.items():
            say(f"bfcl{suffix}")
            plain = [
                f"{tool.name.rpartition(' ')[0]}. {tool.description} {tool.parameters}".rstrip()
                for tool in tools
            ]
            words, vectors = bm25(plain), encoder.encode(plain)
            with indexed(tools, encoder) as index:
                among = [[tools[place].name for place in some] for some in self.candidates]
                retrieved = await judged(index, self.texts, among)
            lexical = [words(t)[c].max() for t, c in zip(self.texts, self.candidates, strict=True)]
            dense = [(vectors[c] @ v).max() for v, c in zip(asked, self.candidates, strict=True)]
            found += [
                self.split(f"BM25{suffix}", np.array(lexical)),
                self.split(f"encoder{suffix}", np.array(dense)),
                self.split(f"retrieval, fits{suffix}", retrieved["fits"]),
                self.split(f"retrieval, score{suffix}", retrieved["score"]),
                self.split(
                    f"words expressed{suffix}",
                    expressed(encoder, plain, self.texts, self.candidates),
                ),
            ]
        return found

    def split(self, method: str, scores: Floats) -> Refusals:
        needs = np.array(self.needs)
        return Refusals(method, "none", scores[needs], scores[~needs])

    def places(self, *, needs: bool) -> list[str]:
        return [key for key, needed in zip(self.ids, self.needs, strict=True) if needed == needs]


def measured(key: str) -> bool:
    """Whether a question belongs to the half that nothing was chosen on."""
    return hashlib.sha256(key.encode()).digest()[-1] % 2 == 1


def words_of(function: dict[str, Any]) -> str:
    """The names and descriptions of a function's parameters, those inside of them too."""
    found = []
    waiting = [function["parameters"]]
    while waiting:
        schema = waiting.pop()
        for name, inner in schema.get("properties", {}).items():
            found += [name.replace("_", " "), str(inner.get("description", ""))]
            waiting += [inner, inner.get("items", {})]
    return " ".join(found)
