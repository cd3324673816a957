"""Skills linted together: who takes whose example requests, ranked by the real index."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from router.lint.routing import lint_routing
from router.retrieval.bundled_encoder import BundledEncoder
from router.skills.catalog import load_catalog
from router.skills.diagnostics import Diagnostic, Severity

MINUTES = "Turns recordings of meetings into minutes with owners and dates. Use after a call."
INVOICES = "Books incoming invoices and receipts into the ledger. Use when a bill arrives."
GARDEN = "Plans vegetable beds, sowing and watering for a garden. Use when somebody plants."


@pytest.fixture(scope="module")
def encoder() -> BundledEncoder:
    return BundledEncoder()


def write(root: Path, name: str, description: str, examples: Sequence[str] = ()) -> None:
    file = root / name / "SKILL.md"
    file.parent.mkdir()
    lines = "".join(f"    {example}\n" for example in examples)
    hints = f"metadata:\n  examples: |\n{lines}" if examples else ""
    text = f"---\nname: {name}\ndescription: {description}\n{hints}---\n\nDo it well.\n"
    file.write_text(text, encoding="utf-8")


async def lint(root: Path, encoder: BundledEncoder) -> list[Diagnostic]:
    return list(await lint_routing(load_catalog([root]), encoder=encoder))


async def test_skills_that_find_their_own_requests_have_no_findings(
    tmp_path: Path, encoder: BundledEncoder
) -> None:
    write(tmp_path, "minutes", MINUTES, ["write minutes of the recorded meeting"])
    write(tmp_path, "invoices", INVOICES, ["book these invoices into the ledger"])
    write(tmp_path, "garden", GARDEN, ["when do I sow vegetables in the garden?"])
    assert await lint(tmp_path, encoder) == []


async def test_two_skills_that_take_each_others_requests_collide(
    tmp_path: Path, encoder: BundledEncoder
) -> None:
    write(tmp_path, "minutes", MINUTES, ["which invoices are in the ledger?"])
    write(tmp_path, "invoices", INVOICES, ["minutes of the meetings with owners, please"])
    found = await lint(tmp_path, encoder)
    [finding] = [finding for finding in found if finding.code == "collision"]
    assert (finding.code, finding.path.parent.name, finding.line) == ("collision", "invoices", 6)
    assert "which invoices are in the ledger?" in finding.message
    assert "minutes of the meetings with owners, please" in finding.message


async def test_an_example_is_ranked_by_an_index_that_does_not_hold_it(
    tmp_path: Path, encoder: BundledEncoder
) -> None:
    # Over the plain index each finds its own skill: the one finding is about all of them.
    examples = ["prune the roses", "mow the lawn", "water the tomatoes"]
    write(tmp_path, "minutes", MINUTES, examples)
    write(tmp_path, "garden", f"{GARDEN} Also prunes roses, mows the lawn and waters tomatoes.")
    [finding] = await lint(tmp_path, encoder)
    assert (finding.code, finding.path.parent.name, finding.line) == ("stray-example", "minutes", 6)
    assert finding.message.startswith("3 of 3 examples find other skills first")


async def test_an_example_that_two_skills_claim_is_stray_even_while_it_is_indexed(
    tmp_path: Path, encoder: BundledEncoder
) -> None:
    write(tmp_path, "minutes", MINUTES, ["book the bill that arrives into the ledger"])
    write(tmp_path, "invoices", INVOICES, ["book the bill that arrives into the ledger"])
    [finding] = await lint(tmp_path, encoder)
    assert (finding.code, finding.path.parent.name, finding.line) == ("stray-example", "minutes", 6)
    assert "'invoices'" in finding.message


async def test_a_skill_that_takes_requests_of_many_others_is_greedy(
    tmp_path: Path, encoder: BundledEncoder
) -> None:
    write(
        tmp_path,
        "everything",
        "Use for meetings, calls, invoices, bills, gardens, plants, code, bugs, travel, flights.",
    )
    write(tmp_path, "minutes", "Writes protocols. Use after talks.", ["what about our calls?"])
    write(tmp_path, "ledger", "Books receipts. Use on payments.", ["here are three bills"])
    write(tmp_path, "garden", "Plans beds. Use when sowing.", ["my plants look sad"])
    found = await lint(tmp_path, encoder)
    [greedy] = [finding for finding in found if finding.code == "greedy"]
    assert greedy.path.parent.name == "everything"
    assert "3 examples of 3 other skills" in greedy.message


async def test_nearly_equal_descriptions_are_reported_once_a_pair(
    tmp_path: Path, encoder: BundledEncoder
) -> None:
    write(tmp_path, "minutes", MINUTES)
    write(tmp_path, "my-minutes", MINUTES.replace("Turns", "Makes"))
    write(tmp_path, "garden", GARDEN)
    [finding] = await lint(tmp_path, encoder)
    assert (finding.code, finding.path.parent.name) == ("near-duplicate", "minutes")
    assert "'my-minutes'" in finding.message


async def test_a_copy_in_another_root_is_an_error_of_the_copy(
    tmp_path: Path, encoder: BundledEncoder
) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    ours.mkdir()
    theirs.mkdir()
    write(ours, "minutes", MINUTES)
    write(theirs, "garden", GARDEN)
    write(theirs, "a-better-one", MINUTES.replace("Turns", "Makes"))
    for roots, copy in (([ours, theirs], "a-better-one"), ([theirs, ours], "minutes")):
        [finding] = await lint_routing(load_catalog(roots), encoder=encoder)
        assert (finding.code, finding.severity) == ("copy-in-another-root", Severity.ERROR)
        assert finding.path.parent.name == copy
        assert str(roots[0]) in finding.message


async def test_skills_that_are_never_offered_take_no_part(
    tmp_path: Path, encoder: BundledEncoder
) -> None:
    write(tmp_path, "minutes", MINUTES)
    write(tmp_path, "again", f"{MINUTES}\ndisable-model-invocation: true")
    assert await lint(tmp_path, encoder) == []


async def test_progress_counts_the_rounds_of_indexing(
    tmp_path: Path, encoder: BundledEncoder
) -> None:
    write(tmp_path, "minutes", MINUTES, ["minutes of Monday", "minutes of Tuesday"])
    write(tmp_path, "garden", GARDEN)
    told: list[tuple[int, int]] = []
    await lint_routing(
        load_catalog([tmp_path]), encoder=encoder, progress=lambda *now: told.append(now)
    )
    assert told == [(0, 3), (1, 3), (2, 3)]
