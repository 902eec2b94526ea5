"""The grammar of terms, and typos: forgiven in words, never in models."""

import pytest

from rules.questions.entities import is_gpu_model
from rules.questions.lexicon import Lexicon, lexicon
from rules.questions.text import words


def found(terms: str, text: str, sets: dict[str, str] | None = None) -> list[str]:
    book = Lexicon(sets or {}, {"it": {"any": terms}})
    corrected = book.correct(words(text))
    return [" ".join(corrected[match.start : match.end]) for match in book.find(corrected)]


@pytest.mark.parametrize(
    ("terms", "text", "expected"),
    [
        ("shared disk", "one shared disk here", ["shared disk"]),
        ("install*", "installing things", ["installing"]),
        ("a/b c", "b c", ["b c"]),
        ("very? big", "big", ["big"]),
        ("very? big", "very big", ["very big"]),
        ("one . pod", "one small pod", ["one small pod"]),
        ("one . pod", "one very small pod", []),
        ("one .. pod", "one very very small pod", ["one very very small pod"]),
        ("<many> pods", "12 pods", ["12 pods"]),
        ("<many> pods", "1 pods", []),
        ("<n> pods", "1 pods", ["1 pods"]),
        ("one <gpu>", "one A100", ["one a100"]),
        ("one <gpu>", "one A1000000", []),
        ("{thing} only", "pod only", ["pod only"]),
    ],
)
def test_terms_match_as_their_grammar_says(terms: str, text: str, expected: list[str]) -> None:
    assert found(terms, text, {"thing": "pod job"}) == expected


def test_the_longest_term_wins_at_a_place() -> None:
    assert found("gpu | gpu operator", "the gpu operator") == ["gpu operator"]


def test_a_term_that_names_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="names nothing"):
        Lexicon({}, {"it": {"any": "<wrong>"}})


@pytest.mark.parametrize(
    ("typo", "word"),
    [
        ("preinstaled", "preinstalled"),
        ("instalaods", "instalados"),
        ("kuberentes", "kubernetes"),
        ("trainig", "training"),
        ("mutli", "multi"),
        ("condivdere", "condividere"),
        ("drivrs", "drivers"),
    ],
)
def test_typos_of_the_fields_words_are_mended(typo: str, word: str) -> None:
    assert lexicon().correct(words(typo)) == (word,)


@pytest.mark.parametrize("word", ["a10", "a100", "l4", "l40", "l40s", "h100", "h200", "12.4", "535", "mi300x", "4090"])
def test_models_and_versions_are_never_mended(word: str) -> None:
    assert lexicon().correct(words(word)) == (word,)


@pytest.mark.parametrize(
    "word", ["river", "diver", "cards", "note", "plug", "moving", "share", "entrenador", "server", "sharp", "costa"]
)
def test_common_words_are_not_bent_into_words_of_the_field(word: str) -> None:
    assert lexicon().correct(words(word)) == (word,)


@pytest.mark.parametrize("model", ["a10", "a10g", "a100", "h100", "l4", "l40s", "t4", "mi300x", "gb200", "4090"])
def test_gpu_models_are_known_exactly(model: str) -> None:
    assert is_gpu_model(model)


@pytest.mark.parametrize("word", ["a1", "a1000", "l400", "h10", "x100", "100", "40900", "gpu"])
def test_what_looks_like_a_model_is_none(word: str) -> None:
    assert not is_gpu_model(word)
