"""How probable it is that a text bears on a query, judged from the two alone.

Scores of layers do not compare: BM25 has no upper bound, and the scale of a fused score is its
layer's own. Whether memory holds an answer at all, and whether to read further layers, needs a
number that means the same for every layer. It is a logistic function of four signals:

* coverage: the share of the query's content words that the text holds, by stems;
* related words: the share of the query's words for which the text holds a related one
  (``texts/related_words.py``);
* missing names: the share of the query's names, numbers and identifiers that the text does not
  hold. They decide whom or what an answer is about: what is known about E17 says nothing about E99;
* cosine: similarity of meaning by the encoder. Of a text of several sentences that holds a word of
  the query it is that of the whole, or of the sentence that holds most of the words (of a long text
  in the section that does): what else is in a note says nothing against it. To encode all its
  sentences found no more, and would take a larger encoder seconds. Where the encoder knows no word
  of one of the two, such as one in another alphabet, the coverage stands in for it: a cosine of 0
  would say that the two have nothing to do with each other.

A query about "the user" is judged in the first person, and its cosine is the better one of the two:
memories say "I live in Ghent" and "The user lives in Ghent".

A question that an item brings (``texts/questions.py``) is judged in the same way, and something is
taken off, because two questions are always a little alike. The better one of the content and the
best question decides, and ``WEAKER_SHARE`` times the evidence of the other is added. Where the
other does not fit at all, its evidence is below 0; to add nothing there answers more queries about
what was never saved.

The coefficients were fitted to six people of ``benchmarks/memory_finding.py`` (``develop`` and
``held_out``), with and without questions beside the memories. Absent answers were learnt from
questions about what was never saved, those of another person, and every question without the items
that answer it. No gain for people left out: the nearest word by the encoder; cosines standardised,
without their main axes, or of the content words alone; how much nearer an item is than other
people's memories; the worst covered word; how rare or long a word is; more related words. The kind
of answer that a question word asks for gained half a point there and lost two on the questions of
LoCoMo that nothing answers.

Words count the same whatever the encoder: other weights for them with MiniLM gained nothing, nor
did the bundled encoder's cosine beside MiniLM's. What a cosine counts depends on it
(``BY_ENCODER``). The bias is the one at which most absent questions are answered empty while one
right first answer in a hundred is lost.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final, NamedTuple, Self, TypeAlias

from router.memory.query.rewrite import in_first_person
from router.memory.texts.chunking import CHUNK_CHARACTERS, SENTENCE_BORDER, sections
from router.memory.texts.related_words import related_to
from router.memory.texts.text_vectors import TextVectors
from router.memory.texts.words import TextWords, content_words, words_of
from router.numeric import logistic
from router.retrieval import onnx_encoder
from router.text import STOPWORDS, stem, tokens

COVERAGE: Final = 4.15
RELATED: Final = 3.9
MISSING_NAMES: Final = -1.75
WEAKER_SHARE: Final = 0.09
SENTENCE_PENALTY: Final = 0.05
"""What is taken off the cosine of a sentence: of many, one always fits a little better."""


class EncoderCoefficients(NamedTuple):
    """The coefficients that depend on the encoder; ``question_penalty`` is what is taken off the
    evidence of a question that an item brings."""

    bias: float
    cosine: float
    question_penalty: float


BUNDLED: Final = EncoderCoefficients(bias=-5.75, cosine=7.0, question_penalty=1.8)
"""For the bundled encoder, and every one that is not named below."""
MINILM: Final = EncoderCoefficients(bias=-6.4, cosine=8.0, question_penalty=2.6)
BY_ENCODER: Final = {onnx_encoder.MINILM: MINILM}
"""By the encoder's identity."""

MAX_SENTENCES: Final = 24
"""Sentences of one part that are looked at."""
MAX_PARTS: Final = 50
"""Parts of a long text that are judged; 50 hold 80,000 characters."""

_REFERRING: Final = re.compile(r"^.*`mem:[^`]+`.*$", re.MULTILINE)
_SHORTEST_SENTENCE: Final = 8
"""Characters; what is shorter is an abbreviation or a number."""
_WORD: Final = re.compile(r"[^\W_][\w'.-]*")


class Judged(NamedTuple):
    """What was found out of a content.

    Attributes:
        relevance: the probability, in [0, 1], that it bears on the query.
        cosine: of its nearest part or question to the query, in [-1, 1].
    """

    relevance: float
    cosine: float


Judge: TypeAlias = Callable[[str, Sequence[str], Sequence[Sequence[str]]], list[Judged]]
"""Judges contents, and the questions that each brings, by a query, as ``Relevance.of`` does."""


class Relevance:
    """Judges texts; see the module's text. As safe in threads as the vectors' encoder."""

    def __init__(self, vectors: TextVectors) -> None:
        self._vectors = vectors
        self._meaning = BY_ENCODER.get(vectors.identity, BUNDLED)

    def of(
        self, query: str, contents: Sequence[str], questions: Sequence[Sequence[str]] = ()
    ) -> list[Judged]:
        """Each content judged, with the questions that it brings. Of a long content the best
        section is judged.

        Raises:
            EncoderError: the encoder cannot be reached or gave unusable vectors.
        """
        texts = [(n, part) for n, content in enumerate(contents) for part in parts_of(content)]
        brought = [(n, each) for n, some in enumerate(questions) for each in some]
        if not texts:
            return []
        own = in_first_person(query)
        words = _QueryWords.of(own)
        judged = [*texts, *brought]
        held = [words_of(text) for _, text in judged]
        signals = [words.signal(each) for each in held]
        most: dict[int, int] = {}  # of each content, the part that holds most words
        for place, (number, _) in enumerate(texts):
            if signals[place] > signals[most.setdefault(number, place)]:
                most[number] = place
        sentences = {
            place: max(within, key=lambda one: words.signal(words_of(one)))
            for place in most.values()
            if signals[place] > 0 and (within := sentences_of(texts[place][1]))
        }
        encoded = [query, own, *(text for _, text in judged), *sentences.values()]
        vectors = self._vectors.of(encoded)
        cosines = (vectors[2:] @ vectors[:2].T).max(axis=1)
        for place, cosine in zip(sentences, cosines[len(judged) :], strict=True):
            cosines[place] = max(cosines[place], cosine - SENTENCE_PENALTY)
        is_known = vectors[:2].any()
        meaning = self._meaning
        of_content = [-math.inf] * len(contents)
        of_question: dict[int, float] = {}
        nearest = [-1.0] * len(contents)
        for place, (number, _) in enumerate(judged):
            nearest[number] = max(nearest[number], float(cosines[place]))
            are_known = is_known and vectors[2 + place].any()
            near = float(cosines[place]) if are_known else words.coverage(held[place])
            evidence = signals[place] + meaning.cosine * near
            if place < len(texts):
                of_content[number] = max(of_content[number], evidence)
            else:
                evidence -= meaning.question_penalty
                of_question[number] = max(of_question.get(number, evidence), evidence)
        for number, evidence in of_question.items():
            lower, higher = sorted((evidence, of_content[number]))
            of_content[number] = higher + WEAKER_SHARE * lower
        return [
            Judged(logistic(meaning.bias + evidence), cosine)
            for evidence, cosine in zip(of_content, nearest, strict=True)
        ]


def parts_of(content: str) -> list[str]:
    """A content in the parts that are judged by themselves: the whole of a short one, the sections
    of a long one under their headings, ``MAX_PARTS`` at most. Lines that refer to another memory
    file, such as "Before a release read `mem:release`", are left out: the other file answers."""
    if "`mem:" in content:
        content = _REFERRING.sub("", content).strip() or content
    if len(content) <= CHUNK_CHARACTERS:
        return [content]
    found = islice(sections(content), MAX_PARTS)
    parts = ["\n".join((*section.headings[-1:], section.text)) for section in found]
    return parts or [content[:CHUNK_CHARACTERS]]


def sentences_of(text: str) -> list[str]:
    """The sentences of a text that has several."""
    found = [part for part in SENTENCE_BORDER.split(text) if len(part) >= _SHORTEST_SENTENCE]
    return found[:MAX_SENTENCES] if len(found) > 1 else []


@dataclass(frozen=True, slots=True)
class _QueryWords:
    """What is looked for in a text, as stems."""

    terms: frozenset[str]
    names: frozenset[str]
    related: dict[str, frozenset[str]]

    @classmethod
    def of(cls, query: str) -> Self:
        words = content_words(query)
        terms = frozenset(map(stem, words))
        return cls(terms, names_in(query) & terms, related_to(terms))

    def coverage(self, text: TextWords) -> float:
        """The share of the words that the text holds; 0 where there is none."""
        return len(self.terms & text.bag.keys()) / max(len(self.terms), 1)

    def signal(self, text: TextWords) -> float:
        """What the coverage, the related words and the missing names add up to."""
        if not self.terms:
            return 0.0
        stored = text.bag.keys()
        related = [
            word
            for word, others in self.related.items()
            if word not in stored and not others.isdisjoint(stored)
        ]
        held = COVERAGE * len(self.terms & stored) + RELATED * len(related)
        missing = len(self.names - stored) / max(len(self.names), 1)
        return held / len(self.terms) + MISSING_NAMES * missing


def names_in(query: str) -> frozenset[str]:
    """The stems of the query's names, numbers and identifiers.

    A word counts that holds a digit, or a capital where no sentence begins. The first word counts
    only with a capital inside, as in ``JWT``: every question begins with a capital.
    """
    found: set[str] = set()
    for match in _WORD.finditer(query):
        word = match.group().removesuffix("'s")
        capital = word != word.lower() and (match.start() > 0 or not word.istitle())
        if (capital and word.lower() not in STOPWORDS) or any(c.isdigit() for c in word):
            found.update(map(stem, tokens(word)))
    return frozenset(found)
