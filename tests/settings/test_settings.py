"""Settings: the documents' defaults, every source, and errors that name the setting only."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest
from pydantic import ValidationError

from router import ConfigurationError, Settings
from router.settings.files import warn_once
from router.settings.trust import config_folder

SECRET = "sk-very-secret"  # noqa: S105 - it opens nothing


@pytest.fixture(autouse=True)
def _empty_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A working directory without files."""
    monkeypatch.chdir(tmp_path)


def test_the_documents_defaults_are_the_defaults() -> None:
    settings = Settings()
    assert settings.fuzzy.model_dump() == {
        "similarity_threshold": 0.75,
        "ttl_seconds": 7 * 24 * 3600,
        "max_entries": 500,
    }
    assert settings.exact.model_dump() == {
        "ttl_seconds": 7 * 24 * 3600,
        "max_entries": 1000,
        "max_bytes": 64 * 2**20,
    }
    assert settings.vector.model_dump() == {
        "caution": "balanced",
        "confidence_threshold": 0.5,
        "confidence_boost": 0.15,
        "confidence_cap": 0.95,
        "generic_skills": ("writer", "knowledge"),
        "max_suggestions": 3,
    }
    assert (settings.llm.enabled, settings.llm.providers, settings.llm.offered_tokens) == (
        True,
        None,
        8_000,
    )
    assert settings.encoder.kind == "bundled"
    assert (settings.skills, settings.shipped_skills, settings.pinned_skills) == (None, True, ())


def test_deeply_nested_names_are_reached_from_every_source(monkeypatch: pytest.MonkeyPatch) -> None:
    user_file = config_folder() / "router.toml"
    user_file.parent.mkdir(parents=True)
    user_file.write_text('[llm.openai]\nbase_url = "http://127.0.0.1:1/v1"\n')
    monkeypatch.setenv("ROUTER_LLM__OPENAI__MODEL", "small")
    monkeypatch.setenv("ROUTER_LLM__OLLAMA__HOST", "http://127.0.0.1:2")
    llm = Settings().llm
    assert (llm.openai.base_url, llm.openai.model) == ("http://127.0.0.1:1/v1", "small")
    assert llm.ollama.host == "http://127.0.0.1:2"


@pytest.mark.parametrize(
    ("written", "names"),
    [
        ("a,b", ("a", "b")),
        (" a , b ,", ("a", "b")),
        ('["a", "b, c"]', ("a", "b, c")),
        ("a", ("a",)),
        ("", ()),
        ("[]", ()),
    ],
)
def test_a_variable_gives_a_list_with_commas_or_as_json(
    monkeypatch: pytest.MonkeyPatch, written: str, names: tuple[str, ...]
) -> None:
    monkeypatch.setenv("ROUTER_PINNED_SKILLS", written)
    monkeypatch.setenv("ROUTER_SKILLS", written)
    monkeypatch.setenv("ROUTER_VECTOR__GENERIC_SKILLS", written)
    settings = Settings()
    assert settings.pinned_skills == names
    assert settings.vector.generic_skills == names
    assert settings.skills == tuple(Path(name) for name in names)


def test_settings_do_not_change_once_they_are_read() -> None:
    settings = Settings()
    with pytest.raises(ValidationError, match="frozen"):
        settings.max_concurrency = 2  # type: ignore[misc]
    with pytest.raises(ValidationError, match="frozen"):
        settings.fuzzy.max_entries = 2  # type: ignore[misc]


# --- errors


def test_an_unknown_argument_or_nested_variable_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigurationError, match="setting tresholds: there is none"):
        Settings(tresholds=1)
    monkeypatch.setenv("ROUTER_EXACT__SIZE", "5")
    with pytest.raises(ConfigurationError, match=r"setting exact\.size: there is none"):
        Settings()
    monkeypatch.delenv("ROUTER_EXACT__SIZE")
    said = r"setting llm\.ollama\.base_url: there is none; there are host, model$"
    with pytest.raises(ConfigurationError, match=said):
        Settings(llm={"ollama": {"base_url": "http://127.0.0.1:11434"}})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fuzzy.similarity_threshold", "1.5"),
        ("fuzzy.similarity_threshold", "nan"),
        ("fuzzy.ttl_seconds", "0"),
        ("exact.max_entries", "0"),
        ("exact.max_entries", "1000000000000000000000000"),
        ("fuzzy.max_entries", "1000000000000000000000000"),
        ("max_concurrency", "many"),
        ("vector.confidence_threshold", "-0.1"),
        ("llm.timeout_seconds", "0"),
        ("encoder.kind", "guess"),
        ("pinned_skills", "[a"),
        ("memory.time_zone", "Foo"),
        ("memory.time_zone", "../etc/passwd"),
        ("memory.time_zone", ""),
    ],
)
def test_a_malformed_value_is_an_error_that_names_its_setting(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    monkeypatch.setenv(f"ROUTER_{name.replace('.', '__')}".upper(), value)
    with pytest.raises(ConfigurationError, match=f"^setting {name}: "):
        Settings()


def test_settings_that_name_the_former_encoder_mean_the_one_in_its_place() -> None:
    assert Settings(encoder={"kind": "wordllama"}).encoder.kind == "bundled"
    user_file = config_folder() / "router.toml"
    user_file.parent.mkdir(parents=True, exist_ok=True)
    user_file.write_text('[encoder]\nkind = "wordllama"\n', encoding="utf-8")
    assert Settings().encoder.kind == "bundled"


@pytest.mark.parametrize(
    ("variable", "meant"),
    [
        ("ROUTER_SKILL", "ROUTER_SKILLS"),
        ("ROUTER_LLM_PROVIDERS", "ROUTER_LLM__PROVIDERS"),
        ("router_memry__service__token", "ROUTER_MEMORY__SERVICE__TOKEN"),
        ("ROUTER_CATALOGUES", "listings"),
    ],
)
def test_a_variable_that_is_nearly_a_setting_is_warned_of_once(
    variable: str,
    meant: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    warn_once.cache_clear()
    monkeypatch.setenv(variable, "a secret")
    Settings()
    Settings()
    [warning] = caplog.messages
    assert variable in warning
    assert meant in warning
    assert "secret" not in warning


@pytest.mark.parametrize("variable", ["ROUTER_HOST", "ROUTER_BENCH_DATA", "ROUTER_", "ROUTER_X__Y"])
def test_a_variable_of_another_program_is_left_alone(
    variable: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv(variable, "x")
    Settings()
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("variable", "value"), [("ROUTER_LLM", "{"), ("router_memory__layer_ttl_days", "session=3")]
)
def test_a_variable_that_is_no_json_is_named_without_its_value(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigurationError, match=f"^the variable {variable}: not JSON: ") as caught:
        Settings()
    assert value not in str(caught.value).removeprefix(f"the variable {variable}")


def test_a_fault_of_our_own_check_is_told_in_its_words_alone() -> None:
    with pytest.raises(ConfigurationError, match=r"^setting encoder\.kind: 'guess' is not known"):
        Settings(encoder={"kind": "guess"})


def test_all_faults_are_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUTER_MAX_CONCURRENCY", "0")
    monkeypatch.setenv("ROUTER_EXACT__MAX_ENTRIES", "0")
    with pytest.raises(ConfigurationError, match=r"max_concurrency: .*; .*exact\.max_entries: "):
        Settings()


# --- secrets


def test_the_state_folder_is_expanded_and_never_empty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUTER_STATE_DIR", "~/state")
    assert Settings().state_dir == Path.home() / "state"
    monkeypatch.setenv("ROUTER_STATE_DIR", "")
    with pytest.raises(ConfigurationError, match="empty; name a path"):
        Settings()


def test_the_home_of_a_user_who_is_not_there_is_a_fault_of_the_setting() -> None:
    with pytest.raises(ConfigurationError, match=r"setting state_dir: .*no such user"):
        Settings(state_dir="~nosuchuser/x")


@pytest.mark.parametrize("days", ["0", "-1", "1e300", "NaN", "Infinity"])
def test_days_that_no_date_can_be_counted_by_are_refused(
    monkeypatch: pytest.MonkeyPatch, days: str
) -> None:
    monkeypatch.setenv("ROUTER_MEMORY__LAYER_TTL_DAYS", f'{{"session": {days}}}')
    with pytest.raises(ConfigurationError, match=r"memory\.layer_ttl_days\.session"):
        Settings()


@pytest.mark.parametrize("name", ["user", "project", "session"])
def test_whose_memories_they_are_is_never_empty(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(f"ROUTER_MEMORY__{name.upper()}", "")
    with pytest.raises(ConfigurationError, match=rf"memory\.{name}"):
        Settings()


def test_a_key_is_read_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUTER_LLM__OPENAI__API_KEY", SECRET)
    settings = Settings()
    key = settings.llm.openai.api_key
    assert key is not None
    assert key.get_secret_value() == SECRET
    shown = (repr(settings), str(settings), settings.model_dump_json(), str(settings.model_dump()))
    assert [SECRET in text for text in shown] == [False] * 4


@pytest.mark.parametrize(
    "variable",
    [
        ("ROUTER_LLM__OPENAI__API_KYE", SECRET),  # misspelt
        ("ROUTER_LLM__OPENAI__API_KEY", f'["{SECRET}"]'),  # of the wrong type
        ("ROUTER_LLM", f'{{"openai": {{"api_key": {{"value": "{SECRET}"}}}}}}'),
        ("ROUTER_LLM", f'{{"openai": "{SECRET}"'),  # not JSON
    ],
)
def test_a_key_is_not_shown_by_errors_nor_their_tracebacks(
    monkeypatch: pytest.MonkeyPatch, variable: tuple[str, str]
) -> None:
    monkeypatch.setenv(*variable)
    monkeypatch.setenv("ROUTER_MAX_CONCURRENCY", "0")  # some error there is in any case
    with pytest.raises(ConfigurationError) as caught:
        Settings()
    assert SECRET not in "".join(traceback.format_exception(caught.value))


@pytest.mark.parametrize(
    ("caution", "least"),
    [("bold", 0.3), ("balanced", 0.5), ("careful", 0.65), ("0.7", 0.7), (1, 1)],
)
def test_caution_is_a_word_or_the_least_probability(caution: object, least: float) -> None:
    settings = Settings(vector={"caution": caution})
    assert settings.vector.least_right == least


@pytest.mark.parametrize("caution", ["reckless", -0.1, 1.1])
def test_another_caution_is_refused(caution: object) -> None:
    known = r"^setting vector\.caution: Input should be 'bold', 'balanced' or 'careful', or: Input "
    with pytest.raises(ConfigurationError, match=known):
        Settings(vector={"caution": caution})
