"""What a request says as a reply to the assistant: thanks, a comment, yes or no."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from cascade import router_over, shipped_router, write_skill
from cpu_time import cpu_time_at_most

from router import SemanticRouter
from router.request import MAX_REQUEST_CHARACTERS, Request, Turn
from router.result import Decision
from router.stages.followup import RequestInContext, in_context
from router.stages.reply import is_comment

BOOKED = (Turn("user", "book a table for two"), Turn("assistant", "Which restaurant?"))


@pytest.mark.parametrize(
    "request_",
    [
        "thanks",
        "Thank you!",
        "ok thanks",
        "great, thanks a lot",
        "many thanks for your help",
        "no, thank you",
        "thx :)",
        "Hello there",
        "Good morning!",
        "Thanks, good night",
        "bye",
        "You’re welcome",
        "That's all, see you tomorrow!",
        "never mind",
        "never mind, forget it",
        "thanks a million, you've been very helpful",
        "that was quick, nice job",
        "haha",
        "Thanks for booking the table",
        "thank you so much for the table, have a nice day",
        "I just wanted to say thanks for booking it and finding the way",
    ],
)
def test_who_thanks_or_greets_asks_for_nothing_again(request_: str) -> None:
    assert in_context(Request.parse(request_, history=BOOKED)) == RequestInContext(request_)
    asked = Request.parse("again", history=["book a table for two", request_])
    assert in_context(asked) == RequestInContext("again", "book a table for two", 1)


@pytest.mark.parametrize(
    "request_",
    [
        "tell me a joke",
        "How are you today?",
        "who made you?",
        "what's the weather like?",
        "I’m bored",
    ],
)
def test_small_talk_is_not_about_the_turn_before(request_: str) -> None:
    assert in_context(Request.parse(request_, history=BOOKED)) == RequestInContext(request_)
    assert in_context(Request.parse(f"and {request_} in Rome", history=BOOKED)).turns == 1


@pytest.mark.parametrize(
    "request_", ["not that one", "No, not this!", "wrong skill", "that's the wrong one"]
)
def test_a_rejection_does_not_ask_for_the_same_again(request_: str) -> None:
    assert in_context(Request.parse(request_, history=BOOKED)) == RequestInContext(request_)


OFFERS = (
    "Done. Shall I send a reminder?",
    "I can send a reminder. Is that OK?",
    "Would it help if I send a reminder?",
    "How about I remind them? Just say the word.",
    "I could send a reminder, if you like.",
)


@pytest.fixture
def restaurant(tmp_path: Path) -> SemanticRouter:
    root = tmp_path / "skills"
    examples = ("examples:", "  - a table for two tonight", "  - is there a table at eight")
    write_skill(root, "tables", "Books a table, and moves or cancels that booking.", *examples)
    examples = ("examples:", "  - send them a reminder", "  - remind the guests")
    write_skill(root, "reminders", "Sends reminders to guests.", *examples)
    examples = ("examples:", "  - the dining room is cold", "  - it is freezing in here")
    write_skill(root, "heating", "Turns the heating up or down.", *examples)
    return router_over(root, tmp_path / "state")


async def loaded(router: SemanticRouter, replies: Sequence[str]) -> set[tuple[str, ...]]:
    """What the replies load behind each offer."""
    results = [
        await router.route(
            reply, history=[Turn("user", "book a table for two"), Turn("assistant", offer)]
        )
        for reply in replies
        for offer in OFFERS
    ]
    return {result.selected_skills for result in results}


async def test_who_says_no_to_an_offer_does_not_get_it(restaurant: SemanticRouter) -> None:
    replies = (
        *("no", "Nope.", "not now", "no, don't", "please don't", "later", "no thanks", "not yet"),
        *("no, don't send any", "I'd rather not", "absolutely not", "no need for that", "wait"),
        *("no reminder please", "we don't need one", "let me think about it", "hold off for now"),
        *("no, I'll do that myself", "no, that's too expensive", "nope, too late", "stop", "never"),
        *("no, we have enough", "no thank you, she knows", "that won't be necessary", "not sure"),
        *("no, the guests are here", "no, my wife is there", "nah, leave them", "wait a minute"),
        *("neither", "cancel that", "forget the reminder", "No. Ask Anna.", "no, call me first"),
    )
    async with restaurant as router:
        assert await loaded(router, replies) == {()}


async def test_who_says_neither_yes_nor_no_to_an_offer_is_asked_back(
    restaurant: SemanticRouter,
) -> None:
    replies = ("I already did", "great, he paid this morning", "ok maybe tomorrow", "I'm good")
    async with restaurant as router:
        assert await loaded(router, (*replies, "yes, once I've called him")) == {()}
        history = [Turn("user", "book a table for two"), Turn("assistant", OFFERS[0])]
        result = await router.route("too expensive", history=history)
    assert (result.decision, result.suggested_skills[:1]) == (Decision.CLARIFY, ("reminders",))


async def test_who_completes_or_corrects_an_offer_gets_it(restaurant: SemanticRouter) -> None:
    replies = (
        *("no, send 20 instead", "no, the blue ones", "no problem, do it", "no, on Friday"),
        *("no, I want two", "no, it's for Ann", "not a bad idea, do it", "no, send it to Ann"),
        *("on Friday", "yes, to all of them", "send it to Ann", "be my guest", "not a bad idea"),
        *("why not", "yes", "sure, go ahead", "y", "I don't mind", "the red ones look better"),
    )
    async with restaurant as router:
        assert await loaded(router, replies) == {("reminders",)}


async def test_who_says_no_and_what_else_is_the_matter_gets_that(
    restaurant: SemanticRouter,
) -> None:
    async with restaurant as router:
        assert await loaded(router, ("no, the dining room is cold",)) == {("heating",)}


@pytest.mark.parametrize("again", ["Are you sure?", "Do you really want to?", "Continue?"])
async def test_a_confirmation_is_given_or_not(restaurant: SemanticRouter, again: str) -> None:
    history = [Turn("user", "cancel the booking of my table"), Turn("assistant", again)]
    async with restaurant as router:
        yes = await router.route("yes", history=history)
        no = await router.route("no, keep it", history=history)
    assert (yes.selected_skills, no.selected_skills) == (("tables",), ())


@pytest.mark.parametrize(
    "said",
    [
        "Done.",
        "Done. Anything else?",
        "Done. Is there anything else I can help with?",
        "Done. Let me know if you need more.",
    ],
)
async def test_who_needs_no_more_gets_nothing_and_who_does_gets_it(
    restaurant: SemanticRouter, said: str
) -> None:
    history = [Turn("user", "send the guests a reminder"), Turn("assistant", said)]
    closing = ("no", "nothing, thanks", "no, that's enough", "I'm good", "no, that is everything")
    async with restaurant as router:
        closed = [await router.route(reply, history=history) for reply in closing]
        more = [
            await router.route(reply, history=history) for reply in ("one more", "the same for Ann")
        ]
    assert {result.selected_skills for result in closed} == {()}
    assert {result.selected_skills for result in more} == {("reminders",)}


def test_no_is_an_answer_to_what_is_no_offer() -> None:
    asked = [Turn("user", "book a table"), Turn("assistant", "Is it for two people?")]
    assert in_context(Request.parse("no", history=asked)).turns == 1


async def test_a_skill_that_an_offer_names_is_loaded_for_who_consents(
    restaurant: SemanticRouter, tmp_path: Path
) -> None:
    write_skill(tmp_path / "skills", "send-invoice", "Bills a guest.")
    history = [Turn("user", "who owes us?"), Turn("assistant", "Ann. Shall I run send-invoice?")]
    async with restaurant as router:
        result = await router.route("yes please", history=history)
    assert result.selected_skills == ("send-invoice",)


@pytest.fixture
def funerals(tmp_path: Path) -> SemanticRouter:
    root = tmp_path / "skills"
    cancelling = ("examples:", "  - cancel my plan", "  - cancel hers", "  - pay it off monthly")
    write_skill(root, "prepaid-plan", "Sets up and changes prepaid funeral plans.", *cancelling)
    chapel = "Books the chapel, church or hall for a service, and moves or cancels that booking."
    write_skill(root, "chapel", chapel)
    write_skill(root, "flowers", "Orders wreaths from the florist.")
    write_skill(root, "coffin", "Orders a coffin or an urn from a supplier.")
    write_skill(root, "contract", "Sends the contract when they go ahead and have agreed.")
    write_skill(root, "eulogy", "Helps a relative to write a eulogy.")
    return router_over(root, tmp_path / "state")


@pytest.mark.parametrize("request_", ["go ahead", "agreed", "alright", "fine with me", "why not"])
async def test_who_consents_gets_the_offer_although_a_skill_has_the_words_of_the_consent(
    funerals: SemanticRouter, request_: str
) -> None:
    offer = "Two. Shall I order five urns from the supplier?"
    history = [Turn("user", "how many urns are left?"), Turn("assistant", offer)]
    async with funerals as router:
        result = await router.route(request_, history=history)
    assert result.selected_skills == ("coffin",)


async def test_who_wants_something_else_than_what_is_offered_gets_that(
    funerals: SemanticRouter, tmp_path: Path
) -> None:
    examples = ("examples:", "  - is the church free", "  - change the time of the service")
    write_skill(tmp_path / "skills", "chapel", "Books the chapel or church.", *examples)
    offer = "Yes, at two. Shall I book the church for the service?"
    history = [Turn("user", "is the church free on Monday?"), Turn("assistant", offer)]
    async with funerals as router:
        result = await router.route("no, order a wreath instead", history=history)
    assert result.selected_skills == ("flowers",)


async def test_a_verb_that_two_skills_know_is_read_with_what_it_points_to(
    funerals: SemanticRouter,
) -> None:
    async with funerals as router:
        alone = await router.route("cancel it")
        booked = await router.route("cancel it", history=["book the church"])
        other = await router.route("cancel it", history=["set up a prepaid plan for Ann"])
    assert alone.selected_skills == other.selected_skills == ("prepaid-plan",)
    assert booked.selected_skills == ("chapel",)


@pytest.mark.parametrize("request_", ["no", "no, leave them", "don't push any", "stop"])
async def test_nothing_is_loaded_for_who_says_no_to_an_offer(tmp_path: Path, request_: str) -> None:
    """The request alone may well be like a skill."""
    write_skill(tmp_path / "skills", "stop-pushing", "Stop, say no, leave or cancel what is pushed")
    write_skill(tmp_path / "skills", "push", "Push commits to the remote branch")
    history = [Turn("user", "are there new commits"), Turn("assistant", "Two. Shall I push them?")]
    async with router_over(tmp_path / "skills", tmp_path / "state") as router:
        result = await router.route(request_, history=history)
    assert (result.decision, result.selected_skills) == (Decision.ABSTAIN, ())
    assert result.reasoning == "the request declines what the assistant offers"


def test_praise_asks_for_something_only_where_it_answers_a_question() -> None:
    asked = Turn("user", "book a table for two")
    done, question = Turn("assistant", "Done."), Turn("assistant", "Shall I add a child's seat?")
    assert in_context(Request.parse("ok, great!", history=[asked, done])).turns == 0
    assert in_context(Request.parse("ok, great!", history=[asked, question])).turns == 1
    assert in_context(Request.parse("ok, great!", history=[asked])).turns == 1


@pytest.mark.parametrize(
    "request_",
    [
        "legend",
        "Great, you’re a star!",
        "you are amazing",
        "nice one",
        "that worked",
        "you rock!",
        "good bot",
        "ok I'll wait then",
        "never mind, found it myself",
        "perfect, exactly what I needed",
        "wow, that's great news",
    ],
)
def test_a_comment_on_an_answer_asks_for_nothing_unless_the_answer_asks(request_: str) -> None:
    asked = Turn("user", "book a table for two")
    done, question = Turn("assistant", "Done."), Turn("assistant", "Shall I add a child's seat?")
    assert in_context(Request.parse(request_, history=[asked, done])).turns == 0
    assert in_context(Request.parse(request_, history=[asked])).turns == 1
    if not request_.startswith(("never mind", "ok I'll wait")):  # which refuse, whatever was asked
        assert in_context(Request.parse(request_, history=[asked, question])).turns == 1


@pytest.mark.parametrize(
    "request_",
    [
        *("great, the booking page works now", "it prints again!", "the page is up again"),
        *("thanks, the table is booked", "super, everything runs", "thanks, that fixed the page"),
        *("perfect, my phone is back online, thank you for the help", "all set"),
    ],
)
def test_who_reports_a_success_comments_on_the_answer_unless_it_asks(request_: str) -> None:
    asked = Turn("user", "book a table for two")
    done, question = Turn("assistant", "Done."), Turn("assistant", "Shall I add a child's seat?")
    assert is_comment(Request.parse(request_, history=[asked, done]))
    assert not is_comment(Request.parse(request_, history=[asked, question]))


@pytest.mark.parametrize(
    "request_",
    [
        *("thanks, the scanner is broken", "great, now the page is down", "it prints in pink now"),
        *(
            "tell Ann the page works now",
            "the page works now, the phone does not",
            "see if it works",
        ),
        *("great, my phone is locked now", "it works now, order flowers", "thanks, book it again"),
    ],
)
def test_a_problem_or_an_order_beside_a_success_is_no_comment(request_: str) -> None:
    history = [Turn("user", "book a table for two"), Turn("assistant", "Done.")]
    assert not is_comment(Request.parse(request_, history=history))


@pytest.mark.parametrize(
    "part", ["thanks for ", "the a", ", it ", "\n", "n", "- ", "it works again "]
)
def test_the_longest_replies_are_read_in_no_time(part: str) -> None:
    history = [Turn("user", "book a table for two"), Turn("assistant", "Done.")]
    text = "thanks" + part * (MAX_REQUEST_CHARACTERS // len(part) - 9)
    with cpu_time_at_most(0.5):
        is_comment(Request.parse(text, history=history))


@pytest.mark.parametrize(
    "request_",
    [
        *("red", "is that good?", "really?", "good, now the other", "it worked before"),
        *("what is that?", "thanks, the scanner is broken, too", "thanks, and now the scanner"),
        *("it stopped working again", "it crashes again", "ok, it works here but not there"),
        *("thanks for the table, and for Ann?", "thanks for the table, now for Ann"),
        *("thanks for the table but it is small", "tell Ann it works again", "thanks, it is small"),
        *("nothing works now", "it hardly works now", "thanks for nothing, it is broken"),
    ],
)
def test_who_says_more_than_a_comment_is_read_with_the_turn_before(request_: str) -> None:
    history = [Turn("user", "book a table for two"), Turn("assistant", "Done.")]
    assert in_context(Request.parse(request_, history=history)).turns == 1


@pytest.mark.parametrize(
    ("request_", "skills"),
    [
        ("Thanks for ordering the coffin", ()),
        ("thank you again for the wreaths, they were lovely", ("flowers",)),
        ("Thanks for the wreaths. Now order a coffin", ("coffin", "flowers")),
    ],
)
async def test_thanks_that_name_the_thing_do_not_ask_for_it_again(
    funerals: SemanticRouter, request_: str, skills: tuple[str, ...]
) -> None:
    async with funerals as router:
        result = await router.route(request_)
    assert set(result.selected_skills) <= set(skills)
    assert bool(result.selected_skills) == bool(skills)


async def test_a_skill_for_thanks_is_loaded_for_thanks_that_name_a_thing(tmp_path: Path) -> None:
    examples = ("examples:", "  - thanks", "  - thank you", "  - thanks a lot")
    write_skill(tmp_path / "skills", "welcome", "Answers to thanks.", *examples)
    write_skill(
        tmp_path / "skills", "printers", "Fixes a printer.", "examples:", "  - fix printers"
    )
    async with router_over(tmp_path / "skills", tmp_path / "state") as router:
        result = await router.route("thanks for fixing the printer")
    assert result.selected_skills == ("welcome",)


async def test_a_comment_on_an_answer_is_neither_routed_nor_asked_about(tmp_path: Path) -> None:
    history = [Turn("user", "squash the last four commits"), Turn("assistant", "Done.")]
    async with shipped_router(tmp_path) as router:
        results = [
            await router.route(said, history=history) for said in ("that worked", "I'll wait then")
        ]
    assert [result.decision for result in results] == [Decision.ABSTAIN] * 2


async def test_a_name_that_is_a_word_of_praise_is_a_name_where_it_is_marked(tmp_path: Path) -> None:
    write_skill(tmp_path / "skills", "hero", "Makes a hero image for the top of a web page.")
    history = [Turn("user", "publish the page"), Turn("assistant", "Done.")]
    async with router_over(tmp_path / "skills", tmp_path / "state") as router:
        results = [await router.route(said, history=history) for said in ("/hero", "my hero!")]
    assert [result.selected_skills for result in results] == [("hero",), ()]
