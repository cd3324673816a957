"""The second skill of a request that needs two."""

from __future__ import annotations

import numpy as np
import pytest

from router.retrieval.partner import (
    BIAS,
    KINSHIP_WEIGHT,
    MUTUAL_WEIGHT,
    Partner,
    likeliest_partner,
)


def partner_of(contributions: list[list[float]], latent: list[list[float]]) -> Partner:
    found = likeliest_partner(np.array(contributions), np.array(latent))
    assert found is not None
    return found


def test_the_skill_that_explains_what_the_best_leaves_open_is_the_partner() -> None:
    found = partner_of(
        # The best match, the same again but weaker, and one about the other two terms.
        [[0.9, 0.8, 0.0], [0.8, 0.7, 0.0], [0.0, 0.0, 0.7], [0.0, 0.1, 0.6]],
        [[1.0, 0.0], [1.0, 0.0], [0.8, 0.6]],
    )
    assert found.place == 2
    assert found.mutual == pytest.approx(1.3)
    assert found.kinship == pytest.approx(0.8)
    assert found.log_odds == pytest.approx(MUTUAL_WEIGHT * 1.3 + KINSHIP_WEIGHT * 0.8 + BIAS)
    assert found.log_odds > 0


def test_one_skill_that_explains_everything_needs_no_partner() -> None:
    found = partner_of([[0.9, 0.5], [0.8, 0.4]], [[1.0, 0.0], [1.0, 0.0]])
    assert (found.place, found.mutual) == (1, 0)
    assert found.log_odds < 0


def test_skills_of_foreign_fields_are_less_likely_partners_than_kindred_ones() -> None:
    contributions = [[0.9, 0.0, 0.0], [0.0, 0.6, 0.6]]
    assert partner_of(contributions, [[1, 0], [0, 1], [0.6, 0.8]]).place == 2


def test_the_first_of_equal_partners_is_taken() -> None:
    assert partner_of([[0.9, 0.0, 0.0], [0.0, 0.6, 0.6]], [[1, 0], [1, 0], [1, 0]]).place == 1


def test_a_request_without_known_terms_is_judged_by_kinship_alone() -> None:
    found = likeliest_partner(np.zeros((0, 3)), np.array([[1.0, 0], [0, 1.0], [1.0, 0]]))
    assert found == Partner(2, 0.0, 1.0, KINSHIP_WEIGHT + BIAS)


@pytest.mark.parametrize("skills", [0, 1])
def test_without_another_skill_there_is_no_partner(skills: int) -> None:
    assert likeliest_partner(np.zeros((2, skills)), np.zeros((skills, 4))) is None
