"""Which skill, if any, serves what the best match leaves open.

A request that needs two skills speaks of both: each explains words that the other does not, and
they usually belong to one field. The log-odds that a second skill is needed is linear in these two
signals; its coefficients were fitted by cross-validation over skills and rounded.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

MUTUAL_WEIGHT: Final = 9.0
KINSHIP_WEIGHT: Final = 5.0
BIAS: Final = -10.5


@dataclass(frozen=True, slots=True)
class Partner:
    """The likeliest second skill.

    Attributes:
        place: its place in the ranking, from 1.
        mutual: the smaller of what only it explains and what only the best match explains, in
            term contributions.
        kinship: latent cosine of the two skills.
        log_odds: of the request needing both; above 0 it is likelier than not.
    """

    place: int
    mutual: float
    kinship: float
    log_odds: float


def likeliest_partner(
    contributions: NDArray[np.float64], latent: NDArray[np.floating]
) -> Partner | None:
    """Compare the best match with the others; None when there are no others.

    Args:
        contributions: what each term of the request adds to each ranked skill, shape (terms,
            skills), the best match first.
        latent: unit latent vectors of the same skills, shape (skills, dimensions).
    """
    if len(latent) < 2:
        return None
    surplus = contributions[:, 1:] - contributions[:, :1]
    own = np.maximum(surplus, 0).sum(axis=0)
    lost = np.maximum(-surplus, 0).sum(axis=0)
    mutual = np.minimum(own, lost)
    kinship = latent[1:] @ latent[0]
    log_odds = MUTUAL_WEIGHT * mutual + KINSHIP_WEIGHT * kinship + BIAS
    best = int(np.argmax(log_odds))
    return Partner(best + 1, float(mutual[best]), float(kinship[best]), float(log_odds[best]))
