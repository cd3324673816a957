"""Download the public intent sets from their homes into the layout that the tables read.

CLINC150 (Larson et al., 2019; CC BY 3.0) and BANKING77 (Casanueva et al., 2020; CC BY 4.0), each
from its authors' repository, and their few-shot samples from the Few-Shot-Intent-Detection
repository, at pinned commits. The pinned SHA-256 is of the rows, the sorted lines "label TAB text":
this was written without a network, so those of the published files could not be had. A file that
agrees is kept, so a second call goes on where the first one stopped.

    python benchmarks/fetch.py --data FOLDER                    (or ROUTER_BENCH_DATA=FOLDER)
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

HOME: Final = "https://raw.githubusercontent.com"
CLINC: Final = "clinc/oos-eval/828f8093932c8fe6ca7936c3d2e52903b1c523de/data"
BANKING: Final = (
    "PolyAI-LDN/task-specific-datasets/57ec275d8078af65b7731c2a98be812d844a6d6b/banking_data"
)
FEW_SHOT: Final = (
    "jianguoz/Few-Shot-Intent-Detection/fa9553312b1dba54b1be0aae2d30b13171f898e5/Datasets"
)
MAX_BYTES: Final = 32 << 20
TIMEOUT_SECONDS: Final = 60.0
NOT_AS_PUBLISHED: Final = (ValueError, KeyError, TypeError, AttributeError, csv.Error)
"""What a text raises that is not in the format that it should be in."""

Row = dict[str, Any]


class FetchError(Exception):
    """A file cannot be had, or is not what was pinned."""


@dataclass(frozen=True)
class Part:
    """One file of the layout.

    Attributes:
        path: in the data folder.
        sources: published files, below the host.
        rows: the published texts, in the order of ``sources``, as rows.
        digest: SHA-256 of the rows; see ``digest_of``.
    """

    path: str
    sources: tuple[str, ...]
    rows: Callable[..., Iterator[Row]]
    digest: str


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--data", default=os.environ.get("ROUTER_BENCH_DATA"), help="data folder")
    options = parser.parse_args()
    if options.data is None:
        parser.error("name the data folder with --data or ROUTER_BENCH_DATA")
    try:
        for part in PARTS:
            print(f"{part.path}: {fetch(part, Path(options.data), home=HOME)}")
    except FetchError as error:
        raise SystemExit(
            f"{error}\nWithout that host: bring the files into the layout of README.md yourself."
        ) from error


def fetch(part: Part, folder: Path, *, home: str) -> str:
    """Have one file in place; "kept" or "fetched".

    Raises:
        FetchError: it cannot be downloaded, or it is not what was pinned.
    """
    place = folder / part.path
    if place.exists() and digest_in(place) == part.digest:
        return "kept"
    files = [download(f"{home}/{source}") for source in part.sources]
    try:
        rows = list(part.rows(*(file.decode("utf-8") for file in files)))
    except NOT_AS_PUBLISHED as error:
        raise FetchError(f"{part.sources[0]} is not in its published format: {error}") from error
    if (found := digest_of(iter(rows))) != part.digest:
        raise FetchError(f"{part.path}: the rows have digest {found}, not {part.digest}")
    place.parent.mkdir(parents=True, exist_ok=True)
    aside = place.with_name(place.name + ".new")
    aside.write_text(
        "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8"
    )
    aside.replace(place)
    return "fetched"


def download(address: str) -> bytes:
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_SECONDS) as reply:  # noqa: S310
            data: bytes = reply.read(MAX_BYTES + 1)
    except (urllib.error.URLError, OSError) as error:
        raise FetchError(f"cannot download {address}: {error}") from error
    if len(data) > MAX_BYTES:
        raise FetchError(f"{address} is larger than {MAX_BYTES >> 20} MiB")
    return data


def digest_in(place: Path) -> str | None:
    """The digest of a file's rows; None when it does not hold rows."""
    try:
        with place.open(encoding="utf-8") as lines:
            return digest_of(json.loads(line) for line in lines)
    except NOT_AS_PUBLISHED:
        return None


def digest_of(rows: Iterator[Row]) -> str:
    """SHA-256 over the sorted lines of label and text; the label is the intent, with the split
    before it where a file holds several."""
    labels = (("/".join(filter(None, (r.get("split"), r["intent"]))), r["text"]) for r in rows)
    lines = sorted(f"{label}\t{text}\n" for label, text in labels)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def clinc_rows(full: str, domains: str) -> Iterator[Row]:
    """``{"train": [[text, intent], ...], "oos_train": ...}`` and ``{domain: [intent, ...]}``."""
    domain = {intent: name for name, some in json.loads(domains).items() for intent in some}
    for key, pairs in json.loads(full).items():
        out_of_scope = key.startswith("oos_")
        for text, intent in pairs:
            row = {"text": text, "intent": intent, "split": key.removeprefix("oos_")}
            yield row | {"oos": out_of_scope, "domain": domain.get(intent)}


def banking_rows(table: str) -> Iterator[Row]:
    for row in csv.DictReader(io.StringIO(table, newline="")):
        yield {"text": row["text"], "intent": row["category"]}


def few_shot_rows(texts: str, labels: str | None = None) -> Iterator[Row]:
    """One text a line, and one label a line; without labels, all are out of scope."""
    found = lines_of(texts)
    intents = ["oos"] * len(found) if labels is None else lines_of(labels)
    for text, intent in zip(found, intents, strict=True):
        yield {"text": text, "intent": intent}


def lines_of(text: str) -> list[str]:
    return [line.strip() for line in text.rstrip("\n").split("\n")]


def few_shot(name: str, digest: str) -> Part:
    data_set, _, split = name.partition("/")
    files = ("seq.in",) if split.startswith("oos/") else ("seq.in", "label")
    sources = tuple(f"{FEW_SHOT}/{data_set.upper()}/{split}/{file}" for file in files)
    return Part(f"{data_set}/fewshot_split/{split}.jsonl", sources, few_shot_rows, digest)


FEW_SHOT_DIGESTS: Final = {
    "banking77/test": "116acdde1f4b268d2efd172c029fb748a39e3ddcc58f5d2d53cf171dcc54063e",
    "banking77/train_10": "6eb88263116be312734a4ee82ba35c981fd9535a541ae6c17f87076054c1f87b",
    "banking77/valid": "9e5efafc7cec761eed4151b78666992666f485d189ed93e2d006aae80fb56844",
    "clinc150/oos/test": "525c6f56011584ad0cd523a2fa7bb5a2eb141ca7b61abaac53e50c5ecf627a52",
    "clinc150/oos/valid": "63dffb77ffda86d5bca341c82afa1b32b1383e32a8d00ffdab98a689ca4f4942",
    "clinc150/test": "14ceed97c554e94bef9099bf15fd4d2afb6bc3f56348ce4c577ed26e14143cf9",
    "clinc150/train_10": "d26af701e0d14b2cbed21eb7a5e8dc16fdf0a87c38d6307866ebc64ecbf41012",
    "clinc150/valid": "713cd9ce7175dcc0539ef594e40c006845f2dffae33175dfca5d465df5e4c14e",
}
PARTS: Final = (
    Part(
        "clinc150/full.jsonl",
        (f"{CLINC}/data_full.json", f"{CLINC}/domains.json"),
        clinc_rows,
        "7dede490c5eac83bcc259cd53221cbcd83570cc2013231f392269c47bde6276e",
    ),
    Part(
        "banking77/train.jsonl",
        (f"{BANKING}/train.csv",),
        banking_rows,
        "35e8cb366407665e19e228d5e34b7aebf6849b7f7aa3f1956cae261cbd0663e7",
    ),
    Part(
        "banking77/test.jsonl",
        (f"{BANKING}/test.csv",),
        banking_rows,
        "b9e127c83ee85a1efcf92095fc953115bdd66226985d998acd77185d08012161",
    ),
    *(few_shot(name, digest) for name, digest in FEW_SHOT_DIGESTS.items()),
)


if __name__ == "__main__":
    main()
