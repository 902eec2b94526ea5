"""What remedies tell people to write into the settings is accepted by the settings."""

import re

import msgspec
import pytest
import yaml

from rules.checks import RULES
from rules.language import LANGUAGES
from rules.words import rule_words
from service.settings import Settings

_SETTING = re.compile(r"`((?:prices|policy|audit|alerts|registry|clusters): [\[{][^`]*)`")
_PLACEHOLDER = re.compile(r"\{[a-z_]+\}")
SNIPPETS = sorted(
    {
        snippet
        for rule in RULES
        for text in rule_words(rule.id).remedies.values()
        for language in LANGUAGES
        for snippet in _SETTING.findall(text.in_(language))
    }
)


def test_there_is_such_advice() -> None:
    assert SNIPPETS


@pytest.mark.parametrize("snippet", SNIPPETS)
def test_a_remedy_speaks_the_language_of_the_settings(snippet: str) -> None:
    msgspec.convert(yaml.safe_load(_PLACEHOLDER.sub("x", snippet)), Settings)
