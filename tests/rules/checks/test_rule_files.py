"""Every rule has its module, its words, its documentation and two examples that hold."""

import importlib
import re
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import rules.checks
from rules.checks import RULES
from rules.engine import Rule, evaluate
from rules.facts.cluster import build
from rules.facts.decode import decode_objects
from rules.findings import Finding
from rules.language import LANGUAGES
from rules.policy import Policy
from rules.words import (
    DETAIL_BUDGET,
    TITLE_BUDGET,
    Example,
    evidence_rows,
    placeholders,
    render,
    rule_words,
    shared_words,
)
from tests.rules.checks.kit import prices

FOLDER = Path(rules.checks.__file__).parent
FAMILIES = {
    "drivers",
    "compatibility",
    "sharing",
    "scheduling",
    "network",
    "storage",
    "spot",
    "billing",
    "training",
    "inference",
    "health",
}
each_rule = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)


def stems(suffix: str) -> set[str]:
    return {file.stem for file in FOLDER.glob(f"*{suffix}") if not file.stem.startswith("_")}


def test_the_registry_names_exactly_the_modules_and_files_of_words() -> None:
    registered = [rule.id.replace("-", "_") for rule in RULES]
    assert len(set(registered)) == len(registered)
    assert set(registered) == stems(".py") == stems(".yaml")
    assert registered == sorted(registered)


@each_rule
def test_a_rule_is_documented_and_lies_in_the_module_of_its_name(rule: Rule) -> None:
    module = importlib.import_module(f"rules.checks.{rule.id.replace('-', '_')}")
    assert module.RULE is rule
    assert rule.doc == module.__doc__
    for heading in ("What:", "Why:", "Fix:", "Source:"):
        assert f"\n{heading}\n" in rule.doc
    assert f"\nSeeds: {', '.join(rule.seeds)}\n" in rule.doc
    assert rule.family in FAMILIES
    assert "Node" in rule.needs


def observed(example: Example, rule: Rule) -> list[Finding]:
    listed = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": example.objects})
    objects = decode_objects(listed, f"{rule.id}.yaml")
    facts = build(
        "example",
        example.observed_at,
        nodes=objects.nodes,
        pods=objects.pods,
        events=objects.events,
        others=objects.others,
        read_kinds={*objects.kinds, "Node", "Pod", "Event"},
        prices=prices(),
    )
    result = evaluate(facts, Policy(), [rule])
    assert result.failed_rules == ()
    assert result.skipped_rules == ()
    return list(result.findings)


@each_rule
def test_the_example_that_fails_is_found_with_its_remedy(rule: Rule) -> None:
    example = rule_words(rule.id).examples.fails
    found = observed(example, rule)
    assert [item.remedy for item in found] == [example.remedy]


@each_rule
def test_the_example_that_passes_stays_silent(rule: Rule) -> None:
    assert observed(rule_words(rule.id).examples.passes, rule) == []


def unknown_in(rule: Rule, found: Finding) -> Iterator[str]:
    """Placeholders of what the finding says for which it has no value."""
    words, shared = rule_words(rule.id), shared_words().notes
    own = {item.name for item in found.evidence}
    of_notes = {item.name for note in found.notes for item in note.values}
    yield from set(placeholders(words.title.en + words.detail.en)) - own
    yield from set(placeholders(words.remedies[found.remedy].en)) - own - of_notes
    for note in found.notes:
        text = (words.notes.get(note.key) or shared[note.key]).en
        yield from set(placeholders(text)) - own - {item.name for item in note.values}


def check_rendering(found: Finding) -> None:
    """What any rendered finding must keep; used for every finding of every sample too."""
    rule = next(item for item in RULES if item.id == found.rule)
    assert found.objects, "a finding is about something"
    assert found.evidence
    assert list(unknown_in(rule, found)) == []
    given = {item.name for item in found.evidence} | {item.name for note in found.notes for item in note.values}
    labels = {**shared_words().evidence, **rule_words(rule.id).evidence}
    assert given <= set(labels)
    for language in LANGUAGES:
        words = render(found, language)
        assert 0 < len(words.title) <= TITLE_BUDGET
        assert words.remedy
        assert 0 < len(words.summary) <= DETAIL_BUDGET, (language, len(words.summary), words.summary)
        assert all(0 < len(note) <= DETAIL_BUDGET + 100 for note in words.notes)
        assert "{" not in words.title + words.summary
        assert len(evidence_rows(found, language)) == len(found.evidence)


@each_rule
def test_what_the_example_says_keeps_budgets_and_names_only_what_it_knows(rule: Rule) -> None:
    for found in observed(rule_words(rule.id).examples.fails, rule):
        check_rendering(found)


@each_rule
def test_the_three_languages_of_a_sentence_name_the_same_values(rule: Rule) -> None:
    words = rule_words(rule.id)
    texts = {"title": words.title, "detail": words.detail}
    texts |= {f"remedies.{key}": text for key, text in words.remedies.items()}
    texts |= {f"notes.{key}": text for key, text in words.notes.items()}
    for where, text in texts.items():
        named = {language: set(placeholders(text.in_(language))) for language in LANGUAGES}
        assert named["en"] == named["es"] == named["it"], where


@each_rule
def test_commands_are_the_same_in_every_language(rule: Rule) -> None:
    for key, text in rule_words(rule.id).remedies.items():
        spans = {language: text.in_(language).count("`") for language in LANGUAGES}
        assert spans["en"] == spans["es"] == spans["it"], key
        assert spans["en"] % 2 == 0, key


def plain(text: str) -> str:
    """A text without its commands."""
    return re.sub(r"`[^`]*`", "", text)


@each_rule
def test_other_rules_are_called_by_their_ids(rule: Rule) -> None:
    words = rule_words(rule.id)
    ids = {item.id for item in RULES}
    families = "|".join({item.id.split("-")[0] for item in RULES})
    for text in [words.detail, *words.remedies.values(), *words.notes.values()]:
        named = {
            language: set(re.findall(rf"(?<![\w-])(?:{families})(?:-[a-z]+){{2,}}", plain(text.in_(language))))
            for language in LANGUAGES
        }
        assert named["en"] == named["es"] == named["it"]
        assert named["en"] <= ids
