"""Layer weights: what feedback does to a factor, how it fades, and that it is kept."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from clock import Clock
from hypothesis import given, settings
from hypothesis import strategies as st

from router.errors import StoreError
from router.memory.model import QueryType
from router.memory.recall.weights import HALF_LIFE_SECONDS, LayerWeights

TEMPORAL = (QueryType.TEMPORAL,)


@pytest.fixture
def weights(clock: Clock) -> Iterator[LayerWeights]:
    weights = LayerWeights(clock=clock)
    yield weights
    weights.close()


def test_without_feedback_every_factor_is_one(weights: LayerWeights) -> None:
    assert weights.factor(TEMPORAL, "episodic") == 1.0
    assert weights.factor((), "episodic") == 1.0


def test_a_useful_answer_raises_a_factor_and_a_useless_one_lowers_it(weights: LayerWeights) -> None:
    weights.learn(TEMPORAL, "episodic", useful=True)
    weights.learn(TEMPORAL, "session", useful=False)
    assert weights.factor(TEMPORAL, "episodic") == pytest.approx(1.1)
    assert weights.factor(TEMPORAL, "session") == pytest.approx(0.9)


def test_feedback_on_one_type_of_query_leaves_the_others_alone(weights: LayerWeights) -> None:
    weights.learn(TEMPORAL, "episodic", useful=False)
    assert weights.factor((QueryType.FACTUAL,), "episodic") == 1.0


def test_a_query_of_two_types_takes_the_mean_of_their_votes(weights: LayerWeights) -> None:
    weights.learn(TEMPORAL, "episodic", useful=True)
    mixed = weights.factor((QueryType.TEMPORAL, QueryType.FACTUAL), "episodic")
    assert mixed == pytest.approx(0.5 + 2.5 / 4.5)


def test_a_vote_loses_half_of_its_weight_in_a_half_life(
    weights: LayerWeights, clock: Clock
) -> None:
    weights.learn(TEMPORAL, "episodic", useful=True)
    clock.now += HALF_LIFE_SECONDS
    assert weights.factor(TEMPORAL, "episodic") == pytest.approx(0.5 + 2.5 / 4.5)


def test_what_nobody_says_any_more_fades_away(weights: LayerWeights, clock: Clock) -> None:
    for _ in range(50):
        weights.learn(TEMPORAL, "episodic", useful=False)
    clock.now += 30 * HALF_LIFE_SECONDS
    assert weights.factor(TEMPORAL, "episodic") == pytest.approx(1.0)


def test_a_clock_that_was_set_back_makes_no_vote_count_more(
    weights: LayerWeights, clock: Clock
) -> None:
    weights.learn(TEMPORAL, "episodic", useful=True)
    clock.now -= 10 * HALF_LIFE_SECONDS
    assert weights.factor(TEMPORAL, "episodic") == pytest.approx(1.1)


def test_a_long_habit_can_be_unlearned(weights: LayerWeights) -> None:
    for _ in range(1000):
        weights.learn(TEMPORAL, "episodic", useful=True)
    for _ in range(30):
        weights.learn(TEMPORAL, "episodic", useful=False)
    assert weights.factor(TEMPORAL, "episodic") < 1.0


def test_reset_forgets_all(weights: LayerWeights) -> None:
    weights.learn(TEMPORAL, "episodic", useful=True)
    weights.reset()
    assert weights.factor(TEMPORAL, "episodic") == 1.0
    assert weights.factors() == {}


def test_status_shows_what_feedback_has_moved(weights: LayerWeights) -> None:
    weights.learn((QueryType.TEMPORAL, QueryType.USER), "episodic", useful=True)
    assert weights.factors() == {
        "temporal": {"episodic": pytest.approx(1.1)},
        "user": {"episodic": pytest.approx(1.1)},
    }


def test_the_version_changes_with_votes_and_resets_only(weights: LayerWeights) -> None:
    before = weights.version()
    assert weights.version() == before
    weights.learn(TEMPORAL, "episodic", useful=True)
    learned = weights.version()
    weights.reset()
    assert len({before, learned, weights.version()}) == 3


@settings(max_examples=100)
@given(st.lists(st.tuples(st.booleans(), st.floats(0, 1e7)), max_size=40))
def test_every_factor_stays_between_a_half_and_one_and_a_half(
    votes: list[tuple[bool, float]],
) -> None:
    clock = Clock()
    weights = LayerWeights(clock=clock)
    for useful, pause in votes:
        clock.now += pause
        weights.learn(TEMPORAL, "episodic", useful=useful)
    assert 0.5 < weights.factor(TEMPORAL, "episodic") < 1.5
    weights.close()


def test_a_vote_survives_a_process_that_is_killed_right_after_it(tmp_path: Path) -> None:
    path = tmp_path / "weights.sqlite3"
    code = (
        "import os, signal, sys; from pathlib import Path\n"
        "from router.memory.model import QueryType\n"
        "from router.memory.recall.weights import LayerWeights\n"
        "weights = LayerWeights(Path(sys.argv[1]))\n"
        "weights.learn([QueryType.TEMPORAL], 'episodic', useful=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], check=False)
    assert done.returncode == -9
    weights = LayerWeights(path)
    assert weights.factor(TEMPORAL, "episodic") == pytest.approx(1.1, abs=1e-3)
    weights.close()


def test_two_processes_learn_from_each_other(tmp_path: Path, clock: Clock) -> None:
    path = tmp_path / "weights.sqlite3"
    server, command = LayerWeights(path, clock=clock), LayerWeights(path, clock=clock)
    before = server.version()
    command.learn(TEMPORAL, "episodic", useful=True)
    assert server.version() != before
    server.learn(TEMPORAL, "episodic", useful=True)
    command.version()
    assert command.factor(TEMPORAL, "episodic") == pytest.approx(0.5 + 4 / 6)
    server.close()
    command.close()


def test_votes_of_many_threads_are_all_counted(weights: LayerWeights) -> None:
    threads = [
        threading.Thread(target=weights.learn, args=(TEMPORAL, "episodic"), kwargs={"useful": True})
        for _ in range(10)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert weights.factor(TEMPORAL, "episodic") == pytest.approx(0.5 + 12 / 14)


def test_a_type_that_this_program_does_not_know_is_passed_over(
    tmp_path: Path, clock: Clock
) -> None:
    path = tmp_path / "weights.sqlite3"
    LayerWeights(path, clock=clock).close()
    with sqlite3.connect(path) as other:
        other.execute("INSERT INTO layer_feedback VALUES ('sixth_sense', 'episodic', 1, 0, 0)")
    other.close()
    weights = LayerWeights(path, clock=clock)
    assert weights.factors() == {}
    weights.close()


def test_deleting_is_no_advice_for_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    in_the_way = tmp_path / "weights.sqlite3"
    in_the_way.mkdir()
    with pytest.raises(StoreError, match=r"weights\.sqlite3") as raised:
        LayerWeights(in_the_way)
    assert "may be deleted" not in str(raised.value)
