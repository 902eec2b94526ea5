"""How well questions are read: tables of scores, and the least that is accepted. Wrong and sure is the worst."""

from collections import Counter, defaultdict

import pytest

from rules import knowledge
from rules.questions import language as language_module
from rules.questions import read
from tests.evaluation.scoring import (
    Line,
    allowed_topics,
    confident,
    development,
    foreign,
    frequent,
    others,
    reply,
    table,
)


def test_the_corpora_are_large_enough_and_hold_no_line_twice() -> None:
    per_topic = Counter((line.label, line.language) for line in frequent())
    assert {label for label, _ in per_topic} == set(knowledge.topics())
    assert len(per_topic) == 12
    assert min(per_topic.values()) >= 15
    assert len(others()) >= 150
    assert len(foreign()) >= 30
    texts = [line.text for line in (*frequent(), *others(), *foreign())]
    assert len(texts) == len(set(texts))


def test_frequent_questions_are_answered_with_their_topic() -> None:
    rows: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    wrong: list[Line] = []
    for line in frequent():
        given = reply(line.text)
        right = confident(given) and given.topic == line.label
        for key in ((line.label, line.language), (line.label, "all"), ("all", "all")):
            rows[key].update(n=1, topic=right, language=given.language == line.language)
        if confident(given) and not right:
            wrong.append(line)
    print("\n" + table(rows, ("topic", "language")))
    assert wrong == []
    assert rows["all", "all"]["topic"] / rows["all", "all"]["n"] >= 0.98
    assert rows["all", "all"]["language"] / rows["all", "all"]["n"] >= 0.99
    assert min(count["topic"] / count["n"] for count in rows.values()) >= 0.93


def test_nothing_else_is_answered_as_a_frequent_question() -> None:
    rows: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    wrong: list[Line] = []
    for line in others():
        given = reply(line.text)
        for key in ((line.label, line.language), (line.label, "all"), ("all", "all")):
            rows[key].update(
                n=1,
                kind=given.kind == line.label,
                clarify=given.clarify,
                wrong=confident(given),
                language=given.language == line.language,
            )
        if confident(given):
            wrong.append(line)
    print("\n" + table(rows, ("kind", "clarify", "wrong", "language")))
    assert wrong == []
    assert rows["all", "all"]["clarify"] / rows["all", "all"]["n"] <= 0.03
    assert rows["all", "all"]["language"] / rows["all", "all"]["n"] >= 0.98
    assert rows["all", "all"]["kind"] / rows["all", "all"]["n"] >= 0.75


def test_other_languages_are_told_so_in_english() -> None:
    named = 0
    for line in foreign():
        given = reply(line.text)
        assert given.abstain, line
        assert given.language == "en", line
        assert given.kind == "out_of_scope", line
        named += read(line.text).language.name == line.language
    print(f"\nother languages: {len(foreign())} lines, {named / len(foreign()):.1%} called by their name")
    assert named / len(foreign()) >= 0.95


def test_the_development_set_measures_what_is_answered_so_far() -> None:
    answered = set(knowledge.topics())
    rows: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    wrong: list[str] = []
    for question in development():
        given = reply(question["text"])
        expected = allowed_topics(question)
        asked = question["kind"] == "faq" and question["expect"]["topic"] in answered
        label = "frequent question" if asked else f"other: {question['kind']}"
        right = confident(given) and given.topic in expected
        for key in ((label, question["lang"]), (label, "all")):
            rows[key].update(
                n=1,
                right=right if asked else not confident(given) or right,
                wrong=confident(given) and not right,
                language=given.language == question["lang"],
            )
        if confident(given) and not right:
            wrong.append(question["id"])
    print("\n" + table(rows, ("right", "wrong", "language")))
    assert wrong == []
    assert rows["frequent question", "all"]["right"] / rows["frequent question", "all"]["n"] >= 0.9
    languages = Counter(reply(question["text"]).language == question["lang"] for question in development())
    assert languages[True] / languages.total() >= 0.95


def test_the_word_list_alone_tells_nearly_every_language(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []

    def count(text: str) -> tuple[str, float]:
        asked.append(text)
        return "und", 0.0

    monkeypatch.setattr(language_module, "_detect", count)
    lines = (*frequent(), *others())
    right = sum(read(line.text).language.language == line.language for line in lines)
    print(f"\ndetector asked for {len(asked)} of {len(lines)} lines; right without it: {right / len(lines):.1%}")
    assert len(asked) / len(lines) <= 0.05
    assert right / len(lines) >= 0.97
