"""The content gate: what may differ between two requests, and what must not."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from router.stages.gate import Difference, GateVerdict, compare_signatures
from router.stages.wording import signature_of
from router.text import normalise

SAME = [
    ("Fix bug", "Fix the bug"),
    ("fix the bugs", "Fix the bug."),
    ("Could you please fix the bug?", "fix the bug"),
    ("Hey, can you tell me what the status is?", "what is the status"),
    ("what's JWT", "What is JWT?"),
    ("dont deploy", "Do not deploy"),
    ("how do I write a test", "how can I write a test?"),
    ("tell me if the build has passed", "has the build passed"),
    ("check-in the code", "check in the code"),
    ("refactor the authentication module", "refactor the authetication module"),
    ("explain the deployment", "explain the deplyoment"),
    ("which branch is stale", "what branch is stale"),
    ("Öffne die Konfiguration", "öffne die konfigurtaion!"),
    ("Открой конфигурацию", "открой конфигруацию."),
    ("ファイル を 開く", "ファイルを開く。"),
]

DIFFERENT = [
    ("turn the light on", "turn the light off", Difference.DIRECTION),
    ("enable logging", "disable logging", Difference.DIRECTION),
    ("start the server", "stop the server", Difference.DIRECTION),
    ("install it", "uninstall it", Difference.DIRECTION),
    ("import the data", "export the data", Difference.DIRECTION),
    ("fix issue 12", "fix issue 21", Difference.NUMBER),
    ("fix #12", "fix #21", Difference.NUMBER),
    ("upgrade to 3.14", "upgrade to 3.1.4", Difference.NUMBER),
    ("add -5", "add 5", Difference.NUMBER),
    ("meet at 10 am", "meet at 10", Difference.WORD),
    ("open .env", "open env", Difference.LITERAL),
    ("learn C++", "learn C", Difference.LITERAL),
    ('say "yes"', 'say "no"', Difference.LITERAL),
    ("rename foo_bar", "rename foobar", Difference.LITERAL),
    ("ask @ann", "ask @anna", Difference.LITERAL),
    ("convert from A to B", "convert from B to A", Difference.ORDER),
    ("move it from src to dst", "move it from dst to src", Difference.ORDER),
    ("compare python to java", "compare java to python", Difference.ORDER),
    ("write to ann not bob", "write to bob not ann", Difference.ORDER),
    ("delete it", "do not delete it", Difference.NEGATION),
    ("deploy", "never deploy", Difference.NEGATION),
    ("show customers who left", "show employees who left", Difference.WORD),
    ("run with tests", "run without tests", Difference.NEGATION),
    ("who broke the build", "why broke the build", Difference.QUESTION),
    ("is the server up", "the server is up", Difference.QUESTION),
    ("fix the bug", "how do I fix the bug", Difference.QUESTION),
    ("can I deploy now", "should I deploy now", Difference.MODALITY),
    ("email from ann", "email by ann", Difference.DIRECTION),
    ("email to ann", "email by ann", Difference.RELATION),
    ("what is my name", "what is your name", Difference.WORD),
    ("call me mary", "call mary", Difference.WORD),
    ("delete all files", "delete the files", Difference.WORD),
    ("run just the tests", "run the tests", Difference.WORD),
    ("the past tense", "the paste tense", Difference.WORD),
    ("list important files", "list import files", Difference.DIRECTION),
    ("deploy the service", "destroy the service", Difference.WORD),
    ("contact the vendor", "contract the vendor", Difference.WORD),
    ("master the branch", "muster the branch", Difference.WORD),
    ("mark it complete", "mark it incomplete", Difference.WORD),
    ("schalte das Licht an", "schalte das Licht aus", Difference.WORD),
    ("打开客厅的灯", "关闭客厅的灯", Difference.WORD),
    ("müdür geliyorum dedi", "müdür gelmiyorum dedi", Difference.WORD),
]


def compare(first: str, second: str) -> GateVerdict:
    return compare_signatures(signature_of(normalise(first)), signature_of(normalise(second)))


@pytest.mark.parametrize(("first", "second"), SAME)
def test_requests_that_mean_the_same_pass(first: str, second: str) -> None:
    assert compare(first, second).passes


@pytest.mark.parametrize(("first", "second", "difference"), DIFFERENT)
def test_requests_that_mean_something_else_are_kept_apart_for_the_right_reason(
    first: str, second: str, difference: Difference
) -> None:
    assert compare(first, second).difference is difference


def test_a_verdict_says_what_each_side_has() -> None:
    verdict = compare("fix issue 12", "fix issue 21")
    assert (verdict.first, verdict.second) == ("12", "21")
    assert verdict.reason == "number differs: 12 against 21"


WORDS = """
    fix the bug bugs not never please can you a b to from on off 12 21 v1.2 what why how is me us it
    deployment deplyoment 'xy' src/a.py don't your das licht 打开 enable disable have any i get
    deleted if ? for
"""
word = st.sampled_from(WORDS.split())
request = st.lists(word, min_size=1, max_size=7).map(" ".join)


@given(request)
def test_every_request_passes_against_itself(text: str) -> None:
    assert compare(text, text).passes


@given(st.text(min_size=1, max_size=30))
def test_any_text_passes_against_itself(text: str) -> None:
    assert compare(text, text).passes


@given(request, request)
def test_the_gate_is_symmetric(first: str, second: str) -> None:
    there, back = compare(first, second), compare(second, first)
    assert there.difference == back.difference
    assert {there.first, there.second} == {back.first, back.second}


@given(request, st.integers(-999, 999), st.integers(-999, 999))
def test_different_numbers_never_pass(text: str, one: int, other: int) -> None:
    assume(one != other)
    assert not compare(f"{text} {one}", f"{text} {other}").passes


CONTENT = st.sampled_from(["deploy", "service", "report", "parser", "cluster", "rename", "blue"])


@given(
    st.lists(CONTENT, min_size=1, max_size=5),
    st.sampled_from(["not", "never", "no", "without", "don't", "cannot", "dont", "neither"]),
    st.data(),
)
def test_a_negation_anywhere_never_passes(
    words: list[str], negation: str, data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(words)))
    negated = " ".join([*words[:place], negation, *words[place:]])
    assert not compare(" ".join(words), negated).passes


@given(st.lists(CONTENT, min_size=1, max_size=5), st.data())
def test_moving_a_negation_never_passes(words: list[str], data: st.DataObject) -> None:
    here, there = (data.draw(st.integers(0, len(words) - 1)) for _ in range(2))
    first = [*words[:here], "not", *words[here:]]
    second = [*words[:there], "not", *words[there:]]
    assume(first != second)
    assert not compare(" ".join(first), " ".join(second)).passes


@given(st.lists(CONTENT, min_size=1, max_size=5))
def test_articles_case_and_courtesy_make_no_difference(words: list[str]) -> None:
    plain = " ".join(words)
    polite = "Could you please " + " ".join(f"the {w.upper()}" for w in words) + "!"
    assert compare(plain, polite).passes
