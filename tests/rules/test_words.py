"""Words of findings: numbers, plurals, budgets and what a broken file of words leads to."""

from collections.abc import Mapping
from typing import Any, get_args

import msgspec
import pytest

from rules.findings import Evidence, Finding, Note, ObjectRef, Severity, Unit
from rules.language import LANGUAGES, Language
from rules.words import (
    DETAIL_BUDGET,
    TITLE_BUDGET,
    RuleWords,
    WordsInvalid,
    _condense,
    check_words,
    evidence_rows,
    format_list,
    format_value,
    render,
    rule_words,
)


@pytest.mark.parametrize(
    ("value", "unit", "expected"),
    [
        (3 * 86400 + 5, "s", ("3 days", "3 días", "3 giorni")),
        (26 * 3600, "s", ("26 hours", "26 horas", "26 ore")),
        (7200, "s", ("2 hours", "2 horas", "2 ore")),
        (1, "s", ("1 second", "1 segundo", "1 secondo")),
        (1, "GPU", ("1 GPU", "1 GPU", "1 GPU")),
        (3, "GPU", ("3 GPUs", "3 GPU", "3 GPU")),
        (12345.6, "USD", ("$12,346", "12.346 US$", "12.346 USD")),
        (98.32, "USD/h", ("$98.32 per hour", "98,32 US$ por hora", "98,32 USD all'ora")),
        (0.0526, "USD/h", ("$0.053 per hour", "0,053 US$ por hora", "0,053 USD all'ora")),
        (80.5, "GiB", ("80.5 GiB", "80,5 GiB", "80,5 GiB")),
        ("2026-11-30", "date", ("Nov 30, 2026", "30 nov 2026", "30 nov 2026")),
        (
            "2026-11-30T10:05:00+01:00",
            "date",
            ("Nov 30, 2026 09:05 UTC", "30 nov 2026 09:05 UTC", "30 nov 2026 09:05 UTC"),
        ),
        ("2026-08", "date", ("2026-08", "2026-08", "2026-08")),
        (None, "USD", ("unknown", "desconocido", "sconosciuto")),
        (True, "", ("yes", "sí", "sì")),
        (["a", "b", "c"], "", ("a, b and c", "a, b y c", "a, b e c")),
        ([], "", ("–", "–", "–")),
        ("nvidia.com/gpu", "", ("nvidia.com/gpu",) * 3),
    ],
)
def test_values_read_as_people_of_each_language_write_them(
    value: str | float | bool | list[str] | None, unit: Unit, expected: tuple[str, str, str]
) -> None:
    assert tuple(format_value(value, unit, language) for language in LANGUAGES) == expected


def test_every_unit_has_a_form_for_numbers() -> None:
    for unit in get_args(Unit):
        if unit != "date":
            assert any(character.isdigit() for character in format_value(2, unit, "en"))


@pytest.mark.parametrize(
    ("items", "language", "expected"),
    [
        (["web", "iglesia"], "es", "web e iglesia"),
        (["web", "hielo"], "es", "web y hielo"),
        (["web", "embed"], "it", "web ed embed"),
        (["a", "b", "+3"], "en", "a, b +3"),
    ],
)
def test_lists_are_joined_by_ear(items: list[str], language: Language, expected: str) -> None:
    assert format_list(items, language) == expected


def idle(**changes: Any) -> Finding:
    values: dict[str, Evidence] = {
        "node": Evidence("node", "gpu-1"),
        "idle": Evidence("idle", 3 * 86400, "s"),
        "offered": Evidence("offered", ["nvidia.com/gpu=1"]),
        "cpu_pods": Evidence("cpu_pods", ["shop/web"]),
    }
    values.update({name: Evidence(name, value) for name, value in changes.pop("values", {}).items()})
    return Finding(
        rule="idle-gpu-node",
        severity=Severity.MEDIUM,
        objects=(ObjectRef("Node", "", "gpu-1"),),
        evidence=tuple(values.values()),
        **changes,
    )


def test_a_finding_speaks_three_languages_with_the_same_facts() -> None:
    for language in LANGUAGES:
        words = render(idle(), language)
        assert "gpu-1" in words.title
        assert "nvidia.com/gpu=1" in words.summary
        assert "kubectl drain gpu-1" in words.remedy
    assert len({render(idle(), language).title for language in LANGUAGES}) == 3


def test_notes_follow_the_summary_in_order_with_values_of_their_own() -> None:
    finding = idle(notes=(Note("spot"), Note("pending_elsewhere", (Evidence("waiting", ["ml/a", "ml/b"]),))))
    words = render(finding, "en")
    assert words.detail == "\n".join([words.summary, *words.notes])
    assert words.notes[1].startswith("2 GPU pods wait in the cluster")
    assert "ml/a and ml/b" in words.notes[1]


@pytest.mark.parametrize(
    ("pods", "en", "es", "it"),
    [
        (["shop/web"], "A pod without a GPU keeps", "Un pod sin GPU lo mantiene", "Un pod senza GPU lo tiene"),
        (["a/x", "a/y"], "2 pods without a GPU keep", "2 pods sin GPU lo mantienen", "2 pod senza GPU lo tengono"),
        (["a/v", "a/w", "+40"], "42 pods", "42 pods", "42 pod"),
    ],
)
def test_sentences_agree_in_number(pods: list[str], en: str, es: str, it: str) -> None:
    finding = idle(values={"cpu_pods": pods}, notes=(Note("cpu_pods"),))
    for language, start in (("en", en), ("es", es), ("it", it)):
        assert render(finding, language).notes[0].startswith(start)  # type: ignore[arg-type]


def test_unknown_evidence_is_said_to_be_unknown() -> None:
    assert "for up to unknown" in render(idle(values={"idle": None}), "en").summary


def test_a_long_name_is_shortened_in_the_title_and_whole_in_the_evidence() -> None:
    name = "gpu-" + "x" * 200 + "-end"
    finding = idle(values={"node": name})
    for language in LANGUAGES:
        title = render(finding, language).title
        assert len(title) <= TITLE_BUDGET
        assert "…" in title
        assert "-end" in title
        assert any(row.text == name for row in evidence_rows(finding, language))


def test_a_detail_with_many_long_names_names_fewer_and_counts_the_rest() -> None:
    long = [f"serving/recommendation-model-with-a-long-name-{index}-6c9f7d5b48-l2j5x" for index in range(5)]
    evidence = tuple(
        Evidence(name, [*long, "+7"] if name in ("cpu_pods", "offered") else value)
        for name, value in (("node", "n" * 60), ("idle", 7200), ("cpu_pods", None), ("offered", None))
    )
    words = rewritten(detail=three("{cpu_pods:# pod is|# pods are} on {node}: {cpu_pods}; it offers {offered}."))
    text = _condense(words.detail, {item.name: item for item in evidence}, words, "en")
    assert text.startswith("12 pods are on ")
    assert len(text) <= DETAIL_BUDGET
    assert "+11" in text


def test_json_in_a_command_is_left_alone() -> None:
    words = rewritten(remedies={"default": three('kubectl patch -p \'{"spec":{"n":0}}\' {} {.items} for {node}')})
    check_words("idle-gpu-node", words)


def three(text: str) -> dict[str, str]:
    return {"en": text, "es": text, "it": text}


def rewritten(**changes: Any) -> RuleWords:
    plain: dict[str, Any] = msgspec.to_builtins(rule_words("idle-gpu-node"))
    for key, value in changes.items():
        merged = isinstance(value, Mapping) and key in ("evidence", "notes", "values")
        plain[key] = {**plain[key], **value} if merged else value
    return msgspec.convert(plain, RuleWords)


@pytest.mark.parametrize(
    "changes",
    [
        {"title": three("Node {nodee} is idle")},
        {"detail": three("Since {since_when}")},
        {"notes": {"extra": three("{somebody} keeps it")}},
        {"remedies": {"default": three("Ask {somebody}")}},
        {"remedies": {"other": three("Do something else")}},
        {"title": three("x" * 81)},
        {"name": three("x" * 61)},
        {"detail": three("  ")},
        {"values": {"no_such_evidence": {"a": three("b")}}},
    ],
)
def test_words_that_break_their_rules_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(WordsInvalid):
        check_words("idle-gpu-node", rewritten(**changes))


@pytest.mark.parametrize("missing", LANGUAGES)
def test_a_missing_language_is_refused(missing: str) -> None:
    title = three("Node {node} is idle")
    del title[missing]
    with pytest.raises(msgspec.ValidationError):
        rewritten(title=title)


def test_an_unknown_rule_note_or_remedy_is_our_fault_and_says_so() -> None:
    with pytest.raises(WordsInvalid, match=r"no_such_rule\.yaml is missing"):
        rule_words("no-such-rule")
    with pytest.raises(WordsInvalid, match="no note is called nonsense"):
        render(idle(notes=(Note("nonsense"),)), "en")
    with pytest.raises(WordsInvalid, match="no remedy is called nonsense"):
        render(idle(remedy="nonsense"), "en")
