"""The language of a line, by its own words; the hint and the detector only where these do not tell."""

import pytest

from rules.language import Language
from rules.questions import corpus
from rules.questions import language as module
from rules.questions.data import load
from rules.questions.language import LanguageReading, read_language
from rules.questions.text import clean, words
from rules.questions.training import telling_words


def read(text: str, hint: Language | None = None) -> LanguageReading:
    cleaned = clean(text)
    return read_language(cleaned, words(cleaned), hint)


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("can i share the gpu", "en"),
        ("puedo compartir la gpu", "es"),
        ("posso condividere la gpu", "it"),
        ("vienen los drivers en los nodes o hay q instalarlos", "es"),
        ("i driver ci sono gia sui nodes", "it"),
        ("se puede hacer time-slicing con el GPU operator?", "es"),
        ("conviene k8s per una gpu sola", "it"),
        ("conviene k8s para una sola gpu", "es"),
    ],
)
def test_function_words_tell_the_language_without_accents(text: str, language: str) -> None:
    reading = read(text)
    assert (reading.language, reading.how) == (language, "words")


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("el pod no arranca: 0/5 nodes are available: 5 Insufficient nvidia.com/gpu", "es"),
        ("il pod non parte: 0/5 nodes are available: 5 Insufficient nvidia.com/gpu", "it"),
        ("RuntimeError: CUDA out of memory (succede solo con due pod)", "it"),
        ("0/5 nodes are available: 5 Insufficient nvidia.com/gpu", "en"),
        ("node log: RuntimeError: CUDA error: all devices on this host are busy", "en"),
        ("Allocate failed due to rpc error: request for 'nvidia.com/gpu: 2' too large", "en"),
        ("keras dice Could not find cuda drivers on your machine y el nodo es una MI250", "es"),
        ("keras dice Could not find cuda drivers on your machine e il nodo ha una MI250", "it"),
        ("XID 48 en gpu-2", "es"),
        ("XID 48 su gpu-2", "it"),
    ],
)
def test_a_pasted_english_error_does_not_outweigh_the_persons_own_words(text: str, language: str) -> None:
    assert read(text).language == language


@pytest.mark.parametrize("hint", ["en", "es", "it"])
@pytest.mark.parametrize("text", ["MIG vs MPS?", "H100 80GB", "gpu?", "", "12.4", "x", "a 1"])
def test_terms_of_the_trade_alone_take_the_hint(text: str, hint: Language) -> None:
    assert read(text, hint).language == hint


def test_without_a_hint_a_line_of_terms_is_answered_in_english() -> None:
    assert read("MIG MPS") == LanguageReading("en", "en", "default")


@pytest.mark.parametrize("hint", ["en", "es", "it"])
def test_the_hint_never_overrules_a_clear_line(hint: Language) -> None:
    assert read("¿los nodos traen los controladores?", hint).language == "es"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("est-ce que les pilotes sont installés ?", "fr"),
        ("sind die treiber schon installiert?", "de"),
        ("os drivers já vêm instalados nos nós?", "pt"),
        ("vale a pena usar kubernetes para uma única gpu?", "pt"),
        ("Драйверы уже установлены?", "und"),
        ("ドライバーはインストール済みですか", "und"),
    ],
)
def test_other_languages_are_named_and_answered_in_english(text: str, name: str) -> None:
    reading = read(text)
    assert (reading.name, reading.language, reading.spoken) == (name, "en", False)


def test_the_detector_decides_only_when_it_is_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    line = "dubbio amletico irrisolto stamani"
    monkeypatch.setattr(module, "_detect", lambda _text: ("it", 0.9))
    assert read(line) == LanguageReading("it", "it", "detector")
    monkeypatch.setattr(module, "_detect", lambda _text: ("it", 0.5))
    assert read(line, "es") == LanguageReading("es", "es", "hint")
    monkeypatch.setattr(module, "_detect", lambda _text: ("de", 0.7))
    assert read(line, "es") == LanguageReading("es", "es", "hint")
    monkeypatch.setattr(module, "_detect", lambda _text: ("de", 0.95))
    assert read(line, "es") == LanguageReading("en", "de", "detector")


def test_the_real_detector_reads_plain_lines() -> None:
    assert read("dubbio amletico irrisolto stamani").language == "it"
    assert read("siempre llueve sobre mojado temprano").language == "es"


@pytest.mark.parametrize(("text", "language"), [("nodos libres", "es"), ("nodi liberi", "it"), ("free nodes", "en")])
def test_a_few_words_of_the_field_tell_the_language(text: str, language: str) -> None:
    assert read(text).language == language


def test_the_words_that_tell_a_language_are_those_of_the_corpus() -> None:
    told = telling_words([line for line in corpus.lines() if not line.held_out])
    assert load("language_words.yaml", dict[str, str]) == told
