"""The relevance of a text: the probability that it bears on a query, judged from the two alone.

Scores of different layers cannot be compared: BM25 has no upper bound, and each layer scales its
fused scores in its own way. But to decide whether memory holds an answer at all, and whether
further layers must be read, one needs a number that means the same for every layer. It is a
logistic function of six signals:

* coverage: the share of the query's content words that the text contains, by stems;
* related words: the share of the query's words of which the text contains only a related one
  (``texts/related_words.py``). A word that the query has, too, does not count as one: that somebody
  is allergic to penicillin says nothing of nuts;
* missing names: the share of the query's names, numbers and identifiers that the text does not
  contain. They decide whom or what an answer is about: what is known about E17 says nothing about
  E99;
* another identifier: whether a text names another thing of a kind that the query names by a code or
  a number (``texts/identifiers.py``), such as E99 for E17, or room 12 for room 15;
* another qualifier: whether query and text say differently which of several things they mean, as
  "guest wifi" and "home wifi" do, or name two kinds of one thing, as "husband" and "wife" do. In
  saved questions it is not looked for, because that lost right answers;
* cosine: the similarity of meaning, by the encoder. If a text has several sentences and contains a
  word of the query, the sentence that contains most of the words is compared, too, and the better
  cosine counts, because the other sentences of a note do not make it less relevant. A long text is
  compared by its sections, and a sentence is taken from the best section only: to encode all
  sentences found no more, and would take a larger encoder seconds. If the encoder knows no word of
  one of the two, for example because of another alphabet, the coverage takes the place of the
  cosine: a cosine of 0 would mean that the two have nothing in common.

A query about "the user" is also compared in the first person, and the better cosine counts, because
some memories say "I live in Ghent" and others "The user lives in Ghent". Its words are those of the
query in the first person.

A question that is saved with an item (``texts/questions.py``) is judged in the same way, minus a
penalty, because two questions are always a little alike. The better one of the content and the best
question counts in full, and ``WEAKER_SHARE`` times the evidence of the other is added. If the other
does not fit at all, its evidence is negative; without that part more queries about what was never
saved are answered.

The coefficients were fitted to six people of ``benchmarks/memory_finding.py`` (``develop`` and
``held_out``), with and without saved questions. Examples without an answer were: questions about
what was never saved, questions of another person, and every question without the items that answer
it. These signals gained nothing for people who were left out of the fit: the nearest word by the
encoder; cosines standardised, without their main axes, or of the content words alone; how much
nearer an item is than other people's memories; the worst covered word; how rare or long a word is;
more related words. The kind of answer that a question word asks for gained half a point there, and
lost two on the questions of LoCoMo that nothing answers.

The weights of the three signals of words are the same for every encoder: other weights with MiniLM
gained nothing, nor did the bundled encoder's cosine in addition to MiniLM's. The weight of the
cosine depends on the encoder (``BY_ENCODER``). The bias was chosen so that as many questions
without an answer as possible are answered empty, while one right first answer in a hundred is lost.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final, NamedTuple, Self, TypeAlias

from router.memory.query.rewrite import in_first_person
from router.memory.texts.chunking import CHUNK_CHARACTERS, SENTENCE_BORDER, sections
from router.memory.texts.identifiers import identifiers_in, possible_identifiers_in
from router.memory.texts.related_words import other_kinds, related_to
from router.memory.texts.text_vectors import TextVectors
from router.memory.texts.words import TextWords, content_words, qualified_in, words_of
from router.numeric import logistic
from router.retrieval import onnx_encoder
from router.text import STOPWORDS, stem, tokens

COVERAGE: Final = 4.15
RELATED: Final = 3.9
MISSING_NAMES: Final = -1.75
OTHERWISE_QUALIFIED: Final = -1.5
"""Log-odds, not fitted with the others, that are added to a text that seems to be about another
thing of the kind that is asked for (``_QueryWords.means_another``). With -3 right answers were
lost."""
OTHERWISE_NAMED: Final = -5.0
"""Log-odds, not fitted, that are added to a text that names another thing of the kind that the
query names by a code or a number: more than ``COVERAGE``, because all other words may be the
same."""
WEAKER_SHARE: Final = 0.09
SENTENCE_PENALTY: Final = 0.05
"""Subtracted from the cosine of a sentence, because of many sentences one always fits a bit
better."""


class EncoderCoefficients(NamedTuple):
    """The coefficients that depend on the encoder; ``question_penalty`` is subtracted from the
    evidence of a saved question."""

    bias: float
    cosine: float
    question_penalty: float


BUNDLED: Final = EncoderCoefficients(bias=-6.2, cosine=8.0, question_penalty=1.8)
"""For the bundled encoder, and every one that is not named below."""
MINILM: Final = EncoderCoefficients(bias=-6.4, cosine=8.0, question_penalty=2.6)
BY_ENCODER: Final = {onnx_encoder.MINILM: MINILM}
"""By the encoder's identity."""

MAX_SENTENCES: Final = 200
"""Sentences of one part that are looked at, at most: as many as ``CHUNK_CHARACTERS`` have room
for."""
MAX_PARTS: Final = 125
"""Parts of a long text that are judged, at most. They are enough for the longest item, because two
neighbours that are packed have more than ``CHUNK_CHARACTERS`` together."""

_REFERENCE_LINE: Final = re.compile(r"^.*`mem:[^`]+`.*$", re.MULTILINE)
_MIN_SENTENCE_CHARACTERS: Final = 8
"""Shorter pieces are abbreviations or numbers."""
_WORD: Final = re.compile(r"[^\W_][\w'.-]*")


class Judged(NamedTuple):
    """The judgement on one content.

    Attributes:
        relevance: the probability, in [0, 1], that it bears on the query.
        cosine: the best cosine of its parts and questions with the query, in [-1, 1].
    """

    relevance: float
    cosine: float


Judge: TypeAlias = Callable[[str, Sequence[str], Sequence[Sequence[str]]], list[Judged]]
"""A function such as ``Relevance.of``: of a query, contents, and the questions of each content."""


class Relevance:
    """Judges texts; see the module's text. Threads may share it if they may share the encoder."""

    def __init__(self, vectors: TextVectors) -> None:
        self._vectors = vectors
        self._coefficients = BY_ENCODER.get(vectors.identity, BUNDLED)

    def of(
        self, query: str, contents: Sequence[str], questions: Sequence[Sequence[str]] = ()
    ) -> list[Judged]:
        """The judgement on each content with its questions. Of a long content the best section
        counts.

        Raises:
            EncoderError: the encoder cannot be reached or gave unusable vectors.
        """
        # Parts and questions are pairs of the number of their content and a text.
        parts = [(n, part) for n, content in enumerate(contents) for part in parts_of(content)]
        saved = [(n, question) for n, some in enumerate(questions) for question in some]
        if not parts:
            return []
        first_person = in_first_person(query)
        query_words = _QueryWords.of(first_person)
        judged = [*parts, *saved]
        text_words = [words_of(text) for _, text in judged]
        signals = [query_words.signal(words) for words in text_words]
        for place, (_, part) in enumerate(parts):
            if query_words.means_another(part, text_words[place]):
                signals[place] += OTHERWISE_QUALIFIED
        for place, (_, text) in enumerate(judged):
            if query_words.names_another(text, text_words[place]):
                signals[place] += OTHERWISE_NAMED
        best_part: dict[int, int] = {}  # of each content, the place of the part with most words
        for place, (number, _) in enumerate(parts):
            if signals[place] > signals[best_part.setdefault(number, place)]:
                best_part[number] = place
        best_sentence = {
            place: max(sentences, key=lambda one: query_words.signal(words_of(one)))
            for place in best_part.values()
            if signals[place] > 0 and (sentences := sentences_of(parts[place][1]))
        }
        encoded = [query, first_person, *(text for _, text in judged), *best_sentence.values()]
        vectors = self._vectors.of(encoded)
        cosines = (vectors[2:] @ vectors[:2].T).max(axis=1)
        for place, cosine in zip(best_sentence, cosines[len(judged) :], strict=True):
            cosines[place] = max(cosines[place], cosine - SENTENCE_PENALTY)
        query_is_known = vectors[:2].any()  # a vector of zeros: the encoder knows no word
        coefficients = self._coefficients
        content_evidence = [-math.inf] * len(contents)
        question_evidence: dict[int, float] = {}
        best_cosine = [-1.0] * len(contents)
        for place, (number, _) in enumerate(judged):
            cosine = float(cosines[place])
            best_cosine[number] = max(best_cosine[number], cosine)
            both_are_known = query_is_known and vectors[2 + place].any()
            similarity = cosine if both_are_known else query_words.coverage(text_words[place])
            evidence = signals[place] + coefficients.cosine * similarity
            if place < len(parts):
                content_evidence[number] = max(content_evidence[number], evidence)
            else:
                evidence -= coefficients.question_penalty
                before = question_evidence.get(number, evidence)
                question_evidence[number] = max(before, evidence)
        for number, evidence in question_evidence.items():
            lower, higher = sorted((evidence, content_evidence[number]))
            content_evidence[number] = higher + WEAKER_SHARE * lower
        return [
            Judged(logistic(coefficients.bias + evidence), cosine)
            for evidence, cosine in zip(content_evidence, best_cosine, strict=True)
        ]


def parts_of(content: str) -> list[str]:
    """The parts of a content that are judged one by one: a short content as a whole, a long one in
    sections with their headings. If it has more than ``MAX_PARTS`` sections, short neighbours are
    packed into one part. Lines that refer to another memory file, such as "Before a release read
    `mem:release`", are left out, because the other file is the answer."""
    if "`mem:" in content:
        content = _REFERENCE_LINE.sub("", content).strip() or content
    if len(content) <= CHUNK_CHARACTERS:
        return [content]
    parts = ["\n".join((*part.headings[-1:], part.text)) for part in sections(content)]
    if len(parts) > MAX_PARTS:
        parts = _packed(parts, limit=min(2 * sum(map(len, parts)) // MAX_PARTS, CHUNK_CHARACTERS))
    return parts[:MAX_PARTS] or [content[:CHUNK_CHARACTERS]]


def _packed(parts: Sequence[str], *, limit: int) -> list[str]:
    """The parts in order, with neighbours joined to at most ``limit`` characters."""
    packed = [""]
    for part in parts:
        joined = f"{packed[-1]}\n\n{part}".lstrip("\n")
        if len(joined) <= limit:
            packed[-1] = joined
        else:
            packed.append(part)
    return list(filter(None, packed))


def sentences_of(text: str) -> list[str]:
    """The sentences of a text; none if it has only one."""
    found = [part for part in SENTENCE_BORDER.split(text) if len(part) >= _MIN_SENTENCE_CHARACTERS]
    return found[:MAX_SENTENCES] if len(found) > 1 else []


def passage_of(text: str, query: str, characters: int) -> str:
    """At most so many characters of a text: all of a short one, and of a long one the part that
    begins with the sentence in which most words of the query are."""
    if len(text) <= characters:
        return text
    words = _QueryWords.of(in_first_person(query))
    starts = [0, *(border.end() for border in SENTENCE_BORDER.finditer(text))]
    sentences = (text[one:next_one] for one, next_one in pairwise([*starts, len(text)]))
    signals = [words.signal(words_of(sentence)) for sentence in sentences]
    start = starts[signals.index(max(signals))]
    return f"{'… ' if start else ''}{text[start:]}"[:characters]


@dataclass(frozen=True, slots=True)
class _QueryWords:
    """The words of a query, as stems: its content words, the names among them, for each word the
    related ones, and the words with those directly before them."""

    terms: frozenset[str]
    names: frozenset[str]
    related: dict[str, frozenset[str]]
    qualified: set[tuple[str, str]]
    other_kinds: dict[str, frozenset[str]]
    identifiers: Mapping[str, frozenset[str]]

    @classmethod
    def of(cls, query: str) -> Self:
        words = content_words(query)
        terms = frozenset(map(stem, words))
        return cls(
            terms,
            names_in(query) & terms,
            related_to(terms),
            qualified_in(query),
            other_kinds(terms),
            identifiers_in(query),
        )

    def coverage(self, text: TextWords) -> float:
        """The share of the words that the text contains; 0 if there are no words."""
        return len(self.terms & text.bag.keys()) / max(len(self.terms), 1)

    def signal(self, text: TextWords) -> float:
        """The evidence of coverage, related words and missing names together."""
        if not self.terms:
            return 0.0
        stored = text.bag.keys()
        related = [
            word for word in self.related if word not in stored and not self._is_missing(word, text)
        ]
        found = COVERAGE * len(self.terms & stored) + RELATED * len(related)
        missing = len(self.names - stored) / max(len(self.names), 1)
        return found / len(self.terms) + MISSING_NAMES * missing

    def means_another(self, text: str, words: TextWords) -> bool:
        """Whether a text has another word where the query says which one is meant, such as "the
        home wifi" for "the guest wifi", or another kind of what the query asks for, such as "my
        wife" for "my husband"; and nowhere that of the query or a related one. A kind that the
        query names as well says nothing."""
        stored = words.bag.keys()
        if any(
            self._is_missing(word, words) and not (kinds - self.terms).isdisjoint(stored)
            for word, kinds in self.other_kinds.items()
        ):
            return True
        others = {
            word
            for word, qualifier in self.qualified
            if word in stored and self._is_missing(qualifier, words)
        }
        return bool(others) and any(word in others for word, _ in qualified_in(text))

    def names_another(self, text: str, words: TextWords) -> bool:
        """Whether a text names another thing of a kind that the query names by a code or a number,
        and nowhere that of the query."""
        stored = possible_identifiers_in(text) if self.identifiers else {}
        every = frozenset[str]().union(*stored.values(), words.bag.keys())
        return any(
            kind in stored and every.isdisjoint(codes) for kind, codes in self.identifiers.items()
        )

    def _is_missing(self, word: str, text: TextWords) -> bool:
        """Whether a text has neither a word nor a related one that the query does not have, too."""
        related = self.related.get(word, frozenset()) - self.terms
        return text.bag.keys().isdisjoint({word, *related})


def names_in(query: str) -> frozenset[str]:
    """The stems of the query's names, numbers and identifiers.

    These are the words with a digit or a capital letter. For the first word a capital at its
    beginning does not count, because every question begins with one; a capital inside does, as in
    ``JWT``.
    """
    found: set[str] = set()
    for match in _WORD.finditer(query):
        word = match.group().removesuffix("'s")
        capital = word != word.lower() and (match.start() > 0 or not word.istitle())
        if (capital and word.lower() not in STOPWORDS) or any(c.isdigit() for c in word):
            found.update(map(stem, tokens(word)))
    return frozenset(found)
