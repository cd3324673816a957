"""Asks a model about many skills: in parallel, within a budget, and never twice about the same.

Only skills without an enrichment, or whose file has changed since, are asked about. Each worker
writes an answer to the disk before it asks about its next skill. When a provider says how long to
wait, every worker waits; then one of them asks, and with each answer one more may. After a few
failures in a row the run ends: then the key, the address or the model is wrong, and further
questions would only cost money.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final

from router.concurrency.tasks import in_thread
from router.enrichment import files
from router.enrichment.question import Written, parse_written, question_of
from router.enrichment.worth import Filter
from router.errors import ConfigurationError, LLMAnswerError, LLMError, LLMUnavailable
from router.events import Events
from router.llm.calls import timed_call
from router.llm.protocol import MAX_ANSWER_TOKENS, ChatModel, Completion, Price, Prompt
from router.numeric import dollars
from router.skills.catalog import Catalog
from router.skills.changes import CatalogChange
from router.skills.enrichment import IN_DOUBT, Enrichment
from router.skills.manifest import SkillManifest

_log: Final = logging.getLogger(__name__)

CONCURRENCY: Final = 4
ANSWER_TOKENS: Final = 450
"""An estimate of the tokens of an answer: ten requests of some fifteen words, and four near
misses."""
CHARACTERS_PER_TOKEN: Final = 4
"""An estimate, for English."""
CALL_SECONDS: Final = 60.0
TRIES: Final = 4
"""How often a skill is asked about while the provider is unavailable or gives answers that cannot
be used."""
FAILURES_IN_A_ROW: Final = 5
PAUSES: Final = 20
"""How many pauses that a provider asks for cost a skill no try. One that is asked too often for its
limit is no reason to leave a skill out."""
LONGEST_WAIT_SECONDS: Final = 300.0
"""A provider that wants a longer pause ends the run; the next run goes on from there."""


@dataclass(frozen=True, slots=True)
class EnrichmentPlan:
    """What a run would ask and cost.

    Attributes:
        skills: names of the skills that would be asked, in order.
        skipped: how many others have an enrichment that is up to date.
        input_tokens: of all questions together, estimated.
        output_tokens: of all answers together, estimated.
        cost: in dollars, estimated; None if no price is given.
        most: the dollars that asking each skill once can cost at most, if all answers are as long
            as a call allows; None if no price is given.
    """

    skills: tuple[str, ...]
    skipped: int
    input_tokens: int
    output_tokens: int
    cost: float | None = None
    most: float | None = None


@dataclass(frozen=True, slots=True)
class EnrichmentReport:
    """How a run went.

    Attributes:
        written: names of the skills that have a new enrichment, in order.
        left: names of the skills that were not asked about because the run ended, in order.
        failed: names of skills whose question failed, or lines of a file of answers that cannot be
            used, with the reason.
        requests: the number of requests that were kept.
        left_out: texts that were not kept, by skill, each with the reason.
        files: the files that were written.
        notes: what a person should look at, each after the name of a skill or line.
        input_tokens: of all questions, as the provider counted, or estimated where it did not.
        output_tokens: of all answers, likewise.
        cost: in dollars; None where no price is given.
        ended: why the run ended early; empty when it did not.
    """

    written: tuple[str, ...]
    left: tuple[str, ...]
    failed: tuple[tuple[str, str], ...]
    requests: int
    left_out: tuple[tuple[str, tuple[str, ...]], ...]
    files: tuple[Path, ...]
    notes: tuple[tuple[str, str], ...] = ()
    input_tokens: int = 0
    output_tokens: int = 0
    cost: float | None = None
    ended: str = ""


def to_ask(catalog: Catalog, names: Iterable[str] | None = None) -> list[SkillManifest]:
    """The skills to ask about, in the order of their names: those that may be offered for routing
    and have no requests by an LLM, or those for another version of their file.

    Raises:
        UnknownSkill: there is no skill of one of the names.
    """
    chosen = None if names is None else {catalog.get(name).name for name in names}
    return [
        skill
        for skill in catalog.routable
        if (chosen is None or skill.name in chosen)
        and (skill.enrichment is None or not skill.enrichment.requests or skill.enrichment_is_stale)
    ]


def plan_of(
    catalog: Catalog, names: Iterable[str] | None = None, *, price: Price | None = None
) -> EnrichmentPlan:
    """The plan of a run; nothing is asked."""
    names = None if names is None else list(names)
    skills = to_ask(catalog, names)
    prompts = [question_of(skill) for skill in skills]
    input_tokens = sum(map(_tokens, prompts))
    output_tokens = len(skills) * ANSWER_TOKENS
    return EnrichmentPlan(
        tuple(skill.name for skill in skills),
        (len(catalog.routable) if names is None else len(set(names))) - len(skills),
        input_tokens,
        output_tokens,
        None if price is None else price.of(input_tokens, output_tokens),
        None if price is None else sum(_most(prompt, price) for prompt in prompts),
    )


def _tokens(prompt: Prompt) -> int:
    return (len(prompt.system) + len(prompt.user)) // CHARACTERS_PER_TOKEN + 1


def _most(prompt: Prompt, price: Price) -> float:
    """The dollars that a call can cost at most: no tokenizer makes more tokens than there are
    bytes."""
    text = prompt.system + prompt.user + json.dumps(prompt.schema)
    return price.of(len(text.encode("utf-8", "replace")), MAX_ANSWER_TOKENS)


@dataclass(slots=True)
class _Account:
    """The tokens that were used, and the dollars that calls under way can cost at most."""

    price: Price | None
    max_cost: float | None
    input_tokens: int = 0
    output_tokens: int = 0
    reserved: list[float] = field(default_factory=list)

    @property
    def cost(self) -> float | None:
        return None if self.price is None else self.price.of(self.input_tokens, self.output_tokens)

    def most(self, prompt: Prompt) -> float:
        """The dollars that a call can cost at most. What an answer usually costs would not keep the
        budget: a model that thinks takes several times as much."""
        return 0.0 if self.price is None else _most(prompt, self.price)

    def has(self, dollars: float) -> bool:
        """Whether the budget is large enough for so much more than what was used."""
        # Neither where it is NaN.
        return self.max_cost is None or (self.cost or 0.0) + dollars <= self.max_cost

    def spend(self, prompt: Prompt, done: Completion | None) -> None:
        """Count the tokens of a call. They are estimated if the provider did not count them. If
        there was no whole answer, it may have been cut, and is counted as the longest."""
        read, written = (
            (done.input_tokens, done.output_tokens) if done else (None, MAX_ANSWER_TOKENS)
        )
        self.input_tokens += read or _tokens(prompt)
        self.output_tokens += written or len(done.text if done else "") // CHARACTERS_PER_TOKEN


class UnusableAnswer(ValueError):
    """An answer of which too little can be kept."""


class RunRecord:
    """The enrichments that a run has written so far, and the failures."""

    def __init__(self, catalog: Catalog, file: Path | None) -> None:
        """Nothing is written yet. ``file`` is where to write; None: the file of each root."""
        self._catalog = catalog
        self._file = file
        self._judge = Filter(catalog.routable)
        self._left_out: dict[str, tuple[str, ...]] = {}
        self._files: set[Path] = set()
        self._enrichments: dict[str, Enrichment] = {}
        self._doubted: set[str] = set()
        self.written: dict[str, int] = {}
        self.failed: list[tuple[str, str]] = []
        self.notes: list[tuple[str, str]] = []

    def place_of(self, skill: SkillManifest) -> Path:
        """The file that a skill's enrichment is written to.

        Raises:
            ConfigurationError: there is none.
        """
        return files.file_for(skill, self._catalog, named=self._file)

    def keep(
        self, skill: SkillManifest, given: Written, *, model: str | None, written_at: datetime
    ) -> None:
        """Write the useful part of an answer about a skill to its file.

        Raises:
            UnusableAnswer: too little of it is useful. Nothing is written, so that the skill keeps
                what it has and is asked about again.
            ConfigurationError: the skill has no place to be written to.
            StoreError: its file cannot be written.
        """
        place, kept = self.place_of(skill), self._judge.keep(skill, given)
        self._left_out[skill.name] = kept.left_out
        if not kept.is_usable:
            written = len(kept.requests) + len(kept.left_out)
            others = self._judge.rivals(skill.name, given.requests)
            raise UnusableAnswer(
                f"of {written} requests {len(kept.left_out)} cannot be kept{self._look_at(others)}"
                if written
                else "the answer holds no requests"
            )
        enrichment = Enrichment(
            skill=skill.name,
            requests=kept.requests,
            near_misses=kept.near_misses,
            digest=skill.digest,
            model=model,
            written_at=written_at,
        )
        self._write(place, enrichment)
        self.written[skill.name] = len(kept.requests)
        self._doubted.discard(skill.name)
        for name in kept.doubtful:
            self._doubt(self._catalog.get(name))

    def _write(self, place: Path, enrichment: Enrichment) -> None:
        files.append(place, enrichment)
        self._files.add(place)
        self._enrichments[enrichment.skill] = enrichment

    def _doubt(self, skill: SkillManifest) -> None:
        """Mark what was written for a skill as doubtful. It keeps all of it, because a person
        should look at it first; but it counts less until the skill is asked about again."""
        enrichment = self._enrichments.get(skill.name, skill.enrichment)
        with suppress(ConfigurationError):  # its file cannot be written
            if enrichment is not None:
                self._write(self.place_of(skill), replace(enrichment, digest=IN_DOUBT))
                self._doubted.add(skill.name)

    def _look_at(self, names: Iterable[str]) -> str:
        """The words that name the files of skills which have a request, too."""
        skills = [self._catalog.get(name) for name in names]
        places = [f"{skill.name} ({self._file_of(skill)})" for skill in skills]
        return f"; look at {', '.join(places)}" if places else ""

    def _file_of(self, skill: SkillManifest) -> Path:
        """The file that holds what was written for a skill; its own where nothing was."""
        written = skill.name in self._enrichments
        return self.place_of(skill) if written else files.file_of(skill, self._catalog)

    def _notes(self) -> Iterator[tuple[str, str]]:
        yield from self.notes
        for name in sorted(self._doubted):
            yield name, "most of its requests belong to other skills; the next run asks again"
        for name in sorted(self.written):
            if others := self._judge.rivals(name, self._enrichments[name].requests):
                yield name, f"other skills have some of its requests, too{self._look_at(others)}"

    def drop_replaced(self) -> None:
        """Delete lines that a later line of the same file has replaced. Raises StoreError."""
        for path in self._files:
            files.drop_replaced(path)

    def report(self, left: Iterable[str]) -> EnrichmentReport:
        """The report of a run that spent nothing and was not ended early; ``left`` are skills that
        are still to be asked about."""
        return EnrichmentReport(
            written=tuple(sorted(self.written)),
            left=tuple(sorted(left)),
            failed=tuple(self.failed),
            requests=sum(self.written.values()),
            left_out=tuple(sorted(item for item in self._left_out.items() if item[1])),
            files=tuple(sorted(self._files)),
            notes=tuple(self._notes()),
        )


class Asker:
    """Asks one model about the skills of one catalog, in one run, and writes the enrichments."""

    def __init__(
        self,
        model: ChatModel,
        catalog: Catalog,
        *,
        file: Path | None,
        price: Price | None = None,
        max_cost: float | None = None,
        concurrency: int = CONCURRENCY,
        progress: Callable[[int, int], None] | None = None,
        events: Events | None = None,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Nothing is asked yet.

        Args:
            file: where to write; None means the file of each skill's root.
            max_cost: dollars that the run may cost; needs ``price``.
            progress: called with (done, total).
            events: get every call of the model.
            clock: monotonic seconds.
        """
        self._model = model
        self._catalog = catalog
        self._file = file
        self._account = _Account(price, max_cost)
        self._concurrency = self._allowed = concurrency
        self._progress = progress
        self._events = events
        self._clock = clock
        self._now = now
        self._sleep = sleep
        self._record: RunRecord | None = None
        self._waiting: list[SkillManifest] = []
        self._unasked: list[str] = []
        self._failures = 0
        self._has_warned = False
        self._resume_at = 0.0
        self._call_ended = asyncio.Event()
        self._ended = ""

    async def run(self, skills: Sequence[SkillManifest]) -> EnrichmentReport:
        """Ask about these skills. When it is cancelled, what was written stays written.

        Raises:
            ConfigurationError: a skill has no place to be written to; nothing is asked then.
            StoreError: a file cannot be written.
        """
        record = await in_thread(partial(RunRecord, self._catalog, self._file))
        self._record = record
        for skill in skills:
            record.place_of(skill)
        self._waiting = list(reversed(skills))
        try:
            async with asyncio.TaskGroup() as workers:
                for _ in range(min(self._concurrency, len(skills))):
                    workers.create_task(self._work(record, len(skills)))
        except ExceptionGroup as group:
            raise group.exceptions[0] from group
        finally:
            record.drop_replaced()
        record.failed.sort()
        return self._report(record)

    @property
    def report_so_far(self) -> EnrichmentReport | None:
        """How the run has gone until now, also when it was cancelled; None before it has begun."""
        return None if self._record is None else self._report(self._record)

    def _report(self, record: RunRecord) -> EnrichmentReport:
        return replace(
            record.report({*self._unasked, *(skill.name for skill in self._waiting)}),
            input_tokens=self._account.input_tokens,
            output_tokens=self._account.output_tokens,
            cost=self._account.cost,
            ended=self._ended,
        )

    async def _work(self, record: RunRecord, total: int) -> None:
        while self._waiting and not self._ended:
            skill = self._waiting.pop()
            try:
                is_written = await self._ask(skill, record)
            except LLMError as error:
                record.failed.append((skill.name, str(error)))
                self._failures += 1
                if self._failures >= FAILURES_IN_A_ROW and not self._ended:
                    self._ended = f"{self._failures} questions in a row failed; last: {error}"
                continue
            if not is_written:
                self._unasked.append(skill.name)
                continue
            self._failures = 0
            if self._progress is not None:
                self._progress(len(record.written) + len(record.failed), total)

    async def _ask(self, skill: SkillManifest, record: RunRecord) -> bool:
        """Ask about a skill and write the answer. False when the run has ended before it came.

        Raises:
            LLMError: there is no usable one.
            StoreError: it cannot be written.
        """
        prompt, account = question_of(skill), self._account
        most = account.most(prompt)
        tries = pauses = 0
        while await self._may_ask(most):
            account.reserved.append(most)
            done = None
            try:
                done = await timed_call(
                    self._model,
                    prompt,
                    seconds=CALL_SECONDS,
                    purpose="enrich",
                    events=self._events,
                    price=account.price,
                )
                account.spend(prompt, done)
                written = parse_written(done.text, provider=self._model.provider)
                record.keep(skill, written, model=self._model.model, written_at=self._now())
                self._allowed = min(self._allowed + 1, self._concurrency)
                return True
            except UnusableAnswer as error:
                fault: LLMError = LLMAnswerError(self._model.provider, str(error))
            except (LLMUnavailable, LLMAnswerError) as error:
                fault = error
                if done is None and isinstance(error, LLMAnswerError):
                    account.spend(prompt, None)
            finally:
                account.reserved.remove(most)
                self._call_ended.set()
                self._call_ended = asyncio.Event()
            if isinstance(fault, LLMUnavailable):
                pause = fault.retry_after or 2.0**tries
                if pause > LONGEST_WAIT_SECONDS:
                    self._ended = f"the provider wants a pause of {pause:,.0f} s"
                    return False
                self._resume_at = max(self._resume_at, self._clock() + pause)
                self._allowed = 1
            if isinstance(fault, LLMUnavailable) and fault.retry_after and pauses < PAUSES:
                pauses += 1
            else:
                tries += 1
            if tries == TRIES:
                raise fault
            if not self._has_warned:  # the report names all that fail for good
                self._has_warned = True
                _log.warning("enrichment: %s; asking again", fault)
        return False

    async def _may_ask(self, most: float) -> bool:
        """Wait until a call that costs ``most`` dollars at most may be made. False when the run has
        ended, or when the budget is too small for the call."""
        while not self._ended:
            account = self._account
            if not account.has(most):
                budget = dollars(account.max_cost or 0.0)
                self._ended = f"the budget of {budget} allows no further call"
            elif (left := self._resume_at - self._clock()) > 0:
                await self._sleep(left)
            elif len(account.reserved) >= self._allowed or not account.has(
                sum(account.reserved) + most
            ):
                await self._call_ended.wait()
            else:
                return True
        return False


class EnrichOnSave:
    """An observer that asks about skills when they are added or changed.

    The enrichments that it writes change the catalog again. That leads to no further question,
    because they are up to date then.
    """

    name: Final = "enrichment on save"

    def __init__(self, enrich: Callable[[Sequence[str]], Awaitable[object]]) -> None:
        """``enrich`` asks about the named skills, as far as they need it."""
        self._enrich = enrich

    async def on_catalog_change(self, change: CatalogChange) -> None:
        skills = to_ask(change.after, {*change.added, *change.changed} & change.after.skills.keys())
        if skills:
            await self._enrich([skill.name for skill in skills])
