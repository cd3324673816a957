"""The layer governance: who did what."""

from __future__ import annotations

from collections.abc import Mapping

from memory.remembered import ask, ids, item

from router.memory.model import BlockingLayer, Scope
from router.memory.stores.memory_store import MemoryStore

EVERYBODY = Scope()


def test_who_did_what_is_found_by_actor_action_and_subject(
    store: MemoryStore, layers: Mapping[str, BlockingLayer]
) -> None:
    def record(name: str, actor: str, action: str, subject: str, age: float) -> None:
        attributes = {"actor": actor, "action": action, "subject": subject}
        text = f"Record {name} in the audit log"
        store.save([item(name, text, layer="governance", age=age, attributes=attributes)])

    record("r1", "Anna", "approved", "deletion of backups", 40)
    record("r2", "Ben", "approved", "production access", 8)
    record("r3", "Anna", "rejected", "production access", 2)
    layer = layers["governance"]
    assert ids(layer.search(ask("Who approved production access?"), scope=EVERYBODY, k=1)) == ["r2"]
    assert ids(layer.search(ask("What has Anna rejected?"), scope=EVERYBODY, k=1)) == ["r3"]
    assert ids(layer.search(ask("What was done last week?"), scope=EVERYBODY, k=5)) == ["r2"]
    assert ids(layer.search(ask("Anna in April"), scope=EVERYBODY, k=5))[0] == "r1"
