"""What a router has learnt, and what it does with it: one object for the cascade to talk to.

``check`` says whether a request may be answered from the evidence alone; ``learn`` keeps every
label; ``calibrations`` turn a stage's own confidence into a calibrated one. Fitting happens in
threads, and a label is on the disk when ``learn`` returns.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias

import numpy as np

from router.concurrency.tasks import BackgroundTasks, in_thread
from router.errors import InvalidRequest, StoreError, UnknownAnswer
from router.events import Events, Learned
from router.learning.account import AccountPlace, forget_places
from router.learning.bound import BoundDecision, ErrorBound, FittedRisk
from router.learning.catalogs import (
    CATALOGS,
    MAX_CATALOGS,
    KnownCatalog,
    recognise,
    state_of,
)
from router.learning.coverage import COVERED, uncovered_share
from router.learning.evidence import (
    EvidenceStore,
    Example,
    PastAnswer,
    Source,
    self_description,
    taken_back,
)
from router.learning.examples import shipped_examples, written_examples
from router.learning.local import MAX_RANKED, LocalModel, answer_of, skills_of
from router.learning.peers import Label, Peers
from router.learning.stage_calibrations import (
    CALIBRATED,
    StageCalibrations,
    own_confidence,
    said_by,
)
from router.learning.trainer import Trainer
from router.result import Decision
from router.text import normalise

if TYPE_CHECKING:
    from router.request import Request
    from router.result import EvidenceValue, RoutingResult
    from router.retrieval.encoders import Encoder
    from router.retrieval.index import SkillIndex
    from router.settings.settings import LearningSettings
    from router.skills.catalog import Catalog
    from router.skills.changes import CatalogChange
    from router.skills.manifest import SkillManifest

_log: Final = logging.getLogger(__name__)

AnsweredRequest: TypeAlias = "tuple[str, PastAnswer]"
"""The id of an answer that was given, and what feedback on it needs."""
SAVE_EVERY: Final = 50
"""Outcomes between two saves of the bound's account; a crash loses the account of the rest, and
never an example."""
MANY_CHANGED: Final = 0.1
"""When more than this share of the skills changes, calibrations are dropped."""


@dataclass(frozen=True, slots=True)
class CalibratedAnswer:
    """What the examples say of one request, and how sure that is.

    Attributes:
        skills: the likeliest answer; empty when it is that no skill is right.
        confidence: P(it is right), in [0, 1].
        coverage: P(the request is one that the examples speak about); 1 where ``confidence`` has
            been judged as a whole.
        nothing: P(it is that no skill is right) by the examples.
        ranked: the likeliest answers with their probability, best first.
        examples: all that there are.
        examples_of_answer: those of the likeliest.
        outcomes: on how many outcomes or held-out examples the confidence rests.
    """

    skills: tuple[str, ...]
    confidence: float
    coverage: float
    nothing: float
    ranked: tuple[tuple[tuple[str, ...], float], ...]
    examples: int
    examples_of_answer: int
    outcomes: int

    def offered_by(self, catalog: Catalog) -> Self | None:
        """The same without the skills that a catalog does not offer, because the model may be of
        other skills; None when the likeliest answer is among those."""

        def offers(names: Sequence[str]) -> bool:
            return all(catalog.offers(name) for name in names)

        if not offers(self.skills):
            return None
        return replace(self, ranked=tuple(row for row in self.ranked if offers(row[0])))


@dataclass(frozen=True, slots=True)
class EvidenceCheck:
    """Whether a request may be answered from the evidence, without asking the LLM.

    Attributes:
        bound: what the error bound decides, and on what.
        answer: the answer of the evidence; None where there is none whose risk is known, or where
            it names a skill that is not offered.
    """

    bound: BoundDecision
    answer: CalibratedAnswer | None

    def evidence(self) -> dict[str, EvidenceValue]:
        """For the trace: risk, bound, and what stands behind them."""
        found: dict[str, EvidenceValue] = {
            "error_bound": self.bound.bound,
            "outcomes": self.bound.evidence_count,
            "bound": self.bound.reason,
        }
        if self.bound.risk is not None:
            found["risk"] = self.bound.risk
        if self.bound.answer is not None:
            found["local_answer"] = self.bound.answer
        if self.answer is not None:
            found["local_probability"] = self.answer.ranked[0][1]
        return found


class Learner:
    """Evidence, local model, error bound and calibrations of one router. Belongs to its loop.

    Whatever reads a request raises ``EncoderError`` where it cannot be encoded, and what reads or
    keeps labels ``StoreError`` where that cannot be done."""

    def __init__(
        self,
        store: EvidenceStore,
        settings: LearningSettings,
        encoder: Encoder,
        *,
        has_llm: bool,
        version: int = 0,
        events: Events | None = None,
        peers: Peers | None = None,
    ) -> None:
        """Nothing is trained yet; ``begin`` does it.

        Args:
            store: of the evidence; closed with the learner.
            has_llm: whether there is an LLM; its answers show whether local answers are right.
            version: of the decision. What calibrates the confidences of another one is not used.
            events: get every label that is kept.
            peers: other processes that learn from the same evidence; None where there are none.
        """
        self._store = store
        self._settings = settings
        self._version = version
        self._known: KnownCatalog | None = None
        self._events = Events() if events is None else events
        self._has_llm = has_llm
        self._skills: dict[str, SkillManifest] = {}
        self._described: dict[str, str] = {}
        self._digest: tuple[dict[str, str] | None, str] = None, ""  # of ``_described``, once asked
        self.trainer = Trainer(
            encoder, store, self._examples, about=self._about, calibrates=not has_llm, peers=peers
        )
        self._peers = peers
        self._place: AccountPlace | None = None
        self._taken_up = False  # what was kept before; until then nothing may overwrite it
        self.bound = ErrorBound(settings.max_error, seed=settings.seed)
        self.calibrations = StageCalibrations()
        self._unsaved = 0
        self._background = BackgroundTasks(_log)

    def _examples(self) -> list[Example]:
        """In a thread: what the skills' files say, then what was learnt, oldest first.

        Requests that an LLM wrote beforehand count only where an LLM judges the answers. Without
        one, retrieval reads them already.
        """
        skills = dict(sorted(self._skills.items()))
        written = written_examples(skills.values()) if self._has_llm else []
        return [*written, *shipped_examples(skills.values()), *self._store.examples(skills)]

    def _about(self) -> str:
        """In a thread: a digest of what the skills say of themselves."""
        described = self._described
        if self._digest[0] is not described:
            said = json.dumps(described, sort_keys=True)
            self._digest = described, hashlib.sha256(said.encode()).hexdigest()
        return self._digest[1]

    async def begin(self, catalog: Catalog) -> None:
        """Take up what earlier runs learnt, and train on it in the background."""
        self._skills = {skill.name: skill for skill in catalog.routable}
        self._described = {name: self_description(one) for name, one in self._skills.items()}
        roots = tuple(map(str, catalog.roots))
        known = await in_thread(lambda: recognise(self._catalogs(), roots, self._described))
        self._known = replace(known, roots=roots)
        place = self._place = await in_thread(lambda: AccountPlace(self._store.folder, known.key))
        bound = await in_thread(lambda: self._store.state(place.state))
        calibrations = await in_thread(lambda: self._store.state(self._own(known, "calibrations")))
        rows = await in_thread(lambda: self._store.state(self._own(known, "calibrated_rows")))
        try:
            self.calibrations = StageCalibrations(calibrations, rows or ())
            if bound is not None:
                self.bound.restore(bound)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            _log.warning(
                "the error bound and the calibrations begin anew, and the examples are kept: "
                "what was stored cannot be used (%s)",
                error,
            )
            self.bound = ErrorBound(self._settings.max_error, seed=self._settings.seed)
            self.calibrations = StageCalibrations()
        self._taken_up = True
        self._changed(known.skills, self._described, {*known.skills, *self._described})
        await self.trainer.begin()

    def _catalogs(self) -> list[KnownCatalog]:
        """In a thread: those that the evidence knows."""
        found = []
        for key, state in self._store.states(CATALOGS).items():
            try:
                found.append(KnownCatalog.from_dict(key, state))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                _log.warning("a catalog that was learnt about is not readable: %s", error)
        return found

    def _own(self, known: KnownCatalog, name: str) -> str:
        """The name of a state of a catalog and this version of the decision."""
        return state_of(f"{name}/{self._version}", known.key)

    def catalog_changed(self, change: CatalogChange) -> None:
        """The skills are others now. Evidence about those that changed counts less, and nothing is
        answered locally until a model of the new skills is there."""
        before, after = self._described, change.after
        # Copies, because threads read the old ones.
        skills, described = self._skills.copy(), before.copy()
        for name in change.names:
            skills.pop(name, None)
            described.pop(name, None)
            if after.offers(name):
                skills[name] = after.get(name)
                described[name] = self_description(skills[name])
        self._skills, self._described = skills, described
        if self._changed(before, described, change.names):
            self.trainer.restart()

    def _changed(
        self, before: Mapping[str, str], after: Mapping[str, str], names: Iterable[str]
    ) -> bool:
        """Whether some of these skills differ; then evidence about these counts less."""
        changed = {name for name in names if before.get(name) != after.get(name)}
        if not changed:
            return False
        self.bound.catalog_changed(changed)
        if len(changed) > MANY_CHANGED * max(len(before), 1):
            self.calibrations.drop()
        return True

    def teaches(self, request: Request) -> bool:
        """Whether a label for this request is kept."""
        return _depends_on_text_alone(request) and (
            request.scope is None or self._settings.share_scopes
        )

    async def correction(self, request: Request) -> tuple[str, ...] | None:
        """The skills that a person said are right for this very request, here or in a process that
        shares the evidence; None where nobody did. The caches hold that, too, but they forget."""
        if not _depends_on_text_alone(request) or not self._store.may_be_corrected(request.text):
            return None
        known = self._skills
        try:
            return await in_thread(lambda: self._store.correction(request.text, known))
        except StoreError as error:
            _log.error("whether the request was corrected cannot be read: %s", error)
            return None

    async def check(self, request: Request, index: SkillIndex) -> EvidenceCheck | None:
        """What the evidence says; None where the request is not one that it speaks about."""
        if self._settings.max_error == 0 or not _depends_on_text_alone(request):
            return None
        model = self.trainer.model
        if model is None or not self.trainer.current:
            return EvidenceCheck(self.bound.decide(None), None)
        local = model.answer(request.text, await index.reader.vector(request.text))
        decision = self.bound.decide(local.signals.vector(), answer=local.answer)
        if self.bound.due:
            self._background.run(self._refit(self.bound.fitting()))
        if decision.risk is None:
            return EvidenceCheck(decision, None)
        answer = CalibratedAnswer(
            skills=local.skills,
            confidence=1 - decision.risk,
            coverage=1.0,
            nothing=0.0 if local.skills else 1 - decision.risk,
            ranked=tuple((skills_of(name), share) for name, share in local.ranked),
            examples=local.signals.evidence,
            examples_of_answer=local.signals.examples,
            outcomes=decision.evidence_count,
        )
        return EvidenceCheck(decision, answer.offered_by(index.catalog))

    async def answer_without_llm(
        self, request: Request, index: SkillIndex, retrieved: Mapping[str, float], *, fits: float
    ) -> CalibratedAnswer | None:
        """What the evidence says where no LLM can be asked; None where it says nothing that its
        own held-out examples bear out.

        Args:
            retrieved: fused scores of the skills that retrieval ranks highest.
            fits: its estimate that any of them fits, in [0, 1].
        """
        model = self.trainer.model
        if model is None or model.coverage is None or not _depends_on_text_alone(request):
            return None
        scores = model.scores(request.text, await index.reader.vector(request.text))
        support = model.coverage.support(model.answers, retrieved, fits=fits)
        right = model.coverage.probabilities(scores, support)
        share = uncovered_share(retrieved, model.examples_of)
        coverage = model.coverage.coverage(scores, uncovered=share, fits=fits)
        best = np.argsort(-right, kind="stable")[:MAX_RANKED].tolist()
        answer = CalibratedAnswer(
            skills=model.answers[best[0]],
            confidence=coverage * float(right[best[0]]),
            coverage=coverage,
            nothing=coverage
            * sum(float(p) for p, a in zip(right, model.answers, strict=True) if not a),
            ranked=tuple((model.answers[i], coverage * float(right[i])) for i in best),
            examples=model.examples,
            examples_of_answer=model.count(best[0]),
            outcomes=model.coverage.pairs,
        )
        return answer.offered_by(index.catalog)

    @property
    def evidence_digest(self) -> str:
        """Digest of the examples that the serving model was fitted on; empty while there is none
        that could answer without an LLM."""
        model = self.trainer.model
        return "" if model is None or model.coverage is None else model.evidence_digest

    def uncovered_skills(self) -> list[str]:
        """The skills of which the model has too few examples."""
        covered = {} if self.trainer.model is None else self.trainer.model.examples_of
        return [name for name in sorted(self._skills) if covered.get(name, 0) < COVERED]

    async def learn(
        self,
        request: Request,
        skills: Iterable[str],
        *,
        source: Source,
        check: EvidenceCheck | None = None,
    ) -> None:
        """The LLM said which skills are right for a request. Durable when this returns.

        How the local answer did is noted of every request, its text only of one that ``teaches``.

        Raises:
            StoreError: the label cannot be kept; the answer is not in danger.
        """
        names = tuple(sorted(skills))
        if check is not None and check.bound.answer is not None:
            right = check.bound.answer == answer_of(names)
            self.bound.observe(check.bound, right=right)
            outcome = self.bound.outcome_of(check.bound, right=right)
            if self._peers is not None and outcome is not None:
                self._peers.tell_outcome(outcome)
            elif outcome is not None:
                self._background.run(self._exchange(outcome))
            self._unsaved += 1
            if self._unsaved >= SAVE_EVERY:
                self._unsaved = 0
                self._background.run(self._save())
        known = self._skills
        if self.teaches(request) and await in_thread(
            lambda: self._store.add(request.text, names, source=source, catalog=known)
        ):
            self.trainer.note()
            await self._share_labels({(normalise(request.text), "")})
            if self._events.listening:
                self._events.emit(Learned(request.text, names, source.value))

    async def _exchange(self, outcome: Sequence[Any]) -> None:
        """Tell the processes that share the evidence file of an outcome, and hear of theirs."""
        try:
            told = await in_thread(lambda: self._store.exchange(self.trainer.key(), outcome))
        except (StoreError, ValueError) as error:
            _log.error("outcomes are not exchanged with other processes: %s", error)
            return
        self.pool(told)
        self.trainer.note(len(told))  # each came with a label

    def pool(self, outcomes: Iterable[Sequence[Any]]) -> None:
        """Take in outcomes that other processes tell of the same local model."""
        for outcome in outcomes:
            try:
                self.bound.pool(outcome)
            except ValueError as error:
                _log.debug("an outcome of another process is left out: %s", error)

    async def feedback(
        self,
        answer_id: str,
        skills: Iterable[str] | None,
        *,
        right: bool | None,
        scope: str | None,
        recent: Iterable[AnsweredRequest],
    ) -> PastAnswer:
        """A person said what an earlier answer should have been; the answer that it was. Raises
        what ``SemanticRouter.feedback`` does."""
        if not isinstance(answer_id, str):
            raise InvalidRequest(f"feedback: the id is a string, not {type(answer_id).__name__}")
        if right is not None and not isinstance(right, bool):
            raise InvalidRequest(f"feedback: right: expected a boolean, not {type(right).__name__}")
        if (skills is None) == (right is None):
            raise InvalidRequest("feedback: give either skills or right")
        answer = await self._past_answer(answer_id, scope, recent)
        names = answer.skills if skills is None else tuple(sorted(set(skills)))
        unknown = [name for name in names if name not in self._skills]
        if unknown:
            raise InvalidRequest(f"feedback: no skill named {unknown[0]!r} is installed")
        known = self._skills
        labels = [Example(answer.text, names, True, Source.FEEDBACK)]
        if right is False and not names:
            said = await in_thread(lambda: self._store.correction(answer.text, known))
            labels = [taken_back(answer.text)] if said == () else []
        elif right is False:
            labels = [Example(answer.text, (name,), False, Source.FEEDBACK) for name in names]
        elif right and answer.was_question:
            labels = []  # that a question was right says nothing of any skill
        if answer.teaches:
            await in_thread(lambda: self._store.add_many(labels, catalog=known))
            self.trainer.note(len(labels))
            key = normalise(answer.text)
            await self._share_labels(
                {(key, "" if label.right else label.skills[0]) for label in labels}
            )
            if labels and right is not False and self._events.listening:
                self._events.emit(Learned(answer.text, names, Source.FEEDBACK.value))
        # After an upgrade the confidence of an earlier answer says something else.
        if answer.stage in CALIBRATED and answer.version == self._version:
            was_right = answer_of(names) == answer_of(answer.skills) and right is not False
            await self.calibrations.observe(answer.stage, answer.confidence, right=was_right)
        return answer

    async def _share_labels(self, keys: Collection[tuple[str, str]]) -> None:
        """Tell the other processes of labels that this one has kept."""
        if self._peers is not None:
            await self._peers.tell_labels(await in_thread(lambda: self._store.labels(keys)))

    async def take_in(self, labels: Sequence[Label]) -> None:
        """Take in labels of other processes."""
        known = self._skills
        if changed := await in_thread(lambda: self._store.merge(labels, catalog=known)):
            self.trainer.note(changed)

    async def labels(self) -> list[list[Any]]:
        """Every label, for another process."""
        return await in_thread(self._store.labels)

    async def _past_answer(
        self, answer_id: str, scope: str | None, recent: Iterable[AnsweredRequest]
    ) -> PastAnswer:
        found = next((answer for known, answer in recent if known == answer_id), None)
        if found is None and answer_id.isascii():  # ids are; SQLite takes no lone surrogates
            found = await in_thread(lambda: self._store.answer(answer_id))
        if found is None or found.scope != scope:  # one message, which tells nothing of others
            of = " without a scope" if scope is None else f" in the scope {scope!r}"
            raise UnknownAnswer(f"feedback: no answer {answer_id!r} is remembered{of}")
        return found

    def record_of(self, result: RoutingResult, request: Request, context: str) -> AnsweredRequest:
        """What feedback on a result, as it is given, needs, and not its trace: thousands are
        remembered, and full garbage collections look through all of it. Its cache entries are filed
        under ``context``."""
        cached = result.from_cache  # its trace is the caches' own
        return result.id, PastAnswer(
            text=request.text,
            skills=result.selected_skills,
            context=context,
            stage=result.stage.value if cached else said_by(result),
            confidence=result.confidence if cached else own_confidence(result),
            teaches=self.teaches(request),
            scope=request.scope,
            was_question=result.decision is Decision.CLARIFY,
            version=self._version,
        )

    async def keep_records(self, recent: Iterable[AnsweredRequest]) -> None:
        """Let feedback be given on these answers when the router is closed, as far as they can be
        written: a full disk must keep no router from closing."""
        answers = dict(recent)
        try:
            if answers:
                await in_thread(lambda: self._store.keep_answers(answers))
        except StoreError as error:
            _log.error("feedback on the latest answers can no longer be given: %s", error)

    async def calibrate(self, outcomes: Iterable[tuple[str, str, float, bool]]) -> None:
        """Take in (row, stage, its own confidence, whether it was right), and keep what is fitted.
        A row, which is any name of a labelled request over these skills, counts once."""
        await self.calibrations.take_in(outcomes)
        await self._save()

    def status(self) -> dict[str, Any]:
        """What is known, as plain JSON types. ``others`` are processes over the same skills that
        had begun before and have accounts of the bound of their own."""
        model, report = self.trainer.model, self.trainer.report
        return {
            "examples": {source.value: n for source, n in self._store.counts().items()},
            "model": None
            if model is None
            else {
                "version": model.version,
                "examples": model.examples,
                "serves": self._serves(model),
            },
            "last_training": None if report is None else asdict(report),
            "others": 0 if self._place is None else self._place.number,
            "bound": {"max_error": self.bound.max_error, **asdict(self.bound.status())},
            "calibrations": self.calibrations.status(),
        }

    def _serves(self, model: LocalModel) -> bool:
        """Whether requests may be answered by the model. With an LLM it must keep within the error
        bound; without one its examples must be known to cover something."""
        if self.trainer.calibrates:
            return model.coverage is not None
        return self.bound.status().threshold > 0

    async def aclose(self) -> None:
        """Stop training, keep the account, and close the evidence."""
        try:
            await self._background.aclose()  # first: it tells the trainer of labels
            await self.trainer.aclose()
            await self._save()
            await in_thread(self._drop_old_catalogs)
        except StoreError as error:
            _log.error("what was learnt last is not kept: %s", error)
        finally:
            await in_thread(self._store.close)
            if self._place is not None:
                self._place.release()

    async def _refit(self, fitting: Callable[[], FittedRisk]) -> None:
        self.bound.adopt(await in_thread(fitting))

    async def _save(self) -> None:
        known, place = self._known, self._place
        if known is None or place is None or not self._taken_up:
            return
        known = replace(known, skills=self._described, used=self._store.now)
        states: dict[str, Any] = {
            self._own(known, "calibrations"): self.calibrations.to_dict(),
            self._own(known, "calibrated_rows"): self.calibrations.rows,
            known.state: known.to_dict(),
            place.state: self.bound.to_dict(),
        }
        await in_thread(lambda: self._store.keep_states(states))

    def _drop_old_catalogs(self) -> None:
        """In a thread."""
        known = sorted(self._catalogs(), key=lambda one: one.used, reverse=True)
        for one in known[MAX_CATALOGS:]:
            self._store.drop_states(f"/{one.key}")
            forget_places(self._store.folder, one.key)


def _depends_on_text_alone(request: Request) -> bool:
    """Whether the answer depends on the request's text alone: not on earlier turns, nor on which
    skills were allowed."""
    return request.available is None and not request.history
