"""Settings from files, variables and arguments: which one wins, and how their faults are told."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from cpu_time import cpu_time_at_most

from router import ConfigurationError, RouterError, Settings
from router.settings.files import user_file


@pytest.fixture(autouse=True)
def _empty_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory without files."""
    monkeypatch.chdir(tmp_path)


def write(file: str, text: str) -> None:
    Path(file).write_text(text, encoding="utf-8")


def test_a_stronger_source_wins_and_the_others_fill_in(monkeypatch: pytest.MonkeyPatch) -> None:
    write(
        "pyproject.toml",
        "[tool.router]\nmax_concurrency = 1\nshipped_skills = false\n"
        "[tool.router.vector]\nmax_suggestions = 1\ncaution = 0.6\n"
        "[tool.other]\nmax_concurrency = 9\n",
    )

    def set_now(**given: Any) -> tuple[int, bool, int, object]:
        settings = Settings(**given)
        vector = settings.vector
        return (
            settings.max_concurrency,
            settings.shipped_skills,
            vector.max_suggestions,
            vector.caution,
        )

    assert set_now() == (1, False, 1, 0.6)
    write("router.toml", "max_concurrency = 2\n[vector]\nmax_suggestions = 2\n")
    monkeypatch.setenv("ROUTER_VECTOR__MAX_SUGGESTIONS", "3")
    assert set_now() == (2, False, 3, 0.6)
    assert set_now(vector={"max_suggestions": 4}) == (2, False, 4, 0.6)


def test_files_and_arguments_give_real_lists() -> None:
    write("router.toml", 'listings = ["a", "b"]\n')
    settings = Settings(pinned_skills=["git"])
    assert settings.listings == (Path("a"), Path("b"))
    assert settings.pinned_skills == ("git",)


@pytest.mark.parametrize("named", ['["a", "b"]', '"a, b"'])
def test_folders_of_skills_that_a_folder_names_come_after_the_users(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, named: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write("router.toml", f"skills = {named}\n")
    assert Settings().skills == (Path("a"), Path("b"))
    default = tmp_path / "home" / ".agents" / "skills"
    default.mkdir(parents=True)
    assert Settings().skills == (default, Path("a"), Path("b"))
    user_file().parent.mkdir(parents=True)
    user_file().write_text('skills = ["~/mine"]\n', encoding="utf-8")
    assert Settings().skills == (Path("~/mine"), Path("a"), Path("b"))
    user_file().write_text('skills = "~/mine, a"\n', encoding="utf-8")
    assert Settings().skills == (Path("~/mine"), Path("a"), Path("a"), Path("b"))
    monkeypatch.setenv("ROUTER_SKILLS", "b")
    assert Settings().skills == (Path("b"),)


def test_a_malformed_list_of_the_users_folders_is_told_beside_that_of_a_folder() -> None:
    write("router.toml", 'skills = ["a"]\n')
    user_file().parent.mkdir(parents=True)
    user_file().write_text("skills = 5\n", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"setting skills"):
        Settings()


def test_a_setting_that_was_renamed_is_refused_with_its_new_name() -> None:
    write("router.toml", 'catalogues = ["shared"]\n')
    with pytest.raises(ConfigurationError, match="setting catalogues: it is called listings now"):
        Settings()


@pytest.mark.parametrize("file", ["router.toml", "pyproject.toml"])
def test_every_unknown_key_of_a_file_is_named(file: str) -> None:
    header = "tool.router" if file == "pyproject.toml" else ""
    top = f"[{header}]\n" if header else ""
    section = f"{header}.fuzzy" if header else "fuzzy"
    write(file, f"{top}tresholds = 1\n[{section}]\nttl = 5\n")
    with pytest.raises(ConfigurationError) as caught:
        Settings()
    said = str(caught.value)
    assert "setting fuzzy.ttl: there is none; did you mean fuzzy.ttl_seconds?" in said
    assert "setting tresholds: there is none" in said
    assert isinstance(caught.value, RouterError)


def test_a_fault_names_the_file_or_the_variable_that_gives_the_value(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write("router.toml", "vector.max_suggestions = -1\n")
    write("pyproject.toml", "[tool.router.fuzzy]\nttl = 5\n")
    user_file().parent.mkdir(parents=True)
    user_file().write_text("[llm]\nproviders = ['guess']\n", encoding="utf-8")
    monkeypatch.setenv("ROUTER_EXACT", '{"max_entries": 0}')
    with pytest.raises(ConfigurationError) as caught:
        Settings(max_concurrency=0)
    faults, _, way_out = str(caught.value).partition(". ")
    assert "ROUTER_FOLDER_SETTINGS=false" in way_out
    told = faults.split("; setting ")
    named = {fault.split(": ")[0]: fault.rpartition(" (in ")[2] for fault in told}
    assert named.pop("setting max_concurrency") == told[0]  # an argument: no source is named
    assert named == {
        "vector.max_suggestions": "router.toml)",
        "fuzzy.ttl": "pyproject.toml)",
        "llm.providers.0": f"{user_file()})",
        "exact.max_entries": "ROUTER_EXACT)",
    }


@pytest.mark.parametrize("file", ["router.toml", "pyproject.toml"])
def test_a_folder_in_the_place_of_a_file_is_told(file: str) -> None:
    Path(file).mkdir()
    with pytest.raises(ConfigurationError, match=f"{file}: not a regular file"):
        Settings()


def test_a_file_of_another_encoding_is_told_so() -> None:
    Path("router.toml").write_bytes(b"max_pending = 5 # \xe4")
    with pytest.raises(ConfigurationError, match=r"^router\.toml: not UTF-8: byte 18\. "):
        Settings()


@pytest.mark.parametrize("file", ["router.toml", "pyproject.toml"])
@pytest.mark.parametrize("text", [b"fuzzy = = 1", b"\xff\xfe"])
def test_a_file_that_is_not_toml_is_named(file: str, text: bytes) -> None:
    Path(file).write_bytes(text)
    with pytest.raises(ConfigurationError, match=f"^{file}: "):
        Settings()


def test_a_mark_of_the_encoding_is_no_part_of_a_file() -> None:
    Path("router.toml").write_bytes(b"\xef\xbb\xbfmax_concurrency = 5\n")
    assert Settings().max_concurrency == 5


@pytest.mark.parametrize("text", ["tool = 5", '[tool]\nrouter = "x"'])
def test_a_table_that_is_none_is_an_error_of_its_file(text: str) -> None:
    write("pyproject.toml", text)
    with pytest.raises(
        ConfigurationError, match=r"^pyproject.toml: \[tool.router\] is not a table"
    ):
        Settings()


@pytest.mark.parametrize(
    ("file", "table"), [("router.toml", "llm.openai"), ("pyproject.toml", "tool.router.llm.openai")]
)
def test_a_key_in_a_file_is_refused(file: str, table: str) -> None:
    write(file, f'[{table}]\napi_key = "sk-in-a-file"\n')
    with pytest.raises(ConfigurationError, match="environment only") as caught:
        Settings()
    assert "sk-in-a-file" not in str(caught.value)


@pytest.mark.parametrize("file", ["router.toml", "pyproject.toml"])
@pytest.mark.parametrize(
    ("text", "why"),
    [
        (".".join(["a"] * 500_000) + " = 1", "a key has more than 32 parts"),
        ("max_pending = 0x" + "f" * 20_000, "a whole number has more than 64 bits"),
    ],
)
def test_no_file_of_a_folder_takes_work_without_end(file: str, text: str, why: str) -> None:
    Path(file).write_text(text)
    with cpu_time_at_most(1), pytest.raises(ConfigurationError, match=f"{file}: {why}"):
        Settings()


BROKEN = {
    "not TOML": "broken = [",
    "no table": "tool = 5",
    "unknown": "[tool.router]\nno-such = 1",
    "out of range": "[tool.router.vector]\ncaution = 7",
    "a key": "[tool.router.llm.openai]\napi_key = 'sk'",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_an_error_of_a_folders_file_names_the_way_out_and_the_way_out_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    write("pyproject.toml", text)
    with pytest.raises(ConfigurationError) as caught:
        Settings()
    assert "pyproject.toml" in str(caught.value)
    assert str(caught.value).endswith(
        f". Correct the settings files of {str(tmp_path)!a}, or go on without them: set "
        "ROUTER_FOLDER_SETTINGS=false"
    )
    assert Settings(folder_settings=False).max_concurrency == 16
    monkeypatch.setenv("ROUTER_FOLDER_SETTINGS", "false")
    assert Settings().max_concurrency == 16


def test_an_error_of_the_users_own_names_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUTER_MAX_PENDING", "none")
    with pytest.raises(ConfigurationError) as caught:
        Settings()
    assert "FOLDER_SETTINGS" not in str(caught.value)


def test_the_user_may_go_without_the_files_of_every_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    write("router.toml", "max_concurrency = 2\n")
    user_file().parent.mkdir(parents=True)
    user_file().write_text("folder_settings = false\n", encoding="utf-8")
    assert Settings().max_concurrency == 16
    monkeypatch.setenv("ROUTER_FOLDER_SETTINGS", "true")  # for this once
    assert Settings().max_concurrency == 2


def test_faults_are_told_without_the_files_that_are_not_wanted() -> None:
    write("router.toml", "broken = [")
    with pytest.raises(ConfigurationError, match=r"^setting max_pending: "):
        Settings(folder_settings=False, max_pending=0)


def test_a_switch_that_is_neither_on_nor_off_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUTER_FOLDER_SETTINGS", "perhaps")
    with pytest.raises(ConfigurationError, match=r"setting folder_settings: .*ROUTER_FOLDER_SETT"):
        Settings()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes in folders here")
@pytest.mark.parametrize("file", ["router.toml", "pyproject.toml"])
def test_a_pipe_in_the_place_of_a_file_is_not_waited_for(file: str) -> None:
    os.mkfifo(file)
    with pytest.raises(ConfigurationError, match=f"{file}: not a regular file"):
        Settings()
