"""Steps between indexes, for the tests of their parts."""

from collections.abc import Sequence

import numpy as np

from router.retrieval.documents import Edit, SkillDocument


def edit_between(before: Sequence[SkillDocument], after: Sequence[SkillDocument]) -> Edit:
    """The step between two lists of documents, of which equal ones are the same objects."""
    place = {id(document): place for place, document in enumerate(before)}
    kept = np.array([place.pop(id(document), -1) for document in after], dtype=np.intp)
    added = [document for document, was in zip(after, kept, strict=True) if was < 0]
    return Edit(kept, added, [before[gone] for gone in place.values()])
