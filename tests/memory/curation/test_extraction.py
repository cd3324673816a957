"""What an LLM extracts from a conversation is proposed with quotes, and never saved."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from kept_memory import settings_in
from scripted_model import ADA, NOW, PEANUTS, TALK, Scripted, memories, stored

from router.errors import ConfigurationError, LLMAnswerError, LLMUnavailable
from router.memory.curation.extraction import BATCH_CHARACTERS, turns_of
from router.memory.memory import Memory
from router.request import Turn
from router.retrieval.bundled_encoder import BundledEncoder


async def test_extraction_proposes_with_quotes_and_saves_nothing(
    asking: Memory, model: Scripted
) -> None:
    cache = (3, "the cache shall be Redis 7", "project", "The cache is Redis 7.")
    model.answers = [memories(PEANUTS, cache)]
    found = await asking.extract(TALK, scope=ADA, source="standup")
    assert [(one.layer, one.evidence) for one in found.proposals] == [
        ("user", ("I am allergic to peanuts",)),
        ("project", ("the cache shall be Redis 7",)),
    ]
    assert await stored(asking) == {}
    for one in found.proposals:
        await asking.accept(one.id, scope=ADA)
    [told] = (await asking.recall("What can't I eat?", ADA)).items
    assert told.item.content == "The user is allergic to peanuts."
    assert told.item.provenance == ("conversation:standup turn 1",)
    assert told.item.scope.to_dict() == {"user": "ada"}


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (
            (1, "I am allergic to walnuts", "user", "Allergic to walnuts."),
            "not in the conversation",
        ),
        (
            (2, "I am allergic to peanuts", "user", "Allergic to peanuts."),
            "not in the conversation",
        ),
        ((3, "the cache shall be Redis 7", "project", "The cache is Redis 8."), "a number"),
        ((1, "By the way, I am", "user", "The user likes jazz music."), "does not support"),
        ((1, "I am allergic to peanuts", "governance", "Allergic to peanuts."), "no layer"),
        ((1, "I am", "user", "The user is."), "quote is not in"),
        ((1, "I am allergic to peanuts", "user", "The user is not allergic to peanuts."), "denies"),
    ],
)
async def test_what_the_conversation_does_not_say_is_refused(
    asking: Memory, model: Scripted, row: tuple[int, str, str, str], why: str
) -> None:
    model.answers = [memories(row)]
    found = await asking.extract(TALK, scope=ADA)
    assert found.proposals == ()
    assert why in found.refused[0]


@pytest.mark.parametrize(
    ("quote", "content", "is_proposed"),
    [
        ("I am not allergic to penicillin", "The user is allergic to penicillin.", False),
        ("I am not allergic to penicillin", "The user is not allergic to penicillin.", True),
        ("I don't eat fish", "I eat fish.", False),
        ("Anna lent Tom 300 euros", "Tom lent Anna 300 euros.", False),
        ("On Monday Anna lent Tom 300 euros", "Anna lent Tom 300 euros on Monday.", True),
        ("I don\u2019t eat fish", "I eat fish.", False),
        ("I don't eat fish", "The user does not eat fish.", True),
        ("I don't eat fish", "The user never eats fish.", True),
        ("We no longer deliver on Sundays", "We deliver on Sundays.", False),
        ("The user hates olives", "The user likes olives.", False),
        ("Photos are forbidden in the hall", "Photos are not allowed in the hall.", True),
        ("No problem, I live in Oslo", "I live in Oslo.", True),
        ("I eat fish, but not meat", "The user eats fish.", True),
        ("Not only do I sing, I play the harp", "I play the harp.", True),
        ("I stopped eating meat in May", "I eat meat.", False),
        ("I stopped eating meat in May", "The user stopped eating meat in May.", True),
        ("I stopped eating meat in May", "The user no longer eats meat.", True),
        ("We decided against buying the Zeiss", "We decided to buy the Zeiss.", False),
        ("We decided against buying the Zeiss", "We decided not to buy the Zeiss.", True),
        ("We refuse to work with Merck", "We work with Merck.", False),
        ("I doubt that we will buy the Zeiss", "We will buy the Zeiss.", False),
        ("No doubt that we will buy the Zeiss", "We will buy the Zeiss.", True),
        ("I used to live in Porto", "I live in Porto.", False),
        ("I used to live in Porto", "I used to live in Porto.", True),
        ("I used to live in Porto", "The user lived in Porto.", True),
        ("Redis is used to store carts", "Redis is used to store carts.", True),
        ("The pump costs 300 euros", "The pump costs three thousand euros.", False),
        ("The pump costs 300 euros", "The pump costs three hundred euros.", True),
        ("The pump runs for three hours", "The pump runs for three hours.", True),
        ("My sister is allergic to latex", "I am allergic to latex.", False),
        ("My sister is allergic to latex", "The user's sister is allergic to latex.", True),
        ("My wife and I live in Porto", "I live in Porto.", True),
    ],
)
async def test_a_memory_that_says_something_else_than_its_quote_is_refused(
    asking: Memory, model: Scripted, quote: str, content: str, *, is_proposed: bool
) -> None:
    model.answers = [memories((1, quote, "user", content))]
    found = await asking.extract(_talk(("user", quote)), scope=ADA)
    assert bool(found.proposals) is is_proposed


async def test_a_quote_cannot_leave_out_that_something_is_denied(
    asking: Memory, model: Scripted
) -> None:
    quote, content = "allergic to penicillin", "The user is allergic to penicillin."
    model.answers = [memories((1, quote, "user", content))]
    talk = _talk(("user", "Well, I am not allergic to penicillin."))
    assert (await asking.extract(talk, scope=ADA)).refused == (
        f"it denies what its quote says: {content}",
    )


def _talk(*turns: tuple[str, str]) -> str:
    return "\n".join(json.dumps({"role": role, "content": said}) for role, said in turns)


@pytest.mark.parametrize(
    "turns",
    [
        [("assistant", "Are deploys on Tuesday?")],
        [("assistant", "Are deploys on Tuesday?"), ("user", "No, never.")],
        [("assistant", "Are deploys on Tuesday?"), ("user", "Sure not, far too early.")],
        [("user", "And are deploys on Tuesday?")],
    ],
)
async def test_what_is_only_asked_is_no_fact(
    asking: Memory, model: Scripted, turns: list[tuple[str, str]]
) -> None:
    model.answers = [memories((1, "deploys on Tuesday", "project", "Deploys are on Tuesday."))]
    found = await asking.extract(_talk(*turns), scope=ADA)
    assert found.proposals == ()
    assert found.refused == ("its quote only asks: Deploys are on Tuesday.",)


@pytest.mark.parametrize(
    ("suggested", "answer", "is_proposed"),
    [
        ("You could switch to MongoDB.", "No", False),
        ("You could switch to MongoDB.", "Rather not, it is slow.", False),
        ("You could switch to MongoDB.", "No problem.", True),
        ("You could switch to MongoDB.", "Why not, let's do it.", True),
        ("You could switch to MongoDB. Is there anything else?", "No.", True),
    ],
)
async def test_what_the_user_refuses_is_not_remembered(
    asking: Memory, model: Scripted, suggested: str, answer: str, *, is_proposed: bool
) -> None:
    model.answers = [memories((1, "switch to MongoDB", "project", "We switch to MongoDB."))]
    talk = _talk(("assistant", suggested), ("user", answer))
    assert bool((await asking.extract(talk, scope=ADA)).proposals) is is_proposed


@pytest.mark.parametrize(
    ("turns", "quote", "content"),
    [
        (
            [("assistant", "Are deploys on Tuesday?"), ("user", "Yes, always.")],
            "Are deploys on Tuesday?",
            "Deploys are on Tuesday.",
        ),
        ([("user", "I live in Oslo, where can I ski?")], "I live in Oslo", "The user is in Oslo."),
        (
            [("user", "Could you always answer in German?")],
            "Could you always answer in German?",
            "Answer the user in German.",
        ),
        (
            [("user", "Did I mention that my sister is a vet?")],
            "my sister is a vet",
            "The user's sister is a vet.",
        ),
    ],
)
async def test_what_a_question_also_tells_is_proposed(
    asking: Memory, model: Scripted, turns: list[tuple[str, str]], quote: str, content: str
) -> None:
    model.answers = [memories((1, quote, "user", content))]
    found = await asking.extract(_talk(*turns), scope=ADA)
    assert [(one.content, one.speaker) for one in found.proposals] == [(content, turns[0][0])]


async def test_a_clause_that_nobody_said_is_refused_whatever_the_others_say(
    asking: Memory, model: Scripted
) -> None:
    talk = _talk(("user", "The limit is ours."), ("user", "The max upload is 25 MB, Petra says."))
    quote = "The max upload is 25 MB"
    model.answers = [
        memories(
            (2, quote, "project", "The maximum upload size is 25 MB and users hate it."),
            (2, quote, "project", "The maximum upload is 25 MB, which Petra told us."),
        )
    ]
    found = await asking.extract(talk, scope=ADA)
    assert [one.content for one in found.proposals] == [
        "The maximum upload is 25 MB, which Petra told us."
    ]
    assert found.refused == (
        "nobody says 'users hate it': The maximum upload size is 25 MB and users hate it.",
    )


async def test_a_proposal_says_what_it_replaces(asking: Memory, model: Scripted) -> None:
    await asking.save(
        "The user lives in Ghent",
        layer="user",
        name="home",
        scope={"user": "ada"},
        created="2026-01-02",
    )
    model.answers = [memories((1, "I moved to Bremen", "user", "The user moved to Bremen."))]
    [made] = (await asking.extract("I moved to Bremen last week", scope=ADA)).proposals
    assert made.replaces == ("home",)
    assert made.reason.endswith("It would replace: The user lives in Ghent")


async def test_what_a_wider_scope_sees_is_not_among_what_a_proposal_replaces(
    asking: Memory, model: Scripted
) -> None:
    """The proposal could not be accepted, because nothing in its scope has that id."""
    code: dict[str, Any] = {"layer": "semantic", "name": "gate", "created": "2026-01-02"}
    await asking.save("The gate code is 5190.", scope={"project": ADA["project"]}, **code)
    quote = "The gate code is now 8812"
    model.answers = [memories((1, quote, "semantic", "The gate code is 8812."))]
    [made] = (await asking.extract(f"{quote}, please remember.", scope=ADA)).proposals
    assert made.replaces == ()
    await asking.accept(made.id, scope=ADA)
    found = (await asking.recall("What is the gate code?", ADA)).items
    assert found[0].item.content == "The gate code is 8812."


async def test_what_is_known_already_is_not_proposed_again(asking: Memory, model: Scripted) -> None:
    await asking.save("The user is allergic to peanuts!", layer="user", scope={"user": "ada"})
    model.answers = [memories(PEANUTS), memories(PEANUTS)]
    found = await asking.extract(TALK, scope=ADA)
    assert (found.proposals, found.refused) == (
        (),
        ("known already: The user is allergic to peanuts.",),
    )


async def test_what_has_expired_is_not_known_any_more(
    tmp_path: Path, encoder: BundledEncoder, model: Scripted
) -> None:
    now = [NOW]
    model.answers = [memories(PEANUTS)]
    async with Memory(
        settings_in(tmp_path), encoder=encoder, models=[model], clock=lambda: now[0].timestamp()
    ) as memory:
        until = {"expires_at": (NOW + timedelta(days=1)).isoformat()}
        text = "The user is allergic to peanuts!"
        await memory.save(text, layer="user", scope={"user": "ada"}, attributes=until)
        now[0] += timedelta(days=2)
        assert (await memory.extract(TALK, scope=ADA)).refused == ()


def test_a_line_of_json_ends_at_a_line_feed_only() -> None:
    said = "a\u2028b\u2029c"
    row = json.dumps({"role": "assistant", "content": said}, ensure_ascii=False)
    assert turns_of(f"{row}\r\n\r\n{row}\n") == [Turn("assistant", said)] * 2


def test_brackets_without_end_are_plain_text() -> None:
    assert turns_of("[" * 200_000) == [Turn("user", "[" * 200_000)]


@pytest.mark.parametrize("answer", ["sorry", "[1]", '{"memories": 3}'])
async def test_an_answer_that_is_none_is_an_error(
    asking: Memory, model: Scripted, answer: str
) -> None:
    model.answers = [answer]
    with pytest.raises(LLMAnswerError):
        await asking.extract(TALK, scope=ADA)


async def test_extraction_is_off_without_a_model(memory: Memory) -> None:
    with pytest.raises(ConfigurationError, match="no LLM"):
        await memory.extract(TALK, scope=ADA)


async def test_control_characters_of_a_model_cost_its_memory_and_no_other(
    asking: Memory, model: Scripted
) -> None:
    bell = (1, "I am allergic to peanuts", "user", "Allergic to\x07 peanuts.")
    model.answers = [memories(PEANUTS, bell)]
    found = await asking.extract(TALK, scope=ADA)
    assert [one.content for one in found.proposals] == ["The user is allergic to peanuts."]
    assert "control character" in found.refused[0]


async def test_what_was_found_is_kept_when_a_later_answer_cannot_be_used(
    asking: Memory, model: Scripted
) -> None:
    talk = "I am allergic to peanuts.\n" + "x" * BATCH_CHARACTERS
    model.answers = [memories(PEANUTS), "no object"]
    found = await asking.extract(talk, scope=ADA)
    assert [one.content for one in found.proposals] == ["The user is allergic to peanuts."]
    assert "turns 2 to 2" in found.refused[0]


async def test_a_model_that_is_gone_is_not_asked_about_every_part_that_is_left(
    asking: Memory, model: Scripted
) -> None:
    talk = "\n".join(["I am allergic to peanuts.", *["x" * BATCH_CHARACTERS] * 3])
    model.answers = [memories(PEANUTS), LLMUnavailable("scripted", "no connection")]
    found = await asking.extract(talk, scope=ADA)
    assert [one.content for one in found.proposals] == ["The user is allergic to peanuts."]
    assert "turns 2 to 4" in found.refused[0]
