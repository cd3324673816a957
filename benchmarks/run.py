"""Run the tables, keep their results, and write RESULTS.md from what is kept.

Every table is a script of its own in this folder that prints JSON. This one runs them one after
the other, keeps each result with what it was measured on (versions, checksums, machine, command),
and renders ``RESULTS.md``. A table whose code, data and settings are those of its kept result is
not run again, so an interrupted run goes on where it stopped. ``--check`` runs nothing: it fails
when ``RESULTS.md`` is not what the kept results say.

    python benchmarks/run.py [NAME ...] [--data FOLDER] [--peers PYTHON] [--fresh] [--check]
                                                    (or ROUTER_BENCH_DATA=FOLDER)

Tables that compare with other projects need those: ``make bench-peers`` installs them beside this
one, and ``--peers`` names that environment's Python. Without it they are left out, and it is said.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent
KEPT: Final = HERE / "results"
RESULTS: Final = HERE / "RESULTS.md"

VERSIONS: Final = ("cascade-router", "chromadb", "numpy", "rapidfuzz", "wordllama")
PEER_VERSIONS: Final = ("semantic-router", "sentence-transformers", "torch")


@dataclass(frozen=True)
class Table:
    """One table: a script, its arguments, and what it reads.

    Attributes:
        name: of the table and of its kept result.
        title: above it in RESULTS.md.
        script: in this folder; its first paragraph says what the table shows.
        data: parts of the data folder that it reads; empty when it needs none.
        arguments: for the script.
        peers: whether it needs the peers' environment.
    """

    name: str
    title: str
    script: str
    data: tuple[str, ...] = ()
    arguments: tuple[str, ...] = ()
    peers: bool = False


TABLES: Final = (
    Table(
        "skill_requests",
        "Which skill",
        "skill_requests.py",
        ("skill_requests", "skills"),
    ),
    Table("fuzzy_cache", "The fuzzy cache", "fuzzy_cache.py", ("clinc150", "banking77")),
    Table("cache_speed", "Speed of the caches", "cache_speed.py"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="tables; all when none is named")
    parser.add_argument("--data", type=Path, default=os.environ.get("ROUTER_BENCH_DATA"))
    parser.add_argument("--peers", type=Path, help="Python of the peers' environment")
    parser.add_argument("--fresh", action="store_true", help="run again what is kept")
    parser.add_argument("--check", action="store_true", help="only compare RESULTS.md with results")
    options = parser.parse_args()
    if options.check:
        sys.exit(check())
    known = {table.name: table for table in TABLES}
    if unknown := sorted(set(options.names) - known.keys()):
        parser.error(f"no table {unknown[0]!r}; there are {', '.join(known)}")
    wanted = [known[name] for name in options.names] or list(TABLES)
    failed = [table.name for table in wanted if not run(table, options)]
    RESULTS.write_text(rendered(), encoding="utf-8")
    if failed:
        sys.exit(f"failed: {', '.join(failed)}; the others are in {RESULTS}")


def run(table: Table, options: argparse.Namespace) -> bool:
    """Bring one kept result up to date; whether there is no fault to report."""
    python = sys.executable
    if table.peers:
        if options.peers is None:
            say(f"{table.name}: left out; it needs --peers (see make bench-peers)")
            return True
        python = str(options.peers)
    if table.data and options.data is None:
        say(f"{table.name}: left out; it needs --data or ROUTER_BENCH_DATA")
        return True
    arguments = list(table.arguments)
    if table.data:
        arguments += ["--data", str(options.data)]
    measured_on = fingerprint(table, options.data)
    kept = read(table.name)
    if kept is not None and kept["fingerprint"] == measured_on and not options.fresh:
        say(f"{table.name}: kept")
        return True
    say(f"{table.name}: running {table.script} {' '.join(table.arguments)}")
    began = time.monotonic()
    # Its progress goes to our standard error as it comes.
    done = subprocess.run(
        [python, str(HERE / table.script), *arguments, "--json"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    if done.returncode != 0:
        say(f"{table.name}: exit code {done.returncode}")
        return False
    found = json.loads(done.stdout)
    result = {
        "fingerprint": measured_on,
        "manifest": manifest(table, options.data, python),
        "seconds": round(time.monotonic() - began),
        **(found if isinstance(found, dict) and "rows" in found else {"rows": listed(found)}),
    }
    keep(table.name, result)
    say(f"{table.name}: {result['seconds']} s")
    return True


def listed(found: Any) -> list[dict[str, Any]]:
    """A script gives a list of rows, or one row."""
    return found if isinstance(found, list) else [found]


def fingerprint(table: Table, data: Path | None) -> str:
    """Digest of everything that a result depends on but the machine."""
    digest = hashlib.sha256(" ".join(table.arguments).encode())
    for path in [HERE / table.script, *sorted((ROOT / "router").rglob("*.py"))]:
        digest.update(path.read_bytes())
    for part in table.data:
        digest.update(checksum(Path(data or "") / part).encode())
    return digest.hexdigest()[:16]


def checksum(place: Path) -> str:
    """SHA-256 over the names and contents of a folder's files."""
    digest = hashlib.sha256()
    for path in sorted(place.rglob("*")):
        if path.is_file():
            digest.update(path.relative_to(place).as_posix().encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def manifest(table: Table, data: Path | None, python: str) -> dict[str, Any]:
    """What a result was measured on."""
    shown = f"python benchmarks/{table.script} {' '.join(table.arguments)}".rstrip()
    return {
        "command": shown + (" --data FOLDER" if table.data else ""),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": output_of(["git", "rev-parse", "--short", "HEAD"]),
        "python": platform.python_version(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "versions": versions(python, VERSIONS + (PEER_VERSIONS if table.peers else ())),
        "data": {part: checksum(Path(data or "") / part)[:16] for part in table.data},
    }


def versions(python: str, names: Sequence[str]) -> dict[str, str]:
    if python == sys.executable:
        return dict(_versions(names))
    code = (
        "import json, sys; from importlib.metadata import version; "
        "print(json.dumps({n: version(n) for n in sys.argv[1:]}))"
    )
    found: dict[str, str] = json.loads(output_of([python, "-c", code, *names]) or "{}")
    return found


def _versions(names: Sequence[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            yield name, "a source tree"


def output_of(command: Sequence[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    return done.stdout.strip()


def read(name: str) -> dict[str, Any] | None:
    path = KEPT / f"{name}.json"
    if not path.exists():
        return None
    result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return result


def keep(name: str, result: Mapping[str, Any]) -> None:
    KEPT.mkdir(exist_ok=True)
    aside = KEPT / f"{name}.new"
    aside.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    aside.replace(KEPT / f"{name}.json")


def check() -> int:
    """1 when RESULTS.md is not what the kept results say."""
    if RESULTS.read_text(encoding="utf-8") == rendered():
        return 0
    say("RESULTS.md does not agree with results/; run `python benchmarks/run.py`")
    return 1


def rendered() -> str:
    """RESULTS.md, from the kept results alone."""
    parts = [
        "# Results\n\n"
        "Written by `python benchmarks/run.py` from `benchmarks/results/`; do not edit. "
        "Each table names its command and what it was measured on.\n"
    ]
    for table in TABLES:
        result = read(table.name)
        if result is not None:
            parts.append(section(table, result))
    return "\n".join(parts)


def section(table: Table, result: Mapping[str, Any]) -> str:
    made = result["manifest"]
    measured_with = ", ".join(f"{name} {number}" for name, number in made["versions"].items())
    data = ", ".join(f"{name} {digest}" for name, digest in made["data"].items())
    notes = [
        f"`{made['command']}`",
        f"{made['date']}, commit {made['commit']}, Python {made['python']}, {made['machine']}; "
        f"{measured_with}" + (f"; data {data}" if data else "") + ".",
    ]
    return f"## {table.title}\n\n{markdown(result['rows'])}\n\n" + "\n\n".join(notes) + "\n"


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as a table; the columns are all their keys, in order of appearance."""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    lines = [
        "| " + " | ".join(column.replace("_", " ") for column in columns) + " |",
        "|" + "---|" * len(columns),
    ]
    lines += ["| " + " | ".join(cell(row.get(column)) for column in columns) + " |" for row in rows]
    return "\n".join(lines)


def cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.3g}" if abs(value) < 1 else f"{value:,.2f}"
    if isinstance(value, list):
        return " to ".join(cell(item) for item in value)
    return str(value).replace("|", "\\|")


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
