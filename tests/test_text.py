"""Normal form, tokens and stems."""

from __future__ import annotations

import unicodedata
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import router
from router.text import (
    FILLERS,
    LONG_TEXT,
    MAX_LIGATURES,
    MAX_MARKS,
    SHORT_TEXT,
    STOPWORDS,
    bounded_marks,
    compatible,
    composed,
    is_english,
    memoised,
    normalise,
    stem,
    stems,
    tokens,
)

ROUTER = Path(router.__file__).parent
ODD = st.sampled_from(
    [
        *"a.? \u304b\u0390\u0130\ufb03\ufdfa\u3316\u03a3\u00bd\u00b3\u2044\u2460\u2082\U0001d160",
        *"\u0301\u0316\u0f73\uff9e\u3099\u0345\u0344\u0f71\u0958",
    ]
)
"""Characters that change in a normal form, by folding, or by what stands beside them."""
LONG_RUNS = st.builds(
    lambda before, unit, times, after: before + unit * times + after,
    st.text(ODD, max_size=5),
    st.text(ODD, min_size=1, max_size=3),
    st.integers(1, MAX_LIGATURES + 5),
    st.text(ODD, max_size=5),
)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("  Fix \t the\nBUG ", "fix the bug"),
        ("Stop. Then go, now!", "stop then go now"),
        ("Straße", "strasse"),
        ("Ｆｕｌｌ ｗｉｄｔｈ", "full width"),
        ("“Foo” and ‘bar’", "\"foo\" and 'bar'"),
        ("don’t", "don't"),
        ("What is JWT ?!", "what is jwt?"),
        ("ファイル を 開く。", "ファイルを開く"),
        ("wait\u200b here", "wait here"),
    ],
)
def test_what_carries_no_meaning_is_removed(text: str, normal: str) -> None:
    assert normalise(text) == normal


@pytest.mark.parametrize(
    "text",
    [
        "c++ or c#",
        "-5 and 3.14",
        "open .env",
        "cd ..",
        "ls a/..",
        "a/b and #12 by @user",
        "what is 5!",
        'say "yes"',
        "is it up?",
        "c:\\temp and ~/x",
        "100% of $5",
        "--no-verify",
        "f(x) <= 1,000.5",
    ],
)
def test_what_may_carry_meaning_is_kept(text: str) -> None:
    assert normalise(text) == text


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("2\u00b3 apples", "2^3 apples"),
        ("10\u207b\u00b3", "10^-3"),
        ("x\u2082", "x_2"),
        ("1\u00bd cups", "1 1/2 cups"),
        ("11\u20442 cups", "11/2 cups"),
        ("\u00bd cup", "1/2 cup"),
        ("2\u2460", "2 1"),
    ],
)
def test_a_small_number_does_not_join_the_number_beside_it(text: str, normal: str) -> None:
    assert normalise(text) == normal


@example("\u304b \u3099")
@given(st.one_of(st.text(max_size=60), st.text(ODD, max_size=60), LONG_RUNS))
def test_the_normal_form_of_a_normal_form_is_itself(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@given(st.one_of(st.text(max_size=60), LONG_RUNS))
def test_the_compatible_form_of_a_compatible_form_is_itself(text: str) -> None:
    assert compatible(compatible(text)) == compatible(text)


def test_a_run_of_marks_is_cut_and_shorter_ones_are_kept() -> None:
    marks = "\u0301\u0316" * MAX_MARKS
    assert (
        bounded_marks(f"a{marks}b{marks[:MAX_MARKS]}")
        == f"a{marks[:MAX_MARKS]}b{marks[:MAX_MARKS]}"
    )
    assert bounded_marks("\U00010200" * 100) == "\U00010200" * 100  # letters, in the same range


def test_texts_that_differ_in_many_marks_stay_different_in_the_composed_form() -> None:
    marks = "\u0316" * MAX_MARKS
    assert composed(f"a\u0301{marks[:-1]}") == f"\u00e1{marks[:-1]}"
    assert composed(f"a\u0301{marks}") == f"a\u0301{marks}"


def test_every_character_that_begins_with_a_mark_counts_as_one() -> None:
    marks = [
        character
        for character in map(chr, range(0x110000))
        if unicodedata.combining(unicodedata.normalize("NFKD", character)[0])
    ]
    run = "".join(marks)
    assert len(marks) > 900
    assert bounded_marks(run) == run[:MAX_MARKS]


def test_ligatures_are_spelt_out_unless_there_are_very_many() -> None:
    assert tokens("\u3316") == tokens("キロメートル")
    many = "\u3316" * (MAX_LIGATURES + 1)
    assert normalise(many + " ＡＢ") == many + " ab"


def test_only_one_file_brings_texts_to_unicodes_normal_forms() -> None:
    users = [
        path.name
        for path in ROUTER.rglob("*.py")
        if "unicodedata.normalize(" in path.read_text(encoding="utf-8")
    ]
    assert users == ["text.py"]


def test_a_text_is_worked_on_once_unless_it_is_very_long() -> None:
    seen: list[int] = []

    @memoised(short=8)
    def measured(text: str) -> None:
        seen.append(len(text))

    for length in (1, SHORT_TEXT, SHORT_TEXT + 1, LONG_TEXT, LONG_TEXT + 1) * 2:
        measured("x" * length)
    assert seen == [1, SHORT_TEXT, SHORT_TEXT + 1, LONG_TEXT, LONG_TEXT + 1, LONG_TEXT + 1]


def test_of_texts_that_count_as_long_only_a_few_are_remembered() -> None:
    seen: list[str] = []
    noted = memoised(short=1_000, longest=3)(seen.append)
    texts = [f"{number:04}" for number in range(100)]
    for text in (*texts, *texts):
        noted(text)
    assert seen == [*texts, *texts]


def test_no_more_short_texts_are_remembered_than_were_asked_for() -> None:
    seen: list[str] = []
    noted = memoised(short=10)(seen.append)
    texts = [f"{number:04}" for number in range(100)]
    for text in (*texts, *texts):
        noted(text)
    assert seen == [*texts, *texts]


@given(st.text(alphabet="aB c.,;:!?-+#'\"/\\()\n12éß。", max_size=40))
def test_spacing_and_case_make_no_difference(text: str) -> None:
    assert normalise(f" \n{text.swapcase().lower()}\t ") == normalise(text.lower())


def test_tokens_are_the_words_of_identifiers_paths_and_prose() -> None:
    words = "parse json in src main py using c++ or c#"
    assert tokens("Parse_JSON in src/main.py, using C++ (or C#)!") == words.split()


def test_scripts_without_spaces_give_pairs_of_characters() -> None:
    assert tokens("打开文件 now") == ["打开", "开文", "文件", "now"]


def test_stems_join_the_forms_of_a_word() -> None:
    assert stems("testing tests tested") == ["test", "test", "test"]


def test_stems_agree_with_the_stem_of_each_token() -> None:
    text = "Deploying the user's services, quickly, über den Fluß, по словам"
    assert stems(text) == [stem(token) for token in tokens(text)]


def test_stemming_in_several_threads_gives_what_one_thread_gives() -> None:
    words = [f"{base}{ending}" for base in ("test", "deploy", "route") for ending in ("ing", "s")]
    texts = [" ".join(words[i:] + words[:i]) for i in range(len(words))] * 50
    alone = [stems(text) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(stems, texts)) == alone


def test_fillers_are_stopwords_and_negations_are_not_fillers() -> None:
    assert FILLERS < STOPWORDS
    assert FILLERS.isdisjoint({"not", "no", "never", "without", "off", "from"})


@pytest.mark.parametrize(
    ("text", "english"),
    [
        ("fix bug", True),
        ("find a café near me", True),
        ("schalte das licht an", False),
        ("открой файл", False),
        ("ouvre le fichier", False),
    ],
)
def test_english_is_assumed_unless_another_language_shows(text: str, english: bool) -> None:
    assert is_english(text.split()) is english
