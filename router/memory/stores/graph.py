"""Entities and the relations between them, as items state them.

An item is about the entity in its attribute ``entity``; its attribute ``relations`` lists what that
entity has to do with other entities, each as ``"verb -> Target"`` (or ``"Source -> verb ->
Target"``). Entities are compared by the stems of their names, so "auth service" is "Auth-Services".
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from enum import StrEnum
from typing import Final

from router.errors import InvalidRequest
from router.memory.model import AttributeValue, MemoryItem
from router.memory.query.cues import QUESTION_WORDS, classes_of
from router.memory.stores.database import Connection, placeholders
from router.memory.stores.lexical import index_terms
from router.memory.stores.spaces import Space, ids_of
from router.memory.texts.related_words import related_to
from router.text import STOPWORDS, stem, stems, stems_of, tokens, word_set

MAX_RELATIONS: Final = 2
"""Relations that are followed, at most, from an entity that a query names."""
MAX_NAME_WORDS: Final = 6
MAX_NAME_CHARACTERS: Final = 400
"""A longer name of an entity is cut, because the keys of database indexes are bounded."""
_OWNER: Final = "<owner>"
_RELATION: Final = "<relation>"
_DEPENDING: Final = frozenset(
    stems_of(
        "use uses used using need needs require requires break breaks fail fails failed down "
        "outage crash crashes stop stops remove removed removing without".split()
    )
)
"""Words that ask for what depends on something, in addition to the class ``<relation>``."""
_NEEDING: Final = frozenset(
    stems_of(
        "use uses used using need needs require requires depend depends dependent rely relies "
        "reliant call calls invoke invokes consume consumes import imports".split()
    )
)
"""Verbs of which who needs is the subject, and what is needed the object."""
_SPEAKERS: Final = word_set("i me my we us our you your")
_PURPOSE: Final = word_set("for to of")
"""Words after which a name is a purpose or an owner: "What do we need for the release?"."""
MAX_QUERY_WORDS: Final = 200
MAX_STEP: Final = 500
"""Edges that are followed in one step, at most. An entity with more is related to nearly
everything."""


def checked_relations(value: AttributeValue) -> tuple[str, ...]:
    """The relations as they are stored; a text may contain several, separated by semicolons.

    Raises:
        InvalidRequest: one does not say what it leads to.
    """
    listed = value.split(";") if isinstance(value, str) else value
    if not isinstance(listed, Sequence):
        raise InvalidRequest(f"attributes.relations: expected a list of texts, not {value!r}")
    relations = tuple(relation.strip() for relation in listed if relation.strip())
    for relation in relations:
        if not all(part.strip() for part in relation.split("->")) or "->" not in relation:
            raise InvalidRequest(
                f"attributes.relations: {relation!r}: write verb -> Target, such as uses -> Redis"
            )
    return relations


def relations_away(item: MemoryItem) -> int | None:
    """The number of relations between an item that ``MemoryStore.related`` found and the entities
    that the query names, computed from its score; None if only words and meaning found it."""
    if item.score is None or item.score < 1 / (2 + MAX_RELATIONS):
        return None
    return round(1 / item.score - 1)


def relations_of(item: MemoryItem) -> Iterator[tuple[str, str, str]]:
    """The relations that an item states, as source, verb and target. The source is empty if the
    item does not name it. Texts that are no relations are left out, because a layer that somebody
    added may hold such texts."""
    entity = item.attributes.get("entity")
    relations = item.attributes.get("relations")
    for relation in relations if isinstance(relations, tuple) else ():
        parts = [part.strip() for part in str(relation).split("->")]
        if len(parts) > 1 and parts[-2] and parts[-1]:
            about = entity if isinstance(entity, str) else ""
            yield parts[0] if len(parts) > 2 else about, parts[-2], parts[-1]


def with_relations(item: MemoryItem) -> str:
    """The content of an item, and in brackets the relations whose words are not all in it, such as
    "gear train, brass (gear made by Zahnrad AG)". By this text an item is judged, and so it is
    shown."""
    sentences = [" ".join(filter(None, relation)) for relation in relations_of(item)]
    if not sentences:
        return item.content
    contained = {*stems(item.content)}
    missing = [sentence for sentence in sentences if not contained.issuperset(stems(sentence))]
    return f"{item.content} ({'; '.join(missing)})" if missing else item.content


def states_relation(item: MemoryItem, question: str) -> bool:
    """Whether an item states a relation of the kind that a question asks for; see
    ``_asking_words``."""
    asking = tokens(question)
    return any(_asking_words(verb, asking) for verb in {verb for _, verb, _ in relations_of(item)})


def continues(item: MemoryItem, question: str, named: Collection[str]) -> bool:
    """Whether a question that names some entities asks for what an item says of another one: it has
    the verb of one of the item's relations ("supplied by" in "Who supplied the spruce of guitar
    041?"), or a word of the name of its entity, such as "spruce"."""
    asking = {*stems(question)} - STOPWORDS - {*stems(" ".join(named))}
    verbs = {*stems(" ".join(verb for _, verb, _ in relations_of(item)))} - STOPWORDS
    name = {*stems(str(item.attributes.get("entity", "")))} - STOPWORDS
    return not asking.isdisjoint(verbs.union(name, *related_to(verbs).values()))


def leads_to_named(item: MemoryItem, question: str) -> bool:
    """Whether a question asks for what has a relation to something, and the item states it: "cart
    uses -> Redis" for "What depends on Redis?", but not for "What does Redis depend on?".

    What is named after the word that asks is acted on. What is named before it, or after "by",
    acts, and so does the target of a relation such as "made by -> Zahnrad AG". After "of" it may be
    either: "the users of Redis", "the parts of Redis". A question whose first question word is
    "when" or "why" asks for a time or a reason, and for nothing that has a relation.
    """
    asking = tokens(question)[:MAX_QUERY_WORDS]
    if next((word for word in asking if word in QUESTION_WORDS), None) in ("when", "why"):
        return False
    terms = stems_of(asking)
    named: dict[str, set[int]] = {}  # by verb, the places where the question names its targets
    for _, verb, target in relations_of(item):
        name = stems(target)
        if name and name[0] in terms:
            starts = (n for n in range(len(terms)) if terms[n : n + len(name)] == name)
            named.setdefault(verb, set()).update(starts)
    return any(
        _is_acted_on(verb, asking, start, place)
        for verb, starts in named.items()
        if starts
        for place in _asking_words(verb, asking)
        for start in starts
    )


def asks_what_is_needed(question: str) -> bool:
    """Whether a question asks what something needs, or what needs it: "What does CA-107 use?". Not
    if it asks about who speaks ("What do we use for backups?"): people state that as a fact."""
    asking = tokens(question)[:MAX_QUERY_WORDS]
    asked = next((word for word in asking if word in QUESTION_WORDS), None)
    is_of_others = asked in ("what", "which", "who") and _SPEAKERS.isdisjoint(asking)
    return is_of_others and not _NEEDING.isdisjoint(stems_of(asking))


class Way(StrEnum):
    """A direction in which relations are followed: to what something needs, or to what needs it."""

    NEEDED = "needed"
    NEEDING = "needing"


def asked_way(name: str, question: str) -> Way | None:
    """Which way a question asks to follow the relations of something that it names: to what that
    needs ("What does Redis depend on?"), or to what needs it ("What uses Redis?"). None if it does
    not say, or both."""
    asking = tokens(question)[:MAX_QUERY_WORDS]
    asked = next((word for word in asking if word in QUESTION_WORDS), None)
    named, terms = stems(name), stems_of(asking)
    if asked not in ("what", "which", "who") or not named:
        return None
    starts = [n for n in range(len(terms)) if terms[n : n + len(named)] == named]
    ways = {
        _way(asking, start, start + len(named), place)
        for place, term in enumerate(terms)
        if term in _NEEDING
        for start in starts
        if not start <= place < start + len(named)
    }
    return ways.pop() if len(ways) == 1 else None


def _way(asking: Sequence[str], start: int, end: int, place: int) -> Way | None:
    """The way for a name from ``start`` to ``end``, and a verb of needing at ``place``."""
    if end <= place:
        follows = asking[place + 1 : place + 2]
        passive = follows == ["by"]
        unclear = not _PURPOSE.isdisjoint(follows)
    else:
        between = asking[place + 1 : start]
        passive = "by" not in between
        unclear = not _PURPOSE.isdisjoint(between)
    return None if unclear else Way.NEEDING if passive else Way.NEEDED


def _is_acted_on(verb: str, asking: Sequence[str], start: int, place: int) -> bool:
    """Whether what a question names at ``start`` is what a relation with this verb leads to, if the
    word at ``place`` asks for it; see ``leads_to_named``."""
    between = asking[place + 1 : start]
    acts = start < place or "by" in between
    return acts == ("by" in tokens(verb)) and "of" not in between


def _asking_words(verb: str, asking: Sequence[str]) -> list[int]:
    """The places of the words of a question that ask for relations with this verb: the verb itself,
    and the words of its kind. If it is about owning, these are the words about owning ("Who is
    responsible for Kafka?", "owns -> Kafka"). Every other verb counts as one of depending ("What
    breaks without Kafka?", "reads from -> Kafka")."""
    words = tokens(verb)
    own = {*stems_of(words)} - STOPWORDS
    kind = _OWNER if _OWNER in classes_of(words) else _RELATION
    others = _DEPENDING if kind == _RELATION else frozenset[str]()
    return [
        place
        for place, word in enumerate(asking)
        if kind in classes_of([word]) or stem(word) in own | others
    ]


def edges_of(item: MemoryItem) -> Iterator[tuple[str, str | None]]:
    """The edges (source, target) that an item states, and (entity, None) for what it is about."""
    entity = item.attributes.get("entity")
    about = _key(entity) if isinstance(entity, str) else ""
    if about:
        yield about, None
    for source, _, target in relations_of(item):
        one, other = _key(source), _key(target)
        if one and other:
            yield one, other


def entities_in(db: Connection, spaces: Sequence[Space], text: str) -> set[str]:
    """The entities in these spaces that a text names."""
    words = tokens(text)[:MAX_QUERY_WORDS]
    names = {
        _key(" ".join(words[start : start + length]))
        for length in range(1, MAX_NAME_WORDS + 1)
        for start in range(len(words) - length + 1)
        if length > 1 or words[start] not in STOPWORDS
    }
    known: set[str] = set()
    for column in ("source", "target"):
        known |= {
            name
            for (name,) in db.execute(
                f"SELECT DISTINCT {column} FROM edges "  # noqa: S608
                f"WHERE space IN ({placeholders(len(spaces))}) "
                f"AND {column} IN ({placeholders(len(names))})",
                (*ids_of(spaces), *names),
            )
        }
    return known


def walk(db: Connection, spaces: Sequence[Space], start: set[str], text: str) -> dict[int, int]:
    """The rows about entities up to ``MAX_RELATIONS`` relations away from ``start``, with the
    number of relations. Relations are followed the way that the text asks for, else both ways; but
    never one way and then the other, because what else uses Redis has little to do with the cart
    that uses it."""
    rows: dict[int, int] = {}
    asked = {name: asked_way(name, text) for name in start}
    for way in Way:
        frontier = [name for name in start if asked[name] in (way, None)]
        seen = set(frontier)
        for hop in range(MAX_RELATIONS + 1):
            if not frontier:
                break
            stated = _edges(db, spaces, "source", frontier)
            for _, _, row in stated:
                rows[row] = min(hop, rows.get(row, hop))
            if way == Way.NEEDED:
                reached = {target for _, target, _ in stated if target is not None}
            else:
                reached = {source for source, _, _ in _edges(db, spaces, "target", frontier)}
            frontier = sorted(reached - seen)[:MAX_STEP]
            seen |= reached
    return rows


def _edges(
    db: Connection, spaces: Sequence[Space], column: str, names: Sequence[str]
) -> list[tuple[str, str | None, int]]:
    return db.execute(
        f"SELECT source, target, row FROM edges WHERE space IN ({placeholders(len(spaces))}) "  # noqa: S608
        f"AND {column} IN ({placeholders(len(names))}) LIMIT {MAX_STEP}",
        (*ids_of(spaces), *names),
    ).fetchall()


def _key(name: str) -> str:
    return " ".join(index_terms(name))[:MAX_NAME_CHARACTERS]
