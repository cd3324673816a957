"""Everything that a router learns, behind one object that the cascade uses.

``check`` decides whether the local model may answer a request without the LLM, ``learn`` stores a
label, ``feedback`` a correction, and ``calibrations`` calibrate the confidences of the stages.
Models are fitted in threads. A label is on the disk when ``learn`` returns.
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
from router.errors import EncoderError, InvalidRequest, StoreError, UnknownAnswer
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
from router.learning.coverage import FULLY_COVERED_FROM, uncovered_share
from router.learning.evidence import (
    EvidenceStore,
    Example,
    PastAnswer,
    Source,
    retraction,
    self_description,
)
from router.learning.examples import shipped_examples, written_examples
from router.learning.local import MAX_RANKED, LocalModel, answer_of, skills_of
from router.learning.peers import Label, Peers
from router.learning.stage_calibrations import (
    CALIBRATED,
    StageCalibrations,
    confidence_source,
    own_confidence,
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
"""The id of an answer, and what is needed to take feedback on it."""
SAVE_EVERY: Final = 50
"""The account of the error bound is saved after this many outcomes. A crash loses what came after
the last save, but no label."""
MAX_CHANGED_SHARE: Final = 0.1
"""Where more than this share of the skills changes, the calibrations are dropped."""


@dataclass(frozen=True, slots=True)
class CalibratedAnswer:
    """The local model's answer to one request, with the calibrated probability that it is right.

    Attributes:
        skills: the likeliest answer; empty where this is that no skill fits.
        confidence: P(the answer is right), in [0, 1].
        coverage: P(the request is covered by the model's examples), see ``coverage.py``; 1 where an
            LLM is configured, because the risk model then estimates ``confidence`` directly.
        nothing: P(no skill fits), according to the model.
        ranked: the likeliest answers with their probabilities, best first.
        examples: the number of examples of the model.
        examples_of_answer: the number of examples of the likeliest answer.
        outcomes: the number of outcomes or held-out examples that the confidence was fitted to.
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
        """This answer without alternatives that a catalog does not offer; None where it does not
        offer the answer itself. The model may have been fitted for other skills."""

        def offers(names: Sequence[str]) -> bool:
            return all(catalog.offers(name) for name in names)

        if not offers(self.skills):
            return None
        return replace(self, ranked=tuple(row for row in self.ranked if offers(row[0])))


@dataclass(frozen=True, slots=True)
class EvidenceCheck:
    """Whether the local model may answer a request without the LLM.

    Attributes:
        bound: the decision of the error bound.
        answer: the local model's answer; None where there is none, where its risk is unknown, or
            where it names a skill that is not offered.
    """

    bound: BoundDecision
    answer: CalibratedAnswer | None

    def evidence(self) -> dict[str, EvidenceValue]:
        """The figures behind the decision, for the trace."""
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
    """The labels, local model, error bound and calibrations of one router. Belongs to its event
    loop.

    The local model gives no answer to a request that cannot be encoded. Methods that read or store
    labels raise ``StoreError`` where the file cannot be used.

    Attributes:
        version: what the meaning of a confidence depends on: ``DECISION_VERSION`` and the encoder.
            Calibrations and an account of the error bound are continued by the same version only.
    """

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
        """Nothing is restored or trained yet; ``begin`` does it.

        Args:
            store: the labels; closed with the learner.
            has_llm: whether an LLM is configured, whose answers show whether local answers are
                right.
            version: ``DECISION_VERSION``.
            events: every label that is stored emits an event.
            peers: the other processes of a cluster; None without a cluster.
        """
        self._store = store
        self._settings = settings
        self.version = f"{version}/{encoder.identity}"
        self._known_catalog: KnownCatalog | None = None
        self._events = Events() if events is None else events
        self._has_llm = has_llm
        self._skills: dict[str, SkillManifest] = {}
        self._described: dict[str, str] = {}
        self._digest_cache: tuple[dict[str, str] | None, str] = None, ""  # for one ``_described``
        self.trainer = Trainer(
            encoder,
            store,
            self._examples,
            skills_digest=self._skills_digest,
            calibrates=not has_llm,
            peers=peers,
        )
        self._peers = peers
        self._account: AccountPlace | None = None
        self._restored = False  # until the earlier state is restored, it must not be overwritten
        self.bound = ErrorBound(settings.max_error, seed=settings.seed)
        self.calibrations = StageCalibrations()
        self._unsaved = 0
        self._background = BackgroundTasks(_log)

    def _examples(self) -> list[Example]:
        """The examples to fit the local model to: first those of the skills' files, then the
        labels, oldest first. Called in a thread.

        Requests of the enrichment are used only with an LLM, which shows whether the answers that
        they lead to are right. Without an LLM, retrieval uses them already.
        """
        skills = dict(sorted(self._skills.items()))
        written = written_examples(skills.values()) if self._has_llm else []
        return [*written, *shipped_examples(skills.values()), *self._store.examples(skills)]

    def _skills_digest(self) -> str:
        """A digest of the skills' descriptions. Called in a thread."""
        described = self._described
        if self._digest_cache[0] is not described:
            text = json.dumps(described, sort_keys=True)
            self._digest_cache = described, hashlib.sha256(text.encode()).hexdigest()
        return self._digest_cache[1]

    async def begin(self, catalog: Catalog) -> None:
        """Restore the state of earlier runs, and begin to train in the background."""
        self._skills = {skill.name: skill for skill in catalog.routable}
        self._described = {name: self_description(one) for name, one in self._skills.items()}
        roots = tuple(map(str, catalog.roots))
        known = await in_thread(lambda: recognise(self._catalogs(), roots, self._described))
        self._known_catalog = replace(known, roots=roots)
        place = self._account = await in_thread(lambda: AccountPlace(self._store.folder, known.key))
        names = (
            place.state,
            self._state_name(known, "calibrations"),
            self._state_name(known, "calibrated_rows"),
        )
        bound, calibrations, rows = await in_thread(
            lambda: [self._store.state(name) for name in names]
        )
        try:
            self.calibrations = StageCalibrations(calibrations, rows or ())
            if bound is not None and bound["version"] == self.version:
                self.bound.restore(bound["account"])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            _log.warning(
                "the error bound and the calibrations begin anew, and the examples are kept: "
                "what was stored cannot be used (%s)",
                error,
            )
            self.bound = ErrorBound(self._settings.max_error, seed=self._settings.seed)
            self.calibrations = StageCalibrations()
        self._restored = True
        self._apply_changes(known.skills, self._described, {*known.skills, *self._described})
        await self.trainer.begin()

    def _catalogs(self) -> list[KnownCatalog]:
        """The catalogs that the evidence file knows. Called in a thread."""
        found = []
        for key, state in self._store.states(CATALOGS).items():
            try:
                found.append(KnownCatalog.from_dict(key, state))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                _log.warning("a catalog that was learnt about is not readable: %s", error)
        return found

    def _state_name(self, known: KnownCatalog, name: str) -> str:
        """The name of a state that belongs to a catalog and to this version of the decision."""
        return state_of(f"{name}/{self.version}", known.key)

    def catalog_changed(self, change: CatalogChange) -> None:
        """The catalog has changed. Labels of changed skills get a lower weight, and the local model
        does not answer until a new one has been fitted for these skills."""
        before, after = self._described, change.after
        # Copies, because threads may be reading the old ones.
        skills, described = self._skills.copy(), before.copy()
        for name in change.names:
            skills.pop(name, None)
            described.pop(name, None)
            if after.offers(name):
                skills[name] = after.get(name)
                described[name] = self_description(skills[name])
        self._skills, self._described = skills, described
        if self._apply_changes(before, described, change.names):
            self.trainer.restart()

    def _apply_changes(
        self, before: Mapping[str, str], after: Mapping[str, str], names: Iterable[str]
    ) -> bool:
        """Whether some of these skills changed. Tells error bound and calibrations of it."""
        changed = {name for name in names if before.get(name) != after.get(name)}
        if not changed:
            return False
        self.bound.catalog_changed(changed)
        if len(changed) > MAX_CHANGED_SHARE * max(len(before), 1):
            self.calibrations.drop()
        return True

    def teaches(self, request: Request) -> bool:
        """Whether the answer to this request may become a label."""
        return _depends_on_text_alone(request) and (
            request.scope is None or self._settings.share_scopes
        )

    async def correction(self, request: Request) -> tuple[str, ...] | None:
        """The skills that a person named for this very request, in any process that shares the
        evidence; None where nobody did. The caches hold such answers, too, but only for a time."""
        if not _depends_on_text_alone(request) or not self._store.may_be_corrected(request.text):
            return None
        known = self._skills
        try:
            return await in_thread(lambda: self._store.correction(request.text, known))
        except StoreError as error:
            _log.error("whether the request was corrected cannot be read: %s", error)
            return None

    async def check(self, request: Request, index: SkillIndex) -> EvidenceCheck | None:
        """Whether the local model may answer without the LLM; None where the answer does not depend
        on the text alone, or where the error bound allows no local answers."""
        if self._settings.max_error == 0 or not _depends_on_text_alone(request):
            return None
        model = self.trainer.model
        if model is None or not self.trainer.current:
            return EvidenceCheck(self.bound.decide(None), None)
        try:
            vector = await index.reader.vector(request.text)
        except EncoderError:  # told by the encoder itself
            return EvidenceCheck(self.bound.decide(None), None)
        local = model.answer(request.text, vector)
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
        """The local model's answer where no LLM is configured; None where there is no model, or
        none with a fitted coverage.

        Args:
            retrieved: the fused scores of the skills that retrieval ranks highest.
            fits: retrieval's probability that some skill fits, in [0, 1].
        """
        model = self.trainer.model
        if model is None or model.coverage is None or not _depends_on_text_alone(request):
            return None
        try:
            vector = await index.reader.vector(request.text)
        except EncoderError:
            return None
        scores = model.scores(request.text, vector)
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
        """A digest of the examples that the local model was fitted to; empty while there is no
        model that may answer without an LLM."""
        model = self.trainer.model
        return "" if model is None or model.coverage is None else model.evidence_digest

    def uncovered_skills(self) -> list[str]:
        """The skills that have too few examples for the local model to cover them."""
        covered = {} if self.trainer.model is None else self.trainer.model.examples_of
        return [name for name in sorted(self._skills) if covered.get(name, 0) < FULLY_COVERED_FROM]

    async def learn(
        self,
        request: Request,
        skills: Iterable[str],
        *,
        source: Source,
        check: EvidenceCheck | None = None,
    ) -> None:
        """Learn from an answer of the LLM: whether the local answer was right, and, for a request
        that ``teaches``, a label. The label is on the disk when this returns.

        Raises:
            StoreError: the label cannot be stored.
        """
        names = tuple(sorted(skills))
        if check is not None and check.bound.answer is not None:
            right = check.bound.answer == answer_of(names)
            self.bound.observe(check.bound, right=right)
            outcome = self.bound.outcome_of(check.bound, right=right)
            if self._peers is not None and outcome is not None:
                self._peers.tell_outcome(outcome)
            elif outcome is not None:
                self._background.run(self._exchange_outcome(outcome))
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

    async def _exchange_outcome(self, outcome: Sequence[Any]) -> None:
        """Share an outcome with the processes that use the same evidence file, and take in
        theirs."""
        try:
            outcomes = await in_thread(lambda: self._store.exchange(self.trainer.key(), outcome))
        except (StoreError, ValueError) as error:
            _log.error("outcomes are not exchanged with other processes: %s", error)
            return
        self.pool(outcomes)
        self.trainer.note(len(outcomes))  # each outcome came with a label in the file

    def pool(self, outcomes: Iterable[Sequence[Any]]) -> None:
        """Take in outcomes of the same local model in other processes."""
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
        """Learn from a person's feedback on an earlier answer. Returns that answer, and raises what
        ``SemanticRouter.feedback`` does."""
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
            correction = await in_thread(lambda: self._store.correction(answer.text, known))
            labels = [retraction(answer.text)] if correction == () else []
        elif right is False:
            labels = [Example(answer.text, (name,), False, Source.FEEDBACK) for name in names]
        elif right and answer.was_question:
            labels = []  # that it was right to ask back says nothing about any skill
        if answer.teaches:
            await in_thread(lambda: self._store.add_many(labels, catalog=known))
            self.trainer.note(len(labels))
            key = normalise(answer.text)
            await self._share_labels(
                {(key, "" if label.right else label.skills[0]) for label in labels}
            )
            if labels and right is not False and self._events.listening:
                self._events.emit(Learned(answer.text, names, Source.FEEDBACK.value))
        # The confidence of an answer of another version may have had another meaning.
        if answer.stage in CALIBRATED and answer.version == self.version:
            was_right = answer_of(names) == answer_of(answer.skills) and right is not False
            await self.calibrations.observe(answer.stage, answer.confidence, right=was_right)
        return answer

    async def _share_labels(self, keys: Collection[tuple[str, str]]) -> None:
        """Send labels that this process has stored to the others."""
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
        if found is None and answer_id.isascii():  # as all ids; SQLite rejects lone surrogates
            found = await in_thread(lambda: self._store.answer(answer_id))
        # The same message for both, so that it reveals nothing about other scopes.
        if found is None or found.scope != scope:
            of = " without a scope" if scope is None else f" in the scope {scope!r}"
            raise UnknownAnswer(f"feedback: no answer {answer_id!r} is remembered{of}")
        return found

    def record_of(self, result: RoutingResult, request: Request, context: str) -> AnsweredRequest:
        """What is needed to take feedback on a result, whose cache context is ``context``. It
        leaves out the trace, because thousands of records are remembered and every full garbage
        collection would go through them."""
        cached = result.from_cache  # then the trace does not say whose confidence it is
        return result.id, PastAnswer(
            text=request.text,
            skills=result.selected_skills,
            context=context,
            stage=result.stage.value if cached else confidence_source(result),
            confidence=result.confidence if cached else own_confidence(result),
            teaches=self.teaches(request),
            scope=request.scope,
            was_question=result.decision is Decision.CLARIFY,
            version=self.version,
        )

    async def keep_records(self, recent: Iterable[AnsweredRequest]) -> None:
        """Store records, so that feedback can be given after the router is closed. A failure is
        only logged, because a full disk must not keep a router from closing."""
        answers = dict(recent)
        try:
            if answers:
                await in_thread(lambda: self._store.keep_answers(answers))
        except StoreError as error:
            _log.error("feedback on the latest answers can no longer be given: %s", error)

    async def calibrate(self, outcomes: Iterable[tuple[str, str, float, bool]]) -> None:
        """Fit the calibrations to more outcomes, and store them.

        Args:
            outcomes: for each: the row, the stage, its own confidence, and whether it was right. A
                row is any name for a labelled request over these skills; each row counts once.
        """
        await self.calibrations.add_outcomes(outcomes)
        await self._save()

    def status(self) -> dict[str, Any]:
        """The state of learning, as plain JSON types. ``others`` counts the processes over the same
        skills that began earlier; each has an account of the error bound of its own."""
        model, fitted_last = self.trainer.model, self.trainer.fitted_last
        return {
            "examples": {source.value: n for source, n in self._store.counts().items()},
            "model": None
            if model is None
            else {
                "version": model.version,
                "examples": model.examples,
                "serves": self._serves(model),
            },
            "last_training": None if fitted_last is None else {"shipped": fitted_last},
            "others": 0 if self._account is None else self._account.number,
            "bound": {"max_error": self.bound.max_error, **asdict(self.bound.status())},
            "calibrations": self.calibrations.status(),
        }

    def _serves(self, model: LocalModel) -> bool:
        """Whether the model may answer requests. With an LLM, the error bound must allow some risk;
        without one, the model must have a fitted coverage."""
        if self.trainer.calibrates:
            return model.coverage is not None
        return self.bound.status().threshold > 0

    async def aclose(self) -> None:
        """Stop training, save the account, and close the evidence."""
        try:
            await self._background.aclose()  # first, because it may start the trainer
            await self.trainer.aclose()
            await self._save()
            await in_thread(self._drop_old_catalogs)
        except StoreError as error:
            _log.error("what was learnt last is not kept: %s", error)
        finally:
            await in_thread(self._store.close)
            if self._account is not None:
                self._account.release()

    async def _refit(self, fitting: Callable[[], FittedRisk]) -> None:
        self.bound.adopt(await in_thread(fitting))

    async def _save(self) -> None:
        known, place = self._known_catalog, self._account
        if known is None or place is None or not self._restored:
            return
        known = replace(known, skills=self._described, used=self._store.now)
        states: dict[str, Any] = {
            self._state_name(known, "calibrations"): self.calibrations.to_dict(),
            self._state_name(known, "calibrated_rows"): self.calibrations.rows,
            known.state: known.to_dict(),
            place.state: {"version": self.version, "account": self.bound.to_dict()},
        }
        await in_thread(lambda: self._store.keep_states(states))

    def _drop_old_catalogs(self) -> None:
        """Forget all but the catalogs that were used last. Called in a thread."""
        known = sorted(self._catalogs(), key=lambda one: one.used, reverse=True)
        for one in known[MAX_CATALOGS:]:
            self._store.drop_states(f"/{one.key}")
            forget_places(self._store.folder, one.key)


def _depends_on_text_alone(request: Request) -> bool:
    """Whether the answer depends on the text of the request alone, and not on earlier turns or on
    the available skills."""
    return request.available is None and not request.history
