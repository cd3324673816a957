"""Counting tokens when nobody says how the reading model counts them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path


def bundled_counter() -> Callable[[str], int]:
    """A counter that uses the tokenizer of the bundled encoder: a Llama vocabulary of 32,000, so
    that models with larger vocabularies mostly need fewer tokens than it says."""
    import wordllama
    from tokenizers import Tokenizer

    folder = Path(wordllama.__file__).parent / "tokenizers"
    tokenizer = Tokenizer.from_file(str(next(folder.glob("*.json"))))
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def count(text: str) -> int:
        return len(tokenizer.encode(text, add_special_tokens=False).ids)

    return count
