"""Every error the router raises, as one tree.

    RouterError
    ├── ConfigurationError      a setting is unknown, malformed or contradicts another
    ├── InvalidRequest          a request (or its history, scope, skills) cannot be routed
    │   ├── InvalidTurn         a turn of its history is of no known form
    │   └── UnknownAnswer       feedback was given on an answer that is not remembered
    ├── ManifestError           a SKILL.md cannot be loaded: path, line, reason
    ├── SourceError             a skill or tool that a program gives cannot be used
    ├── UnknownSkill            a skill was asked for that the catalog does not hold
    ├── StoreError              a file that the router keeps cannot be read or written
    │   └── StoreAway           a database cannot be reached; the same call may succeed later
    ├── ForkedProcess           what was opened before a fork was used in the child
    ├── Overloaded              too many requests wait already
    ├── EncoderError            an encoder cannot be loaded or gave unusable vectors
    ├── UnknownMemory           a memory was asked for that is not stored
    ├── ReadOnlyMemory          a memory must not be written
    ├── LayerError              a memory layer failed or was late, and the caller wanted to know
    ├── MemoryServiceError      a remote memory service gave no usable answer
    └── LLMError                an LLM call gave no usable answer
        ├── LLMUnavailable      no connection, time-out, 429 or 5xx: worth another try
        ├── LLMRejected         the provider refuses the call (key, model, parameters)
        └── LLMAnswerError      an answer came, but it is malformed, cut off, empty or a refusal

``LLMError`` never reaches a caller of ``route``: the LLM stage turns it into a trace entry and the
cascade goes on.
"""

from __future__ import annotations

from collections.abc import Iterable
from copyreg import __newobj__  # type: ignore[attr-defined]
from pathlib import Path
from typing import Final, Self

_MAX_NAME: Final = 200
"""So much of a name is shown that somebody asked for."""


class RouterError(Exception):
    """Root of all errors raised by this package. They can be pickled, so a pool of processes hands
    them to its caller."""

    def __reduce__(self) -> tuple[object, ...]:
        # Exception's own calls the class with the message, in place of what that was made of.
        return __newobj__, (type(self), *self.args), self.__dict__


class ConfigurationError(RouterError):
    """A setting is unknown, malformed or contradicts another one."""


class InvalidRequest(RouterError, ValueError):
    """A request, its history, its scope or its list of skills cannot be routed."""


class InvalidTurn(InvalidRequest):
    """A turn of a request's history is of no known form.

    Attributes:
        position: which one; 0 is the oldest.
        reason: what a turn is, in a sentence.
    """

    def __init__(self, position: int, reason: str) -> None:
        super().__init__(f"history.{position}: {reason}")
        self.position = position
        self.reason = reason


class UnknownAnswer(InvalidRequest):
    """Feedback was given on an answer that is not remembered, or is of another scope."""


class ManifestError(RouterError):
    """A ``SKILL.md`` cannot be loaded.

    Attributes:
        path: the file.
        line: 1-based line of the fault; 0 when the fault is about the whole file.
        reason: what is wrong, in a sentence without the path.
    """

    def __init__(self, path: Path, line: int, reason: str) -> None:
        super().__init__(f"{path}:{line}: {reason}" if line else f"{path}: {reason}")
        self.path = path
        self.line = line
        self.reason = reason


class SourceError(RouterError, ValueError):
    """A skill or a tool that a program gives to a source cannot be used.

    Attributes:
        source: the name of the source.
        entry: the name of the skill or tool, or which one it is; empty when nothing is known of it.
        reason: what is wrong, in a sentence.
    """

    def __init__(self, source: str, entry: str, reason: str) -> None:
        place = f"source {source!r}, {entry!r}" if entry else f"source {source!r}"
        super().__init__(f"{place}: {reason}")
        self.source = source
        self.entry = entry
        self.reason = reason


class _Unknown(RouterError, KeyError):
    """Something was asked for by a name that does not exist.

    Attributes:
        name: the name.
        suggestions: names that do exist and are like it.
    """

    _kind = ""

    def __init__(self, name: str, suggestions: tuple[str, ...] = ()) -> None:
        hint = f"; did you mean {', '.join(suggestions)}?" if suggestions else ""
        super().__init__(f"no {self._kind} named {name!r}{hint}")
        self.name = name
        self.suggestions = suggestions

    def __str__(self) -> str:  # KeyError would show the repr of the message
        return str(self.args[0])


class UnknownSkill(_Unknown):
    """A skill was asked for by a name that the catalog does not hold."""

    _kind = "skill"

    @classmethod
    def among(cls, name: str, names: Iterable[str]) -> Self:
        """The error with up to three of these names that are like the one asked for."""
        from rapidfuzz import fuzz, process

        name = str(name)[:_MAX_NAME]
        close = process.extract(name, list(names), scorer=fuzz.ratio, limit=3, score_cutoff=60)
        return cls(name, tuple(found for found, _, _ in close))


class StoreError(RouterError):
    """A store of the router (cache, index, evidence, memories) cannot be read or written.

    Attributes:
        path: the file or folder; of a database on a server its address, without secrets.
        reason: what is wrong, without the path.
    """

    def __init__(self, path: Path | str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class StoreAway(StoreError):
    """The database of memories cannot be reached; the same call may succeed later."""


class ForkedProcess(RouterError, RuntimeError):
    """A router or memory that a process has used was used in a child that it forked.

    The child has none of its parent's threads, and must not touch its parent's open files.
    """

    def __init__(self, name: str) -> None:
        super().__init__(
            f"this {name} was used before the process forked, and cannot be used in the child: "
            f"use it in the child only, make one there, or start children by spawn"
        )


class Overloaded(RouterError):
    """A request was refused because too many wait already: ask again later.

    Attributes:
        waiting: how many.
    """

    def __init__(self, waiting: int) -> None:
        super().__init__(
            f"{waiting:,} requests are under way already (setting max_pending); ask again later"
        )
        self.waiting = waiting


class EncoderError(RouterError):
    """An encoder cannot be loaded, or gave vectors that cannot be used."""


class UnknownMemory(_Unknown):
    """A memory was asked for by a name that is not stored, or that the scope does not see."""

    _kind = "memory"


class UnknownProposal(UnknownMemory):
    """A proposal was named that does not wait, or that the scope does not see."""

    _kind = "proposal"


class ReadOnlyMemory(RouterError):
    """A memory must not be written: a pattern of the project protects it."""


class LayerError(RouterError):
    """A memory layer failed or was late; raised only where the caller asked for ``strict``.

    Attributes:
        layer: which layer.
    """

    def __init__(self, layer: str, message: str) -> None:
        super().__init__(f"layer {layer}: {message}")
        self.layer = layer


class MemoryServiceError(RouterError):
    """A remote memory service cannot be reached, refuses, or answers what cannot be used."""


class LLMError(RouterError):
    """An LLM call gave no usable answer.

    Attributes:
        provider: which provider was asked, such as ``"openai"``.
    """

    def __init__(self, provider: str, message: str) -> None:
        super().__init__(f"{provider}: {message}")
        self.provider = provider


class LLMUnavailable(LLMError):
    """No connection, a time-out, 429 or 5xx: the same call may succeed later.

    Attributes:
        retry_after: seconds that the provider asked us to wait; None when it did not say.
    """

    def __init__(self, provider: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(provider, message)
        self.retry_after = retry_after


class LLMRejected(LLMError):
    """The provider refuses the call itself: key, model or parameters. Trying again is useless."""


class LLMAnswerError(LLMError):
    """An answer came, but it is malformed, cut off, empty, or a refusal."""
