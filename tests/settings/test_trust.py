"""Trust: every setting has a class, and a folder's files set only what its class allows."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from router import ConfigurationError, Settings
from router.settings.files import folder_settings
from router.settings.trust import (
    Trust,
    TrustedFolders,
    config_folder,
    leading_elsewhere,
    leaves,
    needing_trust,
    trust_of,
)

INSIDE_THE_FOLDER = {"skills", "listings", "memory.project_directory"}
ONLY_MORE_CAREFUL = {
    "vector.caution": Trust.HIGHER,
    "llm.offered_tokens": Trust.LOWER,
    "max_concurrency": Trust.LOWER,
    "shipped_skills": Trust.LOWER,
    "memory.mcp_tools": Trust.LOWER,
}
WITHOUT_HARM = {"vector.max_suggestions", "memory.time_zone"}
TELLING = re.compile(
    r"url|host|address|dir|path|file|model|key|token$|secret|store|service|provider|user$|project$"
    r"|session$|encoder|plugin|enabled|import"
)
"""Words in a name that speak of where data, keys or files go, or which code is loaded."""


def test_every_setting_has_a_class_of_trust() -> None:
    classes = {".".join(path): trust_of(field) for path, field in leaves(Settings)}
    assert [name for name, trust in classes.items() if trust is None] == []
    assert {name for name, trust in classes.items() if trust is Trust.FOLDER} == INSIDE_THE_FOLDER
    assert {name for name, trust in classes.items() if trust is Trust.ANYONE} == WITHOUT_HARM
    compared = (Trust.HIGHER, Trust.LOWER)
    assert {n: trust for n, trust in classes.items() if trust in compared} == ONLY_MORE_CAREFUL


def test_no_setting_that_may_lead_somewhere_is_for_anyone() -> None:
    harmless = {path: field for path, field in leaves(Settings) if trust_of(field) is Trust.ANYONE}
    assert [path for path, field in harmless.items() if "Path" in str(field.annotation)] == []
    assert [path for path in harmless if TELLING.search(path[-1])] == []


def test_what_only_tunes_leads_nowhere(tmp_path: Path) -> None:
    tuning = {"vector": {"caution": 0.1}, "llm": {"offered_tokens": 9_000, "max_retries": 3}}
    assert len(needing_trust(Settings, tuning, tmp_path)) == 3
    assert leading_elsewhere(Settings, tuning, tmp_path) == ()
    elsewhere = {"skills": ["/etc"], "state_dir": "x", "max_pending": 1}
    assert leading_elsewhere(Settings, elsewhere, tmp_path) == (("skills",), ("state_dir",))
    assert leading_elsewhere(Settings, {"skills": ["team"]}, tmp_path) == ()


def test_a_setting_without_a_class_is_only_the_users() -> None:
    class Section(BaseModel):
        new: int = 0
        known: Annotated[int, Trust.ANYONE] = 0

    class Model(BaseModel):
        section: Section = Section()

    values = {"section": {"new": 1, "known": 1}}
    assert needing_trust(Model, values, Path()) == {("section", "new"): 1}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, in which nothing is."""
    place = tmp_path / "clone"
    place.mkdir()
    monkeypatch.chdir(place)
    return place


def refused(folder: Path) -> set[str]:
    ignored = folder_settings(Settings, folder).ignored
    return {".".join(path) for values in ignored.values() for path in values}


def test_one_warning_names_the_file_the_settings_and_the_way_out(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "router.toml").write_text(
        'state_dir = "x"\nmax_concurrency = 3\n[llm.openai]\nbase_url = "http://127.0.0.1:9"\n'
    )
    settings = Settings()
    Settings()
    assert settings.llm.openai.base_url is None
    assert settings.state_dir != Path("x")
    assert settings.max_concurrency == 3
    (message,) = caplog.messages
    assert str(folder / "router.toml") in message
    assert "llm.openai.base_url" in message
    assert "state_dir" in message
    assert "`router trust`" in message
    assert "max_concurrency" not in message


def test_the_warning_tells_a_change_from_a_folder_that_was_never_trusted(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Who trusted the folder and pulled since must look at what is new, not wonder at the list."""
    file = folder / "router.toml"
    file.write_text('state_dir = "x"\n')
    TrustedFolders().add(folder, folder_settings(Settings, folder).digest)
    Settings()
    assert caplog.messages == []
    file.write_text('state_dir = "y"\n')
    Settings()
    (message,) = caplog.messages
    assert message.startswith("settings ignored, because they are not those that you trusted: ")


def test_harmless_settings_need_no_trust(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    (folder / "pyproject.toml").write_text("[tool.router.vector]\nmax_suggestions = 2\n")
    assert Settings().vector.max_suggestions == 2
    assert caplog.messages == []


def test_a_folder_may_only_be_more_careful_than_the_user(folder: Path) -> None:
    careful = {
        "llm.offered_tokens": ("8000", "8001"),
        "max_concurrency": ("1", "17"),
        "vector.caution": ("'careful'", "'bold'"),
        "memory.mcp_tools": ("false", None),
        "shipped_skills": ("false", None),
    }
    for name, (allowed, loose) in careful.items():
        (folder / "router.toml").write_text(f"{name} = {allowed}\n")
        assert refused(folder) == set()
        if loose is not None:
            (folder / "router.toml").write_text(f"{name} = {loose}\n")
            assert refused(folder) == {name}
    (folder / "router.toml").write_text("vector.caution = 0.49\nllm.offered_tokens = 200000\n")
    settings = Settings()
    assert (settings.vector.caution, settings.llm.offered_tokens) == ("balanced", 8_000)


def test_what_is_more_careful_is_measured_by_the_users_own_value(folder: Path) -> None:
    config_folder().mkdir(parents=True)
    (config_folder() / "router.toml").write_text(
        "shipped_skills = false\n[vector]\ncaution = 'careful'\n[llm]\noffered_tokens = 20000\n"
        "[memory]\nmcp_tools = false\n"
    )
    (folder / "router.toml").write_text(
        "shipped_skills = true\n[vector]\ncaution = 0.6\n[llm]\noffered_tokens = 20000\n"
        "[memory]\nmcp_tools = true\n"
    )
    assert refused(folder) == {"shipped_skills", "vector.caution", "memory.mcp_tools"}
    trust(folder)
    settings = Settings()
    assert (settings.vector.caution, settings.llm.offered_tokens) == (0.6, 20_000)


def test_a_malformed_value_of_a_guard_is_told_and_not_only_ignored(folder: Path) -> None:
    (folder / "router.toml").write_text("vector.caution = 7\n")
    with pytest.raises(ConfigurationError, match=r"setting vector\.caution: .*router\.toml"):
        Settings()


def test_a_malformed_value_of_the_user_lets_no_other_pass(folder: Path) -> None:
    config_folder().mkdir(parents=True)
    (config_folder() / "router.toml").write_text("max_concurrency = 'many'\n")
    (folder / "router.toml").write_text("max_concurrency = 1\n")
    assert refused(folder) == {"max_concurrency"}


@pytest.mark.parametrize("name", ["skills", "listings"])
def test_folders_of_skills_inside_the_folder_need_no_trust(folder: Path, name: str) -> None:
    (folder / "real").mkdir()
    (folder / "link").symlink_to("real")
    (folder / "router.toml").write_text(f'{name} = ["team", "./a/../b", "link", "real/new"]')
    assert refused(folder) == set()
    (folder / "router.toml").write_text(f'{name} = "team, b"')  # as text, like a variable
    assert refused(folder) == set()


@pytest.mark.parametrize("name", ["skills", "listings"])
@pytest.mark.parametrize(
    "path", ["/etc", "..", "../other", "a/../../other", "~/x", "~", "out", "out/deep", "loop/x"]
)
def test_folders_of_skills_elsewhere_are_the_users(folder: Path, name: str, path: str) -> None:
    (folder / "out").symlink_to(folder.parent)
    (folder / "loop").symlink_to("loop")
    (folder / "router.toml").write_text(f"{name} = {json.dumps(['team', path])}")
    assert refused(folder) == {name} - ({name} if path == "loop/x" else set())
    (folder / "router.toml").write_text(f"{name} = {json.dumps('team, ' + path)}")
    assert refused(folder) == {name} - ({name} if path == "loop/x" else set())


def test_sections_of_the_wrong_type_or_spelling_set_nothing(folder: Path) -> None:
    for text in ('LLM = {openai = {base_url = "x"}}', 'llm = ["x"]', "llm = '{\"enabled\": true}'"):
        (folder / "router.toml").write_text(text)
        with pytest.raises(ConfigurationError, match=r"setting (LLM|llm)"):
            Settings()


@pytest.mark.parametrize("text", ["a = " + "[" * 50_000, "# " + "x" * 5_000_000])
def test_a_file_that_is_too_much_is_named(folder: Path, text: str) -> None:
    (folder / "router.toml").write_text(text)
    with pytest.raises(ConfigurationError, match=r"^router\.toml: "):
        Settings()


def trust(folder: Path) -> None:
    TrustedFolders().add(folder, folder_settings(Settings, folder).digest)


def test_a_trusted_folder_sets_everything_until_a_guarded_value_changes(folder: Path) -> None:
    file = folder / "router.toml"
    file.write_text('state_dir = "state"\nmax_concurrency = 2\n')
    trust(folder)
    assert Settings().state_dir == Path("state")

    file.write_text('state_dir = "state"\nmax_concurrency = 5\n')  # harmless
    assert (Settings().state_dir, Settings().max_concurrency) == (Path("state"), 5)

    file.write_text('state_dir = "elsewhere"\n')
    assert refused(folder) == {"state_dir"}
    file.write_text('state_dir = "state"\n[llm]\nproviders = ["ollama"]\n')
    assert refused(folder) == {"state_dir", "llm.providers"}

    file.write_text('state_dir = "state"\n')
    assert refused(folder) == set()
    assert TrustedFolders().remove(folder)
    assert refused(folder) == {"state_dir"}
    assert not TrustedFolders().remove(folder)


def test_trust_is_given_to_one_folder_and_one_file(folder: Path) -> None:
    (folder / "router.toml").write_text('state_dir = "state"\n')
    trust(folder)
    other = folder.parent / "other"
    other.mkdir()
    (other / "router.toml").write_text('state_dir = "state"\n')
    assert refused(other) == {"state_dir"}
    (folder / "router.toml").unlink()
    (folder / "pyproject.toml").write_text('[tool.router]\nstate_dir = "state"\n')
    assert refused(folder) == {"state_dir"}


def test_a_link_to_a_trusted_folder_is_that_folder(folder: Path) -> None:
    (folder / "router.toml").write_text('state_dir = "state"\n')
    trust(folder)
    link = folder.parent / "link"
    link.symlink_to(folder)
    assert refused(link) == set()


def test_the_users_own_file_is_trusted_and_weaker_than_the_folders(folder: Path) -> None:
    config_folder().mkdir(parents=True)
    (config_folder() / "router.toml").write_text(
        'state_dir = "/var/tmp/mine"\nmax_concurrency = 4\n[exact]\nmax_entries = 4\n'
    )
    (folder / "router.toml").write_text('state_dir = "theirs"\nmax_concurrency = 3\n')
    settings = Settings()
    assert settings.state_dir == Path("/var/tmp/mine")  # noqa: S108 - nothing is written there
    assert (settings.max_concurrency, settings.exact.max_entries) == (3, 4)


def test_the_users_own_file_is_trusted_in_its_own_folder_too(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    config_folder().mkdir(parents=True)
    (config_folder() / "router.toml").write_text('state_dir = "mine"\n')
    monkeypatch.chdir(config_folder())
    assert Settings().state_dir == Path("mine")
    assert caplog.messages == []


def test_only_its_owner_reads_the_list_of_trusted_folders(folder: Path) -> None:
    trust(folder)
    assert stat.S_IMODE(config_folder().stat().st_mode) == 0o700
    assert _files()[0].exists()
    assert {stat.S_IMODE(file.stat().st_mode) for file in config_folder().iterdir()} == {0o600}


def _files() -> list[Path]:
    return [config_folder() / "trusted.json"]


@pytest.mark.parametrize("content", ["", "[]", '{"folders": 3}', "\xff"])
def test_a_broken_list_of_trusted_folders_is_named(folder: Path, content: str) -> None:
    config_folder().mkdir(parents=True)
    (config_folder() / "trusted.json").write_text(content, encoding="latin-1")
    assert Settings().max_concurrency == 16  # nobody needs the list here
    (folder / "router.toml").write_text('state_dir = "x"')
    with pytest.raises(ConfigurationError, match=r"trusted\.json: .*delete it"):
        Settings()


def test_any_value_has_a_digest(folder: Path) -> None:
    values: dict[str, Any] = {'state_dir = 1979-05-27\nskills = [inf, "\\u00e9/.."]': {}}
    for text in values:
        (folder / "router.toml").write_text(text, encoding="utf-8")
        assert len(folder_settings(Settings, folder).digest) == 64
