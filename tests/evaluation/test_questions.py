"""How well questions are read: tables of scores, and the least that is accepted. Wrong and sure is the worst."""

from collections import Counter, defaultdict

import pytest

from rules import knowledge
from rules.questions import corpus, read
from rules.questions import language as language_module
from tests.evaluation.readings import COLUMNS, corpus_lines, measure, questions
from tests.evaluation.scoring import development, foreign, frequent, others, reply, table


def test_the_corpora_are_large_enough_and_hold_no_line_twice() -> None:
    per_topic = Counter((line.label, line.language) for line in frequent())
    assert {label for label, _ in per_topic} <= set(knowledge.topics())
    assert len(per_topic) == 12
    assert min(per_topic.values()) >= 15
    assert len(others()) >= 150
    assert len(foreign()) >= 30
    texts = [line.text for line in (*frequent(), *others(), *foreign())]
    assert len(texts) == len(set(texts))


def test_what_is_measured_is_not_learnt() -> None:
    learnt = {line.text.casefold() for line in corpus.lines() if not line.held_out}
    measured = {question["text"].casefold() for question in development()}
    measured |= {line.text.casefold() for line in corpus.lines() if line.held_out}
    assert not learnt & measured


def test_the_development_set_is_read() -> None:
    rows = measure(questions(development()))
    print("\n" + table(rows, COLUMNS))
    every = rows["all", "all"]
    assert every["kind"] / every["n"] >= 0.98
    assert every["core"] / every["n"] >= 0.89
    assert every["language"] / every["n"] >= 0.96
    assert every["wrong"] / every["n"] <= 0.01


def test_lines_of_the_corpus_that_were_not_learnt_are_read() -> None:
    rows = measure(corpus_lines(line for line in corpus.lines() if line.held_out))
    print("\n" + table(rows, COLUMNS))
    every = rows["all", "all"]
    assert every["kind"] / every["n"] >= 0.72
    assert every["core"] / every["n"] >= 0.55


def test_frequent_questions_are_read_as_their_topic() -> None:
    rows: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for line in frequent():
        reading = read(line.text)
        right = reading.main.topic == line.label
        wrong = reading.main.sure and not right
        spoken = reading.language.language == line.language
        for key in ((line.label, line.language), (line.label, "all"), ("all", "all")):
            rows[key].update(n=1, topic=right, wrong=wrong, language=spoken)
    print("\n" + table(rows, ("topic", "wrong", "language")))
    assert rows["all", "all"]["topic"] / rows["all", "all"]["n"] >= 0.88
    assert rows["all", "all"]["language"] / rows["all", "all"]["n"] >= 0.99


def test_other_questions_are_read_as_their_kind() -> None:
    rows: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for line in others():
        reading = read(line.text)
        right = reading.main.kind == line.label
        spoken = reading.language.language == line.language
        for key in ((line.label, line.language), (line.label, "all"), ("all", "all")):
            rows[key].update(n=1, kind=right, wrong=reading.main.sure and not right, language=spoken)
    print("\n" + table(rows, ("kind", "wrong", "language")))
    assert rows["all", "all"]["kind"] / rows["all", "all"]["n"] >= 0.68
    assert rows["all", "all"]["language"] / rows["all", "all"]["n"] >= 0.98


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
