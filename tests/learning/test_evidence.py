"""Evidence: one label a text, the stronger source wins, nothing acknowledged is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from router.errors import InvalidRequest
from router.learning.evidence import (
    _SCHEMA,
    CHANGED_SKILL_WEIGHT,
    MAX_OFFERS,
    MAX_OUTCOMES,
    EvidenceStore,
    Example,
    PastAnswer,
    Source,
    evidence_file,
    open_evidence,
    retraction,
)
from router.settings.settings import Settings
from router.skills.manifest import SkillManifest
from router.storage.database import Schema, opened


def skill(name: str, description: str = "does something", body: str = "steps") -> SkillManifest:
    return SkillManifest(
        name=name, description=description, body=body, path=Path(name), digest=description + body
    )


def catalog(*skills: SkillManifest) -> dict[str, SkillManifest]:
    return {each.name: each for each in skills}


BOTH = catalog(skill("git"), skill("docker"))


def answered(text: str) -> PastAnswer:
    return PastAnswer(text, ("git",), "base", "vector", 0.8, teaches=True)


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        self.now += 1
        return self.now


@pytest.fixture
def store(tmp_path: Path) -> Iterator[EvidenceStore]:
    opened = EvidenceStore(tmp_path / "evidence.sqlite3", clock=Clock())
    yield opened
    opened.close()


def known(store: EvidenceStore) -> list[tuple[str, tuple[str, ...], Source]]:
    return [(e.text, e.skills, e.source) for e in store.examples(BOTH)]


def test_that_no_skill_is_right_is_a_label_too(store: EvidenceStore) -> None:
    store.add("tell me a joke", [], source=Source.FEEDBACK, catalog=BOTH)
    assert known(store) == [("tell me a joke", (), Source.FEEDBACK)]


def test_the_same_request_has_one_label_the_latest(store: EvidenceStore) -> None:
    store.add("Commit it!", ["git"], source=Source.LLM, catalog=BOTH)
    assert store.add("commit it", ["docker"], source=Source.LLM, catalog=BOTH)
    assert known(store) == [("commit it", ("docker",), Source.LLM)]


def test_a_weaker_voice_changes_nothing(store: EvidenceStore) -> None:
    store.add("commit it", ["git"], source=Source.FEEDBACK, catalog=BOTH)
    assert not store.add("commit it", ["docker"], source=Source.AUDIT, catalog=BOTH)
    assert known(store) == [("commit it", ("git",), Source.FEEDBACK)]


def test_what_is_wrong_stands_beside_what_is_right(store: EvidenceStore) -> None:
    store.add("commit it", ["git"], source=Source.LLM, catalog=BOTH)
    store.add("commit it", ["docker"], source=Source.FEEDBACK, catalog=BOTH, right=False)
    assert [(e.skills, e.right) for e in store.examples(BOTH)] == [
        (("git",), True),
        (("docker",), False),
    ]


def test_what_a_person_takes_back_says_nothing_any_more_here_or_in_another_file(
    store: EvidenceStore, tmp_path: Path
) -> None:
    other = EvidenceStore(tmp_path / "other.sqlite3", clock=lambda: 0.0)
    store.add("do it", [], source=Source.FEEDBACK, catalog=BOTH)
    other.merge(store.labels(), catalog=BOTH)
    assert store.correction("Do it", BOTH) == other.correction("Do it", BOTH) == ()
    store.add_many([retraction("do it")], catalog=BOTH)
    other.merge(store.labels(), catalog=BOTH)
    for each in (store, other):
        assert each.correction("do it", BOTH) is None
        assert each.examples(BOTH) == each.all() == []
        assert each.counts()[Source.FEEDBACK] == 0
    other.close()


MUSIC = catalog(skill("music"))


@pytest.mark.parametrize(
    ("label", "before", "today"),
    [
        (retraction("do it"), MUSIC, MUSIC),
        (Example("do it", (), True, Source.FEEDBACK), BOTH, MUSIC),
        (Example("do it", (), True, Source.FEEDBACK), BOTH, BOTH | MUSIC),
        (Example("do it", ("git",), True, Source.FEEDBACK), BOTH, MUSIC),
        (Example("do it", ("git",), True, Source.FILE), BOTH, MUSIC | catalog(skill("git", "new"))),
    ],
    ids=["taken back", "of other skills", "a skill is new", "its skill is gone", "it has changed"],
)
@pytest.mark.parametrize("elsewhere", [False, True])
def test_what_was_said_of_other_skills_hides_no_label_of_todays(
    store: EvidenceStore,
    tmp_path: Path,
    label: Example,
    before: dict[str, SkillManifest],
    today: dict[str, SkillManifest],
    elsewhere: bool,
) -> None:
    store.add_many([label], catalog=before)
    stood = store.examples(before)
    assert store.add("Do it", ["music"], source=Source.LLM, catalog=today)
    other = EvidenceStore(tmp_path / "other.sqlite3", clock=lambda: 2_000.0)
    if elsewhere:
        other.merge(store.labels()[::-1], catalog=today)
        store, other = other, store
    assert [(one.skills, one.source) for one in store.examples(today)] == [(("music",), Source.LLM)]
    if before is not today and not elsewhere:
        assert store.examples(before) == stood
    store.add("do it", [], source=Source.FEEDBACK, catalog=today)
    assert [one.source for one in store.all()] == [Source.FEEDBACK]
    other.close()


def test_the_label_that_counts_has_the_age_of_itself_and_not_of_the_one_it_outweighs(
    store: EvidenceStore,
) -> None:
    store.add("do it", ["git"], source=Source.FEEDBACK, catalog=BOTH)
    today = MUSIC | catalog(skill("git", "new"))
    store.add("play it", ["music"], source=Source.LLM, catalog=today)
    store.add("do it", ["music"], source=Source.LLM, catalog=today)
    assert [one.text for one in store.examples(today)] == ["play it", "do it"]


def test_processes_that_share_the_file_tell_each_other_of_outcomes(tmp_path: Path) -> None:
    other = EvidenceStore(tmp_path / "e.sqlite3", clock=Clock())
    assert other.exchange("model", ["before one was there"]) == []
    one = EvidenceStore(tmp_path / "e.sqlite3", clock=Clock())
    assert one.exchange("model", ["a", 0.5]) == []
    assert one.exchange("another model", ["b"]) == []
    assert other.exchange("model", ["c"]) == [["a", 0.5]]
    assert other.exchange("model", ["d"]) == []
    assert one.exchange("model", ["e"]) == [["c"], ["d"]]
    one.close()
    other.close()


def test_outcomes_that_nobody_has_asked_for_are_not_kept_for_ever(
    store: EvidenceStore, tmp_path: Path
) -> None:
    other = EvidenceStore(tmp_path / "evidence.sqlite3", clock=Clock())
    for number in range(MAX_OUTCOMES + 10):
        store.exchange("model", [number])
    assert len(other.exchange("model", [0])) == MAX_OUTCOMES
    other.close()


@pytest.mark.parametrize(("steps", "table"), [(3, "examples"), (4, "labels")])
def test_labels_of_an_earlier_schema_are_kept(tmp_path: Path, steps: int, table: str) -> None:
    path = tmp_path / "evidence.sqlite3"
    row = "('do it', '', 'Do it', '{}', 'feedback', 2, 5.0)"
    with closing(opened(path, Schema(_SCHEMA.steps[:steps]), durable=False)) as earlier:
        earlier.execute(f"INSERT INTO {table} VALUES {row}")  # noqa: S608 - constants
    store = EvidenceStore(path, clock=Clock())
    assert known(store) == [("Do it", (), Source.FEEDBACK)]
    store.close()


@pytest.mark.parametrize("source", [Source.FEEDBACK, Source.LLM])
def test_that_no_skill_is_right_was_said_over_the_skills_there_were(
    store: EvidenceStore, source: Source
) -> None:
    three = BOTH | catalog(skill("writer"))
    store.add("sing a song", [], source=source, catalog=three)
    corrected = () if source is Source.FEEDBACK else None
    for skills, weight in (
        (three, 1.0),
        (BOTH, 1.0),  # one is gone
        (BOTH | catalog(skill("writer", body="better steps")), 1.0),
        (three | catalog(skill("music")), CHANGED_SKILL_WEIGHT),
        (BOTH | catalog(skill("writer", "sings songs")), CHANGED_SKILL_WEIGHT),
        (catalog(skill("music")), None),
    ):
        assert [one.weight for one in store.examples(skills)] == [weight] * (weight is not None)
        assert store.correction("sing a song", skills) == (corrected if weight == 1.0 else None)


def test_of_many_sets_of_skills_the_latest_are_remembered(store: EvidenceStore) -> None:
    said_over = [BOTH | catalog(skill(f"skill-{number}")) for number in range(MAX_OFFERS + 1)]
    for number, skills in enumerate(said_over):
        store.add(f"request {number}", [], source=Source.FEEDBACK, catalog=skills)
        store.add(f"also {number}", [], source=Source.FEEDBACK, catalog=skills)
    assert store.correction("request 0", BOTH) is None
    assert store.correction("request 0", said_over[0]) == ()
    for number in (1, MAX_OFFERS):
        assert store.correction(f"request {number}", BOTH) == ()


def test_a_label_that_names_none_counts_in_another_file_over_the_same_skills(
    store: EvidenceStore, tmp_path: Path
) -> None:
    store.add("sing a song", [], source=Source.FEEDBACK, catalog=BOTH)
    same = EvidenceStore(tmp_path / "same.sqlite3", clock=Clock())
    other = EvidenceStore(tmp_path / "other.sqlite3", clock=Clock())
    same.merge(store.labels(), catalog=BOTH)
    other.merge(store.labels(), catalog=catalog(skill("music")))
    assert same.correction("sing a song", catalog(skill("git"))) == ()
    assert other.correction("sing a song", catalog(skill("music"))) is None
    same.close()
    other.close()


def test_a_label_of_an_earlier_version_that_names_none_counts_over_all_skills(
    store: EvidenceStore,
) -> None:
    store.merge([["sing", "", "sing", "{}", "feedback", 2, 5.0]], catalog=BOTH)
    assert store.correction("sing", catalog(skill("music"))) == ()
    assert [one.weight for one in store.examples(BOTH)] == [1.0]


def test_a_changed_description_ages_its_examples(store: EvidenceStore) -> None:
    store.add("commit it", ["git"], source=Source.LLM, catalog=BOTH)
    changed = catalog(skill("git", "does something else"), skill("docker"))
    assert [e.weight for e in store.examples(changed)] == [CHANGED_SKILL_WEIGHT]


def test_changed_instructions_do_not(store: EvidenceStore) -> None:
    store.add("commit it", ["git"], source=Source.LLM, catalog=BOTH)
    changed = catalog(skill("git", body="better steps"), skill("docker"))
    assert [e.weight for e in store.examples(changed)] == [1.0]


def test_examples_of_a_removed_skill_wait_until_it_is_back(store: EvidenceStore) -> None:
    store.add("commit it", ["git"], source=Source.LLM, catalog=BOTH)
    assert store.examples(catalog(skill("docker"))) == []
    assert [e.text for e in store.examples(BOTH)] == ["commit it"]


def test_beyond_the_bound_the_oldest_of_the_weakest_voice_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("router.learning.evidence.MAX_EXAMPLES", 2)
    store = EvidenceStore(tmp_path / "e.sqlite3", clock=Clock())
    store.add("first", ["git"], source=Source.FEEDBACK, catalog=BOTH)
    store.add("second", ["git"], source=Source.LLM, catalog=BOTH)
    store.add("third", ["git"], source=Source.LLM, catalog=BOTH)
    assert [text for text, _, _ in known(store)] == ["first", "third"]
    monkeypatch.setattr("router.learning.evidence.MAX_EXAMPLES", 1)
    other = EvidenceStore(tmp_path / "other.sqlite3", clock=Clock())
    other.merge(store.labels(), catalog=BOTH)
    assert [text for text, _, _ in known(other)] == ["first"]
    store.close()
    other.close()


def test_many_are_remembered_all_or_none(store: EvidenceStore) -> None:
    good = Example("commit it", ("git",), True, Source.FILE)
    bad = Example("\0", ("git",), True, Source.FILE)
    with pytest.raises(InvalidRequest):
        store.add_many([good, bad], catalog=BOTH)
    assert known(store) == []


@pytest.mark.parametrize(
    ("text", "skills", "right"),
    [
        ("", ["git"], True),
        ("x", [], False),
        ("x", ["git", "docker"], False),
        ("x", list("abcdefghijklmnopqrstuvwxyz"), True),
    ],
)
def test_a_label_that_says_nothing_usable_is_refused(
    store: EvidenceStore, text: str, skills: list[str], right: bool
) -> None:
    with pytest.raises(InvalidRequest):
        store.add(text, skills, source=Source.LLM, catalog=BOTH, right=right)


def test_the_latest_answers_can_be_spoken_about(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("router.learning.evidence.MAX_ANSWERS", 2)
    store = EvidenceStore(tmp_path / "e.sqlite3", clock=Clock())
    for number in range(3):
        store.keep_answers({f"a{number}": answered(f"request {number}")})
    assert store.answer("a0") is None
    assert store.answer("a2") == answered("request 2")
    store.close()


def test_a_reset_forgets_labels_and_states(store: EvidenceStore) -> None:
    store.add("commit it", ["git"], source=Source.LLM, catalog=BOTH)
    store.keep_states({"bound": {"seen": 3}})
    assert store.reset() == 1
    assert (known(store), store.state("bound")) == ([], None)


@pytest.mark.parametrize(
    "fault",
    [
        {"learnt": float("nan")},
        {"learnt": 10**400},
        {"wrong": None},
        {"wrong": "docker"},
        {"source": "me"},
        {"digests": '{"": "", "gone": ""}'},
    ],
)
def test_a_label_of_another_file_that_cannot_be_read_is_left_out_alone(
    store: EvidenceStore, fault: dict[str, object]
) -> None:
    sound = ["save it", "", "save it", '{"git": ""}', "llm", 0, 5.0]
    place = {"wrong": 1, "digests": 3, "source": 4, "learnt": 6}
    bad = sound.copy()
    for name, value in fault.items():
        bad[place[name]] = value
    assert store.merge([bad, sound], catalog=BOTH) == 1
    assert [label[3] for label in store.labels()] == ['{"git": ""}']


def test_a_file_that_is_no_database_is_set_aside_and_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "evidence.sqlite3"
    path.write_bytes(b"precious" * 1000)
    store = EvidenceStore(path, clock=Clock())
    assert store.counts()[Source.FILE] == 0
    store.close()
    aside = tmp_path / "evidence.sqlite3.broken-1"
    assert aside.read_bytes() == b"precious" * 1000
    assert str(aside) in caplog.text


def test_evidence_of_an_earlier_version_is_taken_along(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    settings = Settings()
    assert tmp_path not in settings.evidence_directory.parents
    earlier = evidence_file(settings.state_dir)
    clock = Clock()
    old = EvidenceStore(earlier, clock=clock)
    old.add("stash my edits", ["git"], source=Source.FEEDBACK, catalog={})
    old.add("write a test", ["testing"], source=Source.LLM, catalog={})
    old.keep_states({"bound": [1]})
    old.close()
    new = EvidenceStore(evidence_file(settings.evidence_directory), clock=clock)
    new.add("write a test", ["writer"], source=Source.FEEDBACK, catalog={})
    new.close()

    store = open_evidence(settings, clock=clock)
    assert {example.text: example.skills for example in store.all()} == {
        "stash my edits": ("git",),
        "write a test": ("writer",),
    }
    assert store.state("bound") == [1]
    store.close()
    assert not earlier.exists()
    assert Path(f"{earlier}.moved").exists()


def test_a_folder_of_ones_own_keeps_its_evidence_and_a_setting_moves_it(tmp_path: Path) -> None:
    own = Settings(state_dir=tmp_path / "state")
    store = open_evidence(own, clock=Clock())
    store.add("stash my edits", ["git"], source=Source.FEEDBACK, catalog={})
    store.close()
    assert evidence_file(tmp_path / "state").exists()
    moved = Settings(state_dir=tmp_path / "state", learning={"directory": tmp_path / "kept"})
    store = open_evidence(moved, clock=Clock())
    assert len(store.all()) == 1
    store.close()
    assert evidence_file(tmp_path / "kept").exists()


_WRITER = """
import sys, time
from pathlib import Path
from router.learning.evidence import EvidenceStore, Source
store = EvidenceStore(Path(sys.argv[1]), clock=time.time)
for number in range(100_000):
    store.add(f"request {number}", ["git"], source=Source.LLM, catalog={})
    print(number, flush=True)
"""


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "evidence.sqlite3"
    writer = subprocess.Popen(
        [sys.executable, "-c", _WRITER, str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert writer.stdout is not None
    for _ in range(20):
        last = int(writer.stdout.readline())
    writer.send_signal(signal.SIGKILL)
    rest = writer.stdout.read().split("\n")
    writer.stdout.close()
    writer.wait()
    last = max([last, *(int(line) for line in rest[:-1] if line)])
    store = EvidenceStore(path, clock=Clock())
    kept = {text for text, _, _ in known(store)}
    store.close()
    assert kept >= {f"request {number}" for number in range(last + 1)}
