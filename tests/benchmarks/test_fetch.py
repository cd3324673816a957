"""Downloading the public sets, from a loopback server that speaks their published formats."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from benchmarks import fetch
from benchmarks.fetch import PARTS, FetchError, Part

CLINC = {
    "train": [["how do i say hi in french", "translate"]],
    "oos_test": [["what is a dow", "oos"]],
}
PUBLISHED = {
    "data_full.json": json.dumps(CLINC),
    "domains.json": json.dumps({"travel": ["translate"]}),
    "train.csv": 'text,category\n"Where is it,\n my card?",card_arrival\nTop up?,top_up\n',
    "seq.in": "where is it\ntop up\n",
    "label": "card_arrival\ntop_up\n",
}


class Home:
    """The published files by the end of their address, and what was asked for."""

    def __init__(self) -> None:
        self.files = dict(PUBLISHED)
        self.asked: list[str] = []
        home = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                name = self.path.rpartition("/")[2]
                home.asked.append(name)
                self.send_response(200 if name in home.files else 404)
                self.end_headers()
                self.wfile.write(home.files.get(name, "").encode())

            def log_message(self, *_: object) -> None: ...

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"


@pytest.fixture
def home() -> Iterator[Home]:
    home = Home()
    thread = threading.Thread(target=home.server.serve_forever)
    thread.start()
    yield home
    home.server.shutdown()
    thread.join()
    home.server.server_close()


def part(path: str, rows: list[dict[str, object]]) -> Part:
    """The real part of that path, but of these rows."""
    real = next(part for part in PARTS if part.path == path)
    return replace(real, digest=fetch.digest_of(iter(rows)))


def held(folder: Path, path: str) -> list[dict[str, object]]:
    with (folder / path).open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


CLINC_ROWS: list[dict[str, object]] = [
    {
        "text": "how do i say hi in french",
        "intent": "translate",
        "split": "train",
        "oos": False,
        "domain": "travel",
    },
    {"text": "what is a dow", "intent": "oos", "split": "test", "oos": True, "domain": None},
]
BANKING_ROWS: list[dict[str, object]] = [
    {"text": "Where is it,\n my card?", "intent": "card_arrival"},
    {"text": "Top up?", "intent": "top_up"},
]
FEW_ROWS: list[dict[str, object]] = [
    {"text": "where is it", "intent": "card_arrival"},
    {"text": "top up", "intent": "top_up"},
]
OOS_ROWS: list[dict[str, object]] = [
    {"text": "where is it", "intent": "oos"},
    {"text": "top up", "intent": "oos"},
]


@pytest.mark.parametrize(
    ("path", "rows"),
    [
        ("clinc150/full.jsonl", CLINC_ROWS),
        ("banking77/train.jsonl", BANKING_ROWS),
        ("banking77/fewshot_split/train_10.jsonl", FEW_ROWS),
        ("clinc150/fewshot_split/oos/test.jsonl", OOS_ROWS),
    ],
)
def test_a_published_format_becomes_rows(
    home: Home, tmp_path: Path, path: str, rows: list[dict[str, object]]
) -> None:
    assert fetch.fetch(part(path, rows), tmp_path, home=home.address) == "fetched"
    assert held(tmp_path, path) == rows


def test_a_file_that_agrees_is_not_asked_for_again(home: Home, tmp_path: Path) -> None:
    wanted = part("banking77/train.jsonl", BANKING_ROWS)
    fetch.fetch(wanted, tmp_path, home=home.address)
    assert fetch.fetch(wanted, tmp_path, home=home.address) == "kept"
    assert home.asked == ["train.csv"]


@pytest.mark.parametrize(
    "damage", ["", '{"text": "half a', '{"text": "x", "intent": "y"}\n', "[]\n"]
)
def test_a_damaged_file_is_fetched_again(home: Home, tmp_path: Path, damage: str) -> None:
    wanted = part("banking77/train.jsonl", BANKING_ROWS)
    path = tmp_path / wanted.path
    path.parent.mkdir(parents=True)
    path.write_text(damage, encoding="utf-8")
    assert fetch.fetch(wanted, tmp_path, home=home.address) == "fetched"
    assert held(tmp_path, wanted.path) == BANKING_ROWS


def test_rows_other_than_the_pinned_ones_are_refused(home: Home, tmp_path: Path) -> None:
    wanted = part("banking77/train.jsonl", FEW_ROWS)
    with pytest.raises(FetchError, match=r"banking77/train\.jsonl: the rows have digest"):
        fetch.fetch(wanted, tmp_path, home=home.address)
    assert not (tmp_path / wanted.path).exists()


@pytest.mark.parametrize(
    ("path", "name", "content"),
    [
        ("clinc150/full.jsonl", "data_full.json", "<html>"),
        ("clinc150/full.jsonl", "data_full.json", '{"train": [["only a text"]]}'),
        ("clinc150/full.jsonl", "data_full.json", "[]"),
        ("banking77/train.jsonl", "train.csv", "a,b\n1,2\n"),
        ("banking77/fewshot_split/train_10.jsonl", "label", "card_arrival\n"),
    ],
)
def test_another_format_is_refused(
    home: Home, tmp_path: Path, path: str, name: str, content: str
) -> None:
    home.files[name] = content
    with pytest.raises(FetchError, match="not in its published format"):
        fetch.fetch(part(path, []), tmp_path, home=home.address)


def test_a_missing_file_and_an_unreachable_host_say_what_was_asked_for(
    home: Home, tmp_path: Path
) -> None:
    del home.files["train.csv"]
    wanted = part("banking77/train.jsonl", BANKING_ROWS)
    with pytest.raises(FetchError, match=r"cannot download .*train\.csv.*404"):
        fetch.fetch(wanted, tmp_path, home=home.address)
    with pytest.raises(FetchError, match=r"cannot download .*train\.csv"):
        fetch.fetch(wanted, tmp_path, home="http://127.0.0.1:1")


def test_a_file_beyond_all_measure_is_refused(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "MAX_BYTES", 10)
    with pytest.raises(FetchError, match="larger than"):
        fetch.fetch(part("banking77/train.jsonl", []), tmp_path, home=home.address)


def test_without_the_host_the_command_says_what_to_do_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetch, "HOME", "http://127.0.0.1:1")
    monkeypatch.setattr("sys.argv", ["fetch.py", "--data", str(tmp_path)])
    with pytest.raises(SystemExit, match=r"(?s)cannot download.*README"):
        fetch.main()
