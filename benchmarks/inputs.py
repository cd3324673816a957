"""What the scripts of the tables have in common on their way in and out: options, data, lines."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from router.retrieval.configured_encoder import build_encoder
from router.retrieval.encoders import Encoder
from router.settings.settings import Settings


def parser_of(description: str | None) -> argparse.ArgumentParser:
    """The command line of a script: ``data`` is a folder, ``json`` is for ``give``."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument(
        "--data", type=Path, default=os.environ.get("ROUTER_BENCH_DATA"), help="data folder"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def parsed(parser: argparse.ArgumentParser) -> argparse.Namespace:
    """The options of a script that needs data."""
    options = parser.parse_args()
    if options.data is None:
        parser.error("name the data folder with --data or ROUTER_BENCH_DATA")
    return options


def with_encoder(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """The same for a script that measures with any encoder: ``encoder_of`` gives it."""
    parser.add_argument("--encoder", default="bundled", help="kind of encoder")
    parser.add_argument("--model", help="its model, name or folder")
    return parser


def options_of(description: str | None) -> argparse.Namespace:
    """The options of a table that any encoder can fill; ``rows`` is a file or None."""
    parser = with_encoder(parser_of(description))
    parser.add_argument("--rows", type=Path, help="write one JSON object a request to this file")
    return parsed(parser)


def encoder_of(options: argparse.Namespace) -> Encoder:
    return build_encoder(Settings(encoder={"kind": options.encoder, "model": options.model}))


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


def requests_of(data: Path) -> list[str]:
    """Requests to real skills, which lie in ``skills/pool``."""
    return [row["request"] for row in read(data / "skill_requests" / "dev.jsonl")]


def resident_bytes() -> int:
    """What this process has of the system's memory now."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def give(rows: Sequence[Mapping[str, Any]], *, as_json: bool, **more: Any) -> None:
    """Print the rows of a table: as JSON, with what else its result holds, or one a line."""
    if as_json:
        print(json.dumps({"rows": rows, **more}))
        return
    for row in rows:
        print("  ".join(f"{name} {_shown(value)}" for name, value in row.items()))


def _shown(value: Any) -> str:
    if isinstance(value, tuple):
        return "-".join(_shown(item) for item in value)
    if isinstance(value, Mapping):
        return f"({', '.join(f'{name} {_shown(item)}' for name, item in value.items())})"
    return f"{value:.3f}" if isinstance(value, float) else str(value)


def say(text: str) -> None:
    """Progress, on standard error."""
    print(text, file=sys.stderr, flush=True)
