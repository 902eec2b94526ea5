"""Chat text is cleaned of markup without losing what people typed."""

import pytest

from rules.questions.text import MAX_CHARACTERS, clean, fold, sentences, words


@pytest.mark.parametrize(
    ("typed", "cleaned"),
    [
        ("<@U02AB34CD> can two pods share a gpu?", "can two pods share a gpu?"),
        ("see <https://example.org/a?b=c|this page> :thinking_face: ok", "see this page ok"),
        ("look at https://example.org/x now", "look at now"),
        ("is *time-slicing* or _MIG_ better ~now~", "is time-slicing or MIG better now"),
        ("&gt; 5 &amp; &lt; 9", "5 & < 9"),
        ("what\u200bever\u00a0you say", "whatever you say"),
        ("l’immagine “nuova”", 'l\'immagine "nuova"'),
        ("<!here> <#C123|gpu-team> hola", "gpu-team hola"),
        ("snake_case stays and nvidia.com/gpu too", "snake_case stays and nvidia.com/gpu too"),
    ],
)
def test_markup_goes_and_words_stay(typed: str, cleaned: str) -> None:
    assert clean(typed) == cleaned


def test_accents_and_case_do_not_matter() -> None:
    assert fold("¿CUÁNTO Más così PERCHÉ") == "¿cuanto mas cosi perche"


def test_hyphens_part_words_and_numbers_keep_their_dots() -> None:
    assert [word.folded for word in words("time-slicing on CUDA 12.4, don't")] == [
        "time",
        "slicing",
        "on",
        "cuda",
        "12.4",
        "dont",
    ]


def test_words_know_where_they_stand() -> None:
    text = "¿Qué GPU?"
    assert [text[word.start : word.end] for word in words(text)] == ["Qué", "GPU"]


def test_sentences_end_at_marks_and_lines_but_not_inside_versions() -> None:
    found = sentences("Driver 535.104.05 here. Is it ok?\nThanks")
    assert [(sentence.text, sentence.asks) for sentence in found] == [
        ("Driver 535.104.05 here", False),
        ("Is it ok", True),
        ("Thanks", False),
    ]


def test_a_very_long_message_is_read_up_to_a_limit() -> None:
    assert len(clean("gpu " * 100_000)) <= MAX_CHARACTERS
