"""Trains the table of the bundled encoder further, with requests that were written for it.

The teacher of ``encoder_training.py`` knows which texts are alike. It knows less about which tool
helps with "my page takes ages to open", or that "Peanuts make my throat swell up" answers "What
can't I eat?". So the table learns from pairs: a text, and what people would ask in other words who
want it.

- ``data/encoder_skills.jsonl``: 5,280 tools, skills and intents of 132 fields of work, 40 of each,
  with eight requests: two in the words of the description, four in everyday words that share none
  with it, a terse one and a long one.
- ``data/encoder_memories.jsonl``: 3,350 memories of 67 people and projects, 50 of each, with four
  questions: one in the words of the memory, and three that share none with it.

A language model wrote them, in writers that saw neither a data set nor a catalog of the benchmarks
nor each other's part. By chance 27 of the 5,500 test requests of CLINC150 are among them ("what's
my name"), 5 of 3,080 of BANKING77, 4 of 1,224 of the trades, and 8 of the 932 questions of
``memory_finding``.

    python benchmarks/encoder_tuning.py WORK

reads ``trained.npy`` and ``texts.tsv`` of WORK, which ``encoder_training.py`` leaves there, and
writes ``table.npy``, which its step ``export`` makes the encoder's files of. Where ``trained.npy``
is missing, the encoder that is bundled now is trained further. It takes some ten minutes of two
cores. ``bundled/2`` was made of the files of ``bundled/1``, with texts of Debian's packages only.

The settings were chosen by the requests of a quarter of the groups, which were left out: in the
encoder before, the nearest text is right for 43% of the requests for one of 40 tools and for 46% of
the questions for one of 50 memories; with three quarters of the groups, for 49% and 46 to 49%.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from benchmarks.encoder_training import TAUGHT_LETTERS, Matrix, read_texts
from benchmarks.inputs import say
from router.retrieval.bundled_encoder import VECTORS, bundled_tokenizer

DATA: Final = Path(__file__).with_name("data")
FILES: Final = (DATA / "encoder_skills.jsonl", DATA / "encoder_memories.jsonl")
SEEDS: Final = (0, 1, 2)
"""A table is trained with each, and their mean is taken: what only one of them learnt is noise."""
EPOCHS: Final = 16
GROUPS: Final = 4
"""Groups in a batch: a request must be nearest to its own text among those of all of them."""
RATE: Final = 2e-3
"""It falls to a fiftieth."""
TEMPERATURE: Final = 0.1
DROPPED: Final = 0.3
"""The share of a text's tokens that are left out at random, so that no single one is relied on."""
SHORT: Final = 4
"""Texts of fewer tokens keep all."""
OTHER_TEXTS: Final = 1024
"""Texts in a batch whose cosines with each other should stay as they were."""
TEXTS: Final = 150_000
COSINES_WEIGHT: Final = 90.0
NEAREST_WEIGHT: Final = 3.0
NEAREST_TEMPERATURE: Final = 0.05

Tokens = NDArray[np.int64]


@dataclass(frozen=True)
class Group:
    """The tokens of the texts of a group, of what is asked for them, and for each of these the
    place of its text."""

    texts: Sequence[Tokens]
    asked: Sequence[Tokens]
    right: Sequence[int]


def tokens_of(texts: Sequence[str]) -> list[Tokens]:
    """The numbers of the known tokens of each text."""
    encodings = bundled_tokenizer().encode_batch(list(texts))
    return [np.array([number for number in one.ids if number], np.int64) for one in encodings]


def text_of(row: dict[str, Any]) -> str:
    """The text of a row, a skill's behind its name in words."""
    name = re.sub(r"[-_.]|(?<=[a-z])(?=[A-Z])", " ", row.get("name", ""))
    return f"{name} {row['text']}".strip()


def read_groups(files: Sequence[Path]) -> list[Group]:
    """The groups of the written pairs; what has no known token is left out."""
    rows: defaultdict[str, list[dict[str, Any]]] = defaultdict(list)
    for file in files:
        for line in file.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            rows[row["group"]].append(row)
    groups = []
    for its in rows.values():
        pairs = [(place, text) for place, row in enumerate(its) for text in row["asked"]]
        asked = tokens_of([text for _, text in pairs])
        known = [place for place, tokens in enumerate(asked) if len(tokens)]
        groups.append(
            Group(
                tokens_of([text_of(row) for row in its]),
                [asked[place] for place in known],
                [pairs[place][0] for place in known],
            )
        )
    return groups


def without_some(tokens: Tokens, choose: np.random.Generator) -> Tokens:
    """A text without ``DROPPED`` of its tokens."""
    kept = tokens[choose.random(len(tokens)) >= DROPPED]
    return kept if len(tokens) >= SHORT and len(kept) else tokens


def vectors_of(texts: Sequence[Tokens], table: Any) -> Any:
    """Unit vectors of texts."""
    import torch
    from torch.nn import functional

    starts = torch.from_numpy(np.cumsum([0, *map(len, texts[:-1])]))
    numbers = torch.from_numpy(np.concatenate(texts))
    sums = functional.embedding_bag(numbers, table, starts, mode="sum")
    return functional.normalize(sums, dim=1)


def pairs_loss(texts: Any, asked: Any, right: Any) -> Any:
    """How far what is asked is from being nearest to its own text, and to what else is asked for
    it: two cross entropies."""
    import torch
    from torch.nn import functional

    to_text = functional.cross_entropy(asked @ texts.T / TEMPERATURE, right)
    itself = torch.eye(len(right), dtype=torch.bool)
    same = (right[:, None] == right[None]) & ~itself
    likely = (asked @ asked.T / TEMPERATURE).masked_fill(itself, -1e9).log_softmax(1)
    to_each_other = -((likely * same).sum(1) / same.sum(1).clamp(min=1)).mean()
    return to_text + to_each_other


def change_loss(before: Any, after: Any) -> Any:
    """How much the cosines of texts with each other have changed: their squared difference, and the
    divergence of their softmax, which makes the nearest texts count most."""
    import torch

    others = ~torch.eye(len(before), dtype=torch.bool)
    had, have = before @ before.T, after @ after.T
    squared = ((have - had)[others] ** 2).mean()

    def nearest(cosines: Any) -> Any:
        return (cosines / NEAREST_TEMPERATURE).masked_fill(~others, -1e9).log_softmax(1)

    was, became = nearest(had), nearest(have)
    diverged = (was.exp() * (was - became).masked_fill(~others, 0)).sum(1).mean()
    return COSINES_WEIGHT * squared + NEAREST_WEIGHT * diverged


def tuned(
    table: Matrix, groups: Sequence[Group], others: Sequence[Tokens], seed: int, epochs: int
) -> Matrix:
    """A table, trained with the groups while the cosines of the other texts stay near."""
    import torch

    choose, drop = random.Random(seed), np.random.default_rng(seed)  # noqa: S311
    before = torch.from_numpy(table.astype(np.float32))
    weights = torch.nn.Parameter(before.clone())
    optimizer = torch.optim.Adam([weights], lr=RATE)
    groups = list(groups)
    batches = max(1, len(groups) // GROUPS)
    steps = epochs * batches
    slower = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.02, 1 - step / steps))
    for epoch in range(1, epochs + 1):
        choose.shuffle(groups)
        sums = np.zeros(2)
        for start in track(range(batches), f"seed {seed}, epoch {epoch}"):
            batch = groups[start * GROUPS : (start + 1) * GROUPS]
            first = np.cumsum([0, *(len(group.texts) for group in batch)])
            texts = [without_some(text, drop) for group in batch for text in group.texts]
            asked = [without_some(text, drop) for group in batch for text in group.asked]
            right = [
                n + place for n, group in zip(first, batch, strict=False) for place in group.right
            ]
            pairs = pairs_loss(
                vectors_of(texts, weights), vectors_of(asked, weights), torch.tensor(right)
            )
            some = choose.sample(others, min(OTHER_TEXTS, len(others)))
            with torch.no_grad():
                had = vectors_of(some, before)
            change = change_loss(had, vectors_of(some, weights))
            optimizer.zero_grad()
            (pairs + change).backward()
            optimizer.step()
            slower.step()
            sums += [pairs.item(), change.item()]
        say(f"losses {np.round(sums / batches, 3).tolist()}")
    trained: Matrix = weights.detach().numpy()
    return trained


def beginning(work: Path) -> Matrix:
    """The table that is trained further."""
    file = work / "trained.npy"
    if file.exists():
        return np.asarray(np.load(file), np.float32)
    say(f"{file} is missing: the bundled encoder is trained further")
    with np.load(VECTORS) as weights:
        return np.asarray(weights["vectors"] * weights["scales"][:, None], np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("work", type=Path, help="folder for what the steps leave")
    work = parser.parse_args().work
    began = time.monotonic()
    others = tokens_of([text[:TAUGHT_LETTERS] for _, text in read_texts(work)[:TEXTS]])
    others = [tokens for tokens in others if len(tokens) > 1]
    start, groups = beginning(work), read_groups(FILES)
    table = np.mean([tuned(start, groups, others, seed, EPOCHS) for seed in SEEDS], axis=0)
    np.save(work / "table.npy", table.astype(np.float16))
    say(f"{len(groups)} groups: {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
