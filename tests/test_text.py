"""Normal form, tokens and stems."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from router.text import FILLERS, STOPWORDS, is_english, normalise, stem, stems, tokens


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


@given(st.text(max_size=60))
def test_the_normal_form_of_a_normal_form_is_itself(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


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
    text = "Deploying the user's services, quickly"
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
