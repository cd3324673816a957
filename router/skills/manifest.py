"""Reading one ``SKILL.md``: the Agent Skills format, read leniently and reported exactly.

A large share of the skills in the wild break the format in some way, so whatever can be understood
is loaded, and a diagnostic says what was odd and how it was read. Only four things keep a skill
from being loaded: it is too large, it has no frontmatter, its frontmatter is not a YAML mapping
even after repair, or it has no description, without which it cannot be found.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Self

from router.bounded.files import Unreadable, read_bounded
from router.errors import ManifestError, SourceError
from router.skills.diagnostics import Diagnostic, Report, short
from router.skills.enrichment import Enrichment
from router.skills.frontmatter import Node, distinct, on_one_line, printable, split_manifest

MAX_MANIFEST_BYTES: Final = 1 << 20
MAX_KEPT_CHARACTERS: Final = 4096
"""Where an over-long text field is cut."""
MAX_NAMED_KEYS: Final = 10
"""So many keys are named where none is a description."""
MAX_KEPT_NAME: Final = 200
MARK_BYTES: Final = 8

NAME_PATTERN: Final = "[a-z0-9]+(-[a-z0-9]+)*"
NAME_LIMIT: Final = 64
"""What the format lets a name be."""
_LIMITS: Final = {"description": 1024, "compatibility": 500}

_FIELDS: Final = frozenset(
    (
        "name",
        "description",
        "license",
        "compatibility",
        "metadata",
        "allowed-tools",
        "disable-model-invocation",
    )
)
HINTS: Final = {
    **dict.fromkeys(
        ("routing-keywords", "keywords", "keyword", "triggers", "trigger", "tags", "tag"),
        "routing-keywords",
    ),
    **dict.fromkeys(("intents", "intent"), "intents"),
    **dict.fromkeys(("examples", "example"), "examples"),
    "generic": "generic",
}
"""Spellings of routing hints, and the key under ``metadata`` where each belongs."""

_NO_TEXTS: Final[Mapping[str, str]] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillManifest:
    """One skill as its ``SKILL.md`` describes it. Deeply immutable.

    Attributes:
        name: at most 200 characters, on one line; the folder's name where the file gives none.
        description: what the skill does and when to use it; never empty, at most 4,096 characters.
        license: as written.
        compatibility: what the skill needs from its surroundings, as written.
        metadata: every key under ``metadata`` as text, in the order of the file.
        extra: every top-level key that the format does not know, as text.
        allowed_tools: tools that the skill may use without asking.
        routing_keywords: words and phrases that point to the skill.
        intents: what a user wants when the skill is right.
        examples: whole requests that the skill answers.
        generic: a fall-back skill; alone it makes a weak route.
        disable_model_invocation: loaded, but never offered for routing.
        body: the instructions, in Markdown, without blank lines around them.
        path: the file. For a skill without a file, a path that names its source and leads nowhere.
        digest: SHA-256 of the file's bytes, in hex; of all texts, for a skill without a file.
        diagnostics: what is odd about the file.
        enrichment: the requests that an LLM has written for the skill; None when there are none.
            The catalog sets it, because it stands in a file of its own.
        origin: the name of the source of a skill without a file; empty for a skill with one.
        payload: the program's own object, handed back as it is; not compared.
        mark: eight bytes that stand for the name and all that routing reads. What is kept of a
            catalog to tell later which skills have changed since.
    """

    name: str
    description: str
    license: str | None = None
    compatibility: str | None = None
    metadata: Mapping[str, str] = field(default_factory=lambda: _NO_TEXTS, hash=False)
    extra: Mapping[str, str] = field(default_factory=lambda: _NO_TEXTS, hash=False)
    allowed_tools: tuple[str, ...] = ()
    routing_keywords: tuple[str, ...] = ()
    intents: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    generic: bool = False
    disable_model_invocation: bool = False
    body: str = field(repr=False)
    path: Path
    digest: str
    diagnostics: tuple[Diagnostic, ...] = ()
    enrichment: Enrichment | None = None
    origin: str = ""
    payload: object = field(default=None, repr=False, compare=False)
    mark: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        content = f"{self.name}\0{self.routing_digest}".encode()
        mark = hashlib.blake2b(content, digest_size=MARK_BYTES).digest()
        object.__setattr__(self, "mark", mark)

    @property
    def routing_digest(self) -> str:
        """Names everything that routing reads of the skill: its file, and its enrichment."""
        if self.enrichment is None:
            return self.digest
        return f"{self.digest}+{self.enrichment.fingerprint}"

    @property
    def enrichment_is_stale(self) -> bool:
        """Whether the enrichment was written for another version of the skill's file."""
        return (
            self.enrichment is not None
            and self.enrichment.digest is not None
            and self.enrichment.digest != self.digest
        )

    @property
    def has_file(self) -> bool:
        """Whether ``path`` is a file on disk, with the skill's other files beside it."""
        return not self.origin

    @classmethod
    def in_memory(
        cls,
        name: str,
        description: str,
        *,
        body: str = "",
        routing_keywords: Iterable[str] = (),
        intents: Iterable[str] = (),
        examples: Iterable[str] = (),
        generic: bool = False,
        payload: object = None,
        origin: str = "memory",
        version: str = "",
    ) -> Self:
        """A skill that has no file. Texts are cut and cleaned as those of a file are.

        Args:
            name: any text on one line, at most 200 characters.
            description: what the skill does and when to use it.
            body: the instructions, or whatever else is worth searching.
            routing_keywords, intents, examples, generic, payload: see the attributes.
            origin: the name of the source that will hold it.
            version: what else makes it another skill when it differs; part of the digest.

        Raises:
            SourceError: the name or the description is missing or no text.
        """
        if not isinstance(name, str) or not (tidy := on_one_line(name)):
            raise SourceError(origin, "", f"a name is wanted, not {short(repr(name))}")
        if len(tidy) > MAX_KEPT_NAME:
            raise SourceError(
                origin, f"{tidy[:60]}...", f"the name is over {MAX_KEPT_NAME} characters"
            )
        if not isinstance(description, str) or not (shown := printable(description).strip()):
            raise SourceError(origin, tidy, "there is no description: nothing to route by")
        description = shown[:MAX_KEPT_CHARACTERS].rstrip()
        body = printable(body[:MAX_MANIFEST_BYTES]).strip()
        hints = tuple(distinct(texts) for texts in (routing_keywords, intents, examples))
        content = json.dumps([tidy, description, hints, generic, body, version])
        return cls(
            name=tidy,
            description=description,
            routing_keywords=hints[0],
            intents=hints[1],
            examples=hints[2],
            generic=generic,
            body=body,
            path=Path(f"<{origin}>", tidy),
            digest=hashlib.sha256(content.encode()).hexdigest(),
            origin=origin,
            payload=payload,
        )


def read_manifest_bytes(path: Path) -> bytes:
    """The bytes of a ``SKILL.md``, read no further than the size limit.

    Raises:
        ManifestError: not a regular file, unreadable, or over 1 MiB.
    """
    try:
        return read_bounded(path, most=MAX_MANIFEST_BYTES)
    except Unreadable as error:
        raise ManifestError(path, 0, str(error)) from error


def manifest_digest(data: bytes) -> str:
    """SHA-256 of a file's bytes, in hex."""
    return hashlib.sha256(data).hexdigest()


def parse_manifest(data: bytes, *, path: Path) -> SkillManifest:
    """Parse the bytes of a ``SKILL.md``; ``path`` gives the folder's name and goes into reports.

    Raises:
        ManifestError: the skill cannot be loaded; nothing else is raised, whatever the bytes.
    """
    if len(data) > MAX_MANIFEST_BYTES:
        raise ManifestError(path, 0, f"larger than {MAX_MANIFEST_BYTES:,} bytes")
    report = Report(path)
    top, body, line = split_manifest(data, report)
    fields, hints, extra = _sort_keys(top, report)
    metadata = _read_metadata(fields.get("metadata"), hints, report)
    if not body:
        report.warn(line, "empty-body", "there are no instructions after the frontmatter")
    return SkillManifest(
        name=_read_name(fields.get("name"), report),
        description=_read_description(fields, extra, report),
        license=_read_text(fields, "license", report) or None,
        compatibility=_read_text(fields, "compatibility", report) or None,
        metadata=MappingProxyType(metadata),
        extra=MappingProxyType(extra),
        allowed_tools=_read_tools(fields.get("allowed-tools"), report),
        routing_keywords=_read_items(hints, "routing-keywords", report, separators=",\n"),
        intents=_read_items(hints, "intents", report, separators=",\n"),
        examples=_read_items(hints, "examples", report, separators="\n"),
        generic=any(_read_flag(node, "generic", report) for node in hints["generic"]),
        disable_model_invocation="disable-model-invocation" in fields
        and _read_flag(fields["disable-model-invocation"], "disable-model-invocation", report),
        body=body,
        path=path,
        digest=manifest_digest(data),
        diagnostics=report.diagnostics,
    )


def _sort_keys(
    top: dict[str, Node], report: Report
) -> tuple[dict[str, Node], dict[str, list[Node]], dict[str, str]]:
    """Top-level keys as known fields, misplaced routing hints, and the rest."""
    fields: dict[str, Node] = {}
    hints: dict[str, list[Node]] = {target: [] for target in HINTS.values()}
    extra: dict[str, str] = {}
    for key, node in top.items():
        known = canonical(key)
        if known in _FIELDS:
            if key != known:
                report.warn(node.line, "key-spelling", f"{short(key)} is read as {known}")
            if key == known or known not in top:
                fields[known] = node
        elif known in HINTS:
            target = HINTS[known]
            message = f"the hint {short(key)} belongs under metadata, as {target}"
            report.info(node.line, "misplaced-hint", message)
            hints[target].append(node)
        else:
            report.info(node.line, "unknown-key", f"the format has no key {short(key)}")
            extra[key] = _as_text(node)
    return fields, hints, extra


def _read_metadata(
    node: Node | None, hints: dict[str, list[Node]], report: Report
) -> dict[str, str]:
    """Metadata as texts; its routing hints are put into ``hints``, before the misplaced ones."""
    if node is None or node.value is None:
        return {}
    if not isinstance(node.value, dict):
        report.warn(node.line, "metadata-not-keys", "metadata is not a list of keys; left out")
        return {}
    found: dict[str, list[Node]] = {target: [] for target in hints}
    for key, child in node.value.items():
        if (oddity := _not_text(child)) is not None:
            message = f"{short(f'metadata.{key}')} {oddity}"
            report.info(child.line, "metadata-not-text", message)
        if (target := HINTS.get(canonical(key))) is not None:
            if key != target:
                message = f"{short(f'metadata.{key}')} is read as metadata.{target}"
                report.info(child.line, "hint-spelling", message)
            found[target].append(child)
    for target, nodes in found.items():
        hints[target][:0] = nodes
    return {key: _as_text(child) for key, child in node.value.items()}


def _read_name(node: Node | None, report: Report) -> str:
    # A folder's name may hold what no text can: bytes that are no UTF-8, line breaks.
    folder = on_one_line(report.path.parent.name)[:MAX_KEPT_NAME]
    name = "" if node is None else on_one_line(_as_text(node))
    if node is None or not name:
        if not folder:
            raise ManifestError(report.path, 0, "there is no name, and no folder to take it from")
        report.warn(1, "missing-name", f"there is no name; the folder's is taken: {short(folder)}")
        return folder
    if (oddity := _not_text(node)) is not None:
        report.warn(node.line, "not-text", f"name {oddity}")
    if len(name) > NAME_LIMIT or not re.fullmatch(NAME_PATTERN, name):
        cut = f"; cut at {MAX_KEPT_NAME}" if len(name) > MAX_KEPT_NAME else ""
        rule = f"1 to {NAME_LIMIT} lower-case letters, digits and single hyphens{cut}"
        report.warn(node.line, "name-rule", f"the name {short(name)} is not {rule}")
    name = name[:MAX_KEPT_NAME].rstrip()
    if folder not in (name, ""):
        message = f"the name {short(name)} differs from its folder, {short(folder)}"
        report.warn(node.line, "name-not-folder", message)
    return name


def _read_description(fields: dict[str, Node], extra: dict[str, str], report: Report) -> str:
    description = _read_text(fields, "description", report)
    if description:
        return description
    fault, line = "no description: nothing to route by", 0
    if "description" in fields:
        line = fields["description"].line
    elif keys := [short(key) for key in (*fields, *extra)][:MAX_NAMED_KEYS]:
        # It is most often misspelt, or indented, and so part of the value above.
        fault += f"; there are the keys {', '.join(keys)}"
    raise ManifestError(report.path, line, fault)


def _read_text(fields: dict[str, Node], key: str, report: Report) -> str:
    node = fields.get(key)
    if node is None or node.value is None:
        return ""
    text = _as_text(node).strip()
    if (oddity := _not_text(node)) is not None:
        report.warn(node.line, "not-text", f"{key} {oddity}")
    limit = _LIMITS.get(key, MAX_KEPT_CHARACTERS)
    if len(text) > limit:
        cut = f"; cut at {MAX_KEPT_CHARACTERS:,}" if len(text) > MAX_KEPT_CHARACTERS else ""
        message = f"{key} has {len(text):,} characters; at most {limit:,}{cut}"
        report.warn(node.line, "too-long", message)
    return text[:MAX_KEPT_CHARACTERS].rstrip()


def _read_tools(node: Node | None, report: Report) -> tuple[str, ...]:
    """Tool names, split at spaces and commas that are not in brackets: ``Bash(git add:*) Read``."""
    if node is None or node.value is None:
        return ()
    if isinstance(node.value, list):
        report.info(node.line, "not-text", f"allowed-tools {_not_text(node)}")
        return _texts(node, "allowed-tools", report)
    text = _as_text(node)
    tools, depth, start = [], 0, 0
    for i, character in enumerate(text + " "):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth <= 0 and (character == "," or character.isspace()):
            tools.append(text[start:i])
            start = i + 1
    tools.append(text[start:])  # what an unclosed bracket holds
    return distinct(tools)


def _read_items(
    hints: Mapping[str, list[Node]], key: str, report: Report, *, separators: str
) -> tuple[str, ...]:
    items: list[str] = []
    for node in hints[key]:
        if isinstance(node.value, str):
            parts = re.split(f"[{separators}]", node.value)
            items += (part.strip().removeprefix("- ") for part in parts)
        else:
            items += _texts(node, key, report)
    return distinct(items)


def _texts(node: Node, key: str, report: Report) -> tuple[str, ...]:
    """The items of a list as texts; what is nested deeper has no reading as an item."""
    texts: list[str] = []
    left_out = isinstance(node.value, dict)
    for item in node.value if isinstance(node.value, list) else []:
        if isinstance(item.value, str):
            texts.append(item.value)
        elif isinstance(item.value, dict) and len(item.value) == 1:
            # An item such as "- release: tag and push" is a mapping to YAML, a text to its author.
            [(head, rest)] = item.value.items()
            texts.append(f"{head}: {_as_text(rest)}")
            report.info(item.line, "unquoted-item", f"an item of {key} with a colon is not quoted")
        else:
            left_out = left_out or item.value is not None
    if left_out:
        report.warn(node.line, "nested-items", f"nested values in {key} are left out")
    return distinct(texts)


def _read_flag(node: Node, key: str, report: Report) -> bool:
    text = _as_text(node).strip().lower()
    if text not in ("true", "yes", "on", "1", "false", "no", "off", "0", ""):
        report.warn(node.line, "not-a-flag", f"{key} is neither true nor false; read as false")
    return text in ("true", "yes", "on", "1")


def _not_text(node: Node) -> str | None:
    """What is wrong with a value where the format wants a text; None when it is one."""
    if isinstance(node.value, list):
        return "is a list; the format wants one text"
    if isinstance(node.value, dict):
        return "holds keys; the format wants one text"
    if node.value is None:
        return "is empty; the format wants a text"
    return "is no text to other YAML readers; it should be quoted" if node.typed else None


def _as_text(node: Node) -> str:
    """A scalar as written, a list of scalars with commas, anything deeper as JSON."""
    if node.value is None or isinstance(node.value, str):
        return node.value or ""
    if isinstance(node.value, list):
        texts = [child.value for child in node.value if isinstance(child.value, str)]
        if len(texts) == len(node.value):
            return ", ".join(texts)
    return json.dumps(_as_json(node), ensure_ascii=False)


def _as_json(node: Node) -> Any:
    if isinstance(node.value, list):
        return [_as_json(child) for child in node.value]
    if isinstance(node.value, dict):
        return {key: _as_json(child) for key, child in node.value.items()}
    return node.value


def canonical(key: str) -> str:
    """A key as the format spells it: lower case, with hyphens."""
    return "-".join(re.split(r"[\s_-]+", key.strip().lower()))
