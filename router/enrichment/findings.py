"""The findings on requests that are in the files of enrichments already.

A file of enrichments may be committed by anybody, and edited by hand. So its texts are judged as an
answer of a model is before it is written (``worth.py``), but for what is nearer to another skill:
that is right once in fifty times, and then somebody may have looked at it and kept it.
"""

from __future__ import annotations

from collections.abc import Iterator

from router.enrichment.files import file_of
from router.enrichment.worth import Filter
from router.lint.rules import Rule
from router.skills.catalog import Catalog
from router.skills.diagnostics import Diagnostic, short


def enrichment_findings(catalog: Catalog) -> Iterator[Diagnostic]:
    """What should be taken out of the enrichments of a catalog's skills."""
    judge = Filter(catalog.routable)
    for skill in catalog.routable:
        if skill.enrichment is None:
            continue
        path = file_of(skill, catalog)
        for text in (*skill.enrichment.requests, *skill.enrichment.near_misses):
            if deceit := judge.deceit(text):
                message = f"written for {skill.name!r}: {deceit}: {short(text)}: take it out"
                yield Rule.ROUTER_INSTRUCTION.breach(path, 0, message)
        for text in skill.enrichment.requests:
            if owner := judge.other_owner(skill.name, text):
                message = f"written for {skill.name!r}: {short(text)} is a request for {owner!r}"
                yield Rule.STRAY_EXAMPLE.breach(path, 0, f"{message}: take one of them out")
