"""How probable it is that a text bears on a query."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from router.memory.recall import relevance as relevance_module
from router.memory.recall.pool import RELEVANCE_FLOOR
from router.memory.recall.relevance import (
    BUNDLED,
    BY_ENCODER,
    MAX_PARTS,
    MAX_SENTENCES,
    MINILM,
    EncoderCoefficients,
    Relevance,
    names_in,
    parts_of,
    passage_of,
    sentences_of,
)
from router.memory.texts.text_vectors import TextVectors
from router.numeric import logistic
from router.retrieval.bundled_encoder import BundledEncoder
from router.retrieval.encoders import Encoder
from router.retrieval.onnx_encoder import OnnxEncoder, minilm, minilm_files

PAIRS = [
    (
        "How do we deploy to staging?",
        "To deploy to staging, merge into develop and run make release-staging.",
        "Maria prefers oat milk in her coffee.",
    ),
    (
        "Who owns the billing service?",
        "The billing service is owned by the payments team; Maria is the contact.",
        "The font of the documentation is Inter.",
    ),
    (
        "timeout of the worker",
        "Workers kill a job after 15 minutes; WORKER_TIMEOUT changes it.",
        "Design reviews happen on Thursday.",
    ),
    (
        "what does error E1042 mean",
        "E1042 means that the uploaded file is larger than the quota.",
        "The team retreat is in the Alps.",
    ),
    (
        "When did Carla move to Lisbon?",
        "Carla moved to Lisbon in the spring of 2024.",
        "Unit tests are written with pytest.",
    ),
]


@pytest.fixture(scope="module")
def relevance() -> Relevance:
    return Relevance(TextVectors(BundledEncoder()))


@pytest.fixture(scope="module")
def relevance_of_minilm() -> Relevance:
    return Relevance(TextVectors(minilm()))


class Blind:
    """An encoder that knows no word."""

    identity = "blind"
    static = True

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.zeros((len(texts), 4), dtype=np.float32)

    def encode_documents(self, documents: Sequence[tuple[str, str]]) -> NDArray[np.float32]:
        return self.encode([head for head, _ in documents])


def test_a_line_that_refers_to_another_memory_is_no_answer() -> None:
    assert parts_of("Run the tests.\nBefore a release read `mem:release`.") == ["Run the tests."]
    assert parts_of("Read `mem:release`.") == ["Read `mem:release`."]


def probabilities(by: Relevance, query: str, contents: Sequence[str]) -> list[float]:
    return [judged.relevance for judged in by.of(query, contents)]


@pytest.mark.parametrize("encoder", ["relevance", "relevance_of_minilm"])
@pytest.mark.parametrize(("query", "answer", "unrelated"), PAIRS)
def test_an_answer_is_above_a_half_and_an_unrelated_text_near_zero(
    request: pytest.FixtureRequest, encoder: str, query: str, answer: str, unrelated: str
) -> None:
    relevance: Relevance = request.getfixturevalue(encoder)
    bears, does_not = probabilities(relevance, query, [answer, unrelated])
    assert bears > 0.5
    assert does_not < 0.06


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("What is the home wifi password?", "Home wifi password is hunter2"),
        ("What is the wifi password?", "Home wifi password is hunter2"),
        ("What is the new wifi password?", "Home wifi password is hunter2"),
        ("What is the guest wifi password?", "Home wifi password is a, guest password is b"),
        ("What is our house wifi password?", "Home wifi password is hunter2"),
    ],
)
def test_what_only_one_of_them_qualifies_or_both_alike_may_be_one_thing(
    monkeypatch: pytest.MonkeyPatch, relevance: Relevance, query: str, text: str
) -> None:
    monkeypatch.setattr(relevance_module, "OTHERWISE_QUALIFIED", -99.0)
    assert probabilities(relevance, query, [text])[0] > 0.5


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("Who is my wife?", "my wife is called Claire"),
        ("Who is my spouse?", "my wife is called Claire"),
        ("Who is my wife?", "my partner is called Claire"),
        ("Am I vegetarian?", "I am vegetarian and allergic to nuts"),
        ("Did we move from Postgres to MySQL?", "We did move to MySQL"),
    ],
)
def test_a_kind_is_meant_by_its_own_word_and_by_the_word_for_all_kinds(
    monkeypatch: pytest.MonkeyPatch, relevance: Relevance, query: str, text: str
) -> None:
    monkeypatch.setattr(relevance_module, "OTHERWISE_QUALIFIED", -99.0)
    assert probabilities(relevance, query, [text])[0] > 0.5


def test_a_word_for_all_kinds_that_query_and_text_share_stands_for_no_kind_as_well(
    relevance: Relevance,
) -> None:
    other, same = (
        probabilities(relevance, "Am I allergic to nuts?", [f"allergic to {kind}"])[0]
        for kind in ("penicillin", "nuts")
    )
    assert other < 0.7 < 0.97 < same


def test_minilm_is_surer_of_an_answer_that_shares_no_word_with_the_question(
    relevance: Relevance, relevance_of_minilm: Relevance
) -> None:
    query, content = "Which instrument do I play?", "Takes cello lessons on Mondays."
    assert (
        probabilities(relevance_of_minilm, query, [content])[0]
        > 0.5
        > probabilities(relevance, query, [content])[0]
    )


@pytest.mark.parametrize(
    ("make", "meaning"),
    [
        (BundledEncoder, BUNDLED),
        (minilm, MINILM),
        (lambda: OnnxEncoder(*minilm_files()), MINILM),
        (Blind, BUNDLED),
    ],
    ids=["bundled", "minilm", "the files of minilm", "another"],
)
def test_what_a_cosine_counts_depends_on_the_encoder(
    make: Callable[[], Encoder], meaning: EncoderCoefficients
) -> None:
    encoder = make()
    assert BY_ENCODER.get(encoder.identity, BUNDLED) == meaning
    # They share no word, nor related ones, so that only the cosine counts.
    query, content = "pets", "Biscuit is our beagle."
    vectors = TextVectors(encoder)
    one, other = vectors.of([query, content])
    expected = logistic(meaning.bias + meaning.cosine * float(one @ other))
    assert probabilities(Relevance(vectors), query, [content])[0] == pytest.approx(expected)


def test_the_cosine_of_a_content_is_that_of_its_nearest_part(relevance: Relevance) -> None:
    query = "Which instrument do I play?"
    [alone] = relevance.of(query, ["I play the cello."])
    [with_question] = relevance.of(query, ["I play the cello."], [["What instrument do I play?"]])
    assert 0 < alone.cosine < with_question.cosine <= 1


def test_the_query_itself_is_near_one(relevance: Relevance) -> None:
    query = "When did Carla move to Lisbon?"
    assert probabilities(relevance, query, [query])[0] > 0.95


def test_the_same_words_about_another_person_are_less_probable(relevance: Relevance) -> None:
    query = "When did Carla move to Lisbon?"
    carla, dora = probabilities(
        relevance, query, ["Carla moved to Lisbon.", "Dora moved to Lisbon."]
    )
    assert dora < carla - 0.2


def test_another_number_is_less_probable(relevance: Relevance) -> None:
    query = "what does error E1042 mean"
    right, wrong = probabilities(
        relevance, query, ["E1042 is about quotas.", "E1017 is about quotas."]
    )
    assert wrong < right / 2


@pytest.mark.parametrize(
    ("query", "right", "wrong"),
    [
        (
            "What does E-31 on the spindle mean?",
            "E-31 means that the spindle is too hot.",
            "E-17 means that the spindle is too hot.",
        ),
        (
            "Who paid invoice 2026-077?",
            "Invoice 2026-077 was paid by Petra.",
            "Invoice 2026-031 was paid by Petra.",
        ),
        (
            "Does room 15 have a projector?",
            "Rooms 12 and 15 have a projector.",
            "Room 12 has a projector.",
        ),
        (
            "How much is a ticket of class D?",
            "A ticket of class D is 4 euros.",
            "A ticket of class B is 4 euros.",
        ),
        (
            "When does bus 9 leave the mill?",
            "Bus 9 leaves the mill at noon.",
            "Bus 7 leaves the mill at noon.",
        ),
        (
            "Does route 13 pass the church?",
            "Route 13 passes the church.",
            "Route 12 passes the church.",
        ),
        ("Where is lamp H4?", "Lamp H4 is in the yard.", "Lamp H3 is in the yard."),
    ],
)
def test_what_is_named_by_another_code_or_number_is_another_thing(
    relevance: Relevance, query: str, right: str, wrong: str
) -> None:
    found, other = probabilities(relevance, query, [right, wrong])
    assert other < RELEVANCE_FLOOR < 0.5 < found


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("Can the scale weigh a dog of 80 kilos?", "The scale can weigh a dog of up to 120 kilos."),
        ("Does the marquee fit 40 people?", "The marquee fits 60 guests."),
        ("Does the oven hold 7 trays?", "The oven holds 12 trays."),
        ("What does E-31 on the spindle mean?", "All codes of the spindle mean that it is hot."),
        ("Was the fair in May 2026?", "The fair was in May 2025."),
    ],
)
def test_amounts_dates_and_texts_without_a_code_contradict_none(
    relevance: Relevance, query: str, text: str
) -> None:
    assert probabilities(relevance, query, [text])[0] > RELEVANCE_FLOOR


def test_each_text_is_judged_by_itself(relevance: Relevance) -> None:
    query, answer, unrelated = PAIRS[0]
    together = probabilities(relevance, query, [answer, unrelated, answer])
    assert together[0] == together[2]
    assert together[0] == pytest.approx(probabilities(relevance, query, [answer])[0])


NOTE = (
    "We arrived at the cabin on Friday after a long drive. Karin cooked lentil soup. "
    "The safe code of the cabin is 4711. On Saturday we went skiing and then played cards."
)


@pytest.mark.parametrize("note", [NOTE, "\n".join(NOTE.split(". ")), " ".join([NOTE] * 3)])
def test_a_fact_in_a_note_is_nearly_as_probable_as_by_itself(
    relevance: Relevance, note: str
) -> None:
    query = "What is the safe code of the cabin?"
    alone, within = probabilities(relevance, query, ["The safe code of the cabin is 4711.", note])
    assert alone > within > 0.8


def test_of_a_note_the_encoder_is_given_one_sentence_beside_the_whole() -> None:
    vectors = TextVectors(BundledEncoder())
    probabilities(Relevance(vectors), "What is the safe code of the cabin?", [NOTE])
    encoded = [sentence for sentence in sentences_of(NOTE) if sentence in vectors]
    assert encoded == ["The safe code of the cabin is 4711."]


def test_a_note_that_shares_no_word_is_judged_as_a_whole(relevance: Relevance) -> None:
    assert probabilities(relevance, "Which bus goes to the harbour?", [NOTE])[0] < RELEVANCE_FLOOR


def test_only_the_first_sentences_of_an_endless_part_are_looked_at() -> None:
    assert sentences_of("No. Yes. " * 1_000) == []
    assert len(sentences_of("The cat sat on the mat. " * 1_000)) == MAX_SENTENCES


def test_a_single_sentence_has_no_parts() -> None:
    assert sentences_of("The version is 3.1.4 of v2.") == []


GUIDE = "# Guide\n\n" + "\n\n".join(
    f"## {title}\n\n" + "It is described by the foreman. " * 60 + last
    for title, last in (
        ("press", "The mill runs until ten."),
        ("rota", "Alarm code 9082 wakes Vendula."),
        ("backups", "They are made at night."),
    )
)


@pytest.mark.parametrize(
    ("query", "beginning"),
    [
        ("Which alarm code wakes Vendula?", "… Alarm code 9082 wakes Vendula."),
        ("When are backups made?", "… ## backups"),
        ("Who is Krystof?", "# Guide"),
    ],
)
def test_the_passage_of_a_long_text_begins_with_the_sentence_that_shares_most_words(
    query: str, beginning: str
) -> None:
    passage = passage_of(GUIDE, query, 300)
    assert passage.startswith(beginning)
    assert len(passage) <= 300


def test_the_passage_of_a_short_text_is_all_of_it() -> None:
    assert passage_of("The mill runs. Vendula sleeps.", "Vendula", 300).startswith("The mill")


@pytest.mark.parametrize("terms", [50, 124, 125, 1_000, 4_000])
def test_the_last_of_many_short_sections_is_judged_as_well(
    relevance: Relevance, terms: int
) -> None:
    sections = "".join(f"## T{number}\nIt is {number}.\n" for number in range(terms))
    glossary = (
        f"# Glossary\n{sections}## Pilot light\nThe pilot light is relit by holding knob B.\n"
    )
    [found] = relevance.of("How is the pilot light relit?", [glossary])
    assert found.relevance > 0.9
    assert len(parts_of(glossary)) <= MAX_PARTS


def test_the_end_of_the_longest_item_is_judged_whatever_its_sections(
    relevance: Relevance,
) -> None:
    section = f"## Notes\n{'word ' * 200}\n"
    guide = (
        section * (99_900 // len(section)) + "## Pilot light\nThe pilot light is relit by knob B."
    )
    assert relevance.of("How is the pilot light relit?", [guide])[0].relevance > 0.9


def test_words_decide_where_the_encoder_knows_none() -> None:
    held, not_held = probabilities(
        Relevance(TextVectors(Blind())), "wird bereitgestellt", ["Es wird bereitgestellt.", "x"]
    )
    assert held > RELEVANCE_FLOOR > not_held


@pytest.mark.parametrize(
    ("query", "answer", "other"),
    [
        ("パン屋は何時に始まる", "パン屋は朝四時に始まる", "オスロの製粉所から小麦粉を買う"),
        ("что любит кот", "кот Эрл любит лосося", "пекари начинают в четыре утра"),
        ("что любит кот", "кот Эрл любит лосося", "earl the cat likes salmon"),
    ],
)
def test_in_another_alphabet_words_tell_what_answers(
    relevance: Relevance, query: str, answer: str, other: str
) -> None:
    of_answer, of_other = probabilities(relevance, query, [answer, other])
    assert of_answer > RELEVANCE_FLOOR > of_other


def test_a_query_without_words_bears_on_nothing(relevance: Relevance) -> None:
    assert probabilities(relevance, "?!", ["Unit tests are written with pytest."])[0] < 0.1


@settings(max_examples=50)
@given(st.text(min_size=1, max_size=80), st.lists(st.text(min_size=1, max_size=80), max_size=4))
def test_it_is_always_a_probability(relevance: Relevance, query: str, contents: list[str]) -> None:
    judged = probabilities(relevance, query, contents)
    assert len(judged) == len(contents)
    assert all(0 < probability < 1 for probability in judged)


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("What is JWT?", {"jwt"}),
        ("When did Anna's team meet?", {"anna"}),
        ("Did Anna reach Porto", {"anna", "porto"}),
        ("what changed in v2", {"v2"}),
        ("Update the readme", set()),
        ("what do I like", set()),
    ],
)
def test_names_are_known_by_their_shape(query: str, names: set[str]) -> None:
    assert names_in(query) == names
