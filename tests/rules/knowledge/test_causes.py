"""Causes of errors: three languages that say the same, rules that exist, steps that can be taken."""

import re

import pytest

from rules.checks import RULES
from rules.knowledge.causes import causes
from rules.language import LANGUAGES

RULE_IDS = {rule.id for rule in RULES}


@pytest.mark.parametrize("name", sorted(causes()))
def test_a_cause_says_the_same_in_every_language(name: str) -> None:
    cause = causes()[name]
    for part in (cause.check, cause.fix):
        assert len({len(part.of(language)) for language in LANGUAGES}) == 1
        assert part.en
        codes = [set(re.findall(r"`([^`]+)`", " ".join(part.of(language)))) for language in LANGUAGES]
        assert codes[0] == codes[1] == codes[2]
    for language in LANGUAGES:
        assert 20 <= len(cause.means.in_(language)) <= 420
        assert len(cause.name.in_(language)) <= 70


@pytest.mark.parametrize("name", sorted(causes()))
def test_a_cause_names_rules_that_exist(name: str) -> None:
    assert [rule for rule in causes()[name].rules if rule not in RULE_IDS] == []
