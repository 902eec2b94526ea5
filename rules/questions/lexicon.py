"""The words of the field: which concepts a text names, in any of the three languages, and by which of its words.

``data/lexicon.yaml`` lists per concept the terms that name it. A term is a sequence of

- ``word``, ``word*`` (any ending), ``a/b/c*`` (alternatives), ``{set}`` (a named list of alternatives),
- ``<gpu>`` a GPU model, ``<n>`` a number, ``<many>`` a number above one,
- ``word?`` an element that may be missing, ``.`` at most one word and ``..`` at most three words in between.

All languages are matched at once, because people mix them. Words that are unknown and near a term's word are taken for
typos of it, with guards: never a word with a digit (A10 is not A100), never a common word of the three languages, never
two candidates at the same distance.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files

import msgspec
from rapidfuzz import process
from rapidfuzz.distance import OSA

from rules.questions import data
from rules.questions.entities import is_gpu_model
from rules.questions.language import function_words
from rules.questions.text import Word, fold

MIN_TYPO_LENGTH = 5
MIN_TWO_SLIPS_LENGTH = 9
"""From this length on two slips are forgiven, below it one."""

_NUMBERS = frozenset(
    word
    for language in (
        "two three four five six seven eight nine ten",
        "dos tres cuatro cinco seis siete ocho nueve diez",
        "due tre quattro cinque sei sette otto nove dieci",
    )
    for word in language.split()
)
_NUMBER = re.compile(r"(\d+)(?:[.,]\d+)?x?$")


class Match(msgspec.Struct, frozen=True):
    """A concept found in the text: by the words with indices ``start`` to ``end`` (exclusive), as ``term`` says."""

    concept: str
    start: int
    end: int


class _Concept(msgspec.Struct, forbid_unknown_fields=True):
    any: str = ""
    en: str = ""
    es: str = ""
    it: str = ""


class _File(msgspec.Struct, forbid_unknown_fields=True):
    sets: dict[str, str]
    concepts: dict[str, _Concept]
    spelling: str


class _Element(msgspec.Struct, frozen=True):
    literals: frozenset[str] = frozenset()
    prefixes: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    optional: bool = False
    gap: int = 0

    def fits(self, word: str) -> bool:
        return (
            word in self.literals
            or (bool(self.prefixes) and word.startswith(self.prefixes))
            or (bool(self.classes) and any(_in_class(word, name) for name in self.classes))
        )


class _Term(msgspec.Struct, frozen=True):
    concept: str
    elements: tuple[_Element, ...]


def _in_class(word: str, name: str) -> bool:
    if name == "gpu":
        return is_gpu_model(word)
    number = _NUMBER.match(word)
    if name == "n":
        return bool(number) or word in _NUMBERS
    return word in _NUMBERS or (number is not None and int(number[1]) > 1 and len(number[1]) < 5)


class Lexicon:
    """The compiled lexicon; see the module for the grammar of its terms."""

    def __init__(self, sets: Mapping[str, str], concepts: Mapping[str, Mapping[str, str]], spelling: str = "") -> None:
        self.concepts = frozenset(concepts)
        self._sets = {name: listed.split() for name, listed in sets.items()}
        self._by_literal: dict[str, list[_Term]] = {}
        self._by_prefix: dict[str, list[_Term]] = {}
        self._by_class: dict[str, list[_Term]] = {"gpu": [], "n": [], "many": []}
        vocabulary: set[str] = set(spelling.split())
        self._known: set[str] = set()
        prefixes: set[str] = set()
        for concept, languages in concepts.items():
            for listed in languages.values():
                for text in filter(None, (term.strip() for term in listed.split("|"))):
                    term = self._compile(concept, text)
                    self._index(term)
                    for element in term.elements:
                        vocabulary |= element.literals
                        prefixes.update(element.prefixes)
        self._prefixes = tuple(sorted(prefixes))
        self._known |= vocabulary
        self._known |= function_words()
        self._vocabulary: dict[str, list[str]] = {}
        for word in sorted(vocabulary):
            if len(word) >= MIN_TYPO_LENGTH and word.isalpha():
                self._vocabulary.setdefault(word[0], []).append(word)
        self._lengths = list(range(1, 1 + max((len(p) for p in self._by_prefix), default=0)))

    def know(self, words: frozenset[str]) -> None:
        """Words that are right as they are."""
        self._known |= words

    def _compile(self, concept: str, text: str) -> _Term:
        return _Term(concept, tuple(self._element(part, text) for part in text.split()))

    def _element(self, part: str, term: str) -> _Element:
        if part in (".", ".."):
            return _Element(gap=1 if part == "." else 3)
        optional = part.endswith("?")
        literals: set[str] = set()
        prefixes: list[str] = []
        classes: list[str] = []
        todo = part.rstrip("?").split("/")
        while todo:
            item = todo.pop()
            if item.startswith("{"):
                todo += self._sets[item.strip("{}")]
            elif item.startswith("<"):
                classes.append(item.strip("<>"))
            elif item.endswith("*"):
                prefixes.append(fold(item[:-1]))
            else:
                literals.add(fold(item))
        if not (literals or prefixes or classes) or any(name not in ("gpu", "n", "many") for name in classes):
            msg = f"lexicon: element {part!r} of term {term!r} names nothing"
            raise ValueError(msg)
        return _Element(frozenset(literals), tuple(prefixes), tuple(classes), optional)

    def _index(self, term: _Term) -> None:
        for element in term.elements:
            for literal in element.literals:
                self._by_literal.setdefault(literal, []).append(term)
            for prefix in element.prefixes:
                self._by_prefix.setdefault(prefix, []).append(term)
            for name in element.classes:
                self._by_class[name].append(term)
            if not element.optional:
                break

    def correct(self, words: tuple[Word, ...]) -> tuple[str, ...]:
        """The words in their folded form, typos of the field's words mended."""
        return tuple(self._correct(word.folded) for word in words)

    def _correct(self, word: str) -> str:
        if len(word) < MIN_TYPO_LENGTH or len(word) > 30 or word in self._known or not word.isalpha():
            return word
        mended = self._nearest(word)
        # "compartimos" is an ending nobody listed, not a typo: it keeps its stem.
        stems = tuple(prefix for prefix in self._prefixes if word.startswith(prefix))
        return mended if not stems or mended.startswith(stems) else word

    @lru_cache(maxsize=4096)  # noqa: B019 - one lexicon per process
    def _nearest(self, word: str) -> str:
        allowed = 1 if len(word) < MIN_TWO_SLIPS_LENGTH else 2
        candidates = self._vocabulary.get(word[0], [])
        found = process.extract(word, candidates, scorer=OSA.distance, score_cutoff=allowed, limit=2)
        if not found or (len(found) > 1 and found[0][1] == found[1][1] and not _same_stem(found[0][0], found[1][0])):
            return word
        return str(found[0][0])

    def find(self, words: tuple[str, ...]) -> tuple[Match, ...]:
        """All concepts in the words; per concept and start the longest term, none inside a longer one of its own."""
        found: dict[tuple[str, int], int] = {}
        for start, word in enumerate(words):
            for term in self._starting_with(word):
                end = self._end(term.elements, 0, words, start)
                if end is not None and end > found.get((term.concept, start), 0):
                    found[term.concept, start] = end
        matches = [Match(concept, start, end) for (concept, start), end in found.items()]
        matches.sort(key=lambda match: (match.start, -match.end, match.concept))
        kept: list[Match] = []
        covered: dict[str, int] = {}
        for match in matches:
            if match.end > covered.get(match.concept, 0):
                covered[match.concept] = match.end
                kept.append(match)
        return tuple(kept)

    @lru_cache(maxsize=4096)  # noqa: B019 - one lexicon per process
    def _starting_with(self, word: str) -> tuple[_Term, ...]:
        found = list(self._by_literal.get(word, ()))
        for length in self._lengths:
            if length > len(word):
                break
            found += self._by_prefix.get(word[:length], ())
        for name, terms in self._by_class.items():
            if terms and _in_class(word, name):
                found += terms
        return tuple(found)

    def _end(self, elements: tuple[_Element, ...], index: int, words: tuple[str, ...], at: int) -> int | None:
        """Index after the last word of the earliest way to lay ``elements[index:]`` on ``words[at:]``; None if none."""
        if index == len(elements):
            return at
        element = elements[index]
        if element.gap:
            for skipped in range(element.gap + 1):
                end = self._end(elements, index + 1, words, at + skipped)
                if end is not None:
                    return end
            return None
        if at < len(words) and element.fits(words[at]):
            end = self._end(elements, index + 1, words, at + 1)
            if end is not None:
                return end
        if element.optional:
            return self._end(elements, index + 1, words, at)
        return None


def _same_stem(one: str, other: str) -> bool:
    """Two forms of one word (instalado, instalados): either will do."""
    return one[: max(4, min(len(one), len(other)) - 2)] == other[: max(4, min(len(one), len(other)) - 2)]


@lru_cache(maxsize=1)
def lexicon() -> Lexicon:
    """The lexicon of the house."""
    file = data.load("lexicon.yaml", _File)
    built = Lexicon(
        file.sets, {name: msgspec.structs.asdict(concept) for name, concept in file.concepts.items()}, file.spelling
    )
    common = (files("rules.questions.data") / "common_words.txt").read_text(encoding="utf-8")
    built.know(frozenset(line for line in common.splitlines() if not line.startswith("#")))
    return built
