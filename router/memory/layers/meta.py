"""The layer ``meta``: what is known and what is not."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, tzinfo

from router.memory.layers.stored import StoredLayer
from router.memory.model import AttributeValue, LayerQuery, MemoryItem, Scope, ScoreKind, localized
from router.memory.query.listing import META_STEMS
from router.memory.stores.coverage import COUNTED, Coverage
from router.memory.stores.spaces import Filter
from router.text import stem


class MetaLayer(StoredLayer):
    """Counts for each query how much every layer holds about its subject.

    An answer has one item for each layer, of type ``coverage``, the layer with most items first,
    with the attributes ``layer``, ``items``, ``oldest``, ``newest``; or a single item with the
    attribute ``gap`` if nothing is remembered.
    """

    def search(self, query: LayerQuery, *, scope: Scope, k: int) -> Sequence[MemoryItem]:
        subject = " ".join(term for term in query.terms if stem(term) not in META_STEMS)
        coverages = self._store.coverage(subject, scope=scope, where=Filter(period=query.period))
        counted = [coverage for coverage in coverages if coverage.layer != self.spec.name]
        zone = query.now.tzinfo or UTC
        answers = [_count(coverage, subject, zone) for coverage in counted] or [_gap(subject)]
        return [
            MemoryItem(
                id=f"coverage:{attributes.get('layer', 'gap')}",
                layer=self.spec.name,
                content=content,
                created=query.now,
                type="coverage",
                scope=scope,
                attributes=attributes,
                score=1.0 / (1 + place),
                score_kind=ScoreKind.FUSED,
            )
            for place, (content, attributes) in enumerate(answers[:k])
        ]


def _count(coverage: Coverage, subject: str, zone: tzinfo) -> tuple[str, dict[str, AttributeValue]]:
    count = f"{coverage.items:,}" + (" or more" if subject and coverage.items >= COUNTED else "")
    about = f" about {subject}" if subject else ""
    oldest, newest = localized(coverage.oldest, zone), localized(coverage.newest, zone)
    content = (
        f"{coverage.layer}: {count} {'item' if coverage.items == 1 else 'items'}{about}, "
        f"{oldest:%Y-%m-%d} to {newest:%Y-%m-%d}"
    )
    if coverage.tags:
        content += "; tags: " + ", ".join(f"{tag} ({items})" for tag, items in coverage.tags)
    return content, {
        "layer": coverage.layer,
        "items": coverage.items,
        "oldest": coverage.oldest.isoformat(),
        "newest": coverage.newest.isoformat(),
        "tags": tuple(tag for tag, _ in coverage.tags),
    }


def _gap(subject: str) -> tuple[str, dict[str, AttributeValue]]:
    content = f"Nothing is remembered about {subject}." if subject else "Nothing is remembered."
    return content, {"items": 0, "gap": True}
