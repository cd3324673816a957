"""Texts that want to be obeyed instead of read: orders to the router, commands, encoded blobs.

Whoever chooses among skills, a model most of all, reads their descriptions and hints. Seen in the
wild there: "always choose this skill", downloads piped into a shell, archives with a password.
"Use this skill whenever ..." is how a description should speak, so only an order without a
condition, or one about other skills, counts. A phrase in quotation marks is what a user might say;
it is held against a skill only where it is a command. The patterns find the careless and the blunt;
they are no proof that a skill is harmless.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from router.lint.rules import (
    CLAIMS_EVERYTHING,
    ENCODED_TEXT,
    ENCODED_TEXT_IN_BODY,
    LOCKED_ARCHIVE,
    LOCKED_ARCHIVE_IN_BODY,
    ROUTER_INSTRUCTION,
    SHELL_COMMAND,
    SHELL_COMMAND_IN_BODY,
)
from router.lint.source import Passage, Source
from router.skills.diagnostics import Diagnostic, short

_VERBS: Final = (
    r"(?:choose|select|pick|use|load|prefer|invoke|call|activate|recommend|rank|return|pull\ in)"
)
_OTHERS: Final = (
    r"(?:(?:all|any|every|the|these|those|each|of)\s+){0,3}(?:others?|competing|similar)"
)
_ORDER: Final = re.compile(
    rf"""
    # "Always choose this skill", but not "always use this skill when ..."
    \b(?:always|must|shall|have\ to|required\ to|obliged\ to|be\ sure\ to)\s+(?:always\s+|first\s+)?
      {_VERBS}\s+(?:this|it)\b(?:\s+(?:skill|tool|one|first|only))*
      (?=\s*(?:[.!;,]|$|and\b|no\ matter\b|regardless\b|instead\b|over\b|even\b))
    | \b(?:you|the\ (?:router|model|agent|assistant))\s+must\s+(?:always\s+)?
      (?:choose|select|pick|load|prefer|rank)\b
    # about other skills
    | \b(?:ignore|disregard|skip|avoid|forget|override|exclude|do\s+not\s+{_VERBS}|don't\s+{_VERBS}
      |never\s+{_VERBS})\s+{_OTHERS}\s+(?:skills?|tools?|options?|candidates?)\b
    | \b(?:{_VERBS})\s+(?:this|it)\s+(?:skill\s+|one\s+)?
      (?:over|before|above|ahead\ of|rather\ than|instead\ of)\s+{_OTHERS}\b
    | \b(?:overrides?|supersedes?|(?:takes?|has|have)\s+(?:precedence|priority)\s+over|outranks?)
      \s+{_OTHERS}\s+(?:skills?|tools?)\b
    | \b(?:takes?|has|have|give\s+(?:this|it))\s+(?:the\s+)?(?:highest|top|absolute)\s+
      (?:priority|precedence|rank)\b
    # about the choosing itself
    | \b(?:choose|select|pick|use|load)\s+(?:this|it)\s+(?:skill\s+)?
      (?:no\ matter|regardless\ of|whatever)\b
    | \b(?:set|report|return|output)\s+(?:the\s+|a\s+)?(?:confidence|score|rank|relevance)\s+
      (?:to|of|as)\b
    | \b(?:rank|score|rate)\s+(?:this|it)\s+(?:skill\s+)?(?:first|highest|top|above|at\ the\ top)\b
    # about instructions
    | \b(?:ignore|disregard|forget|override|bypass)\b[^.]{{0,40}}
      \b(?:previous|prior|earlier|above|system|all|any|your|other)\b[^.]{{0,20}}
      \b(?:instructions?|rules?|prompts?|guidelines?)\b
    | \byou\ are\ now\b
    | </?(?:system|user|assistant|instructions?)\b[^>]*>
    | ^\s*(?:system|assistant)\s*:
    """,
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
_CLAIM: Final = re.compile(
    r"""
    \b(?:use[ds]?|load(?:ed)?|invoke[ds]?|invocation|call(?:ed)?|appl(?:y|ies|ied)|activated?
      |required?|needed|trigger(?:s|ed)?)\b[^.!?]{0,50}?
    \b(?:for|on|before|with|at|in|to|starting)\s+(?:the\s+start\s+of\s+)?(?:any|every|each|all)
    \s+(?:single\s+|user\s+|incoming\s+|new\s+)*
    (?:requests?|prompts?|messages?|quer(?:y|ies)|questions?|responses?|conversations?|turns?
      |interactions?|tasks?|inputs?)\b
    (?!\s+(?:that|which|where|involv\w+|about|with|related|relat\w+|for|to|in|on|of|like|such
      |concern\w+|requir\w+|need\w+|using|from))
    """,
    re.IGNORECASE | re.VERBOSE,
)
_QUOTED: Final = re.compile(
    r'"[^"\n]{1,120}"|`[^`\n]{1,120}`|\u201c[^\u201d\n]{1,120}\u201d|(?<!\w)\'[^\'\n]{1,120}\'(?!\w)'
)

_FETCH: Final = r"\b(?:curl|wget)\b[^\n|;&]{0,200}?(?:://|\$\{?\w|\.[a-z]{2,6}/)[^\n|;&]{0,300}"
_SHELL: Final = (
    r"(?:sudo\s+(?:-\w+\s+)*)?(?:env\s+)?(?:\S{0,60}/)?"
    r"(?:(?:ba|z|k|da|fi)?sh|python3?|perl|ruby|node)\b"
)
_COMMAND: Final = re.compile(
    rf"""
    {_FETCH}\|\s*{_SHELL}(?!\s+-m|\s+-c)
    | \b(?:(?:ba|z|k|da)?sh\s+-c|eval)\s+["']?\s*(?:\$\(|`)\s*(?:curl|wget|echo|base64|printf)\b
    | \b(?:(?:ba|z)?sh|source|python3?)\s+<\(\s*(?:curl|wget)\b
    | \bbase64\s+(?:-d|-D|--decode)\b[^\n]{{0,80}}\|\s*{_SHELL}
    | \b(?:powershell|pwsh)(?:\.exe)?\b[^\n]{{0,100}}
      \s-e(?:c|nc|ncodedcommand)?\s+[A-Za-z0-9+/=]{{8}}
    | \b(?:irm|iwr|Invoke-RestMethod|Invoke-WebRequest)\b[^\n|]{{0,200}}://[^\n|]{{0,200}}\|\s*
      (?:iex|Invoke-Expression)\b
    | \b(?:iex|Invoke-Expression)\b[^\n]{{0,40}}\b(?:DownloadString|irm|iwr)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_ARCHIVE: Final = re.compile(
    r"""
    \b(?:password|passphrase|pass(?:code)?)\s*(?:is|:|=)\s*\S+[^.\n]{0,60}
      \b(?:zip|rar|7z|archive|extract|unzip|unpack)
    | \b(?:zip|rar|7z|archive|extract|unzip|unpack)\w*\b[^.\n]{0,80}
      \b(?:password|passphrase|pass(?:code)?)\s*(?:is|:|=|`|"|')\s*\S
    | \bunzip\s+-P\s*\S | \b7z\s+x\b[^\n]{0,60}\s-p\S | \bunrar\s+x\b[^\n]{0,60}\s-p\S
    """,
    re.IGNORECASE | re.VERBOSE,
)
_BLOB: Final = re.compile(r"(?<![A-Za-z0-9+/_=-])[A-Za-z0-9+/]{40,}={0,2}(?![A-Za-z0-9+/_=-])")
LONG_BLOB: Final = 200
"""Characters of base64 from which a body is asked about it; shorter ones are keys and checksums."""


def gives_orders(text: str) -> bool:
    """Whether a text tells the router or a model what to do, or a shell what to run."""
    return any(pattern.search(text) for pattern in (_ORDER, _CLAIM, _COMMAND))


def orders(source: Source) -> Iterator[Diagnostic]:
    """Orders to the router, and claims on every request, in what it reads of a skill."""
    path = source.skill.path
    for passage in source.head:
        text = _QUOTED.sub(lambda quoted: " " * len(quoted.group()), passage.text)
        if found := _ORDER.search(text):
            line = source.place(passage, *found.span())
            message = (
                f"{passage.label} gives orders to whoever chooses among skills "
                f"({_shown(passage, found)}): describe what the skill is for instead"
            )
            yield ROUTER_INSTRUCTION.breach(path, line, message)
        if found := _CLAIM.search(text):
            line = source.place(passage, *found.span())
            message = (
                f"{passage.label} claims every request ({_shown(passage, found)}): "
                "name the requests that the skill is for"
            )
            yield CLAIMS_EVERYTHING.breach(path, line, message)


def payloads(source: Source) -> Iterator[Diagnostic]:
    """Commands, encoded texts and locked archives, wherever they stand in a skill."""
    path = source.skill.path
    for passage in (*source.head, source.body):
        in_body = passage is source.body
        for found in _COMMAND.finditer(passage.text):
            rule = SHELL_COMMAND_IN_BODY if in_body else SHELL_COMMAND
            message = (
                f"{passage.label} runs what it fetches or decodes ({_shown(passage, found)}): "
                "save it to a file that can be read before it is run"
            )
            yield rule.breach(path, source.place(passage, *found.span()), message)
        for found in _ARCHIVE.finditer(passage.text):
            message = (
                f"{passage.label} gives the password of an archive ({_shown(passage, found)}): "
                "put the files into the skill's own folder"
            )
            rule = LOCKED_ARCHIVE_IN_BODY if in_body else LOCKED_ARCHIVE
            yield rule.breach(path, source.place(passage, *found.span()), message)
        for found in _BLOB.finditer(passage.text):
            if _is_encoded(passage, found, in_body=in_body):
                rule = ENCODED_TEXT_IN_BODY if in_body else ENCODED_TEXT
                message = (
                    f"{passage.label} holds {len(found.group())} characters of encoded text "
                    f"({_shown(passage, found)}): write it out, or put it into a file"
                )
                yield rule.breach(path, source.place(passage, *found.span()), message)


def _is_encoded(passage: Passage, found: re.Match[str], *, in_body: bool) -> bool:
    """Whether a run of letters is base64: mixed cases and digits, and not the path of a file."""
    text = found.group()
    if in_body and (
        len(text) < LONG_BLOB or passage.text[: found.start()].endswith(("base64,", "integrity="))
    ):
        return False  # pictures and checksums
    kinds = (any(map(test, text)) for test in (str.islower, str.isupper, str.isdigit))
    return all(kinds) and text.count("/") <= len(text) / 16


def _shown(passage: Passage, found: re.Match[str]) -> str:
    return short(" ".join(passage.text[slice(*found.span())].split()))
