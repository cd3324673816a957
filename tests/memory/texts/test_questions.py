"""Questions that a memory brings: how they are kept, and that it is found and judged by them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from kept_memory import settings_in
from memory.remembered import item

from router.errors import InvalidRequest
from router.memory.memory import Memory
from router.memory.model import AttributeValue
from router.memory.texts.questions import MAX_QUESTIONS, checked_questions, questions_of, texts_of

ME = {"user": "ada"}
NUTS = "Hazelnuts make my throat swell."
ASKED = ("What am I allergic to?", "Which food is dangerous for me?")


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with Memory(settings_in(tmp_path)) as made:
        yield made


def test_a_text_holds_one_question_a_line_and_none_twice() -> None:
    asked = "Who  is it?\n\nWhere?\nWho is it?\n"
    assert checked_questions(asked) == ("Who is it?", "Where?")


@pytest.mark.parametrize(
    "given", [5, ["x" * 301], [""], [5], [f"question {n}" for n in range(MAX_QUESTIONS + 1)]]
)
def test_what_are_no_questions_is_refused(given: object) -> None:
    with pytest.raises(InvalidRequest, match="questions"):
        checked_questions(given)


def test_an_attribute_of_that_name_that_is_no_list_of_texts_holds_none() -> None:
    assert questions_of(item("a", "text", attributes={"questions": 5})) == ()
    assert texts_of("text", {"questions": ["Who?", 5]}) == ("text", "Who?")


def test_of_an_endless_list_or_text_in_a_layer_of_anyones_no_more_is_read_than_may_be_stored() -> (
    None
):
    endless = [f"question {n}" for n in range(1000)]
    assert texts_of("text", {"questions": endless}) == ("text", *endless[:MAX_QUESTIONS])
    assert texts_of("text", {"questions": ["x" * 301, "Who?"]}) == ("text", "Who?")


@pytest.mark.parametrize("other", [5, "x" * 301, tuple(f"word {n}" for n in range(9))])
async def test_an_attribute_that_means_something_else_stays_as_it_is(
    memory: Memory, other: AttributeValue
) -> None:
    saved = await memory.save(NUTS, layer="user", scope=ME, attributes={"questions": other})
    edited = await memory.edit(saved.name, layer="user", scope=ME, tags=["food"])
    assert (edited.attributes["questions"], edited.tags) == (other, ("food",))
    lines = await memory.export(owner=ME)
    assert await memory.import_lines(lines) == 1
    assert await memory.export(owner=ME) == lines
    mine = {"questions": 7}
    newer = await memory.save(
        "Nuts.", layer="user", scope=ME, supersede=[saved.name], attributes=mine
    )
    assert newer.item is not None
    assert newer.item.attributes["questions"] == 7
    with pytest.raises(InvalidRequest, match="questions"):
        await memory.edit(saved.name, layer="user", scope=ME, attributes={"questions": 5})


async def test_what_is_saved_or_edited_is_told_as_it_is_stored(memory: Memory) -> None:
    one = {"questions": "One?\n\nTwo?", "relations": "uses -> Redis"}
    saved = await memory.save(NUTS, layer="user", scope=ME, attributes=one)
    assert saved.item is not None
    assert saved.item.attributes == {
        "questions": ("One?", "Two?"),
        "relations": ("uses -> Redis",),
    }
    three = {"questions": "Three?"}
    edited = await memory.edit(saved.name, layer="user", scope=ME, attributes=three)
    assert questions_of(edited) == ("Three?",)


async def test_the_same_text_saved_again_keeps_its_questions(memory: Memory) -> None:
    await memory.save(NUTS, layer="user", scope=ME, questions=ASKED)
    again = await memory.save(NUTS, layer="user", scope=ME, tags=["food"])
    assert again.item is not None
    assert (questions_of(again.item), again.item.tags) == (ASKED, ("food",))
    other = await memory.save(NUTS, layer="user", scope=ME, questions=["What hurts?"])
    assert other.item is not None
    assert questions_of(other.item) == ("What hurts?",)


async def test_a_memory_is_recalled_by_its_questions_alone(memory: Memory) -> None:
    ink, asked = "Mrs Lindqvist, in green ink.", "Who signs the invoices?"
    await memory.save(ink, layer="user", scope=ME)
    assert not (await memory.recall(asked, ME)).items
    saved = await memory.save(ink, layer="user", scope=ME, questions=[asked])
    found = await memory.recall("Who signs our invoices?", ME)
    assert [one.item.content for one in found.items] == [ink]
    assert questions_of(found.items[0].item) == (asked,)
    assert not (await memory.recall("What is my shoe size?", ME)).items

    await memory.edit(saved.name, layer="user", scope=ME, attributes={"questions": None})
    assert not (await memory.recall(asked, ME)).items


@pytest.mark.parametrize("strategy", ["lexical", "hybrid"])
async def test_a_memory_that_its_questions_find_is_in_a_context(
    memory: Memory, strategy: str
) -> None:
    await memory.save(NUTS, layer="user", scope=ME, questions=ASKED)
    context = await memory.assemble("Am I allergic to anything?", strategy, scope=ME)
    assert [chunk.content for chunk in context.chunks] == [NUTS]


async def test_questions_are_exported_imported_and_forgotten_with_their_memory(
    memory: Memory, tmp_path: Path
) -> None:
    await memory.save(NUTS, layer="user", scope=ME, questions=ASKED)
    lines = await memory.export(owner=ME)
    report = await memory.forget(ME)
    assert (report.items, report.left, report.vectors) == (1, 0, 0)
    assert not (await memory.recall("Am I allergic to anything?", ME)).items
    assert b"allergic" not in (tmp_path / "kept" / "memory.db").read_bytes()
    await memory.import_lines(lines)
    assert (await memory.recall("Am I allergic to anything?", ME)).items


async def test_what_replaces_a_memory_answers_its_questions(memory: Memory) -> None:
    asked = "In which town is my flat?"
    old = await memory.save("Antwerp it is.", layer="user", scope=ME, questions=[asked])
    assert old.item is not None
    new = await memory.save("Mechelen.", layer="user", scope=ME, supersede=[old.item.id])
    assert new.item is not None
    assert questions_of(new.item) == (asked,)
    found = await memory.recall(asked, ME)
    assert [one.item.content for one in found.items] == ["Mechelen."]
    own = ["Where do I live?"]
    newest = await memory.save(
        "Ghent.", layer="user", scope=ME, supersede=[new.item.id], questions=own
    )
    assert newest.item is not None
    assert questions_of(newest.item) == ("Where do I live?",)
