"""What may be changed in the memories, waiting for a person or a policy to accept it.

Nothing is changed by proposing. A proposal lies in a layer of its own, ``proposals``, which no
search reads; so it belongs to a scope, survives a restart, and is forgotten with its owner.
Accepting one never overwrites: what is replaced is marked as superseded and kept as history.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from itertools import chain, islice
from typing import Any, Final

from router.errors import InvalidRequest, UnknownMemory, UnknownProposal
from router.memory.model import MAX_ATTRIBUTES, MAX_TAGS, AttributeValue, MemoryItem, Scope
from router.memory.recall.updates import SUPERSEDED_AT, SUPERSEDED_BY
from router.memory.records import EXPIRES_AT, Records
from router.memory.stores.memory_store import MemoryStore
from router.memory.stores.spaces import PROPOSALS, scope_key
from router.memory.texts.contents import content_key
from router.memory.texts.questions import QUESTIONS
from router.plain_json import PlainJson


class ChangeKind(StrEnum):
    """What a proposal would do."""

    ADD = "add"
    """Save a new memory."""
    MERGE = "merge"
    """Save one memory in place of several that say the same."""
    UPDATE = "update"
    """Mark a memory as superseded by a later one that is stored already."""
    CONTRADICTION = "contradiction"
    """Two memories contradict each other: believe the later one, and mark the other."""
    STALE = "stale"
    """A task that nobody has done or moved long after it was due: cancel it."""


@dataclass(frozen=True, slots=True)
class Proposal(PlainJson):
    """One change that may be made.

    Attributes:
        layer: of the memories that it is about; ``scope`` is theirs, too.
        content: the text of the new memory; of a change without one, what it is about.
        replaces: ids of the memories that it would mark.
        by: id of the stored memory that takes their place; empty where a new one does.
        evidence: texts that speak for it: quotes, or the memories compared.
        reason: why, in a sentence.
        source: where the evidence is from, such as ``conversation:standup turn 3``.
        type: of the new memory.
    """

    kind: ChangeKind
    layer: str
    scope: Scope
    content: str
    replaces: tuple[str, ...] = ()
    by: str = ""
    evidence: tuple[str, ...] = ()
    reason: str = ""
    source: str = ""
    type: str = "note"

    @property
    def id(self) -> str:
        """The same for the same change in one scope, however often it is proposed: of a merge,
        whatever wording a model gives it."""
        merges = self.kind is ChangeKind.MERGE
        content = max(self.evidence, key=len) if merges else self.content
        scope = scope_key(self.scope)
        parts = (self.kind, self.layer, scope, content, self.by, *sorted(self.replaces))
        return content_key("\n".join(parts))[:16]

    def to_dict(self) -> dict[str, Any]:
        return {"id": self.id, **PlainJson.to_dict(self)}

    def to_item(self, created: datetime) -> MemoryItem:
        """The form in which it is stored."""
        given = {name: getattr(self, name) for name in _ATTRIBUTES} | {"becomes": self.type}
        return MemoryItem(
            self.id,
            PROPOSALS,
            self.content,
            created,
            type=self.kind,
            scope=self.scope,
            attributes=given,
        )

    @classmethod
    def of(cls, item: MemoryItem) -> Proposal:
        """The inverse of ``to_item``."""
        given: Mapping[str, Any] = item.attributes
        return cls(
            ChangeKind(item.type),
            scope=item.scope,
            content=item.content,
            type=given["becomes"],
            **{name: given[name] for name in _ATTRIBUTES},
        )


_ATTRIBUTES: Final = ("layer", "replaces", "by", "evidence", "reason", "source")
"""What an item of the queue has as attributes."""
_REJECTED: Final = "rejected"


class Proposals:
    """The queue. Blocks, as the store does.

    A proposal that was rejected is remembered, so that it is not made again.
    """

    def __init__(self, store: MemoryStore, records: Records) -> None:
        self._store = store
        self._records = records

    def add(self, proposals: Iterable[Proposal], now: datetime) -> tuple[Proposal, ...]:
        """Queue what is not waiting, and was not rejected, already; what is new."""
        new = self.unknown(proposals)
        self._store.save([proposal.to_item(now) for proposal in new])
        return tuple(new)

    def unknown(self, proposals: Iterable[Proposal]) -> list[Proposal]:
        """Those of some proposals that are neither waiting nor rejected already."""
        listed = {proposal.id: proposal for proposal in proposals}
        scopes = {proposal.scope for proposal in listed.values()}
        known = {
            Proposal.of(item).id
            for scope in scopes
            for item in self._records.all_of(scope, [PROPOSALS])
        }
        return [proposal for name, proposal in listed.items() if name not in known]

    def waiting(self, scope: Scope) -> tuple[Proposal, ...]:
        """What waits and belongs to what the scope sees, newest first."""
        return tuple(map(Proposal.of, self._waiting(scope)))

    def _waiting(self, scope: Scope) -> Iterator[MemoryItem]:
        items = self._records.all_of(scope, [PROPOSALS])
        return (item for item in items if _REJECTED not in item.attributes)

    def accept(self, proposal_id: str, scope: Scope, now: datetime) -> Proposal:
        """Make the change. Raises UnknownProposal if no such proposal waits, and UnknownMemory if
        what it is about is gone."""
        waiting = self._find(proposal_id, scope)
        proposal = Proposal.of(waiting)
        if proposal.kind in (ChangeKind.ADD, ChangeKind.MERGE):
            item = MemoryItem(
                content_key(proposal.content)[:32],
                proposal.layer,
                proposal.content,
                now,
                type=proposal.type,
                scope=proposal.scope,
                provenance=(proposal.source,) if proposal.source else (),
                attributes={"evidence": proposal.evidence},
            )
            if proposal.kind is ChangeKind.MERGE:
                merged = [
                    self._store.get_stored(proposal.layer, name, proposal.scope)
                    for name in proposal.replaces
                ]
                with suppress(UnknownMemory):  # an earlier merge may have given the same text
                    merged.append(self._store.get_stored(item.layer, item.id, item.scope))
                item = _with_all_of(item, merged)
            self._records.save(item, supersede=proposal.replaces)
        elif proposal.kind is ChangeKind.STALE:
            for name in proposal.replaces:
                cancelled = {"status": "cancelled"}
                self._records.edit(proposal.layer, name, proposal.scope, attributes=cancelled)
        else:
            self._records.mark(proposal.layer, proposal.replaces, proposal.by, proposal.scope)
        self._store.delete(PROPOSALS, [waiting.id], waiting.scope)
        return proposal

    def reject(self, proposal_id: str, scope: Scope) -> Proposal:
        """Leave everything as it is, and do not propose this again. Raises as ``accept``."""
        item = self._find(proposal_id, scope)
        self._store.save([replace(item, attributes={**item.attributes, _REJECTED: True})])
        return Proposal.of(item)

    def _find(self, proposal_id: str, scope: Scope) -> MemoryItem:
        """The form in which a proposal is stored, maybe under the id that it once had."""
        waiting = self._waiting(scope)
        found = [item for item in waiting if Proposal.of(item).id.startswith(proposal_id)]
        if not found or not proposal_id:
            raise UnknownProposal(proposal_id)
        if len(found) > 1:
            raise InvalidRequest(f"{proposal_id!r} is the beginning of several proposals")
        return found[0]


def _with_all_of(item: MemoryItem, merged: Sequence[MemoryItem]) -> MemoryItem:
    """A new memory with what the memories that it is merged from say beside their texts; where
    these differ, with what the later one says. It expires only if all of them do."""
    merged = sorted(merged, key=lambda old: old.created)
    given: dict[str, AttributeValue] = {}
    for old in merged:
        for name, value in old.attributes.items():
            listed = given.get(name)
            if isinstance(listed, tuple) and isinstance(value, tuple):
                value = _different(listed, value)
            given[name] = value
    lasts = any(EXPIRES_AT not in old.attributes for old in merged)
    for name in (QUESTIONS, SUPERSEDED_BY, SUPERSEDED_AT, *[EXPIRES_AT] * lasts):
        given.pop(name, None)  # questions are inherited wherever one memory replaces others
    return replace(
        item,
        tags=_different(*(old.tags for old in merged))[:MAX_TAGS],
        provenance=_different(*(old.provenance for old in merged)),
        usefulness=max(old.usefulness for old in merged),
        attributes=dict(islice(given.items(), MAX_ATTRIBUTES)),
    )


def _different(*lists: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(chain(*lists)))
