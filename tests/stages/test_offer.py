"""What the LLM is offered: all that fits, cut where it hardly tells skills apart."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from cascade import router_over, write_skill

from router.request import Request
from router.stages.offer import LEAST_CHARACTERS, MAX_OFFERED, Offer, offer_of

COMMON = "Reads the input that the user gives, checks it with care, and reports what it has done. "
ROOM_FOR_ALL = 200_000


def put(root: Path, **descriptions: str) -> Path:
    for name, description in descriptions.items():
        write_skill(root, name, description)
    return root


async def offered(
    root: Path, state: Path, *, tokens: int, request: str = "x", pinned: tuple[str, ...] = ()
) -> Offer:
    async with router_over(root, state) as router:
        index = (await router.open()).index
        return await offer_of(Request.parse(request), index, pinned=pinned, token_budget=tokens)


async def test_while_all_fit_they_are_given_whole_in_the_order_of_their_names(
    tmp_path: Path,
) -> None:
    root = put(tmp_path / "s", sailing="Sails boats. " + COMMON, baking="Bakes bread. " + COMMON)
    offer = await offered(root, tmp_path / "state", tokens=ROOM_FOR_ALL)
    assert [skill.name for skill in offer.skills] == ["baking", "sailing"]
    assert offer.skills[0].description == f"Bakes bread. {COMMON}".strip()
    assert offer.likeliest == ()


async def test_what_all_descriptions_say_is_cut_before_a_skill_is_left_out(
    tmp_path: Path,
) -> None:
    words = "sourdough brioche pumpernickel focaccia ciabatta baguette challah naan injera bagels"
    descriptions = {
        f"skill-{number}": f"{word} {word}s made of {word} in the way of {word} makers. "
        + 3 * COMMON
        for number, word in enumerate(words.split())
    }
    root = put(tmp_path / "s", **descriptions)
    whole = await offered(root, tmp_path / "a", tokens=ROOM_FOR_ALL)
    cut = await offered(root, tmp_path / "b", tokens=700)
    assert len(cut.skills) == len(whole.skills) == 10
    assert cut.likeliest == ()
    for before, after in zip(whole.skills, cut.skills, strict=True):
        assert after.description.endswith("…")
        assert before.description.startswith(after.description[:-1])
        assert LEAST_CHARACTERS <= len(after.description) < len(before.description)


async def test_a_skill_is_offered_in_the_same_words_whoever_may_choose_it(tmp_path: Path) -> None:
    """What tells a skill apart is asked of the whole catalog, once."""
    root = put(
        tmp_path / "s",
        baking="Bakes bread with much care. " + 3 * COMMON,
        sailing="Sails boats on lakes. " + 3 * COMMON,
        sewing="Sews shirts and coats. " + 3 * COMMON,
    )
    async with router_over(root, tmp_path / "state") as router:

        async def told(*available: str) -> str:
            """Of the only skill that fits into the least budget."""
            asked = Request.parse("sew shirts", available=available or None)
            index = (await router.open()).index
            (skill,) = (await offer_of(asked, index, pinned=(), token_budget=1)).likeliest
            assert skill.name == "sewing"
            return skill.description

        assert await told() == await told("sewing", "baking") == await told("sewing")
        put(root, sewing="Sews nothing but shirts. " + 3 * COMMON)
        await router.reload()
        assert (await told()).startswith("Sews nothing but shirts.")


async def test_with_too_many_skills_the_likeliest_come_first(tmp_path: Path) -> None:
    words = "sourdough brioche pumpernickel focaccia ciabatta baguette challah naan injera bagels"
    root = put(
        tmp_path / "s", **{f"skill-{n}": f"Makes {word}." for n, word in enumerate(words.split())}
    )
    offer = await offered(
        root, tmp_path / "state", tokens=100, request="make naan", pinned=("skill-2",)
    )
    assert [skill.name for skill in offer.skills] == ["skill-2"]
    assert offer.likeliest[0].name == "skill-7"
    assert len(offer.likeliest) == 4


async def test_at_least_one_skill_is_offered_however_small_the_budget(tmp_path: Path) -> None:
    root = put(tmp_path / "s", baking="Bakes bread. " + COMMON, sailing="Sails boats. " + COMMON)
    offer = await offered(root, tmp_path / "state", tokens=1, request="sail boats")
    assert [skill.name for skill in offer.likeliest] == ["sailing"]


@pytest.mark.parametrize("name", ["s{:03}", "s{:03}" + "x" * 60])
async def test_no_more_are_offered_than_providers_take_choices(tmp_path: Path, name: str) -> None:
    root = put(tmp_path / "s", **{name.format(n): f"Does {n}." for n in range(MAX_OFFERED + 5)})
    offer = await offered(root, tmp_path / "state", tokens=ROOM_FOR_ALL)
    names = [skill.name for skill in (*offer.skills, *offer.likeliest)]
    assert len(names) <= MAX_OFFERED
    assert sum(map(len, names)) <= 15_000


async def test_descriptions_are_weighed_beside_the_event_loop(tmp_path: Path) -> None:
    """Over ten thousand skills it takes half a second, after each change of the catalog."""
    root = put(tmp_path / "s", sailing="Sails boats. " + COMMON, baking="Bakes bread. " + COMMON)
    async with router_over(root, tmp_path / "state") as router:
        index = (await router.open()).index
        asked = Request.parse("sail")
        offers = []
        for waits in (True, False):
            offer = asyncio.ensure_future(
                offer_of(asked, index, pinned=(), token_budget=ROOM_FOR_ALL)
            )
            await asyncio.sleep(0)
            assert offer.done() is not waits
            offers.append(await offer)
        assert offers[0] == offers[1]


VENDOR = (
    "Part of the Acme Cloud Suite, the platform that helps teams of every size to plan, build, run "
    "and watch what they sell. All calls need a workspace key and count towards the rate limit of "
    "the plan that was booked. Read the terms of service before the first call, and ask the "
    "support desk where anything is unclear to you or your team."
)
TASKS = ("Refunds a payment", "Renames a folder", "Books a meeting room", "Rotates a secret")


def of_vendor(root: Path, beginning: str, count: int = 40) -> Path:
    """Tools whose descriptions have one long beginning, among others that share nothing."""
    tools = {f"acme-{n:02}": f"{beginning} {TASKS[n % 4]} of tenant {n}." for n in range(count)}
    others = {f"other-{n:02}": f"Word{n} gadget{n} thing{n} matter{n}." for n in range(60)}
    return put(root, **tools, **others)


@pytest.mark.parametrize("repeated", [1, 3])
async def test_a_beginning_that_descriptions_share_does_not_push_out_what_tells_them_apart(
    tmp_path: Path, repeated: int
) -> None:
    """Also where it is longer than what is ever shown of a description."""
    root = of_vendor(tmp_path / "s", " ".join([VENDOR] * repeated))
    offer = await offered(root, tmp_path / "state", tokens=4_500)
    told = {skill.name: skill.description for skill in offer.skills}
    assert len(told) == 100
    assert offer.likeliest == ()
    for number in range(40):
        description = told[f"acme-{number:02}"]
        assert description.startswith("Part of the Acme Cloud Suite, the platform")
        assert TASKS[number % 4] in description
        assert len(description) < 200
    assert told["other-07"] == "Word7 gadget7 thing7 matter7."


async def test_a_shared_beginning_is_given_whole_while_everything_fits(tmp_path: Path) -> None:
    offer = await offered(
        of_vendor(tmp_path / "s", VENDOR), tmp_path / "state", tokens=ROOM_FOR_ALL
    )
    assert offer.skills[0].description == f"{VENDOR} Refunds a payment of tenant 0."


async def test_what_tells_a_group_within_a_group_apart_is_kept(tmp_path: Path) -> None:
    """Of a vendor's tools some share more than the vendor's beginning."""
    area = (
        "Invoices. An invoice has a number, a customer, lines with a price and a tax each, and a "
        "day on which it falls due, and none of them may be changed once it has been sent out. "
    )
    root = of_vendor(tmp_path / "s", VENDOR, count=10)
    put(root, void=f"{VENDOR} {area}Voids one.", copy=f"{VENDOR} {area}Copies one.", base=VENDOR)
    offer = await offered(root, tmp_path / "state", tokens=2_400)
    told = {skill.name: skill.description for skill in offer.skills}
    assert len(told) == 73
    for name, does in (("void", "Voids one."), ("copy", "Copies one.")):
        assert told[name].startswith("Part of the Acme Cloud Suite")
        assert "… Invoices. An invoice has a number" in told[name]
        assert told[name].endswith(f"… {does}")
    assert told["base"].startswith("Part of the Acme Cloud Suite")
