"""What the scripts of the tables have in common on their way in and out: options, data, lines."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from router.retrieval.encoder_kinds import build_encoder
from router.retrieval.encoders import Encoder
from router.settings import Settings


def options_of(description: str | None) -> argparse.Namespace:
    """The command line of a script that measures with any encoder. ``data`` is a folder,
    ``encoder`` and ``model`` are for ``encoder_of``, ``rows`` is a file or None."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("ROUTER_BENCH_DATA"), help="data folder"
    )
    parser.add_argument("--encoder", default="bundled", help="kind of encoder")
    parser.add_argument("--model", help="its model, name or folder")
    parser.add_argument("--rows", type=Path, help="write one JSON object a request to this file")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.data is None:
        parser.error("name the data folder with --data or ROUTER_BENCH_DATA")
    return options


def encoder_of(options: argparse.Namespace) -> Encoder:
    return build_encoder(Settings(encoder={"kind": options.encoder, "model": options.model}))


def memory_settings(directory: Path, encoder: str = "bundled") -> Settings:
    """Of a memory in a folder of its own, whose layers have time enough on a busy machine; with an
    encoder of a kind that needs no model."""
    return Settings(
        encoder={"kind": encoder},
        memory={
            "directory": directory / "kept",
            "project_directory": directory,
            "layer_deadline_seconds": 5,
            "deadline_seconds": 10,
        },
    )


def read(path: Path) -> list[dict[str, Any]]:
    """The objects of a file of JSON lines."""
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def write(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON lines; floats with four digits, which is more than any of them deserves."""
    with path.open("w", encoding="utf-8") as out:
        out.writelines(json.dumps(_rounded(row), ensure_ascii=False) + "\n" for row in rows)


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 4)
    if isinstance(value, Mapping):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return value


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the rows of a table, one a line."""
    for row in rows:
        print("  ".join(f"{name} {_shown(value)}" for name, value in row.items()))


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return "-".join(_shown(item) for item in value)
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def say(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)
