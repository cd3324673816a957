"""Which layers a query is sent to, and why."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from router.errors import ConfigurationError, InvalidRequest
from router.memory.model import Classification, LayerSpec, QueryType
from router.memory.query.classifier import QueryClassifier, _cited
from router.memory.query.routing_table import MAX_LAYERS, ROUTING_TABLE, Route
from router.result import MEMORY_LAYERS
from router.retrieval.bundled_encoder import BundledEncoder

classify = QueryClassifier().classify


def names(classification: Classification) -> list[str]:
    return [choice.name for choice in classification.layers]


def test_going_on_with_work_reads_session_project_and_graph() -> None:
    assert names(classify("Continue working on auth")) == ["session", "project", "graph"]


def test_a_definition_reads_the_semantic_layer_alone() -> None:
    classified = classify("What is JWT?")
    assert names(classified) == ["semantic"]
    assert classified.types == (QueryType.FACTUAL,)


@pytest.mark.parametrize(
    "query", ["Continue working on auth", "thanks, bye", "What uses it and when was it decided?"]
)
def test_the_layers_alone_are_those_that_are_explained(query: str) -> None:
    plugged = LayerSpec("recipes", "Recipes that were cooked", ("what did we cook on sunday",))
    classifier = QueryClassifier(layers=[plugged])
    assert classifier.layers(query) == classifier.classify(query).layers


@pytest.mark.parametrize(
    "query",
    [
        "Decompose the deployment process",
        "Plan the release workflow",
        "Validate the steps of my plan",
    ],
)
def test_planning_is_considered_before_procedural(query: str) -> None:
    assert classify(query).types[0] is QueryType.PLANNING


def test_how_to_plan_in_a_tool_is_procedural_all_the_same() -> None:
    assert names(classify("How do I plan a sprint in Jira?"))[0] == "procedural"


@pytest.mark.parametrize(
    "query",
    [
        "Update the README",
        "Update the changelog",
        "How do I configure an elastic IP?",
        "What causes a memory leak?",
        "Is a whale a fish?",
    ],
)
def test_a_word_inside_another_word_is_not_that_word(query: str) -> None:
    assert QueryType.TEMPORAL not in classify(query).types
    assert QueryType.RELATIONAL not in classify(query).types


@pytest.mark.parametrize(
    ("query", "layer", "query_type"),
    [
        ("What did you tell me a minute ago?", "session", QueryType.GENERAL),
        ("Why did we choose Elixir for the chat server?", "project", QueryType.ARCHITECTURAL),
        ("Do I prefer trains or planes?", "user", QueryType.USER),
        ("What does LIFO mean?", "semantic", QueryType.FACTUAL),
        ("Which modules depend on the tokenizer?", "graph", QueryType.RELATIONAL),
        ("Who owns the thumbnail service?", "graph", QueryType.RELATIONAL),
        ("Who approved the new travel budget?", "governance", QueryType.HISTORICAL),
        ("What is our policy on side jobs?", "governance", QueryType.FACTUAL),
        ("What did we talk about last Wednesday?", "episodic", QueryType.TEMPORAL),
        ("Have we ever had this kind of crash before?", "episodic", QueryType.HISTORICAL),
        ("How do I renew the licence key?", "procedural", QueryType.PROCEDURAL),
        ("Remind me to send the slides on Tuesday", "prospective", QueryType.PROSPECTIVE),
        ("Draft a roadmap for the museum app launch", "planning", QueryType.PLANNING),
        ("How much do you know about our vendors?", "meta", QueryType.META),
    ],
)
def test_each_layer_is_read_for_what_it_holds(
    query: str, layer: str, query_type: QueryType
) -> None:
    classified = classify(query)
    assert names(classified)[0] == layer
    assert classified.types[0] is query_type


@pytest.mark.parametrize(
    "query",
    ["Thank you!", "What is 23 times 4?", "Tell me a joke about llamas", "zxcv qwer asdf"],
)
def test_what_no_memory_bears_on_reads_nothing(query: str) -> None:
    classified = classify(query)
    assert (classified.layers, classified.types, classified.secondary) == ((), (), ())
    assert classified.reasons == ("It calls for no layer in particular.",)
    assert classified.confidence > 0.8


def test_a_query_that_asks_two_things_reads_for_both() -> None:
    classified = classify("Who approved the schema change, and what depends on it?")
    assert names(classified)[:2] == ["governance", "graph"]
    assert classified.types[:2] == (QueryType.HISTORICAL, QueryType.RELATIONAL)


def test_the_reasons_name_the_words_that_decided_and_the_other_layers() -> None:
    reasons = classify("Continue working on auth").reasons
    assert reasons[0].startswith("The query is general, for session: ")
    assert '"continue"' in reasons[0]
    assert reasons[1] == "It may also want project, graph."


def test_the_mark_of_a_question_is_no_word_that_is_named() -> None:
    assert _cited(["leads", "payments ?", "?"]) == ["leads", "payments"]


def test_of_a_long_query_no_more_words_are_compared_than_the_reasons_name() -> None:
    words = iter(["refund", "the", "refunds", "invoice", "customer"])
    assert _cited(words) == ["refund", "invoice"]
    assert next(words) == "customer"


def test_an_unclear_query_is_less_certain_than_a_clear_one() -> None:
    assert classify("the blue one").confidence < classify("What does LIFO mean?").confidence


def test_the_secondary_layers_come_from_the_table() -> None:
    classified = classify("Do I prefer trains or planes?")
    route = ROUTING_TABLE[QueryType.USER].secondary
    assert {choice.name: choice.weight for choice in classified.secondary} == dict(route)


@pytest.mark.parametrize("query", ["", "  \n ", "a\x00b", "x" * 2_001])
def test_what_is_no_query_is_refused(query: str) -> None:
    with pytest.raises(InvalidRequest, match="query"):
        classify(query)


@settings(max_examples=150)
@given(st.text(min_size=1, max_size=2_000).filter(lambda text: not text.isspace()))
def test_any_text_has_a_valid_and_repeatable_classification(text: str) -> None:
    try:
        classified = classify(text)
    except InvalidRequest:
        assert not text.isprintable()  # it holds a control character
        return
    assert classify(text) == classified
    chosen = [*classified.layers, *classified.secondary]
    assert len({choice.name for choice in chosen}) == len(chosen)
    assert {choice.name for choice in chosen} <= set(MEMORY_LAYERS)
    assert all(0 < choice.weight <= 1 for choice in chosen)
    assert len(classified.layers) <= MAX_LAYERS
    assert len(set(classified.types)) == len(classified.types)
    assert bool(classified.types) == bool(classified.layers)
    assert 0 <= classified.confidence <= 1
    assert classified.reasons


CELLAR = LayerSpec(
    "cellar",
    "The wines in the cellar: bottles, vintages, shelves.",
    (
        "Which red wines are in the cellar?",
        "How many bottles of Riesling are left?",
        "Where is the 2015 Barolo stored?",
    ),
)


@pytest.mark.parametrize(
    "query", ["Which white wines are in the cellar?", "How many bottles of Barolo do we have?"]
)
def test_a_plugged_in_layer_is_read_for_what_is_like_its_examples(
    query: str, encoder: BundledEncoder
) -> None:
    classified = QueryClassifier(layers=[CELLAR], encoder=encoder).classify(query)
    assert names(classified)[0] == "cellar"
    assert classified.reasons[0] == "It is like the examples of cellar."


def test_a_plugged_in_layer_leaves_other_queries_alone(encoder: BundledEncoder) -> None:
    plugged = QueryClassifier(layers=[CELLAR], encoder=encoder)
    assert names(plugged.classify("What is JWT?")) == ["semantic"]


def test_a_plugged_in_layer_may_stand_in_the_table(encoder: BundledEncoder) -> None:
    table = {QueryType.USER: Route({"cellar": 0.9, "user": 1.0})}
    plugged = QueryClassifier(table=table, layers=[CELLAR], encoder=encoder)
    assert set(names(plugged.classify("Do I prefer trains or planes?"))) >= {"cellar", "user"}


def test_a_layer_that_nothing_is_known_of_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="layer 'blank'"):
        QueryClassifier(layers=[LayerSpec("blank", " ")])


def test_importing_the_classifier_leaves_the_heavy_libraries_alone() -> None:
    code = (
        "import router.memory.query.classifier, sys; print(sorted(set(sys.modules) & "
        "{'chromadb', 'openai', 'ollama', 'numpy'}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=os.environ
    )
    assert done.stdout.strip() == "[]"
