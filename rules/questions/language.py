"""Which language a message is written in.

Chat lines are short, full of English terms of the trade and often without accents, so the first judge is a list of the
words that hold a sentence together (``data/languages.yaml``) plus a few letters and endings. Only when it is unsure is
the lingua detector asked, in its low-accuracy mode (some 90 ms of CPU and little memory on first use, against about two
seconds in the full one), and never for a line with nothing but terms of the trade.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Literal

import msgspec

from rules.language import LANGUAGES, Language
from rules.questions.data import load
from rules.questions.text import LOG_LINE, Word, fold

How = Literal["words", "hint", "detector", "default"]

STRONG, WEAK, OTHER = 2.0, 1.0, 2.0
OTHER_ONLY = 3.0
"""A word of three letters and more that only one language, and none of ours, has: um, nicht, vous ..."""
FIELD = 0.8
FIELD_STEM = 5
"""A word of the field that only one of our languages uses (controlador, scheda)."""
CERTAIN = 6.0
"""A word that a line in one of our languages does not hold."""
QUOTED_ENGLISH = 0.5
PASTED_ENGLISH = 0.25
"""English counts still less in a line that holds a pasted error message."""
"""English counts less in a line that begins in Spanish or Italian: people quote errors and use English terms."""
OWN_ENOUGH = 3.0
"""Points of different words that English does not have, from which the English beside them is a quotation."""
LEAST_OWN = 0.5
"""Points of such words below which a pasted message is English."""
CLEAR_LEAD = 2.0
"""Lead in points from which the word list decides alone: one strong word."""
DETECTOR_SURE = 0.65
DETECTOR_SURE_OTHER = 0.80
"""The detector must be surer before it sends someone away in a language that is not spoken here."""

_LETTERS: tuple[tuple[str, dict[str, float]], ...] = (
    ("ñ¿¡", {"es": 3.0}),
    ("óíú", {"es": 1.5, "pt": 1.0, "ca": 0.5}),
    ("á", {"es": 1.5, "pt": 1.5}),
    ("ùòì", {"it": 2.0}),
    ("è", {"it": 1.0, "fr": 1.0, "ca": 1.0}),
    ("à", {"it": 1.0, "fr": 1.0, "pt": 0.5, "ca": 1.0}),
    ("é", {"es": 0.7, "it": 0.5, "fr": 1.0, "pt": 0.7}),
    ("ãõ", {"pt": 4.0}),
    ("ç", {"pt": 2.0, "fr": 1.5, "ca": 1.5}),
    ("êâô", {"fr": 1.5, "pt": 2.0}),
    ("îûœ", {"fr": 3.0}),
    ("ß", {"de": 4.0}),
    ("äöü", {"de": 2.0, "sv": 1.0, "tr": 1.0}),
    ("å", {"sv": 3.0}),
    ("łęąśżź", {"pl": 3.0}),
    ("ğışİ", {"tr": 3.0}),
    ("ățș", {"ro": 3.0}),
)
_LETTERS_ONLY = re.compile(r"(?<![{*\w])[^\W\d_]+(?![\w}*])")
_STEMS = re.compile(r"(?<![{*\w])([^\W\d_]+)\*")
_ENDINGS: tuple[tuple[re.Pattern[str], dict[str, float]], ...] = (
    (re.compile(r"\w{3,}cion(?:es)?$"), {"es": 1.5}),
    (re.compile(r"\w{2,}zion[ei]$"), {"it": 1.5}),
    (re.compile(r"\w{3,}(?:amiento|imiento)s?$"), {"es": 1.5}),
    (re.compile(r"\w{3,}(?:ando|iendo)$"), {"es": 0.7}),
    (re.compile(r"\w{3,}(?:abile|abili|evole)$"), {"it": 1.0}),
    (re.compile(r"\w{3,}(?:acao|acoes)$"), {"pt": 2.0}),
    (re.compile(r"\w{4,}(?:ung|ungen|keit)$"), {"de": 1.5}),
    (re.compile(r"\w{3,}(?:ement|eurs?|eaux)$"), {"fr": 0.7}),
)


_OURS = frozenset(LANGUAGES)
_ENGLISH_TOO = frozenset(
    {
        "allocatable", "allocate", "allocation", "are", "com", "come", "dare", "date", "dove", "due", "fine", "male",
        "me", "once", "ore", "per", "red", "sale", "use",
    }
)  # fmt: skip
"""Words of Spanish or Italian that English has as well, in another sense."""


class LanguageReading(msgspec.Struct, frozen=True):
    """Attributes:
    language: the language to answer in; English when the text is in one that is not spoken here.
    name: ISO 639-1 code of the text's own language; ``und`` when a foreign script or unknown words only.
    how: what decided: the word list, the caller's hint, the detector, or the default.
    """

    language: Language
    name: str
    how: How

    @property
    def spoken(self) -> bool:
        """False for a text in a language that gpu-advisor does not read."""
        return self.name in LANGUAGES


class _Own(msgspec.Struct, forbid_unknown_fields=True):
    strong: str
    weak: str


class _File(msgspec.Struct, forbid_unknown_fields=True):
    own: dict[Language, _Own]
    other: dict[str, str]
    certain: dict[str, str]


@lru_cache(maxsize=1)
def _weights() -> dict[str, dict[str, float]]:
    """word -> language -> points."""
    file = load("languages.yaml", _File)
    weights: dict[str, dict[str, float]] = {}

    def put(word: str, language: str, points: float) -> None:
        entry = weights.setdefault(word, {})
        entry[language] = max(entry.get(language, 0.0), points)

    for own, lists in file.own.items():
        for word in lists.strong.split():
            put(word, own, STRONG)
        for word in lists.weak.split():
            put(word, own, WEAK)
    for other, listed in file.other.items():
        for word in listed.split():
            put(word, other, OTHER)
    for word, entry in weights.items():
        # A word that many languages share tells less.
        if len(entry) > 1:
            for language in entry:
                entry[language] /= len(entry) ** 0.5
        elif len(word) > 2 and not set(entry) & set(LANGUAGES):
            entry.update(dict.fromkeys(entry, OTHER_ONLY))
    for word, own in _field_words().items():
        weights.setdefault(word, {own: FIELD})
    for other, listed in file.certain.items():
        for word in listed.split():
            weights[word] = {other: CERTAIN}
    return weights


def _field_words() -> dict[str, Language]:
    """Words of the lexicon that stand in the terms of one of our languages only. English ones are left out: they are
    used in all three."""
    return {word: language for word, language in _one_language(_LETTERS_ONLY).items() if len(word) > 3}


@lru_cache(maxsize=1)
def _field_stems() -> dict[str, tuple[str, Language]]:
    """The same for terms with an open ending (prezz*), by their first letters."""
    found = _one_language(_STEMS, "glossary.yaml") | _one_language(_STEMS)
    english = (*_said_in_english(), *_ENGLISH_TOO)
    return {
        stem[:FIELD_STEM]: (stem, language)
        for stem, language in found.items()
        if len(stem) >= FIELD_STEM and not any(word.startswith(stem) for word in english)
    }


@lru_cache(maxsize=1)
def _small_words() -> dict[str, Language]:
    """Words of the glossary and the corpus that one of our languages alone uses; they tell a language and nothing
    else."""
    found = _one_language(_LETTERS_ONLY, "glossary.yaml")
    told = load("language_words.yaml", dict[Language, str])
    found = {word: language for word, language in found.items() if len(word) > 3} | {
        word: language for language, listed in told.items() for word in listed.split()
    }
    english = frozenset(_said_in_english())
    return {word: language for word, language in found.items() if word not in english}


@lru_cache(maxsize=1)
def _said_in_english() -> tuple[str, ...]:
    """Words and stems that stand in English terms, or in those of every language."""
    texts = [
        listed.get(column, "")
        for name in ("glossary.yaml", "lexicon.yaml")
        for listed in load(name, dict[str, Any])["concepts"].values()
        for column in ("en", "any")
    ]
    return tuple(dict.fromkeys(fold(word) for text in texts for word in re.findall(r"[^\W\d_]+", text)))


def _one_language(pattern: re.Pattern[str], name: str = "lexicon.yaml") -> dict[str, Language]:
    concepts = load(name, dict[str, Any])["concepts"]
    seen: dict[str, set[str]] = {}
    for listed in concepts.values():
        for language, terms in listed.items():
            for word in pattern.findall(terms):
                seen.setdefault(fold(word), set()).add(language)
    own: tuple[Language, ...] = ("es", "it")
    return {word: language for word, languages in seen.items() for language in own if languages == {language}}


def function_words() -> frozenset[str]:
    """All words of the lists: known words, never typos of something else."""
    return frozenset(_weights())


def scores(text: str, words: Iterable[Word]) -> dict[str, float]:
    """Points per language by words, letters and endings."""
    points: dict[str, float] = {}

    def add(entry: dict[str, float], times: int = 1) -> None:
        for language, weight in entry.items():
            points[language] = points.get(language, 0.0) + weight * times

    weights, stems, small = _weights(), _field_stems(), _small_words()
    met: set[str] = set()
    for word in words:
        entry = weights.get(word.folded)
        if entry and word.folded in met and not entry.keys() <= _OURS:
            # A small word that others share tells no more when it is said again.
            add({language: weight for language, weight in entry.items() if language in _OURS})
        elif entry:
            add(entry)
            met.add(word.folded)
        elif word.folded in small:
            add({small[word.folded]: FIELD})
        elif len(word.folded) > FIELD_STEM:
            stem = stems.get(word.folded[:FIELD_STEM])
            if stem and word.folded.startswith(stem[0]):
                add({stem[1]: FIELD})
        for pattern, ending in _ENDINGS:
            if pattern.match(word.folded):
                add(ending)
    lower = text.lower()
    for letters, entry in _LETTERS:
        count = sum(lower.count(letter) for letter in letters)
        if count:
            add(entry, min(count, 3))
    return points


def _only_one_tells(words: tuple[Word, ...], best: str, other: str) -> bool:
    """True when all words that tell ``best`` from ``other`` say ``best``: near languages share most small words."""
    entries = [entry for word in words if (entry := _weights().get(word.folded))]
    speaks_for = sum(entry[best] for entry in entries if best in entry and other not in entry)
    speaks_against = sum(entry[other] for entry in entries if other in entry and best not in entry)
    return speaks_for >= WEAK and speaks_against == 0


def _own_words(text: str, words: Iterable[Word]) -> float:
    """Points of the words that Spanish or Italian has and English has not, each once, with the letters they alone
    use."""
    once = {word.folded: word for word in words}.values()
    weights = _weights()
    points = scores(
        text, [word for word in once if word.folded not in _ENGLISH_TOO and "en" not in weights.get(word.folded, ())]
    )
    return max(points.get("es", 0.0), points.get("it", 0.0))


def _speaks(words: tuple[Word, ...]) -> bool:
    """True when a word tells that someone of Spanish or Italian wrote beside what was pasted, or asked in English."""
    own = [entry for word in words if (entry := _weights().get(word.folded)) and len(entry) == 1]
    asked = {"how", "why", "what", "anyone", "help", "should", "please", "pls", "i", "we", "my", "our"}
    return any("es" in entry or "it" in entry for entry in own) or any(word.folded in asked for word in words)


def _begins(words: tuple[Word, ...]) -> str | None:
    """Language of the first two words that tell one; None when they differ or there are none."""
    weights = _weights()
    first: list[str] = []
    for word in words:
        entry = weights.get(word.folded)
        if entry and len(entry) == 1:
            first += entry
            if len(first) == 2:
                break
    return first[0] if first and len(set(first)) == 1 else None


def _weighed(text: str, words: tuple[Word, ...]) -> dict[str, float]:
    """Points per language, where English that is quoted or pasted counts less."""
    # A dot before a word is a domain name or a file ending (nvidia.com/gpu).
    points = scores(text, [word for word in words if text[word.start - 1 : word.start] != "."])
    pasted = LOG_LINE.search(text) is not None
    if pasted:
        points = {language: score for language, score in points.items() if language in LANGUAGES}
    if "en" not in points:
        return points
    if pasted:
        points["en"] *= PASTED_ENGLISH
    elif _begins(words) in ("es", "it"):
        points["en"] *= QUOTED_ENGLISH
    if _own_words(text, words) >= OWN_ENOUGH:
        # Nobody puts so many words of Spanish or Italian into an English sentence: the English is quoted.
        points["en"] *= PASTED_ENGLISH
    return points


def read_language(text: str, words: tuple[Word, ...], hint: Language | None = None) -> LanguageReading:
    """Language of a cleaned ``text``; ``hint`` (the reader's own setting) decides where the text does not."""
    letters = [char for char in text if char.isalpha()]
    if letters and sum(ord(char) > 0x24F for char in letters) > len(letters) / 2:
        return LanguageReading("en", "und", "words")
    plain = [word for word in words if word.folded.isalpha() and len(word.folded) > 1]
    if not plain:
        return _fallback([], hint)
    points = _weighed(text, words)
    pasted = LOG_LINE.search(text) is not None
    if pasted and _own_words(text, words) < LEAST_OWN and hint is None:
        return LanguageReading("en", "en", "words")
    if pasted and hint is not None and not _speaks(words):
        # A message that was only pasted is English whoever pastes it.
        return LanguageReading(hint, hint, "hint")
    ranked = sorted(points.items(), key=lambda item: (-item[1], item[0]))
    ours: list[tuple[str, float]] = [(name, score) for name, score in ranked if name in LANGUAGES]
    best, score = ranked[0] if ranked else ("", 0.0)
    runner_up = ranked[1][1] if len(ranked) > 1 else 0.0
    if score - runner_up >= CLEAR_LEAD or (score >= CLEAR_LEAD and score >= 1.35 * runner_up):
        return _reading(best, "words")
    if pasted and best in ("es", "it") and score >= WEAK:
        return _reading(best, "words")
    if len(ranked) > 1 and _only_one_tells(words, best, ranked[1][0]):
        return _reading(best, "words")
    if len(plain) < 3 and score < CLEAR_LEAD:
        return _fallback(ours, hint)
    name, confidence = _detect(" ".join(word.lower for word in words))
    if name in LANGUAGES and confidence >= DETECTOR_SURE:
        return _reading(name, "detector")
    if name not in LANGUAGES and confidence >= DETECTOR_SURE_OTHER and (not ours or best == name):
        return _reading(name, "detector")
    return _fallback(ours, hint)


def _reading(name: str, how: How) -> LanguageReading:
    for language in LANGUAGES:
        if name == language:
            return LanguageReading(language, language, how)
    return LanguageReading("en", name, how)


def _fallback(own: list[tuple[str, float]], hint: Language | None) -> LanguageReading:
    if own and own[0][1] >= WEAK and (len(own) == 1 or own[0][1] - own[1][1] >= WEAK):
        return _reading(own[0][0], "words")
    if hint is not None:
        return LanguageReading(hint, hint, "hint")
    return _reading(own[0][0] if own else "en", "words" if own else "default")


@lru_cache(maxsize=1)
def _detector() -> Any:
    # Imported here: it is needed for few messages and takes memory and time.
    from lingua import Language as Lingua
    from lingua import LanguageDetectorBuilder

    chosen = [
        Lingua.ENGLISH, Lingua.SPANISH, Lingua.ITALIAN, Lingua.FRENCH, Lingua.GERMAN, Lingua.PORTUGUESE,
        Lingua.DUTCH, Lingua.POLISH, Lingua.CATALAN, Lingua.SWEDISH, Lingua.ROMANIAN, Lingua.TURKISH,
    ]  # fmt: skip
    return LanguageDetectorBuilder.from_languages(*chosen).with_low_accuracy_mode().build()


@lru_cache(maxsize=512)
def _detect(text: str) -> tuple[str, float]:
    values = _detector().compute_language_confidence_values(text)
    if not values:
        return "und", 0.0
    return str(values[0].language.iso_code_639_1.name).lower(), float(values[0].value)
