"""Labelled requests of four plain answers, and a folder in which a router finds them learnt."""

from __future__ import annotations

from pathlib import Path

from cascade import SHIPPED

from router.learning.evidence import EvidenceStore, Example, Source, evidence_file
from router.skills.registry import SkillRegistry

TEMPLATES = (
    "{} please",
    "could you {}",
    "i need you to {}",
    "{} now",
    "can you {} for me",
    "{} as soon as you can",
    "would you {}",
    "time to {}",
)


TOPICS = {
    "git": ["stash my edits", "push the branch", "rebase onto main", "undo the last commit"],
    "terminal": ["kill the process", "follow the log", "find who holds the port"],
    "testing": ["add a unit test", "raise the coverage", "fake the clock in the tests"],
    "": ["sing me a song", "tell me a joke", "order a pizza"],
}


def labelled() -> list[tuple[str, tuple[str, ...]]]:
    """Requests of four plain answers, in a mixed order."""
    rows = [
        (template.format(f"{topic} {number}"), (skill,) if skill else ())
        for number in range(4)
        for template in TEMPLATES
        for skill, topics in TOPICS.items()
        for topic in topics
    ]
    return sorted(rows, key=lambda row: hash_of(row[0]))


def hash_of(text: str) -> int:
    value = 0
    for character in text:
        value = (value * 131 + ord(character)) % 1_000_003
    return value


def remember(state: Path, rows: list[tuple[str, tuple[str, ...]]]) -> None:
    """What a router with its state in this folder finds when it is opened."""
    store = EvidenceStore(evidence_file(state), clock=lambda: 0.0)
    examples = [Example(text, skills, True, Source.FEEDBACK) for text, skills in rows]
    store.add_many(examples, catalog=SkillRegistry([SHIPPED]).catalog.skills)
    store.close()
