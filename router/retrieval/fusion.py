"""Fusing what is known of a skill into one score.

Wording and meaning of the skill's own text, and how near its examples are. Two of the sources are
cosines, and BM25F is divided by the length of the request, as a cosine is, so a weighted sum keeps
what rank fusion throws away: how much better the first is than the second. The weights were chosen
on whole catalogs (real skills, everyday tools, shipped skills, intents) with two encoders; near
them little changes. ``benchmarks/enrichment.py`` shows what each source adds.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

LEXICAL_WEIGHT: Final = 1.0
DENSE_WEIGHT: Final = 1.5
EXAMPLES_WEIGHT: Final = 1.0


def fuse(
    lexical: NDArray[np.float64],
    dense: NDArray[np.float64],
    examples: NDArray[np.float64],
) -> NDArray[np.float64]:
    """One score for each skill, from its scores by the three sources, all of one shape."""
    return LEXICAL_WEIGHT * lexical + DENSE_WEIGHT * dense + EXAMPLES_WEIGHT * examples
