"""A conformance suite for authors of sources of skills.

It is part of the package because a plug-in's author has the package and not its tests. It needs no
test library; pytest collects it from a subclass whose name begins with ``Test``::

    class TestMySource(SourceConformance):
        def make_source(self) -> SkillSource:
            return MySource()

        def add(self, source: SkillSource, name: str) -> None:
            source.database.insert(name)

        def remove(self, source: SkillSource, name: str) -> None:
            source.database.delete(name)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress

from router.skills.catalog import merge_sources
from router.skills.conformance import must
from router.skills.sources import SkillSource, SourceSnapshot


class SourceConformance:
    """Says whether a source does what it must. Each ``test_`` method raises ``AssertionError`` with
    the reason when it does not."""

    def make_source(self) -> SkillSource:
        """A new source that gives no skill yet."""
        raise NotImplementedError

    def add(self, source: SkillSource, name: str) -> None:
        """Make the source give one more skill, weaker than the others, with this name."""
        raise NotImplementedError

    def remove(self, source: SkillSource, name: str) -> None:
        """Make the source give the skill no longer."""
        raise NotImplementedError

    def close(self, source: SkillSource) -> None:
        """Release what the source holds."""

    @contextmanager
    def _source(self) -> Iterator[SkillSource]:
        source = self.make_source()
        try:
            yield source
        finally:
            self.close(source)

    def test_its_name_is_a_text_that_stays(self) -> None:
        """Reports are told apart by it."""
        with self._source() as source:
            name = source.name
            must(isinstance(name, str) and name != "", "the name is not a text")
            self.add(source, "one")
            source.read()
            must(source.name == name, "the name has changed")

    def test_reading_gives_what_there_is_in_the_order_of_precedence(self) -> None:
        """The first skill of a name wins it, so the order is part of the outcome."""
        with self._source() as source:
            must(source.read().skills == (), "a new source gives skills")
            for name in ("b", "a", "c"):
                self.add(source, name)
            names = [skill.name for skill in source.read().skills]
            must(sorted(names) == ["a", "b", "c"], f"it gives {names}")
            again = [skill.name for skill in source.read(source.read(), quick=True).skills]
            must(again == names, f"the order is {names}, then {again}")

    def test_a_snapshot_stays_as_it_is(self) -> None:
        """Requests under way go on with the snapshot that they began with."""
        with self._source() as source:
            self.add(source, "stays")
            before = source.read()
            held = before.skills
            self.remove(source, "stays")
            self.add(source, "comes")
            after = source.read(before)
            must(before.skills == held, "a snapshot has changed")
            names = [skill.name for skill in after.skills]
            must(names == ["comes"], f"the next snapshot gives {names}")

    def test_reading_again_without_a_change_gives_equal_skills(self) -> None:
        """Otherwise every reading would count as a change, be indexed and reported."""
        with self._source() as source:
            self.add(source, "one")
            first = source.read()
            for previous, quick in ((None, False), (first, False), (first, True)):
                again = source.read(previous, quick=quick)
                must(_digests(again) == _digests(first), "reading again gives other skills")

    def test_a_change_is_seen_by_a_quick_look_too(self) -> None:
        """That is how the manager looks when it is told of a change."""
        with self._source() as source:
            self.add(source, "one")
            before = source.read()
            self.add(source, "two")
            names = {skill.name for skill in source.read(before, quick=True).skills}
            must(names == {"one", "two"}, f"after an addition it gives {names}")
            self.remove(source, "one")
            names = {skill.name for skill in source.read(before, quick=True).skills}
            must(names == {"two"}, f"after a removal it gives {names}")

    def test_a_source_without_folders_tells_of_each_change(self) -> None:
        """Only folders are watched, so the source itself must report its changes."""
        with self._source() as source:
            told: list[int] = []
            end = source.subscribe(lambda: told.append(len(source.read().skills)))
            self.add(source, "one")
            self.remove(source, "one")
            must(bool(source.roots) or told == [1, 0], f"told {told} of one added and removed")
            end()
            end()
            before = len(told)
            self.add(source, "two")
            must(len(told) == before, "it tells after the subscription has ended")

    def test_subscribers_do_not_disturb_each_other(self) -> None:
        """One router that closes must not make another one deaf."""
        with self._source() as source:
            told: list[str] = []
            end = source.subscribe(lambda: told.append("first"))
            source.subscribe(lambda: told.append("second"))
            end()
            self.add(source, "one")
            must(bool(source.roots) or told == ["second"], f"told {told}")

    def test_its_skills_have_texts_to_route_by(self) -> None:
        """A skill without a name or a description cannot be found."""
        with self._source() as source:
            self.add(source, "one")
            [skill] = source.read().skills
            must(skill.name == "one", f"the name is {skill.name!r}")
            must(bool(skill.description.strip()), "there is no description")
            must(bool(skill.digest), "there is no digest")
            catalog = merge_sources([(source, source.read())])
            must(list(catalog.skills) == ["one"], "the catalog does not take it")

    def test_removing_what_is_not_there_leaves_the_rest(self) -> None:
        """Whether it raises is up to the source."""
        with self._source() as source:
            self.add(source, "one")
            with suppress(Exception):
                self.remove(source, "two")
            must(len(source.read().skills) == 1, "a skill has gone")


def _digests(snapshot: SourceSnapshot) -> list[tuple[str, str]]:
    return [(skill.name, skill.routing_digest) for skill in snapshot.skills]
