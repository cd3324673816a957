"""Commands that run what they download, encoded text, and archives with their password.

Seen in skills in the wild. Each is an error where routers and models read it before the skill is
chosen, and a warning in the instructions, where some have a reason.

A command that ends in a pipe is looked for from the pipe, so that the work grows with the text and
not with the number of its parts times their length.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from router.lint.rules import Rule
from router.lint.skill_file import Passage, SkillFile
from router.skills.diagnostics import Diagnostic, short

SHELL: Final = (
    r"(?:sudo\s+(?:-\w+\s+)*)?(?:env\s+)?(?:[^\s|]{0,60}/)?"
    r"(?:(?:ba|z|k|da|fi)?sh|python3?|perl|ruby|node)\b(?!\s+-[mc]\b)"
)
_PIPE: Final = re.compile(
    rf"\|\s{{0,20}}(?:(?P<shell>{SHELL})|(?P<powershell>(?:iex|Invoke-Expression)\b))",
    re.IGNORECASE,
)
_SOURCES: Final = {
    "shell": (
        (
            re.compile(r"\b(?:curl|wget)\b", re.IGNORECASE),
            re.compile(r"://|\s\$\{?\w|\w\.[a-z]{2,6}(?:/|\s{0,20}$)", re.IGNORECASE),
        ),
        (re.compile(r"\bbase64\s", re.IGNORECASE), re.compile(r"(?:-d|-D|--decode)\b")),
    ),
    "powershell": (
        (
            re.compile(r"\b(?:irm|iwr|Invoke-RestMethod|Invoke-WebRequest)\b", re.IGNORECASE),
            re.compile("://"),
        ),
    ),
}
"""What a pipe into an interpreter may begin with: a command, and what must follow it."""
_COMMAND: Final = re.compile(
    r"""
    \b(?:(?:ba|z|k|da)?sh\s+-c|eval)\s+(?:["']\s*)?(?:\$\(|`)\s*(?:curl|wget|echo|base64|printf)\b
    | \b(?:(?:ba|z)?sh|source|python3?)\s+<\(\s*(?:curl|wget)\b
    | \b(?:powershell|pwsh)(?:\.exe)?\b[^\n]{0,100}
      \s-e(?:c|nc|ncodedcommand)?\s+[A-Za-z0-9+/=]{8}
    | \b(?:iex|Invoke-Expression)\b[^\n]{0,40}\b(?:DownloadString|irm|iwr)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
MAX_COMMAND: Final = 600
"""How many characters before a pipe are searched for its command."""
_ARCHIVE: Final = re.compile(
    r"""
    \b(?:password|passphrase|pass(?:code)?)\s*(?:is|:|=)\s*\S{1,60}+[^.\n]{0,60}
      \b(?:zip|rar|7z|archive|extract|unzip|unpack)
    | \b(?:zip|rar|7z|archive|extract|unzip|unpack)\w*\b[^.\n]{0,80}
      \b(?:password|passphrase|pass(?:code)?)\s*(?:is|:|=|`|"|')\s*\S
    | \bunzip\s+-P\s*\S | \b7z\s+x\b[^\n]{0,60}\s-p\S | \bunrar\s+x\b[^\n]{0,60}\s-p\S
    """,
    re.IGNORECASE | re.VERBOSE,
)
_BLOB: Final = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/]{40,}={0,2}(?![A-Za-z0-9+/_=-])")
LONG_BLOB: Final = 200
"""A run of base64 in a body is reported from this length on; shorter ones are keys and
checksums."""


def payloads(file: SkillFile) -> Iterator[Diagnostic]:
    """Commands, encoded texts and locked archives, wherever they stand in a skill."""
    for passage in (*file.head, file.body):
        in_body = passage is file.body
        for span in _commands(passage.text):
            rule = Rule.SHELL_COMMAND_IN_BODY if in_body else Rule.SHELL_COMMAND
            message = (
                f"{passage.label} runs what it downloads or decodes ({shown(passage, span)}): "
                "save it to a file that can be read before it is run"
            )
            yield file.breach(rule, passage, span, message)
        for found in _ARCHIVE.finditer(passage.text):
            message = (
                f"{passage.label} gives the password of an archive "
                f"({shown(passage, found.span())}): put the files into the skill's own folder"
            )
            rule = Rule.LOCKED_ARCHIVE_IN_BODY if in_body else Rule.LOCKED_ARCHIVE
            yield file.breach(rule, passage, found.span(), message)
        for found in _BLOB.finditer(passage.text):
            if _is_encoded(passage, found, in_body=in_body):
                rule = Rule.ENCODED_TEXT_IN_BODY if in_body else Rule.ENCODED_TEXT
                message = (
                    f"{passage.label} holds {len(found.group())} characters of encoded text "
                    f"({shown(passage, found.span())}): write it out, or put it into a file"
                )
                yield file.breach(rule, passage, found.span(), message)


def runs_commands(text: str) -> bool:
    """Whether a text holds a command that runs what it downloads or decodes."""
    return next(_commands(text), None) is not None


def shown(passage: Passage, span: tuple[int, int]) -> str:
    """A part of a text in quotation marks, on one line, for a message."""
    return short(" ".join(passage.text[slice(*span)].split()))


def _commands(text: str) -> Iterator[tuple[int, int]]:
    """The spans of commands that run what they download or decode."""
    begin = 0
    for pipe in _PIPE.finditer(text):
        at = pipe.start()
        # From the beginning of the command: its line, or behind an earlier pipe or separator.
        first = max(begin, at - MAX_COMMAND, *(text.rfind(sign, begin, at) + 1 for sign in "\n|;&"))
        for command, argument in _SOURCES[pipe.lastgroup or "shell"]:
            started = command.search(text, first, at)
            if started is not None and argument.search(text, started.end(), at) is not None:
                yield started.start(), pipe.end()
                break
        begin = at
    yield from (found.span() for found in _COMMAND.finditer(text))


def _is_encoded(passage: Passage, found: re.Match[str], *, in_body: bool) -> bool:
    """Whether a run of letters is base64: mixed cases and digits, and not the path of a file."""
    text = found.group()
    before = passage.text[max(0, found.start() - 10) : found.start()]
    if in_body and (len(text) < LONG_BLOB or before.endswith(("base64,", "integrity="))):
        return False  # pictures and checksums
    kinds = (any(map(test, text)) for test in (str.islower, str.isupper, str.isdigit))
    return all(kinds) and text.count("/") <= len(text) / 16
