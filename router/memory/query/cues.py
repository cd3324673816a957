"""What the classifier sees in a query: its wording, its grammar, and the kinds of words in it.

Which memory a query needs shows in how it is put (who asks, about whom, in which tense), and not in
its topic. So a query becomes a set of cues, each standing for some of its words:

    depend          a word, by its stem; so "depends" and "dependent" are one
    what+depend     two words in a row; "^" is the start and "$" the end
    <relation>      a word of one of the classes below, so that rare words speak like common ones
    <relation> on   two neighbours in the pattern of the query: function words as they are, other
                    words by their class, and all those that are in none as one "_"
    (you) (past)    of whom it speaks, and in which tense or form of question

Words are whole words: "elastic" holds no "last", "causes" no "uses", "update" no "date".
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from router.text import STOPWORDS, stem, tokens, word_set

MAX_WORDS: Final = 400
"""The words of a query that are looked at; 2,000 characters rarely hold more."""

_CLASSES: Final[Mapping[str, str]] = {
    "approval": """
        approve approval authorise authorize authorisation authority permission permit consent
        clearance cleared sanction sanctioned greenlight greenlit okayed signoff signature
        signatory endorse endorsed ratify ratified waive waiver veto granted mandate
    """,
    "decision-maker": """
        board committee council commission regulator auditor legal compliance
    """,
    "rule": """
        policy policies rule regulation guideline compliance compliant requirement mandatory
        obligatory obligation bylaws statute clause forbidden prohibited banned allowed
        permitted permissible entitled law legal legally gdpr retention
    """,
    "record": """
        audit trail minutes adr adrs ledger log record records resolution vote voted ballot
        motion logbook register
    """,
    "change": """
        override overrode overruled loosened relaxed lifted raised lowered removed changed
        modified edited deleted altered disabled reverted amended
    """,
    "relation": """
        depend depends dependency dependencies dependent rely relies reliant call calls caller
        callers invoke invokes import imports importing consume consumes consumer consumers
        reference references extend extends inherit inherits subclass subclasses implement
        implements connected connection connections link linked links related relation relations
        relationship relationships coupled attached tied belong belongs touch touches affect
        affected affects impact feeds feed upstream downstream neighbour neighbours path render
        renders mount mounts embed embeds wrap wraps usage usages lineage subscribe subscribes
        publish publishes parent child children ancestor sibling
    """,
    "owner": """
        own owns owner owners ownership owned maintain maintains maintainer responsible charge
        report reports manages lead leads supplier vendor subsidiary
    """,
    "reminder": """
        remind reminder reminders alarm alert nudge ping snooze forget notify timer wake
    """,
    "due": """
        due overdue deadline deadlines pending outstanding upcoming expire expires expiry
        expiring renew renewal owe owes appointment appointments agenda calendar todo todos
        chore chores errand errands task tasks assignment backlog unfinished remaining remains
        left open unpaid unanswered ticket tickets
    """,
    "future": """
        tomorrow tonight soon next later upcoming
    """,
    "past": """
        yesterday ago last previously past recently lately earlier overnight yesteryear back
    """,
    "period": """
        week weeks weekend month months year years day days morning afternoon evening night noon
        hour hours minute minutes quarter sprint spring summer autumn fall winter today easter
        christmas season decade century
    """,
    "weekday": """
        monday tuesday wednesday thursday friday saturday sunday
    """,
    "monthname": """
        january february march april june july august september october november december
    """,
    "event": """
        outage incident incidents crash crashes failure meeting meetings standup retro interview
        visit trip party launch demo call conversation discussion happened happen occurred occur
        broke failed died release deploy deployment deploys accident episode
    """,
    "ever": """
        ever before already once again never previous precedent similar familiar
    """,
    "plan": """
        plan plans planning roadmap strategy strategies strategic milestone milestones phase
        phases timeline goal goals objective objectives target targets schedule initiative
        initiatives rollout programme blueprint
    """,
    "decompose": """
        decompose break split divide breakdown subtask subtasks subgoal subgoals chunk chunks
        sequence prioritise prioritize pieces stages stage outline structure organise organize
        draft devise develop sketch propose
    """,
    "assess": """
        validate assess evaluate critique review realistic feasible feasibility risk risks risky
        derail weak weaknesses holes poke sound doable achievable viable sanity ambitious
    """,
    "howto": """
        step steps procedure procedures workflow recipe instruction instructions runbook
        playbook checklist guide tutorial walkthrough process command commands walk teach howto
        guidance
    """,
    "operate": """
        install configure deploy restart reset restore rollback rebase merge upgrade migrate set
        setup enable disable build run start stop rotate publish release regenerate seed
    """,
    "memory": """
        memory memories remember recall know knowledge knows known familiar informed expertise
        expert stored store hold retain recollect notes heard cover covers coverage covered
    """,
    "gap": """
        gap gaps blind thin unsure sure confident confidence guess guessing weak strong
        strongest weakest trust reliable complete unaware ignorant blank certain
    """,
    "define": """
        define definition mean means meaning difference differ differs explain explanation stand
        describe concept purpose distinguish versus vs compare comparison
    """,
    "document": """
        documentation docs doc document article paper page manual handbook wiki spec reference
        entry glossary note
    """,
    "cause": """
        cause causes happens why reason
    """,
    "conversation": """
        conversation chat thread message messages reply answer answered said told asked
        suggested mentioned pasted wrote showed shown gave sent listed proposed described
        pointed question questions turn turns scroll
    """,
    "deixis": """
        above earlier previous just moment far now again former latter same other second third
        first still
    """,
    "redo": """
        undo redo revert continue resume repeat rewrite rephrase shorten summarise summarize
        recap carry keep proceed finish pick
    """,
    "design": """
        architecture architectural structure structured design designed layout convention
        conventions pattern patterns rationale reasoning tradeoff organised organized modelled
        modeled implemented stack framework tech style standard standards naming laid approach
        settle settled choose chose chosen pick picked adopt adopted adopting opted
    """,
    "codebase": """
        codebase repo repository monorepo project code backend frontend module modules service
        services component components schema endpoint endpoints api app platform system package
        packages library database tests branch table tables microservice microservices
        storefront
    """,
    "prefer": """
        prefer preferred preference preferences like liked favourite favorite taste tastes usual
        usually normally habit habits enjoy hate dislike love always rather comfortable fond
        typically
    """,
    "family": """
        wife husband daughter son kids children brother sister mother father mum mom dad partner
        dog cat parents boss spouse girlfriend boyfriend grandmother
    """,
    "personal": """
        allergic allergy allergies diet vegetarian vegan size name birthday address born live
        age job hobby hobbies pet pets shirt shoe commute pronouns timezone zone glasses married
        licence nickname surname
    """,
    "arithmetic": """
        plus minus times divided multiply multiplied divide subtract calculate compute square
        root prime factorial sum percent cube modulo solve convert divisible
    """,
    "play": """
        joke poem haiku limerick sonnet rhyme riddle story song sing pun coin dice die roll flip
        toss game pretend invent lullaby verse ballad acrostic anagram
    """,
    "text": """
        spell spelling grammar typo translate reverse sort capitalise capitalize uppercase
        lowercase proofread paraphrase alphabetical synonym antonym vowels letters word sentence
        string punctuation palindrome rhyme backwards encode decode
    """,
    "thanks": """
        thanks thank thx hello hi hey bye goodbye great awesome perfect cool nice wow welcome
        cheers lovely brilliant excellent wonderful fantastic amazing good
    """,
}
"""Words that say much the same about what a query asks for. A word may be in several classes; in
patterns it stands for the first."""


def _by_stem(classes: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for name, words in classes.items():
        for key in dict.fromkeys(stem(word) for word in words.split()):
            found.setdefault(key, []).append(f"<{name}>")
    return {key: tuple(names) for key, names in found.items()}


_CLASSES_OF: Final = _by_stem(_CLASSES)


_PERSONS: Final = {
    word: person
    for person, words in {
        "(i)": "i me my mine i'm i've i'd i'll",
        "(we)": "we us our ours we're we've",
        "(you)": "you your yours you're you've",
    }.items()
    for word in words.split()
}
_QUESTION_WORDS: Final = word_set("what which who whom whose when where why how")
_AUXILIARIES: Final = {
    word: form
    for form, words in {
        "(do)": "do does did",
        "(be)": "is are am was were",
        "(have)": "has have had",
        "(may)": "can could may might must should would shall will",
    }.items()
    for word in words.split()
}
_PAST: Final = word_set("did was were had went")
_PAST_ENDING_LETTERS: Final = 5
"""From this length on a word in "-ed" is taken for a past form."""
_SECOND: Final = re.compile(
    r"\w[?.,;]?\s+(?:and|but|then)\s+(?=(?:also\s+)?"
    rf"(?:{'|'.join(sorted(_QUESTION_WORDS | _AUXILIARIES.keys()))}|tell|show|give|list|remind)\b)",
    re.IGNORECASE,
)


def cues(text: str) -> dict[str, str]:
    """The cues of a text, each with the words of it, in lower case, that the cue stands for."""
    words = tokens(text)[:MAX_WORDS]
    asks = text.rstrip().endswith("?")
    stemmed = [stem(word) for word in words]
    found: dict[str, str] = {}
    for word, key in zip(words, stemmed, strict=True):
        found[key] = word
        for name in _CLASSES_OF.get(key, ()):
            found.setdefault(name, word)
    _add_grammar(found, words, asks=asks)
    if asks:
        words.append("?")
        stemmed.append("?")
    _add_pairs(found, ["^", *stemmed, "$"], ["", *words, ""], "+")
    _add_pairs(found, *_pattern(words, stemmed), " ")
    return found


def second_question(text: str) -> str | None:
    """What is asked in the second place: "and what uses it?"; None when one thing is asked."""
    match = _SECOND.search(text)
    return text[match.end() :] if match else None


def _add_grammar(found: dict[str, str], words: list[str], *, asks: bool) -> None:
    """Of whom the query speaks, in which form and tense, and each person with both."""
    spoken = {_PERSONS[word]: word for word in words if word in _PERSONS} or {"(nobody)": ""}
    asking = next((word for word in words if word in _QUESTION_WORDS), None)
    opening = words[0] if words else ""
    form = asking or _AUXILIARIES.get(opening) or ("(question)" if asks else "(statement)")
    past = any(map(_is_past, words))
    found["form " + form] = asking or opening
    if past:
        found["(past)"] = ""
    tense = "(past)" if past else "(present)"
    everybody = "".join(sorted(spoken))
    found[f"only {everybody}"] = " ".join(spoken.values())
    for person, word in spoken.items():
        found[person] = word
        found[f"{person} {form}"] = f"{asking or opening} {word}".strip()
        found[f"{person} {tense}"] = word


def _is_past(word: str) -> bool:
    return word in _PAST or (len(word) >= _PAST_ENDING_LETTERS and word.endswith("ed"))


def _pattern(words: list[str], stemmed: list[str]) -> tuple[list[str], list[str]]:
    """The words as a pattern, and for each of its parts the words behind it."""
    parts, behind = ["^"], [""]
    for word, key in zip(words, stemmed, strict=True):
        if key in _CLASSES_OF:
            part = _CLASSES_OF[key][0]
        elif word in STOPWORDS or word == "?":
            part = word
        else:
            part = "#" if word[0].isdigit() else "_"
        if part == "_" and parts[-1] == "_":
            behind[-1] += f" {word}"
        else:
            parts.append(part)
            behind.append(word)
    return [*parts, "$"], [*behind, ""]


def _add_pairs(found: dict[str, str], parts: list[str], words: list[str], mark: str) -> None:
    for left, right, one, other in zip(parts, parts[1:], words, words[1:], strict=False):
        found.setdefault(f"{left}{mark}{right}", f"{one} {other}".strip())
