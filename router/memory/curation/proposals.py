"""Proposals: changes to memories that wait until a person or a policy accepts them.

A proposal changes nothing by itself. It is stored in a layer of its own, ``proposals``, which no
search reads; so it belongs to a scope, survives a restart, and is forgotten with its owner.
Accepting a proposal overwrites nothing: what is replaced is marked as superseded and kept as
history.
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
from router.memory.records import EXPIRES_AT, Records
from router.memory.stores.memory_store import MemoryStore
from router.memory.stores.replacements import SUPERSEDED_AT, SUPERSEDED_BY
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
        layer: the layer of the memories that it is about; ``scope`` is their scope.
        content: the text of the new memory; if there is none, the text that the change is about.
        replaces: ids of the memories that it would mark as superseded, or cancel.
        by: id of the stored memory that takes their place; empty if a new one does.
        evidence: texts that speak for it: quotes, or the memories compared.
        reason: why, in a sentence.
        source: where the evidence is from, such as ``conversation:standup turn 3``.
        type: the type of the new memory.
        speaker: the role of who said what is quoted, such as ``user``; empty if nothing is.
        seen: what the memories in ``replaces``, and then ``by``, said when this was proposed,
            as ``seen_of`` gives it. It tells whether they have changed since.
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
    speaker: str = ""
    seen: tuple[str, ...] = ()

    @property
    def id(self) -> str:
        """The same whenever the same change is proposed in the same scope; for a merge also if a
        model words it differently."""
        merges = self.kind is ChangeKind.MERGE
        content = max(self.evidence, key=len) if merges else self.content
        scope = scope_key(self.scope)
        parts = (self.kind, self.layer, scope, content, self.by, *sorted(self.replaces))
        return content_key("\n".join(parts))[:16]

    def to_dict(self) -> dict[str, Any]:
        row = {"id": self.id, **PlainJson.to_dict(self)}
        del row["seen"]
        return row

    def to_item(self, created: datetime) -> MemoryItem:
        """The form in which it is stored."""
        attributes = {name: getattr(self, name) for name in _ATTRIBUTES}
        attributes |= {"becomes": self.type, "speaker": self.speaker, "seen": self.seen}
        return MemoryItem(
            self.id,
            PROPOSALS,
            self.content,
            created,
            type=self.kind,
            scope=self.scope,
            attributes=attributes,
        )

    @classmethod
    def of(cls, item: MemoryItem) -> Proposal:
        """The inverse of ``to_item``."""
        attributes: Mapping[str, Any] = item.attributes
        return cls(
            ChangeKind(item.type),
            scope=item.scope,
            content=item.content,
            type=attributes["becomes"],
            speaker=attributes.get("speaker", ""),  # earlier versions did not store these two
            seen=tuple(attributes.get("seen", ())),
            **{name: attributes[name] for name in _ATTRIBUTES},
        )


def seen_of(kind: ChangeKind, *items: MemoryItem) -> tuple[str, ...]:
    """For each memory a digest of that on which a proposal of this kind rests: its text, and unless
    copies are merged its date, and of a task when it is due and where it stands."""
    return tuple(
        content_key(
            item.content
            if kind is ChangeKind.MERGE
            else f"{item.content}\n{item.created.timestamp()}\n"
            f"{item.attributes.get('due')}\n{item.attributes.get('status')}"
        )
        for item in items
    )


_ATTRIBUTES: Final = ("layer", "replaces", "by", "evidence", "reason", "source")
"""Fields of a proposal that are stored as attributes of its item."""
_REJECTED: Final = "rejected"
_NOT_PROPOSED: Final = ("created", "tags", "usefulness")
"""Fields of a new memory that a proposal does not name. They stay if the text is stored already."""


class Proposals:
    """The proposals that wait. All methods block.

    A rejected proposal stays stored, so that it is not made again.
    """

    def __init__(self, store: MemoryStore, records: Records) -> None:
        self._store = store
        self._records = records

    def add(self, proposals: Iterable[Proposal], now: datetime) -> tuple[Proposal, ...]:
        """Store the proposals that neither wait nor were rejected already; returns them."""
        new = self.unknown(proposals)
        self._store.save([proposal.to_item(now) for proposal in new])
        return tuple(new)

    def unknown(self, proposals: Iterable[Proposal]) -> list[Proposal]:
        """The proposals that neither wait nor were rejected already."""
        listed = {proposal.id: proposal for proposal in proposals}
        scopes = {proposal.scope for proposal in listed.values()}
        known = {
            Proposal.of(item).id
            for scope in scopes
            for item in self._records.all_of(scope, [PROPOSALS])
        }
        return [proposal for name, proposal in listed.items() if name not in known]

    def waiting(self, scope: Scope) -> tuple[Proposal, ...]:
        """The waiting proposals that the scope sees, newest first."""
        return tuple(map(Proposal.of, self._waiting(scope)))

    def _waiting(self, scope: Scope) -> Iterator[MemoryItem]:
        items = self._records.all_of(scope, [PROPOSALS])
        return (item for item in items if _REJECTED not in item.attributes)

    def accept(self, proposal_id: str, scope: Scope, now: datetime) -> Proposal:
        """Make the change, and return it as it was made. Raises UnknownProposal if no such proposal
        waits, UnknownMemory if what it is about is gone, and InvalidRequest if that has changed
        since it was proposed. The proposal then waits no longer, so that it can be made anew. A new
        memory is saved all the same, and replaces only what has not changed."""
        waiting = self._find(proposal_id, scope)
        proposal = Proposal.of(waiting)
        if changed := self._changed_since(proposal):
            if proposal.kind is not ChangeKind.ADD:
                self._store.delete(PROPOSALS, [waiting.id], waiting.scope)
                raise InvalidRequest(
                    f"{changed[0]!r} has changed since it was proposed; consolidate again"
                )
            kept = tuple(name for name in proposal.replaces if name not in changed)
            proposal = replace(proposal, replaces=kept)
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
                    stored = self._store.get_stored(item.layer, item.id, item.scope)
                    if stored.content == item.content:  # an edit may have changed it since
                        merged.append(stored)
                item = _with_all_of(item, merged)
            unnamed = None if proposal.kind is ChangeKind.MERGE else _NOT_PROPOSED
            self._records.save(item, supersede=proposal.replaces, unnamed=unnamed, is_named=False)
        elif proposal.kind is ChangeKind.STALE:
            for name in proposal.replaces:
                cancelled = {"status": "cancelled"}
                self._records.edit(proposal.layer, name, proposal.scope, attributes=cancelled)
        else:
            self._records.mark(proposal.layer, proposal.replaces, proposal.by, proposal.scope)
        self._store.delete(PROPOSALS, [waiting.id], waiting.scope)
        return proposal

    def _changed_since(self, proposal: Proposal) -> list[str]:
        """The ids of the memories that a proposal is about and that have changed since."""
        names = (*proposal.replaces, *([proposal.by] if proposal.by else []))
        return [
            name
            for name, seen in zip(names, proposal.seen, strict=False)  # an earlier version saw none
            if (seen,)
            != seen_of(proposal.kind, self._store.get_stored(proposal.layer, name, proposal.scope))
        ]

    def reject(self, proposal_id: str, scope: Scope) -> Proposal:
        """Leave everything as it is, and do not propose this again. Raises as ``accept``."""
        item = self._find(proposal_id, scope)
        self._store.save([replace(item, attributes={**item.attributes, _REJECTED: True})])
        return Proposal.of(item)

    def _find(self, proposal_id: str, scope: Scope) -> MemoryItem:
        """The stored item of a proposal. An earlier version may have stored it under another id, so
        it is found by the id that the proposal has now."""
        waiting = self._waiting(scope)
        found = [item for item in waiting if Proposal.of(item).id.startswith(proposal_id)]
        if not found or not proposal_id:
            raise UnknownProposal(proposal_id)
        if len(found) > 1:
            raise InvalidRequest(f"{proposal_id!r} is the beginning of several proposals")
        return found[0]


def _with_all_of(item: MemoryItem, merged: Sequence[MemoryItem]) -> MemoryItem:
    """A new memory with the date of the latest of the memories that it is merged from, and with the
    tags, provenance, usefulness and attributes of all. If an attribute differs, the later memory
    wins. It expires only if all of them do."""
    merged = sorted(merged, key=lambda old: old.created)
    attributes: dict[str, AttributeValue] = {}
    for old in merged:
        for name, value in old.attributes.items():
            earlier = attributes.get(name)
            if isinstance(earlier, tuple) and isinstance(value, tuple):
                value = _different(earlier, value)
            attributes[name] = value
    lasts = any(EXPIRES_AT not in old.attributes for old in merged)
    for name in (QUESTIONS, SUPERSEDED_BY, SUPERSEDED_AT, *[EXPIRES_AT] * lasts):
        attributes.pop(name, None)  # ``Records.save`` takes the questions over
    return replace(
        item,
        created=merged[-1].created,
        tags=_different(*(old.tags for old in merged))[:MAX_TAGS],
        provenance=_different(*(old.provenance for old in merged)),
        usefulness=max(old.usefulness for old in merged),
        attributes=dict(islice(attributes.items(), MAX_ATTRIBUTES)),
    )


def _different(*lists: tuple[str, ...]) -> tuple[str, ...]:
    """All texts of some lists, each once."""
    return tuple(dict.fromkeys(chain(*lists)))
