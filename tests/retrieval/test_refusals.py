"""What requests say that they do not want."""

from __future__ import annotations

import pytest
from cpu_time import cpu_time_at_most
from hypothesis import given
from hypothesis import strategies as st

from router.request import MAX_REQUEST_CHARACTERS
from router.retrieval.refusals import refusals_in


@pytest.mark.parametrize(
    ("request_", "rest", "refused"),
    [
        ("book it but don't file the form", "book it", ("file the form",)),
        ("book it, do not file the form yet", "book it", ("file the form",)),
        ("don\u2019t file it, just book it", "just book it", ("file it",)),
        ("I don't need a form, only a booking", "only a booking", ("a form",)),
        ("we don't want you to file it. Book it", "Book it", ("file it",)),
        ("no need to file the form, book it", "book it", ("file the form",)),
        ("book it without a form", "book it", ("a form",)),
        ("without a form, book it", "book it", ("a form",)),
        ("book it instead of filing it", "book it", ("filing it",)),
        ("book it rather than file it; thanks", "book it; thanks", ("file it",)),
        ("send all except the invoice", "send all", ("the invoice",)),
        ("no form needed, only a booking", "only a booking", ("form",)),
        ("book it, no form please", "book it", ("form",)),
        ("not a form but a booking", "but a booking", ("a form",)),
        ("a booking, not a form", "a booking", ("a form",)),
        ("book it and skip the form and the fee", "book it and the fee", ("the form",)),
        ("book it without form and fee", "book it", ("form and fee",)),
        ("never mind the form, book it", "book it", ("the form",)),
        ("No form. No fee. Book it", "Book it", ("form", "fee")),
        ("book it, you must not file the form", "book it", ("file the form",)),
        ("book it, but you shouldn't file the form", "book it", ("file the form",)),
        ("book it, but I'd rather not file the form", "book it", ("file the form",)),
        ("book it and please avoid filing the form", "book it", ("filing the form",)),
        ("book it; the form can wait", "book it", ("the form",)),
        ("book it, the long form is not needed", "book it", ("the long form",)),
        ("book it but file no form for Ann", "book it", ("form for Ann",)),
        ("file no form, only book it", "only book it", ("form",)),
        ("book it, but never open the form", "book it", ("open the form",)),
        ("never reopen the form, book it", "book it", ("reopen the form",)),
        ("book it, but not embed the form", "book it", ("embed the form",)),
        ("book it without delay and file the form", "book it and file the form", ("delay",)),
        ("book it but there is no need to file the form", "book it", ("file the form",)),
        ("book it; there\u2019s no point in filing the form", "book it", ("filing the form",)),
        ("book it but under no circumstances file the form", "book it", ("file the form",)),
        ("book it, by no means file the form", "book it", ("file the form",)),
        ("book it and on no account file the form", "book it", ("file the form",)),
        ("book it but please refrain from filing the form", "book it", ("filing the form",)),
        ("book it, but stop filing the form", "book it", ("filing the form",)),
        ("book it as opposed to filing the form", "book it", ("filing the form",)),
        ("book it, you don't have to file the form", "book it", ("file the form",)),
        ("you do not need to file the form, book it", "book it", ("file the form",)),
        ("book it, needn't file the form", "book it", ("file the form",)),
        ("book it, you are not to file the form", "book it", ("file the form",)),
        ("book it, nobody should file the form", "book it", ("file the form",)),
        ("book it, I'll file the form myself", "book it", ("file the form",)),
        ("I can file the form on my own, book it", "book it", ("file the form",)),
        ("book it. Filing the form can wait.", "book it", ("Filing the form",)),
        ("book it, filing the form is unnecessary", "book it", ("filing the form",)),
    ],
)
def test_what_is_refused_is_taken_out_of_the_request(
    request_: str, rest: str, refused: tuple[str, ...]
) -> None:
    found = refusals_in(request_)
    assert (found.rest, tuple(one.text for one in found.refused)) == (rest, refused)


@pytest.mark.parametrize(
    "request_",
    [
        "why does it not start",
        "don't forget to file the form",
        "I can't log in, no idea why",
        "no one can open the door",
        "don't let it get cold",
        "it won't stop and doesn't answer",
        "why don't you book us in",
        "can I pay without a card?",
        "I can't get in without a key",
        "I was charged twice instead of once",
        "not shipped yet, please change the size",
        "don't send it to the old address any more",
        "no longer needed",
        "the form is not needed any more",
        "there is no form",
        "the build should not fail",
        "the form must not be empty",
        "you should not be charged twice",
        "have no form",
        "never opened the form",
        "never taken from the shelf",
        "how do I avoid the form",
        "the form did not compile",
        "is not responding",
        "I can't log in, not sure why",
        "the form can not wait",
        "there is no need for a form any more",
        "nothing I wrote is needed",
        "under no circumstances can I log in",
        "I can't get in on my own",
        "I don't have a form",
        "nobody should be able to see the form",
        "nobody files the form",
        "I'm not to blame",
        "stop filing the form",
        "I filed the form myself",
        "I'll be away, file the form",
    ],
)
def test_a_negation_that_states_a_problem_or_asks_is_no_refusal(request_: str) -> None:
    assert refusals_in(request_) == (request_, ())


def test_an_order_is_told_from_a_manner() -> None:
    found = refusals_in("don't file it, book it without a fee")
    assert [one.is_order for one in found.refused] == [True, False]


@pytest.mark.parametrize(
    ("request_", "is_contrast"),
    [
        ("not form 5, form 6", True),
        ("form 6 instead of form 5", True),
        ("Not building 5 but 6", True),
        ("book it, no form", False),
        ("book it without a form", False),
        ("book it, not file it", False),
        ("nothing came, not in spam either", False),
        ("book it instead of filing it", False),
        ("don't book form 5, book form 6", False),
    ],
)
def test_a_thing_in_place_of_which_another_is_wanted_is_told_from_other_refusals(
    request_: str, is_contrast: bool
) -> None:
    assert [one.is_contrast for one in refusals_in(request_).refused] == [is_contrast]


def test_a_request_may_refuse_very_much() -> None:
    found = refusals_in("book it" + ", no form" * 9)
    assert (found.rest, len(found.refused)) == ("book it", 9)


@given(st.text(max_size=300))
def test_nothing_is_made_up(request: str) -> None:
    rest, refused = refusals_in(request)
    read = " ".join([rest, *(one.text for one in refused)])
    assert set("".join(read.split())) <= set("".join(request.split()))


@pytest.mark.parametrize("part", ["\n", " ", "don't ", "skip x and ", ", not x yet ", "- ", "yet "])
def test_the_longest_requests_are_read_in_no_time(part: str) -> None:
    with cpu_time_at_most(0.5):
        refusals_in(part * (MAX_REQUEST_CHARACTERS // len(part)))
