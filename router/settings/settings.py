"""Every setting, with its default and its class of trust.

Sources, strongest first: arguments, ``ROUTER_*`` environment variables, ``router.toml`` in the
working directory, ``[tool.router]`` in its ``pyproject.toml``, the user's own ``router.toml`` in
``trust.config_folder()``, the defaults below. The files of the working directory may come with a
cloned repository: until the user trusts that folder, they set only what is harmless, and what is
more careful than the user's own value. See ``router/settings/files.py``.

A nested value is named with two underscores: ``ROUTER_FUZZY__TTL_SECONDS=3600``. Keys of providers
are read from the environment only, and never written or shown.
"""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeAlias
from zoneinfo import ZoneInfo

import platformdirs
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    TypeAdapter,
    ValidationError,
)
from pydantic.fields import FieldInfo
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from router.errors import ConfigurationError
from router.plain_json import words_of
from router.settings.files import (
    PROJECT_FILE,
    SETTINGS_FILE,
    folder_settings,
    user_file,
    user_settings,
    users_skills,
    warn_once,
    way_out,
)
from router.settings.plugins import ANSWER_CACHES, ENCODERS, LLMS, checked_name
from router.settings.trust import Measure, Trust, leaves


def _split(value: object) -> object:
    """Environment variables give lists as ``a,b`` or as JSON; TOML gives real lists."""
    if not isinstance(value, str):
        return value
    if value.lstrip().startswith("["):
        return json.loads(value)
    return [part.strip() for part in value.split(",") if part.strip()]


def _state_path(value: object) -> object:
    """Refuse an empty value, which would mean the working directory, and expand ``~``."""
    if value == "":
        raise ValueError("empty; name a path, or leave the setting out")
    if not isinstance(value, str | Path):
        return value
    try:
        return Path(value).expanduser()
    except RuntimeError as error:
        raise ValueError(f"{value}: there is no such user; write the whole path") from error


def _of_today(kind: str) -> str:
    """The encoder that was bundled before was named after its package. Settings of that time mean
    what is bundled."""
    return "bundled" if kind == "wordllama" else kind


def _zone_name(name: str) -> str:
    """Refuse a time zone that this machine does not know."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):  # ZoneInfoNotFoundError is a KeyError
        raise ValueError(f"{name[:100]!r} is no time zone; name one like Europe/Berlin") from None
    return name


StatePath = Annotated[Path, BeforeValidator(_state_path)]
Paths = Annotated[tuple[Path, ...], NoDecode, BeforeValidator(_split)]
Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
Provider = Annotated[str, AfterValidator(checked_name(LLMS, "openai", "ollama"))]
ProviderNames = Annotated[tuple[Provider, ...], NoDecode, BeforeValidator(_split)]

ZoneName = Annotated[str, AfterValidator(_zone_name)]
Days = Annotated[float, Field(gt=0, le=36_500)]
MAX_ENTRIES = 10_000_000
"""A folder may set how much a cache holds, and must not make it more than any machine can."""

Caution = Literal["bold", "balanced", "careful"] | Annotated[float, Field(ge=0, le=1)]
CAUTIONS = {"bold": 0.3, "balanced": 0.5, "careful": 0.65}


def least_probability(caution: str | float) -> float:
    """A caution as the least probability, in [0, 1], that a loaded skill is right."""
    return CAUTIONS[caution] if isinstance(caution, str) else caution


ENCODER_KINDS = ("bundled", "onnx", "minilm", "sentence-transformers", "openai", "ollama")
EncoderKind = Annotated[
    str, AfterValidator(_of_today), AfterValidator(checked_name(ENCODERS, *ENCODER_KINDS))
]
AnswerCacheName = Annotated[str, AfterValidator(checked_name(ANSWER_CACHES, "local"))]


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class FuzzySettings(_Section):
    """Stage 1, the fuzzy cache."""

    similarity_threshold: Annotated[float, Trust.COST] = Field(0.75, ge=0, le=1)
    """Least Levenshtein similarity of a hit, in [0, 1]; the content gate applies on top."""
    ttl_seconds: Annotated[float, Trust.COST] = Field(7 * 24 * 3600, gt=0)
    max_entries: Annotated[int, Trust.COST] = Field(500, ge=1, le=MAX_ENTRIES)


class ExactSettings(_Section):
    """Stage 2, the exact cache."""

    ttl_seconds: Annotated[float, Trust.COST] = Field(7 * 24 * 3600, gt=0)
    max_entries: Annotated[int, Trust.COST] = Field(1000, ge=1, le=MAX_ENTRIES)
    max_bytes: Annotated[int, Trust.COST] = Field(64 * 2**20, ge=2**20, le=2**40)
    """Of the answers together, with the spellings of their requests; nearly."""


class OpenAISettings(_Section):
    """An OpenAI-compatible API."""

    base_url: Annotated[str | None, Trust.USER] = None
    """None means the SDK's own default, or ``OPENAI_BASE_URL``."""
    model: Annotated[str, Trust.USER] = "gpt-4.1-mini"
    """A model that gives token probabilities; reasoning models give none and take longer."""
    api_key: Annotated[SecretStr | None, Trust.USER] = None
    """None means ``OPENAI_API_KEY``. Set it by environment variable, not in a file."""
    input_price: Annotated[float | None, Trust.USER] = Field(None, ge=0)
    """US dollars for a million tokens of prompts; with it and the next, costs are told."""
    output_price: Annotated[float | None, Trust.USER] = Field(None, ge=0)
    """US dollars for a million tokens of answers."""


class OllamaSettings(_Section):
    """An Ollama server."""

    host: Annotated[str | None, Trust.USER] = None
    """None means ``OLLAMA_HOST``, or the SDK's own default on loopback."""
    model: Annotated[str, Trust.USER] = "llama3.2"


class LLMSettings(_Section):
    """Stage 3, the LLM."""

    enabled: Annotated[bool, Trust.USER] = True
    """False: stage 3 is skipped, whatever the environment holds."""
    providers: Annotated[ProviderNames | None, Trust.USER] = None
    """Which to ask, in fall-back order: ``openai``, ``ollama``, plug-ins. None: openai when a key
    or a base URL is set, then ollama when a host is set."""
    openai: OpenAISettings = OpenAISettings()
    ollama: OllamaSettings = OllamaSettings()
    timeout_seconds: Annotated[float, Trust.COST] = Field(20.0, gt=0)
    """Deadline of the whole stage: every retry and every provider together."""
    max_retries: Annotated[int, Trust.COST] = Field(2, ge=0, le=10)
    """Further tries per provider after 429, 5xx or a connection error."""
    breaker_failures: Annotated[int, Trust.COST] = Field(5, ge=1)
    """Failures in a row after which a provider is left alone ..."""
    breaker_reset_seconds: Annotated[float, Trust.COST] = Field(30.0, gt=0)
    """... for this long; then one trial call decides."""
    offered_tokens: Annotated[int, Trust.LOWER] = Field(8_000, ge=100, le=200_000)
    """What the names and descriptions of the skills that the LLM is offered may take. While all of
    them fit, all are offered; else the likeliest, as many as fit."""


class VectorSettings(_Section):
    """Stage 4, the vector fallback, which also confirms weak answers of an LLM."""

    caution: Annotated[Caution, Trust.HIGHER, Measure(least_probability)] = "balanced"
    """How sure retrieval must be before it loads a skill without an LLM: ``bold``, ``balanced``,
    ``careful``, or the least probability, in [0, 1], that the skill is right. More caution routes
    fewer requests, and of those fewer wrongly."""
    confidence_threshold: Annotated[float, Trust.COST] = Field(0.5, ge=0, le=1)
    """An LLM answer below it, or one whose confidence is not known, is weak, and stage 4 runs."""
    confidence_boost: Annotated[float, Trust.COST] = Field(0.15, ge=0, le=1)
    """Lift of a weak answer that retrieval supports."""
    confidence_cap: Annotated[float, Trust.COST] = Field(0.95, ge=0, le=1)
    """No lift goes above it."""
    generic_skills: Annotated[Names, Trust.COST] = ("writer", "knowledge")
    """Fall-back skills: being the only choice, one of them makes a weak answer."""
    max_suggestions: Annotated[int, Trust.ANYONE] = Field(3, ge=0, le=20)

    @property
    def least_right(self) -> float:
        """The caution as the least probability, in [0, 1], that a loaded skill is right."""
        return least_probability(self.caution)


class EncoderSettings(_Section):
    """The text encoder of the vector index."""

    kind: Annotated[EncoderKind, Trust.USER] = "bundled"
    """``bundled`` is bundled and English; ``minilm`` comes with the extra of its name; ``onnx``
    runs any sentence encoder in the ONNX format; or a plug-in."""
    model: Annotated[str | None, Trust.USER] = None
    """Name of the model, for the kinds that need one; for ``onnx`` and ``sentence-transformers``
    its folder, or its name on the Hugging Face hub."""
    timeout_seconds: Annotated[float, Trust.USER] = Field(10.0, gt=0)
    """What encoding one request may take, where the encoder is not a static one. While it fails or
    is late, requests are ranked by their words alone. Encoding skills may take longer."""


class WatchSettings(_Section):
    """Following the skills on disk."""

    polling: Annotated[bool | None, Trust.COST] = None
    """True looks every second instead of waiting for the system's events; None does so only where
    there are none, or where ``WATCHFILES_FORCE_POLLING`` is set."""


class LearningSettings(_Section):
    """Learning from every answer, inside an error bound."""

    enabled: Annotated[bool, Trust.USER] = True
    """False: nothing is remembered of requests but what the caches keep."""
    directory: Annotated[StatePath | None, Trust.USER] = None
    """Where labels and corrections are kept, which nothing else holds. None: the user's data
    folder; with a ``state_dir`` of your own, that folder."""
    max_error: Annotated[float, Trust.USER] = Field(0.01, ge=0, lt=1)
    """Largest share of wrong answers, relative to the LLM's, for which LLM calls may be saved; it
    holds with 95% confidence. 0 asks the LLM whenever no cache answers."""
    seed: Annotated[int, Trust.COST] = 0
    """Seed of the random choice of local answers that are audited."""
    share_scopes: Annotated[bool, Trust.USER] = False
    """Whether requests of a scope teach too. What they teach serves every scope."""


class MemoryServiceSettings(_Section):
    """A Forgetful server beside the memory files; without a URL the files stand alone."""

    url: Annotated[str | None, Trust.USER] = None
    """Such as ``http://127.0.0.1:8020``. A host that is not loopback needs https and a token."""
    protocol: Annotated[Literal["http", "mcp"], Trust.USER] = "http"
    """Its HTTP API, or its MCP endpoint (which needs the extra ``mcp``)."""
    token: Annotated[SecretStr | None, Trust.USER] = None
    """Set it by environment variable, not in a file."""
    probe_seconds: Annotated[float, Trust.COST] = Field(2.0, gt=0, le=60)
    """How long the service may take to answer before it counts as down, and how long what the files
    say waits for it. It loads its models first, so a fresh one is slow."""


class MemorySettings(_Section):
    """Memory: layers, files, and the service that augments them."""

    directory: Annotated[StatePath, Trust.USER] = Field(
        default_factory=lambda: platformdirs.user_data_path("cascade-router") / "memory"
    )
    """Where memories are kept. Not a cache: nothing else holds them."""
    url: Annotated[str | None, Trust.USER] = None
    """Keeps the layers' memories in PostgreSQL with pgvector instead, where many machines share
    them, such as ``postgresql://router@db.example/memory?sslmode=verify-full``. Leave the password
    to ``PGPASSWORD`` or ``~/.pgpass``."""
    project_directory: Annotated[StatePath, Trust.FOLDER] = Path()
    """The project whose ``.serena/memories`` are the canonical files."""
    read_only_patterns: Annotated[Names, Trust.USER] = ()
    """Regular expressions; a memory file whose whole name matches one is never written."""
    ignored_patterns: Annotated[Names, Trust.USER] = ()
    """Regular expressions; a memory file whose whole name matches one is not there at all."""
    user: Annotated[str | None, Trust.USER] = Field(None, min_length=1)
    project: Annotated[str | None, Trust.USER] = Field(None, min_length=1)
    session: Annotated[str | None, Trust.USER] = Field(None, min_length=1)
    """Whose memories they are where a call does not say."""
    time_zone: Annotated[ZoneName | None, Trust.ANYONE] = None
    """Such as ``Europe/Berlin``: where "yesterday" is a day. None: the zone of this machine."""
    layer_ttl_days: Annotated[dict[str, Days], Trust.USER] = {}
    """Days after which items of a layer go, by layer, such as ``{"session" = 30}``. An item's own
    ``expires_at`` is stronger."""
    layer_deadline_seconds: Annotated[float, Trust.COST] = Field(0.05, gt=0)
    """What one layer may take; what it has not found by then is not waited for ..."""
    deadline_seconds: Annotated[float, Trust.COST] = Field(0.25, gt=0)
    """... nor what all of them have not."""
    cache_ttl_seconds: Annotated[float, Trust.COST] = Field(300.0, gt=0)
    """How long an answer of the layers may be given again while nothing is written."""
    mcp_tools: Annotated[bool, Trust.LOWER] = True
    """Whether the MCP server has the tools of memory. Without them models read less than half."""
    service: MemoryServiceSettings = MemoryServiceSettings()


class ClusterSettings(_Section):
    """Sharing answers and evidence with other processes, through Redis or Valkey."""

    url: Annotated[str | None, Trust.USER] = None
    """Such as ``redis://127.0.0.1:6379/0``, or ``rediss://router@redis.example:6380`` for TLS and
    an ACL user (``?ssl_ca_certs=FILE`` names the authority). None: nothing is shared."""
    password: Annotated[SecretStr | None, Trust.USER] = None
    """Set it by environment variable, not in a file."""
    namespace: Annotated[str, Trust.USER] = Field("router", pattern=r"^[A-Za-z0-9._-]{1,64}$")
    """Every name in Redis begins with it. Processes with the same skills and settings share one."""
    deadline_seconds: Annotated[float, Trust.USER] = Field(0.5, gt=0, le=10)
    """What one operation may take. After a few that take longer the process goes on alone, and
    tries again in the background."""


class Settings(BaseSettings):
    """All settings; see the module's text for their sources."""

    model_config = SettingsConfigDict(
        env_prefix="ROUTER_",
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,  # a traceback shows the underlying error, and keys are input
    )

    folder_settings: Annotated[bool, Trust.USER] = True
    """Whether the files of the working directory are read. False goes on without them, such as
    where one of them is broken and not yours to correct. What they say of it themselves does not
    count."""
    skills: Annotated[Paths | None, Trust.FOLDER] = None
    """Folders of skills, strongest first. None: ``~/.agents/skills``, then ``skills``,
    ``.agents/skills`` and ``.claude/skills`` under the working directory, where they exist. What a
    file of the working directory names comes after the user's own."""
    max_skills: Annotated[int, Trust.COST] = Field(100_000, ge=1)
    """Skills taken from folders, at most. What is left out is reported by every command."""
    shipped_skills: Annotated[bool, Trust.LOWER] = True
    """Whether the skills that come with the package are installed too, weakest of all."""
    listings: Annotated[Paths, Trust.FOLDER] = ()
    """Folders of skills and JSON indexes that list skills which are not installed, strongest first:
    ``discover`` can suggest them, and nothing routes to them."""
    state_dir: Annotated[StatePath, Trust.USER] = Field(
        default_factory=lambda: platformdirs.user_cache_path("cascade-router")
    )
    """Where the fuzzy cache and the vectors are kept."""
    vector_store: Annotated[str, Trust.USER] = "chroma"
    """Where vectors of skills are shared that cost something to make, which those of the bundled
    encoder do not: ``chroma`` is an embedded one in ``state_dir``; the address of a Chroma server,
    such as ``http://127.0.0.1:8000``, shares them between machines; or a plug-in."""
    answer_cache: Annotated[AnswerCacheName, Trust.USER] = "local"
    """Where answers are cached: ``local`` is this machine's memory and ``state_dir``; or a plug-in.
    With ``cluster.url``, the cluster's cache is used."""
    pinned_skills: Annotated[Names, Trust.COST] = ()
    """Skills that the LLM is offered in any case."""
    enrichment: Annotated[StatePath | None, Trust.USER] = None
    """A file of requests that an LLM has written for the skills, whatever root they come from. It
    counts before the ``enrichment.jsonl`` in the roots."""
    enrichment_on_save: Annotated[bool, Trust.USER] = False
    """Whether a skill that is saved while the router watches is enriched at once."""
    max_concurrency: Annotated[int, Trust.LOWER] = Field(16, ge=1, le=1000)
    """How many requests ``route_many`` works on at a time."""
    max_pending: Annotated[int, Trust.COST] = Field(10_000, ge=1)
    """How many requests may wait or be decided at once; one more is refused as ``Overloaded``."""
    fuzzy: FuzzySettings = FuzzySettings()
    exact: ExactSettings = ExactSettings()
    llm: LLMSettings = LLMSettings()
    vector: VectorSettings = VectorSettings()
    encoder: EncoderSettings = EncoderSettings()
    watch: WatchSettings = WatchSettings()
    learning: LearningSettings = LearningSettings()
    memory: MemorySettings = MemorySettings()
    cluster: ClusterSettings = ClusterSettings()

    @property
    def evidence_directory(self) -> Path:
        """Where labels and corrections are kept; see ``learning.directory``."""
        if self.learning.directory is not None:
            return self.learning.directory
        if self.state_dir == platformdirs.user_cache_path("cascade-router"):
            return platformdirs.user_data_path("cascade-router") / "learning"
        return self.state_dir

    def __init__(self, **values: Any) -> None:
        """Read all sources.

        Raises:
            ConfigurationError: a value is unknown or malformed; the message names each one, and
                the variable or file that gives it.
        """
        _warn_of_unknown_variables(type(self))
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ConfigurationError(_render(error, values)) from error
        except ValueError as error:  # a variable that should be JSON is not
            raise ConfigurationError(_not_json(error)) from error

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - .env files are not a source
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - nor are secret folders
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        stronger = (init_settings(), _switch_of_environment())
        return (
            init_settings,
            env_settings,
            *(_FileSource(settings_cls, values) for values in _file_values(settings_cls, stronger)),
        )


class _FileSource(PydanticBaseSettingsSource):
    """The values of a file, with exactly these names. The library's own sources also take other
    spellings, such as ``LLM`` for ``llm``, which would pass by the check for trust."""

    def __init__(self, settings: type[BaseSettings], values: dict[str, Any]) -> None:
        super().__init__(settings)
        self._values = values

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:  # noqa: ARG002 - the base class asks for it
        return self._values.get(field_name), field_name, False

    def __call__(self) -> dict[str, Any]:
        return self._values


_RENAMED = {"catalogues": "it is called listings now"}


Given: TypeAlias = Sequence[tuple[str | None, Mapping[str, Any]]]
"""What each source gives, strongest first: a file with its name, the environment with None."""


def given_by_source(
    settings: type[BaseSettings], arguments: Mapping[str, Any] = MappingProxyType({})
) -> Given:
    """What each source but the arguments gives that counts."""
    environment = EnvSettingsSource(settings)()
    user = user_settings(settings)
    files: Mapping[str, Any] = {}
    if _reads_folder(arguments, environment, user):
        files = folder_settings(settings, Path.cwd()).effective
    return ((None, environment), *files.items(), (str(user_file()), user))


def _switch_of_environment() -> dict[str, str]:
    """What the environment gives for ``folder_settings``. The whole environment is read later, and
    takes milliseconds."""
    given = [os.environ[name] for name in os.environ if name.upper() == "ROUTER_FOLDER_SETTINGS"]
    return {"folder_settings": given[-1]} if given else {}


def _reads_folder(*given: Mapping[str, Any]) -> bool:
    """Whether the files of the working directory are wanted, by what the arguments, the environment
    and the user's own file give. What is neither yes nor no is told with all other faults."""
    for values in given:
        if "folder_settings" in values:
            try:
                return TypeAdapter(bool).validate_python(values["folder_settings"])
            except ValidationError:
                break
    return True


def source_of(path: Sequence[str], given: Given) -> str | None:
    """The file or the variable that gives a setting. None: no source does."""
    for source, values in given:
        if _gives(values, path):
            return source or _variable_name(path)
    return None


def _gives(values: object, path: Sequence[str]) -> bool:
    """Whether something is set at the path; the rest of a path may lead into a list."""
    for part in path:
        if not isinstance(values, Mapping):
            return True
        if part not in values:
            return False
        values = values[part]
    return True


def _variable_name(path: Sequence[str]) -> str:
    """The variable that gives a setting: its own, or one that holds its whole section as JSON.

    Names of variables are compared without regard to case, as pydantic-settings does.
    """
    set_now = {name.upper(): name for name in os.environ}
    spellings = (f"ROUTER_{'__'.join(path[:depth])}".upper() for depth in range(len(path), 0, -1))
    return next((set_now[one] for one in spellings if one in set_now), "the environment")


def _not_json(error: ValueError) -> str:
    """The variable whose value is no JSON, without the value, which may be a key."""
    cause = error.__cause__
    if not isinstance(cause, json.JSONDecodeError):
        return str(error)
    ours = (name for name in os.environ if name.upper().startswith("ROUTER_"))
    named = next((name for name in ours if os.environ[name] == cause.doc), "ROUTER_*")
    return f"the variable {named}: not JSON: {cause.msg} at column {cause.colno}"


def _render(error: ValidationError, arguments: Mapping[str, Any]) -> str:
    """For each setting its dotted name, what is wrong, never the value of a key, and which file or
    variable gives it."""
    faults: dict[str, list[str]] = {}
    sources: dict[str, str | None] = {}
    given = given_by_source(Settings, arguments)
    for fault in error.errors(include_input=False, include_url=False):
        # Of a setting that has several types, the last part names the one that did not fit.
        parts = [str(part) for part in fault["loc"]]
        named = [part for part in parts if not part.startswith(("literal[", "constrained-"))]
        name = ".".join(named)
        what = _unknown(name) if fault["type"] == "extra_forbidden" else words_of(fault)
        faults.setdefault(name, []).append(_RENAMED.get(name, what))
        sources[name] = None if _gives(arguments, parts) else source_of(parts, given)
    told = "; ".join(
        f"setting {name}: {', or: '.join(what)}"
        + (f" (in {sources[name]})" if sources[name] else "")
        for name, what in faults.items()
    )
    of_folder = {SETTINGS_FILE, PROJECT_FILE} & set(sources.values())
    return f"{told}. {way_out(Path.cwd())}" if of_folder else told


def _unknown(name: str) -> str:
    """That no setting has this name, and which one beside it has a similar one, or which there are
    in its table."""
    *above, last = name.split(".")
    depth = len(above)
    beside = {
        path[depth]
        for path, _ in leaves(Settings)
        if len(path) > depth and list(path[:depth]) == above
    }
    close = [one for one in sorted(beside) if one.startswith(last)]
    close += difflib.get_close_matches(last[:100], sorted(beside), n=1)
    if close:
        return f"there is none; did you mean {'.'.join((*above, close[0]))}?"
    return (
        f"there is none; there are {', '.join(sorted(beside))}"
        if above and beside
        else "there is none"
    )


def _warn_of_unknown_variables(settings: type[BaseSettings]) -> None:
    """Log a warning for each variable of the environment that no setting has, and that looks like
    one of ours. Any other may be another program's that has our prefix, and is left alone."""
    for variable in os.environ:
        name = variable.lower().removeprefix("router_")
        if name == variable.lower() or name.partition("__")[0] in settings.model_fields:
            continue
        known = ["__".join(path) for path, _ in leaves(settings)]
        if name in _RENAMED:
            why = _RENAMED[name]
        elif close := difflib.get_close_matches(name[:100], known, n=1, cutoff=0.8):
            why = f"did you mean ROUTER_{close[0].upper()}?"
        else:
            continue
        warn_once(f"the variable {variable!a} names no setting, and is ignored: {why}")


def _file_values(
    settings: type[BaseSettings], stronger: Sequence[Mapping[str, Any]]
) -> tuple[dict[str, Any], ...]:
    """What each file sets, strongest first. What is ignored in the working directory is logged.
    ``stronger`` is what the sources give that are stronger than files."""
    user = user_settings(settings)
    if not _reads_folder(*stronger, user):
        return (user,)
    here = folder_settings(settings, Path.cwd())
    here.warn_of_ignored()
    return (*(_with_users_skills(values, user) for values in here.effective.values()), user)


def _with_users_skills(values: dict[str, Any], user: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a file of the working directory, with the user's own folders of skills before
    those that it names: a cloned folder may add skills, and leaves none of the user's out."""
    if "skills" not in values:
        return values
    own: object = user.get("skills")
    if own is None:
        own = [str(users_skills())] if users_skills().is_dir() else []
    return values | {"skills": [*_listed(own), *_listed(values["skills"])]}


def _listed(value: object) -> list[object]:
    """A list as it was given, or as text. Anything else is an item of one, which is refused with
    all other faults."""
    found = _split(value)
    return found if isinstance(found, list) else [found]
