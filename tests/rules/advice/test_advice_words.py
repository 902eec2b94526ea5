"""Every key of an advice has its words in three languages, and an advice reads without holes."""

import re
from pathlib import Path
from typing import Any

import pytest

from rules.advice.lines import lines
from rules.advice.report import document
from rules.advice.words import words
from rules.language import LANGUAGES, Language
from tests.rules.advice.catalogue import advice
from tests.rules.advice.test_advise import REQUESTS

SOURCES = Path(__file__).parents[3] / "rules/advice"
PLACEHOLDER = re.compile(r"{([a-z_]+)}")


def test_every_word_is_used_and_every_key_has_words() -> None:
    code = "".join(file.read_text("utf-8") for file in sorted(SOURCES.glob("*.py")) if file.name != "readiness.py")
    known = words()
    for group in (known.remarks, known.reasons, known.changes, known.labels):
        for key in group:
            assert f'"{key}"' in code.replace("'", '"') or key.startswith("billed_by_"), key
    for key in re.findall(r'Remark\(\s*key="([a-z_]+)"', code):
        assert key in known.remarks, key
    for key in re.findall(r'Reason\("([a-z_]+)"', code):
        assert key in known.reasons, key


def test_all_languages_name_the_same_values() -> None:
    for key, text in words().remarks.items():
        named = {language: set(PLACEHOLDER.findall(text.in_(language))) for language in LANGUAGES}
        assert named["en"] == named["es"] == named["it"], key


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("number", range(len(REQUESTS)))
def test_an_advice_is_said_without_holes(number: int, language: Language) -> None:
    request: dict[str, Any] = {**REQUESTS[number], "budget_usd_month": 300, "marketplace": False, "tenants": 2}
    told = "\n".join(lines(document(advice(**request), language), language))
    assert not PLACEHOLDER.search(told)
    assert "None" not in told
    assert words().labels["checklist"].in_(language) in told
