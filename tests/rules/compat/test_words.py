"""Sentences: complete in three languages, all used, none too long."""

import re
from pathlib import Path

import pytest
import yaml

from rules.language import LANGUAGES

ROOT = Path(__file__).parents[3] / "rules/compat"
WORDS = yaml.safe_load((ROOT / "words.yaml").read_text("utf-8"))
SENTENCES = {key: texts for section in WORDS.values() for key, texts in section.items()}


@pytest.mark.parametrize("key", SENTENCES)
def test_sentence_is_there_in_every_language_with_the_same_placeholders(key: str) -> None:
    texts = SENTENCES[key]
    assert tuple(texts) == LANGUAGES
    placeholders = [set(re.findall(r"{(\w+)}", texts[language])) for language in LANGUAGES]
    assert placeholders[0] == placeholders[1] == placeholders[2]


@pytest.mark.parametrize("key", SENTENCES)
def test_sentence_is_short_and_ends_as_one(key: str) -> None:
    for text in SENTENCES[key].values():
        assert len(text) <= 240
        assert text.endswith(".")


@pytest.mark.parametrize("key", SENTENCES)
def test_sentence_is_translated(key: str) -> None:
    assert len(set(SENTENCES[key].values())) == len(LANGUAGES)


def test_sentences_and_code_name_the_same_keys() -> None:
    code = "\n".join(path.read_text("utf-8") for path in ROOT.glob("*.py"))
    said = set(re.findall(r'"([a-z][a-z0-9_]+)"', code))
    unused = {key for section in ("reasons", "warnings") for key in WORDS[section]} - said
    assert unused == set()
    assert set(re.findall(r'\bsay\(\s*"([a-z0-9_]+)"', code)) <= set(SENTENCES)
