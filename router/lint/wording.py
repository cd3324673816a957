"""How a skill is worded: whether a router, and the model behind it, can tell when it is meant.

The cues are English. A description in another language is not judged by them, and neither is a
skill that is never offered for routing.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Final

from router.lint.rules import Rule
from router.lint.skill_file import SkillFile
from router.skills.diagnostics import Diagnostic, short
from router.skills.scaffold import PLACEHOLDERS
from router.text import STOPWORDS, is_english, stem, tokens

MAX_BODY_LINES: Final = 500
LEAST_WORDS: Final = 6
"""A description needs this many different words with a meaning of their own."""
LONGEST_LIST: Final = 15
"""A longer list of items of up to four words, between commas, is no sentence."""
MAX_KEYWORDS: Final = 40
REPEATED: Final = 10
REPEATED_SHARE: Final = 0.2
"""A word that comes this often, and makes up this share of all words, is repeated to be found."""

_SAYS_WHEN: Final = re.compile(
    r"""
    \b(?:when|whenever|in\ case)\b
    | \b(?:if|unless)\s+(?:(?:the|an?|your|our)\s+)?
        (?:users?|someone|anyone|you|it|there|something|customers?|people|asked|needed|requested)\b
    | \b(?:use|used|useful|apply|applies|invoke|call|run|load|activate|choose|consult|reach\ for)\b
        [^.!?]{0,60}?\b(?:if|for|to|before|after|between|during|while|on)\b
    | \b(?:ideal|best|suitable|suited|intended|meant|designed|preferred|great|good|appropriate)
        \s+(?:for|to|in)\b
    | \b(?:before|after|while|during)\s+(?:\w+\s+){0,2}?\w+ing\b
    | \b(?:triggers?|triggered|invoked|activates?|activated|fires?)\b
    | \b(?:users?|someone|anyone|people)\s+(?:\w+\s+)?(?:asks?|wants?|needs?|says?|mentions?)\b
    | ,\s+for\s+\w+  # "..., for RNA-seq analysis": a purpose at the end
    | \bfor\s+(?:any|all|every|users|people|anyone|teams|developers|tasks|requests|questions|work)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_SAYS_NOTHING: Final = frozenset(("use", "used", "uses", "using", "skill", "user", "users"))
_SENTENCE_END: Final = re.compile(r"(?<=[.!?;:])\s|[\n()]")


def wording(file: SkillFile) -> Iterator[Diagnostic]:
    skill = file.skill
    if (lines := skill.body.count("\n") + 1) > MAX_BODY_LINES:
        message = f"the body has {lines:,} lines: move details to files under references/"
        yield Rule.LONG_BODY.breach(skill.path, file.body.line, message)
    if skill.disable_model_invocation:
        return
    for passage in file.head:
        if passage.text.startswith(PLACEHOLDERS):
            message = f"{short(passage.text)} is a placeholder: replace it by the skill's own text"
            yield file.breach(Rule.PLACEHOLDER, passage, (0, len(passage.text)), message)
    line = file.head[1].line
    words = [word for word in tokens(skill.description) if word not in STOPWORDS]
    if len(set(words) - _SAYS_NOTHING) < LEAST_WORDS:
        message = (
            f"the description has under {LEAST_WORDS} words with a meaning of their own: say what "
            "the skill does and when to use it"
        )
        yield Rule.SHORT_DESCRIPTION.breach(skill.path, line, message)
    if is_english(tokens(skill.description)) and not _SAYS_WHEN.search(skill.description):
        message = "the description says what but not when: add a sentence such as 'Use when ...'"
        yield Rule.NO_WHEN.breach(skill.path, line, message)
    yield from _stuffing(file, words)


def _stuffing(file: SkillFile, words: list[str]) -> Iterator[Diagnostic]:
    path, line = file.skill.path, file.head[1].line
    if (items := _longest_list(file.skill.description)) > LONGEST_LIST:
        message = (
            f"the description lists {items} short items in a row: keep what tells the skill from "
            "others and move the rest to the body"
        )
        yield Rule.KEYWORD_STUFFING.breach(path, line, message)
    counts = Counter(map(stem, words)).most_common(1)
    if counts and counts[0][1] >= max(REPEATED, REPEATED_SHARE * len(words)):
        message = (
            f"the description says {counts[0][0]!r} {counts[0][1]} times: say it once or twice"
        )
        yield Rule.KEYWORD_STUFFING.breach(path, line, message)
    if (count := len(file.skill.routing_keywords)) > MAX_KEYWORDS:
        line = next(p.line for p in file.head if p.label == "metadata.routing-keywords")
        message = f"there are {count} routing keywords: keep the {MAX_KEYWORDS} that matter most"
        yield Rule.KEYWORD_STUFFING.breach(path, line, message)


def _longest_list(text: str) -> int:
    longest = 0
    for sentence in _SENTENCE_END.split(text):
        run = 0
        for item in sentence.split(","):
            run = run + 1 if len(item.split()) <= 4 else 0
            longest = max(longest, run)
    return longest
