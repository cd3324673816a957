"""Does recall find the right memory file of a project?

    python benchmarks/memory_files.py FOLDER QUESTIONS

FOLDER holds memory files as Serena keeps them (``.serena/memories`` of a repository). Each line of
QUESTIONS is the name of the file that answers, a bar, and what a developer would ask. Counted are
the questions whose first item is that file, and those whose context of 2,000 tokens has a part of
it.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import tempfile
from pathlib import Path
from typing import Final

from benchmarks.inputs import memory_settings
from router.memory.memory import Memory

CONTEXT_TOKENS: Final = 2_000


async def measure(folder: Path, questions: list[tuple[str, str]], directory: Path) -> None:
    """Ask every question of a project with these memory files, and print what was missed."""
    shutil.copytree(folder, directory / ".serena" / "memories")
    first = in_context = 0
    async with Memory(memory_settings(directory)) as memory:
        for right, question in questions:
            found = [one.item.id for one in (await memory.recall(question)).items]
            context = await memory.assemble(question, token_budget=CONTEXT_TOKENS)
            held = {(chunk.item_id or "").split("#")[0] for chunk in context.chunks}
            first += found[:1] == [right]
            in_context += right in held
            if found[:1] != [right] or right not in held:
                print(f"{question}  wanted {right}  got {found}  in context {sorted(held)}")
    print(f"right file first {first} of {len(questions)}, in context {in_context}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("questions", type=Path)
    options = parser.parse_args()
    lines = [line.split("|") for line in options.questions.read_text("utf-8").splitlines()]
    questions = [(name.strip(), text.strip()) for name, text in lines]
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(measure(options.folder, questions, Path(directory)))


if __name__ == "__main__":
    main()
