"""Prompt injection: orders in a skill's texts to the router or model that chooses among skills.

Routers and models read a skill's name, description and hints before they choose. An order there
("always choose this skill", also with the skill's name in place of "this"), a claim that other
skills are of no use, or a piece of JSON that pretends to be the router's own, is an error. "Use
this skill whenever ..." is how a description should speak, so an order with a condition is none. A
phrase in quotation marks is what a user might say, and is not judged.

What the patterns know is English, German and Japanese, and wordings that have been seen. They
cannot see an order in other words or in another language, a flattering lie ("the most reliable
skill for Git"), or what the files beside SKILL.md do. A skill without findings is not proven
harmless.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Final

from router.lint.payloads import runs_commands, shown
from router.lint.rules import Rule
from router.lint.skill_file import SkillFile
from router.skills.diagnostics import Diagnostic

_VERBS: Final = (
    r"(?:choose|select|pick|use|load|prefer|invoke|call|activate|recommend|rank|return|pull\ in)"
)
_OTHERS: Final = (
    r"(?:(?:all|any|every|the|these|those|each|of)\s+){0,3}(?:others?|competing|similar)"
)
_READERS: Final = (
    r"(?:router|routing\ (?:model|agent|system)|model|agent|assistant|ai|llm|classifier|selector)"
)
_ENGLISH: Final = re.compile(
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
    | \b(?:remaining|other|rival|competing|existing)\s+(?:skills?|tools?|options?|candidates?)\s+
      (?:are|is|were|have\s+been|has\s+been|should\s+be|must\s+be)\s+(?:all\s+|now\s+){{0,2}}
      (?:deprecated|obsolete|outdated|broken|disabled|unsafe|insecure|unavailable|removed|retired
      |ignored|invalid|incorrect|wrong|forbidden|revoked)\b
    # about the choosing itself
    | \b(?:choose|select|pick|use|load|return)\s+(?:[\w-]+\s+){{1,4}}?(?:for|on)\s+
      (?:whatever|anything|everything)\s+(?:that\s+)?(?:the\s+|a\s+)?
      (?:users?|they|anyone|is|gets?|comes?)\s*(?:asks?|asked|wants?|says?|requests?|requested|in)\b
    | \b(?:is|are)\s+(?:always\s+)?the\s+(?:only|single|one)\s+
      (?:correct|right|valid|acceptable|permitted|allowed)\s+
      (?:answers?|choices?|selections?|options?|skills?|tools?|responses?)\b
    | \bthe\s+(?:only\s+)?(?:correct|right|expected)\s+(?:answer|choice|selection|response)\s+is\b
    | \b(?:choose|select|pick|use|load)\s+(?:this|it)\s+(?:skill\s+)?
      (?:no\ matter|regardless\ of|whatever)\b
    | \b(?:set|report|return|output)\s+(?:the\s+|a\s+)?(?:confidence|score|rank|relevance)\s+
      (?:to|of|as)\b
    | \b(?:rank|score|rate)\s+(?:this|it)\s+(?:skill\s+)?(?:first|highest|top|above|at\ the\ top)\b
    # about instructions
    | \b(?:note|notice|message|memo|attention|reminder|instructions?)\s+(?:to|for)\s+
      (?:the\s+|all\s+|any\s+)?{_READERS}s?\s*[:,!\u2014-]
    | \b(?:attention|dear|hey|hello)(?:\s*,)?\s+(?:the\s+)?{_READERS}s?\b\s*[:,!\u2014-]
    | \b(?:output|answer|respond|reply)\s+(?:only\s+|exactly\s+|just\s+)?(?:with\s+)?(?::\s*)?[\[{{]
    | \b(?:ignore|disregard|forget|override|bypass)\b[^.]{{0,40}}
      \b(?:previous|prior|earlier|above|system|all|any|your|other)\b[^.]{{0,20}}
      \b(?:instructions?|rules?|prompts?|guidelines?)\b
    | \b(?:ignore|disregard|forget|override|bypass|skip)\s+(?:the\s+|your\s+|this\s+)?{_READERS}s?
      (?:\s*,)?(?:\s*(?:and|but|then|to))?\s+(?:just\s+|simply\s+|always\s+)?{_VERBS}\s+(?:this|it)\b
    | \byou\ are\ now\b
    # the beginning of another turn
    | </?(?:system|user|assistant|instructions?)\b[^>]*>
    | <\|\w+\|> | \[/?INST\] | <</?SYS>>
    | ^[^\S\n]*\#{{1,6}}\s*(?:system|assistant)\b
    | ^[^\S\n]*(?:system|assistant)\s*:
    """,
    re.IGNORECASE | re.VERBOSE | re.MULTILINE,
)
_GERMAN: Final = re.compile(
    r"""
    # "Verwende immer diesen Skill", but not "Verwende immer diesen Skill, wenn ..."
    \b(?:wählen?|nutzen?|nimm|nehmen|benutzen?|verwenden?|laden?|lade|bevorzugen?)\s+(?:sie\s+)?
      (?:immer|stets|ausschließlich|grundsätzlich|nur)\s+
      dies(?:en|e|es)\s+(?:skill|fähigkeit|werkzeug|tool)\b(?!,?\s+(?:wenn|falls|sobald|bei|für|um|zum|zur))
    | \b(?:ignorier\w{1,4}|missachte\w?|vergiss|vergessen|übergehe?n?)\s+(?:sie\s+)?
      [^.!?\n]{0,30}?\b(?:andere\w?|übrige\w?|vorherige\w?|bisherige\w?|frühere\w?|obige\w?)\s+
      (?:skills?|fähigkeiten|werkzeuge|tools|anweisung(?:en)?|regeln|vorgaben)\b
    | \b(?:andere\w?|übrige\w?|restliche\w?)\s+(?:skills?|fähigkeiten|werkzeuge|tools)\s+
      (?:sind|gelten|werden)\b[^.!?\n]{0,30}?
      \b(?:veraltet|überholt|deaktiviert|verboten|unsicher|abgeschaltet|ungültig|falsch)\b
    | \b(?:die|der|das)\s+einzig\w*\s+(?:richtige|korrekte|gültige|zulässige)\w?\s+
      (?:antwort|wahl|auswahl|skill|fähigkeit|werkzeug)\b
    | \b(?:hinweis|nachricht|anweisung|mitteilung)\s+(?:an|für)\s+(?:den|die|das|alle)\s+
      (?:router|modelle?|agenten?|assistenten?|ki)\b
    | \bhöchste\s+(?:priorität|rangfolge)\b
    """,
    re.IGNORECASE | re.VERBOSE,
)
_JAPANESE: Final = re.compile(
    r"""
    (?P<order>(?:常に|必ず|いつも)[^。\n]{0,10}(?:この|当|本)
      (?:スキル|ツール)[^。\n]{0,6}
      (?:選択|選ん|選ぶ|選べ|使用|使っ|使う|使え|優先|呼び出))
    | (?:他の|ほかの|その他の|残りの)(?:すべての|全ての)?
      (?:スキル|ツール)[^。\n]{0,10}
      (?:無視|使わな|使用しな|選ばな|選択しな|廃止|非推奨|無効)
    | (?:以前|これまで|上記|前|従来)の(?:すべての|全ての)?
      (?:指示|命令|ルール|プロンプト)[^。\n]{0,8}(?:無視|忘れ|破棄)
    | 唯一の(?:正しい|正解|有効な|適切な)
    | (?:ルーター|モデル|エージェント)(?:への|に対する|へ)
      (?:指示|注意|連絡|お知らせ|メッセージ|命令)
    """,
    re.VERBOSE,
)
_JAPANESE_CONDITION: Final = re.compile("場合|とき|時|際|ため|には")
_JSON: Final = re.compile(
    r"""
    ["']\s*\}\s*[\]},]              # a string and its object end, and something goes on
    | ["'](?:skills?|selected_skills|memory_layers|mission_brief|reasoning|confidence|request
      |history)["']\s*:
    """,
    re.VERBOSE,
)
"""The router gives skills to a model as JSON, and the model answers in JSON with these fields."""
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


_WORD: Final = re.compile(r"[\w-]+")


def injections(file: SkillFile) -> Iterator[Diagnostic]:
    """Find orders to the router, and claims on every request, in the texts that it reads."""
    name = file.skill.name.casefold()
    # A name of one word may be an everyday word: "Always return pdf."
    names = {name} if "-" in name or "_" in name else ()
    for passage in file.head:
        if found := _JSON.search(passage.text):
            message = (
                f"{passage.label} holds a piece of the JSON in which routers and models speak "
                f"({shown(passage, found.span())}): describe the skill in words"
            )
            yield file.breach(Rule.ROUTER_INSTRUCTION, passage, found.span(), message)
        text = _QUOTED.sub(lambda quoted: " " * len(quoted.group()), passage.text)
        if found := _order(text, names):
            message = (
                f"{passage.label} gives orders to whoever chooses among skills "
                f"({shown(passage, found.span())}): describe what the skill is for instead"
            )
            yield file.breach(Rule.ROUTER_INSTRUCTION, passage, found.span(), message)
        if found := _CLAIM.search(text):
            message = (
                f"{passage.label} claims every request ({shown(passage, found.span())}): "
                "name the requests that the skill is for"
            )
            yield file.breach(Rule.CLAIMS_EVERYTHING, passage, found.span(), message)


def gives_orders(text: str, names: Collection[str] = ()) -> bool:
    """Whether a text tells a router or a model what to do, or a shell what to run. ``names`` are
    those of the skills that an order may be about, casefolded."""
    order = _order(text, names) or _CLAIM.search(text) or _JSON.search(text)
    return order is not None or runs_commands(text)


def _order(text: str, names: Collection[str]) -> re.Match[str] | None:
    """The first order without a condition, in a language that the patterns know."""
    if names:  # replaced by "it" of the same length, so that the patterns need not know them
        text = _WORD.sub(
            lambda word: "it".rjust(len(word[0])) if word[0].casefold() in names else word[0],
            text,
        )
    if found := _ENGLISH.search(text) or _GERMAN.search(text):
        return found
    for found in _JAPANESE.finditer(text):
        begin = max(text.rfind("。", 0, found.start()), text.rfind("\n", 0, found.start()), 0)
        conditional = _JAPANESE_CONDITION.search(text, begin, found.start())
        if found["order"] is None or conditional is None:
            return found
    return None
