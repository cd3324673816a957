"""API keys: what is kept of them, what they allow, and how they are revoked."""

from __future__ import annotations

import stat
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.datastructures import Headers

import router.http.keys as keys_module
from router.errors import ConfigurationError
from router.http.caller import LOCAL, Callers
from router.http.keys import KeyFile, Right
from router.http.problems import Refused


def test_keys_made_at_once_are_all_kept(keys: KeyFile) -> None:
    def make(number: int) -> str:
        return KeyFile(keys.path).make(f"key {number}", rights=[Right.ROUTE])

    with ThreadPoolExecutor(8) as threads:
        secrets = list(threads.map(make, range(40)))
    assert all(keys.find(secret) is not None for secret in secrets)


def test_a_key_is_found_again_and_is_not_kept(keys: KeyFile) -> None:
    secret = keys.make("agents", rights=[Right.ROUTE], scopes=["shop"])
    found = keys.find(secret)
    assert found is not None
    assert (found.name, found.rights, found.scopes) == ("agents", (Right.ROUTE,), ("shop",))
    assert secret not in keys.path.read_text(encoding="utf-8")
    modes = {stat.S_IMODE(file.stat().st_mode) for file in keys.path.parent.iterdir()}
    assert modes == {0o600}
    assert keys.find(secret + "x") is None


def test_a_key_that_another_process_revokes_is_refused_at_once(keys: KeyFile) -> None:
    secret = keys.make("agents", rights=[Right.ROUTE])
    assert (found := keys.find(secret)) is not None
    assert KeyFile(keys.path).revoke(found.id)
    assert keys.find(secret) is None
    assert not keys.revoke(found.id)


def test_a_key_is_asked_for_as_soon_as_there_is_one(keys: KeyFile) -> None:
    started_without = Callers(keys, secret=None, required=False)
    started_with = Callers(keys, secret=None, required=True)
    assert started_without.identify(Headers({})) is LOCAL
    keys.make("agents", rights=[Right.ROUTE])
    with pytest.raises(Refused, match="Authorization"):
        started_without.identify(Headers({}))
    assert keys.revoke(keys.all()[0].id)
    assert started_without.identify(Headers({})) is LOCAL
    with pytest.raises(Refused, match="Authorization"):
        started_with.identify(Headers({}))


@pytest.mark.parametrize("right", [Right.MANAGE, Right.MEMORY])
def test_a_key_with_scopes_cannot_reach_all_of_them(keys: KeyFile, right: Right) -> None:
    with pytest.raises(ConfigurationError, match=right.value):
        keys.make("agents", rights=[Right.ROUTE, right], scopes=["shop"])
    assert keys.all() == ()


@pytest.mark.parametrize("bound", ["MAX_KEYS", "MAX_FILE_BYTES"])
def test_no_key_is_made_that_would_lock_out_all_others(
    keys: KeyFile, monkeypatch: pytest.MonkeyPatch, bound: str
) -> None:
    secret = keys.make("agents", rights=[Right.ROUTE])
    monkeypatch.setattr(keys_module, bound, 1 if bound == "MAX_KEYS" else keys.path.stat().st_size)
    with pytest.raises(ConfigurationError, match="too many keys: revoke some"):
        keys.make("one more", rights=[Right.ROUTE])
    assert KeyFile(keys.path).find(secret) is not None


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", '{"keys": 1}', '{"keys": [{}]}', '{"keys": [{"rights": ["x"]}]}', "[" * 99999],
)
def test_a_file_that_is_none_of_keys_is_named(keys: KeyFile, text: str) -> None:
    keys.path.parent.mkdir(parents=True)
    keys.path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigurationError, match="not a file of API keys"):
        keys.all()
