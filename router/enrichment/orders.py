"""Requests that are orders: to a shell, to whoever chooses among skills, and about instructions.

What is written for a skill should be what a user would ask for. ``router.lint.injection`` knows the
orders that no text of a skill may give. A request may give fewer: a description says "this is the
right tool when ...", and what a user says does not. So a request is an order, too, if it begins
with a command that destroys a disk or a home folder, or that runs what it downloads; if it says
which skill is to be chosen for all requests, in doubt, first or always; or if it begins by telling
the model to forget or to reveal its instructions.

A request about such a command or order ("what does sudo rm -rf / do?") does not begin with it, and
is none. Neither is a harmless command ("run `npm test`"), which users of a shell do ask for. The
patterns know English, and the wordings of attacks that have been seen.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from router.lint.payloads import SHELL

_BEGINNING: Final = r"""
    (?:^|[\n;!?]|\.\s|&&|\|\|)[^\S\n]{0,9}
    (?:(?:please|kindly|just|now|then|first|always|go\ ahead\ and|(?:can|could|would|will)\ you
      |you\ (?:must|should)|run|execute|type|enter|paste|this|the|following|command|in|a|your|my
      |shell|terminal)[\s:,]{1,3}){0,8}
    [`"'$>(\ ]{0,4}
"""
"""The beginning of a sentence or a command, with the words that lead to an order."""
_COMMAND: Final = re.compile(
    rf"""
    {_BEGINNING}(?:sudo\s{{1,9}}(?:-\w{{1,9}}\s{{1,9}}){{0,3}})?
    (?:
      # "rm -rf ~/photos", but not "rm -rf ./build"
      rm\s{{1,9}}(?:-[\w-]{{1,20}}\s{{1,9}}){{1,4}}["']?
        (?:[/~*]|\$\{{?HOME\b|\.{{1,2}}/?(?=[\s"'`]|$))
      | (?:dd\s[^\n]{{0,200}}?\bof=|(?:mkfs(?:\.\w{{1,9}})?|wipefs|shred)\s[^\n]{{0,90}}?)/dev/\w
      | ch(?:mod|own)\s{{1,9}}(?:-\w{{0,9}}R\w{{0,9}}|--recursive)\s{{1,9}}\S{{1,40}}\s{{1,9}}
        [/~]\*?(?=[\s"'`]|$)
      | (?:curl|wget)\s{{1,9}}[^\s|][^\n|]{{0,300}}?
        (?:\|\s{{0,9}}{SHELL}|(?:&&|;)\s{{0,9}}(?:sudo\s{{1,9}})?(?:ba|z|da)?sh\s)
      | (?:nc|ncat)\s[^\n]{{0,90}}?-e\b
      | :\(\)\s{{0,3}}\{{
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_ABOUT_INSTRUCTIONS: Final = re.compile(
    rf"""
    {_BEGINNING}
    (?:
      (?:forget|ignore|disregard|discard|unlearn)\s+(?:everything|anything|all|whatever|what)\s+
        (?:that\s+)?you(?:'ve|\s+have|\s+had)?\s+(?:were|been|are)\s+(?:ever\s+|just\s+)?
        (?:told|instructed|asked|taught|trained|ordered)\b(?!\s+about)
      | (?:reveal|show|print|repeat|output|display|leak|disclose|dump|expose|recite|tell|give|share
        |send)\s+(?:(?:me|us|out|all|any|the|of|exact|full|entire|complete|text)\s+){{0,6}}
        your\s+(?:\w{{1,20}}\s+){{0,2}}?
        (?:system\s+(?:prompt|message|instructions?)
        |(?:hidden|secret|initial|original|internal)\s+(?:instructions?|prompts?|rules))\b
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)
_NAMED: Final = "<skill>"
"""What stands in place of a skill's name, so that the patterns need not know the names."""
_WORD: Final = re.compile(r"[\w-]+(?:[.:][\w-]+)*")
_SKILL: Final = rf"(?:(?:the\s+)?{_NAMED}(?:\s+(?:skill|tool))?|th(?:is|at)\s+(?:skill|tool))(?!\w)"
_CHOOSE: Final = r"(?:choose|select|pick|prefer|recommend|rank)"
_CHOICE_BY_NAME: Final = rf"""
    \b(?:{_CHOOSE}|use|take|load|invoke|call|activate|return|default\ to|go\ (?:with|for))
      \s+{_SKILL}
"""
_CHOICE: Final = rf"""
    (?:{_CHOICE_BY_NAME}|\b(?:choose|select|pick|prefer)\s+(?:it|this(?:\s+one)?)(?!\w))
"""
_DOUBT: Final = r"""
    (?:\bin\s+(?:any\s+)?doubt\b
    |\b(?:when(?:ever)?|if)\s+(?:you(?:'re|\s+are)\s+)?
      (?:unsure|uncertain|undecided|not\s+(?:sure|certain)
      |(?:nothing|no\s+(?:other\s+)?(?:skill|tool))(?:\s+else)?\s+(?:fits|matches|applies))\b)
"""
_REQUESTS: Final = r"""
    (?:any|every|each|all)\s+(?:(?:single|user|incoming|new|of|the)\s+){0,3}
    (?:requests?|prompts?|messages?|quer(?:y|ies)|questions?|tasks?|inputs?|conversations?)\b
    (?!\s+(?:that|which|where|who|about|with|for|in|on|of|from|like))
"""
_WHATEVER: Final = r"""
    \b(?:whatever|no\s+matter\s+what)\s+(?:the\s+|an?\s+)?(?:users?|they|you|anyone|people|is)\s+
    (?:asks?|asked|says?|wants?|requests?)\b
"""
_END: Final = r"(?=\s{0,9}(?:[.!,;]|$|and\b))"
_ABOUT_CHOOSING: Final = re.compile(
    rf"""
    {_CHOICE}\s+(?:for|on|with|at)\s+{_REQUESTS}
    | \b(?:{_CHOOSE}|use|load|invoke|call|activate)\s+{_SKILL}\s+for\s+(?:everything|anything){_END}
    | {_DOUBT}[\s,:]{{1,3}}(?:(?:always|just|simply|then|please)\s+){{0,2}}{_CHOICE}
    | {_CHOICE}[\s,]{{1,3}}(?:(?:when(?:ever)?|if)\s+)?{_DOUBT}
    | (?:\bfor\s+{_REQUESTS}|{_WHATEVER})[\s,:]{{1,3}}
      (?:(?:always|just|simply|then|please)\s+){{0,2}}{_CHOICE_BY_NAME}
    | {_SKILL}\s+is\s+(?:always\s+|clearly\s+|simply\s+)?(?:the|your)\s+
      (?:best|right|only|correct|preferred|top|default|first)\s+
      (?:skill|tool|choice|option|answer|one)\b
    | {_SKILL}\s+(?:should|must|shall|has\s+to)\s+(?:(?:always|first)\s+)?
      (?:be\s+(?:(?:always|first)\s+)?(?:chosen|selected|picked|preferred|ranked|first)
      |come\s+first)\b
    | \balways\s+{_CHOOSE}\s+{_SKILL}
    | \balways\s+(?:use|load|invoke|call|activate)\s+(?:this|that|the\s+{_NAMED})\s+(?:skill|tool)\b
    | \b{_CHOOSE}\s+{_SKILL}\s+first{_END}
    | \broute\s+(?:everything|{_REQUESTS})\s+to\s+{_SKILL}
    """,
    re.IGNORECASE | re.VERBOSE,
)


def is_order(text: str, names: Collection[str] = ()) -> bool:
    """Whether a request is an order and nothing that a user would ask for. ``names`` are those of
    the skills that it may be about, casefolded."""
    if _COMMAND.search(text) or _ABOUT_INSTRUCTIONS.search(text):
        return True
    named = _WORD.sub(lambda word: _NAMED if word[0].casefold() in names else word[0], text)
    return _ABOUT_CHOOSING.search(named) is not None
