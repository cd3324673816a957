"""Fusing the three sources into one score a skill.

Two are cosines, and BM25F is divided by the length of the request, as a cosine is, so a weighted
sum keeps what rank fusion throws away: how much better the first is than the second. The weights
were chosen by cross-validation over skills on labelled requests and rounded;
``benchmarks/skill_requests.py --ablate`` shows what each source adds.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

LEXICAL_WEIGHT: Final = 1.0
LATENT_WEIGHT: Final = 0.15
DENSE_WEIGHT: Final = 1.5


def fuse(
    lexical: NDArray[np.float64],
    latent: NDArray[np.float64],
    dense: NDArray[np.float64],
) -> NDArray[np.float64]:
    """One score for each skill, from the scores of the three sources, all of shape (skills,)."""
    return LEXICAL_WEIGHT * lexical + LATENT_WEIGHT * latent + DENSE_WEIGHT * dense
