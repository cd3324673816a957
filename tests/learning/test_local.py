"""The local answer: what the head and its nearest examples say, and the signals for its risk."""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any
from zipfile import ZipFile

import numpy as np
import pytest
from numpy.typing import NDArray

from router.learning.evidence import Example, Source
from router.learning.head import energy
from router.learning.local import MAX_RANKED, LocalModel, answer_of, skills_of

TEXTS = ("play a song", "play loud music", "rain today", "will it rain", "hello there")
SKILLS = (("music",), ("music",), ("weather",), ("weather",), ())


def vectors(*places: int) -> NDArray[np.float32]:
    return np.eye(8, dtype=np.float32)[list(places)]


def examples(texts: tuple[str, ...] = TEXTS) -> list[Example]:
    return [
        Example(text, skills, True, Source.LLM) for text, skills in zip(texts, SKILLS, strict=True)
    ]


def model() -> LocalModel:
    fitted = LocalModel.fit(examples(), vectors(0, 1, 2, 3, 4), version=3)
    assert fitted is not None
    return fitted


def test_the_answer_is_the_likeliest_by_head_and_nearest_example() -> None:
    local = model()
    scores, _ = local.head.score_one("play rain", vectors(1)[0])
    found = local.answer("play rain", vectors(1)[0])
    assert found.answer == local.head.classes[int(scores.argmax())]
    assert found.skills == ("music",)


def test_none_is_an_answer() -> None:
    found = model().answer("hello there", vectors(4)[0])
    assert (found.answer, found.skills) == ("", ())


def test_the_signals_are_what_they_are_named_after() -> None:
    local = model()
    scores, nearest = local.head.score_one("will it rain today", vectors(3)[0])
    signals = local.answer("will it rain today", vectors(3)[0]).signals
    _, music, weather = scores.tolist()
    shares = np.exp(scores) / np.exp(scores).sum()
    assert local.head.classes == ("", "music", "weather")
    assert signals.energy == pytest.approx(float(energy(scores)))
    assert signals.margin == pytest.approx(weather - max(scores[:2]))
    assert weather > music
    assert signals.probability == pytest.approx(shares[2])
    assert signals.agreeing == pytest.approx(nearest[2])
    assert signals.disagreeing == pytest.approx(nearest[:2].max())
    assert (signals.examples, signals.evidence, signals.words) == (2, 5, 4)


def test_the_ranking_is_by_probability_and_short() -> None:
    texts = tuple(f"word{n}" for n in range(8))
    labels = [Example(text, (text,), True, Source.LLM) for text in texts]
    fitted = LocalModel.fit(labels, np.eye(8, dtype=np.float32), version=1)
    assert fitted is not None
    ranked = fitted.answer("word3", np.eye(8, dtype=np.float32)[3]).ranked
    assert len(ranked) == MAX_RANKED
    assert ranked[0][0] == "word3"
    assert [share for _, share in ranked] == sorted((share for _, share in ranked), reverse=True)
    assert sum(share for _, share in ranked) <= 1 + 1e-6


def test_labels_that_say_what_is_wrong_are_passed_over() -> None:
    wrong = Example("play a game", ("games",), False, Source.FEEDBACK)
    fitted = LocalModel.fit([*examples(), wrong], vectors(0, 1, 2, 3, 4, 5), version=1)
    assert fitted is not None
    assert (fitted.examples, fitted.head.classes) == (5, ("", "music", "weather"))


def test_one_answer_alone_makes_no_model() -> None:
    assert LocalModel.fit(examples()[:2], vectors(0, 1), version=1) is None


@pytest.mark.parametrize("skills", [(), ("git",), ("git", "docker")])
def test_an_answer_names_its_skills(skills: tuple[str, ...]) -> None:
    assert skills_of(answer_of(skills)) == tuple(sorted(skills))


def test_a_model_survives_the_trip_to_another_process() -> None:
    again = LocalModel.from_bytes(model().to_bytes(), version=7)
    assert again.answer("rain", vectors(2)[0]) == model().answer("rain", vectors(2)[0])


def about(curve: dict[str, Any]) -> NDArray[Any]:
    """What a model says of itself, with a curve of its coverage that is as given."""
    sound = {"slope": 1.0, "offset": 0.0, "method": "platt", "pairs": 20, "held_out_error": 0.1}
    coverage = {"covered": sound | curve, "right": sound, "uncovered": 0.1, "weight": 1.0}
    said = {"classes": ["", "music", "weather"], "evidence": "", "coverage": coverage}
    return np.frombuffer(json.dumps(said).encode(), dtype=np.uint8)


def test_a_model_may_say_what_its_examples_cover() -> None:
    changed = BytesIO()
    np.savez(changed, allow_pickle=False, **parts_of(model()) | {"about": about({})})
    assert LocalModel.from_bytes(changed.getvalue(), version=1).coverage is not None


def parts_of(fitted: LocalModel) -> dict[str, NDArray[Any]]:
    with np.load(BytesIO(fitted.to_bytes())) as file:
        return {name: file[name] for name in file.files}


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("weights", np.zeros((3, 3), dtype=np.float32)),
        ("bias", np.zeros(2, dtype=np.float32)),
        ("bias", np.full(3, np.nan, dtype=np.float32)),
        ("bias", np.array(["a", "b", "c"])),
        ("bias", np.zeros(3, dtype=np.bool_)),
        ("bias", np.zeros(3, dtype=np.int64)),
        ("examples", np.zeros(5, dtype=np.float32)),
        ("starts", np.array([0, 9, 12])),
        ("starts", np.array([0, 1, 1])),
        ("counts", np.array([5])),
        ("counts", np.array([1.0, 2.0, 2.0])),
        ("counts", np.array([1, 2, -2])),
        ("about", np.frombuffer(b"[]", dtype=np.uint8)),
        ("about", about({"slope": float("nan")})),
        ("about", about({"knots": [0.0, 1.0], "levels": [0.5]})),
        ("about", about({"knots": [0.0], "levels": [1.5]})),
        ("about", np.frombuffer(b"[" * 50_000, dtype=np.uint8)),
        ("more", np.zeros(1)),
    ],
)
def test_a_model_whose_parts_do_not_fit_together_is_refused(part: str, value: NDArray[Any]) -> None:
    changed = BytesIO()
    np.savez(changed, allow_pickle=False, **parts_of(model()) | {part: value})
    with pytest.raises(ValueError, match=r"."):
        LocalModel.from_bytes(changed.getvalue(), version=1)


@pytest.mark.parametrize("part", ["weights", "bias", "examples", "starts", "words_gains"])
@pytest.mark.parametrize("kind", [np.float64, np.complex64])
def test_a_model_of_other_numbers_is_refused(part: str, kind: type[np.generic]) -> None:
    parts = parts_of(model())
    changed = BytesIO()
    np.savez(changed, allow_pickle=False, **parts | {part: parts[part].astype(kind)})
    with pytest.raises(ValueError, match="do not fit together"):
        LocalModel.from_bytes(changed.getvalue(), version=1)


def test_a_model_that_names_an_answer_twice_is_refused() -> None:
    parts = parts_of(model())
    about = json.loads(parts["about"].tobytes()) | {"classes": ["", "music", "music"]}
    parts["about"] = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    changed = BytesIO()
    np.savez(changed, allow_pickle=False, **parts)
    with pytest.raises(ValueError, match="do not fit together"):
        LocalModel.from_bytes(changed.getvalue(), version=1)


def test_a_model_of_vectors_of_another_dimension_is_refused() -> None:
    data = model().to_bytes()
    assert LocalModel.from_bytes(data, version=1, dimension=8).head.examples.shape == (5, 8)
    with pytest.raises(ValueError, match="of another dimension"):
        LocalModel.from_bytes(data, version=1, dimension=16)


def header(text: bytes) -> bytes:
    """The beginning of an array in NumPy's format; its numbers are missing."""
    return b"\x93NUMPY\x01\x00" + (len(text) + 1).to_bytes(2, "little") + text + b"\n"


@pytest.mark.parametrize(
    "bias",
    [
        b"",
        b"junk",
        header(b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000000000000,), }"),
        header(b"{'descr': '<f4', 'fortran_order': False, 'shape': (10,"),
    ],
)
def test_an_array_that_is_not_what_it_claims_is_refused(bias: bytes) -> None:
    changed = BytesIO()
    with ZipFile(BytesIO(model().to_bytes())) as before, ZipFile(changed, "w") as after:
        for name in before.namelist():
            after.writestr(name, bias if name == "bias.npy" else before.read(name))
    with pytest.raises(ValueError, match="not a model"):
        LocalModel.from_bytes(changed.getvalue(), version=1)


@pytest.mark.parametrize(("place", "value"), [(8, 1), (6, 99)], ids=["encrypted", "version"])
def test_an_archive_that_cannot_be_read_is_refused(place: int, value: int) -> None:
    data = bytearray(model().to_bytes())
    data[data.find(b"PK\x01\x02") + place] = value
    with pytest.raises(ValueError, match="not a model"):
        LocalModel.from_bytes(bytes(data), version=1)


def test_a_model_that_is_compressed_is_refused_unread() -> None:
    packed = BytesIO()
    np.savez_compressed(packed, about=np.zeros(10**6, dtype=np.uint8))
    for data in (packed.getvalue(), b"", b"no model"):
        with pytest.raises(ValueError, match="not a model"):
            LocalModel.from_bytes(data, version=1)
