"""Errors: they come over from another process as they were raised there."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

from router import errors

ERRORS = [
    errors.ConfigurationError("a setting is wrong"),
    errors.ManifestError(Path("git/SKILL.md"), 3, "no name"),
    errors.SourceError("crm", "refund", "it has no name"),
    errors.UnknownSkill("git"),
    errors.UnknownMemory("notes"),
    errors.StoreError(Path("cache.sqlite3"), "it is locked"),
    errors.ForkedProcess("router"),
    errors.Overloaded(1_000),
    errors.LayerError("project", "late"),
    errors.LLMUnavailable("openai", "too many requests", retry_after=2.5),
    errors.LLMRejected("openai", "no such model"),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_survives_pickling_and_copying(error: errors.RouterError) -> None:
    # A pool of processes was broken by the first worker that raised one of them.
    again = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (type(again), str(again), again.args) == (type(error), str(error), error.args)
    assert vars(again) == vars(error)
    assert str(copy.copy(error)) == str(error)
