"""Run the tables, keep their results, and write RESULTS.md from what is kept.

Every table is a script of its own in this folder that prints JSON; ``tables.py`` lists them. This
one runs them one after the other and keeps each result in ``results/`` with what it was measured on
(command, versions, checksums, machine, seeds). A table whose code, data and arguments are those of
its kept result is not run again, so an interrupted run goes on where it stopped.

    python benchmarks/run.py [NAME ...] [--data FOLDER] [--peers PYTHON] [--fresh]
                                                    (or ROUTER_BENCH_DATA=FOLDER)
    python benchmarks/run.py --check     compare RESULTS.md and the plots with results/
    python benchmarks/run.py --render    only write RESULTS.md

Tables that need other projects run in an environment of their own: ``make bench-peers`` makes it,
``--peers`` names its Python. Without it, or without the data, a table is left out, and it is said.
"""

from __future__ import annotations

import argparse
import ast
import datetime
import hashlib
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks.report import REPORT, faults, read, rendered
from benchmarks.tables import FOLDER, RESULTS_FOLDER, RUNS_FOLDER, TABLES, Table

ROOT: Final = FOLDER.parent
VERSIONS: Final = ("chromadb", "numpy", "rapidfuzz")
PEER_VERSIONS: Final = ("callbus", "fastmcp", "semantic-router", "sentence-transformers", "torch")
ONE_THREAD: Final = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
"""Times of several threads say more of what else the machine does than of the code."""
PRODUCT: Final = (".py", ".npz", ".txt")
"""The files of the product that figures depend on: code, weights, and lists of words and texts."""
LEFT_OUT: Final = "left out: "
TEXTS: Final = ("request", "query", "question", "text")
"""What per-request files may not keep: the texts are the data sets', some of them licensed."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", metavar="NAME", help="tables; all when none is named")
    parser.add_argument("--data", default=os.environ.get("ROUTER_BENCH_DATA"), help="data folder")
    parser.add_argument("--peers", help="Python of the peers' environment")
    parser.add_argument("--fresh", action="store_true", help="run again what is kept")
    parser.add_argument("--check", action="store_true", help="compare, and run nothing")
    parser.add_argument("--render", action="store_true", help="only write RESULTS.md")
    options = parser.parse_args()
    if options.check:
        if found := list(faults()):
            sys.exit("\n".join(found))
        say("RESULTS.md and the plots are what results/ says")
        return
    try:
        failed = [] if options.render else run_all(chosen(options.names, parser), options)
    except KeyboardInterrupt:
        say("stopped; the tables that were measured are kept, and the next run goes on from there")
        sys.exit(130)
    REPORT.write_text(rendered(), encoding="utf-8")
    for stale in faults():  # a plot: this environment may have no matplotlib to draw it again
        say(stale)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}; the others are in {REPORT}")
    say(f"the figures are in {REPORT}")


def chosen(names: list[str], parser: argparse.ArgumentParser) -> list[Table]:
    known = {table.name: table for table in TABLES}
    if unknown := sorted(set(names) - known.keys()):
        parser.error(f"no table {unknown[0]!r}; there are {', '.join(known)}")
    return [known[name] for name in names] or list(TABLES)


def run_all(tables: list[Table], options: argparse.Namespace) -> list[str]:
    """Bring the results of some tables up to date; the names of those that failed, or that were
    asked for by name and left out."""
    failed = []
    for number, table in enumerate(tables, 1):
        began = time.monotonic()
        say(f"[{number}/{len(tables)}] {table.name}")
        try:
            outcome = bring_up_to_date(table, options)
            if options.names and outcome.startswith(LEFT_OUT):
                failed.append(table.name)
        except (subprocess.CalledProcessError, json.JSONDecodeError) as error:
            failed.append(table.name)
            outcome = f"failed: {error}"
        say(f"[{number}/{len(tables)}] {table.name}: {outcome}, {time.monotonic() - began:.0f} s")
    return failed


def bring_up_to_date(table: Table, options: argparse.Namespace) -> str:
    """Run a table unless its kept result still holds; what became of it, in a word or two.

    Raises:
        CalledProcessError: the script failed.
        JSONDecodeError: what it printed is not JSON.
    """
    if table.peers and options.peers is None:
        return f"{LEFT_OUT}it needs --peers (make bench-peers)"
    if table.data and options.data is None:
        return f"{LEFT_OUT}it needs --data or ROUTER_BENCH_DATA"
    data = Path(options.data or ".").absolute()
    if missing := [part for part in table.data if not (data / part).exists()]:
        return f"{LEFT_OUT}{data} holds no {missing[0]}"
    kept = read(table.name)
    measured_on = fingerprint(table, data)
    if kept is not None and kept["fingerprint"] == measured_on and not options.fresh:
        return "kept"
    # Not resolved: an environment's Python is a link to the one that made it.
    python = str(Path(options.peers).absolute()) if table.peers else sys.executable
    began = time.monotonic()
    found = shaped(measure(table, python, data))
    result = {
        "fingerprint": measured_on,
        "manifest": manifest(table, python, data),
        "seconds": round(time.monotonic() - began),
        **found,
    }
    keep(table.name, result)
    return "measured"


def measure(table: Table, python: str, data: Path) -> Any:
    """What the script prints. Its progress goes to our standard error as it comes."""
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder, "rows.jsonl")
        command = [python, str(FOLDER / table.script), "--json", *arguments(table, data)]
        command += ["--data", str(data)] if needs_data_option(table) else []
        command += ["--rows", str(rows)] if table.rows else []
        environment = {**os.environ, **ONE_THREAD, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=environment, check=True
        )
        found = json.loads(done.stdout)
        if table.rows:
            keep_rows(table.name, rows)
    return found


def needs_data_option(table: Table) -> bool:
    return bool(table.data) and not any("{data}" in argument for argument in table.arguments)


def arguments(table: Table, data: Path) -> list[str]:
    """The table's arguments with the data folder filled in."""
    return [argument.replace("{data}", str(data)) for argument in table.arguments]


def shaped(found: Any) -> dict[str, Any]:
    """What a script prints, as ``{"rows": [...], "series": {...}}``.

    A list is the rows; so is an object with "rows". Any other object is taken apart: a list of
    objects in it is rows, an object is one row, named by its key, and single figures are one row.
    """
    if isinstance(found, list):
        return {"rows": found}
    if "rows" in found:
        return {name: found[name] for name in ("rows", "series") if name in found}
    rows: list[dict[str, Any]] = []
    single = {}
    for name, value in found.items():
        if isinstance(value, dict):
            rows.append({"what": name, **value})
        elif isinstance(value, list) and all(isinstance(item, dict) for item in value):
            rows += value
        else:
            single[name] = value
    return {"rows": [*rows, single] if single else rows}


def fingerprint(table: Table, data: Path) -> str:
    """Digest of everything that a result depends on but the machine: the arguments, the script and
    the scripts that it imports, the whole product with its weights, the shipped skills, and the
    data."""
    digest = hashlib.sha256(repr((table.arguments, table.peers)).encode())
    product = sorted(path for path in (ROOT / "router").rglob("*") if path.suffix in PRODUCT)
    for path in [*code_of(FOLDER / table.script), *product]:
        digest.update(path.read_bytes())
    if table.peers:
        digest.update((FOLDER / "peers.txt").read_bytes())
    for folder in (ROOT / "skills", FOLDER / "data", *(data / part for part in table.data)):
        digest.update(checksum(folder).encode())
    return digest.hexdigest()[:16]


def code_of(script: Path) -> list[Path]:
    """A script and those of this folder that it imports, directly or not."""
    found: list[Path] = []
    waiting = [script]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.append(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            others = (FOLDER / f"{name.removeprefix('benchmarks.')}.py" for name in names)
            waiting += [other for other in others if other.exists()]
    return sorted(found)


def checksum(place: Path) -> str:
    """SHA-256 over the names and contents of a folder's files."""
    digest = hashlib.sha256()
    for path in sorted(place.rglob("*")):
        if path.is_file():
            digest.update(path.relative_to(place).as_posix().encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


def manifest(table: Table, python: str, data: Path) -> dict[str, Any]:
    """What a result was measured on."""
    options = [*table.arguments, *(["--data", "{data}"] if needs_data_option(table) else [])]
    command = " ".join(["python", f"benchmarks/{table.script}", *options])
    return {
        "command": re.sub(r"\{(\w+)\}", lambda match: match.group(1).upper(), command),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": commit(),
        "python": output_of([python, "-c", "import platform; print(platform.python_version())"]),
        "machine": machine(),
        "seeds": seeds(FOLDER / table.script),
        "versions": versions(python, VERSIONS + (PEER_VERSIONS if table.peers else ())),
        "data": {part: checksum(data / part)[:16] for part in table.data},
    }


def commit() -> str:
    """Of the code that was measured; a plus sign says that it was changed since."""
    code = ("router", "benchmarks/*.py")
    try:
        head = output_of(["git", "rev-parse", "--short", "HEAD"])
        return f"{head}+" if output_of(["git", "status", "--porcelain", "--", *code]) else head
    except (OSError, subprocess.CalledProcessError):
        return "unknown"  # a copy without its history


def machine() -> str:
    """Processor, cores and memory; what of it the system tells."""
    described = [platform.processor() or platform.machine(), f"{os.cpu_count()} cores"]
    cpu = Path("/proc/cpuinfo")
    if cpu.exists() and (name := re.search(r"model name\s*: (.+)", cpu.read_text())):
        described[0] = name.group(1)
    if hasattr(os, "sysconf") and "SC_PHYS_PAGES" in os.sysconf_names:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        described.append(f"{memory / 2**30:.0f} GiB")
    return ", ".join([*described, platform.system()])


def seeds(script: Path) -> dict[str, str]:
    """The constants of a script that fix what it draws."""
    text = script.read_text(encoding="utf-8")
    return dict(re.findall(r"^(\w*SEEDS?\w*)(?:: Final)? = ([^\n#]+)", text, re.MULTILINE))


def versions(python: str, names: tuple[str, ...]) -> dict[str, str]:
    code = (
        "import json, sys; from importlib.metadata import distributions; "
        "found = {one.name: one.version for one in distributions()}; "
        "print(json.dumps({name: found[name] for name in sys.argv[1:] if name in found}))"
    )
    found: dict[str, str] = json.loads(output_of([python, "-c", code, *names]))
    return found


def output_of(command: list[str]) -> str:
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, cwd=ROOT, check=True)
    return done.stdout.strip()


def keep_rows(name: str, rows: Path) -> None:
    """Keep the lines a script wrote, numbered, without the data set's texts."""
    RUNS_FOLDER.mkdir(exist_ok=True)
    with rows.open(encoding="utf-8") as lines:
        kept = "".join(f"{json.dumps(row)}\n" for row in without_texts(map(json.loads, lines)))
    write(RUNS_FOLDER / f"{name}.jsonl", kept)


def without_texts(rows: Iterator[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    for number, row in enumerate(rows, 1):
        yield {"row": number} | {name: row[name] for name in row if name not in TEXTS}


def keep(name: str, result: Mapping[str, Any]) -> None:
    RESULTS_FOLDER.mkdir(exist_ok=True)
    text = json.dumps(result, indent=1, ensure_ascii=False)
    write(RESULTS_FOLDER / f"{name}.json", text + "\n")


def write(path: Path, text: str) -> None:
    """All of it or nothing, should we be stopped."""
    aside = path.with_name(path.name + ".new")
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
