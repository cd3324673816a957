"""Plug-ins named by settings: a real package in a folder, with real entry points."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from cascade import SHIPPED, SQUASH, settings_for

from router import ConfigurationError, SemanticRouter, Settings, Stage
from router.retrieval.configured_encoder import build_encoder
from router.retrieval.encoders import Encoder
from router.service.service import Service
from router.service.shapes import NoArguments
from router.settings.plugins import ENCODERS, load_plugin
from router.stages.answers import LocalAnswers, configured_cache

SOURCE = '''
from router.llm.protocol import Completion, OutputMode
from router.retrieval.bundled_encoder import BundledEncoder
from router.stages.answers import LocalAnswers


class Model:
    provider = "acme"
    model = "acme-1"

    async def complete(self, prompt, *, timeout_seconds):
        answer = '{"skills": ["git"], "memory_layers": [], "reasoning": "so", "confidence": 0.9}'
        return Completion(answer, OutputMode.JSON_OBJECT)

    async def aclose(self):
        pass


class AcmeEncoder(BundledEncoder):
    identity = "acme/bundled"


class Answers(LocalAnswers):
    """In memory only."""


class Elsewhere:
    """A cache that is none of this machine's."""

    def __init__(self):
        self._inside = LocalAnswers()

    def __getattr__(self, name):
        return getattr(self._inside, name)


class Broken:
    def __init__(self):
        raise OSError("no key")


constant = 7
'''

ENTRY_POINTS = """[cascade_router.encoders]
acme = acme_router.parts:AcmeEncoder
[cascade_router.llms]
acme = acme_router.parts:Model
"""


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed distribution ``acme-router`` with a package and entry points."""
    site = tmp_path / "site"
    (site / "acme_router").mkdir(parents=True)
    (site / "acme_router" / "__init__.py").touch()
    (site / "acme_router" / "parts.py").write_text(SOURCE, encoding="utf-8")
    (site / "acme_router" / "faulty.py").write_text("1 / 0", encoding="utf-8")
    info = site / "acme_router-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-router\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRY_POINTS, encoding="utf-8")
    monkeypatch.syspath_prepend(str(site))
    for name in [name for name in sys.modules if name.split(".")[0] == "acme_router"]:
        monkeypatch.delitem(sys.modules, name)
    return site


async def test_a_router_is_put_together_from_plug_ins_that_settings_name(tmp_path: Path) -> None:
    settings = Settings(
        state_dir=tmp_path,
        llm={"providers": ["acme"]},
        encoder={"kind": "acme_router.parts:AcmeEncoder"},
        answer_cache="acme_router.parts:Answers",
    )
    async with SemanticRouter(settings, roots=[SHIPPED]) as router:
        first, again = await router.route(SQUASH), await router.route(SQUASH)
        assert (first.stage, first.selected_skills) == (Stage.LLM, ("git",))
        assert again.stage is Stage.EXACT
        assert [model.provider for model in router.models] == ["acme"]
        assert type(router.cache).__name__ == "Answers"


def test_an_entry_point_names_an_encoder(tmp_path: Path) -> None:
    encoder = build_encoder(Settings(state_dir=tmp_path, encoder={"kind": "acme"}))
    assert encoder.identity == "acme/bundled"


def test_the_cache_of_this_machine_is_the_default(tmp_path: Path) -> None:
    assert type(configured_cache(Settings(state_dir=tmp_path))) is LocalAnswers


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("acme_missing:Encoder", "there is no module 'acme_missing'; install its package"),
        ("acme_router.faulty:Encoder", "cannot be imported: ZeroDivisionError"),
        ("acme_router.parts:Nothing", "acme_router.parts has no class or function 'Nothing'"),
        ("acme_router.parts:constant", "acme_router.parts has no class or function 'constant'"),
        ("acme_router.parts:Broken", "cannot be made: OSError: no key"),
        ("acme_router.parts:Model", "Model is no Encoder; it lacks identity, static, encode"),
        ("nobody", "the group cascade_router.encoders has no entry point of that name"),
    ],
)
def test_a_plug_in_that_cannot_be_used_says_why(name: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^setting encoder\.kind: plug-in ") as raised:
        load_plugin(ENCODERS, name, Encoder, "encoder.kind")
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("section", "value"),
    [("encoder", {"kind": "guess"}), ("llm", {"providers": ["openia"]}), ("answer_cache", "x y")],
)
def test_a_name_that_is_nothing_known_is_refused_with_the_known_ones(
    section: str, value: Any
) -> None:
    with pytest.raises(ConfigurationError, match=r"package\.module:Name"):
        Settings(**{section: value})


def test_a_cloned_folder_cannot_name_a_plug_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "router.toml").write_text(
        'answer_cache = "acme_router.parts:Answers"\n[encoder]\nkind = "acme"\n', encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    settings = Settings()
    assert (settings.encoder.kind, settings.answer_cache) == ("bundled", "local")


async def test_the_status_of_a_router_whose_answers_are_kept_elsewhere(tmp_path: Path) -> None:
    settings = settings_for(tmp_path, answer_cache="acme_router.parts:Elsewhere")
    async with SemanticRouter(settings, roots=[SHIPPED]) as router:
        assert (await Service(router).status(NoArguments())).caches == {}
