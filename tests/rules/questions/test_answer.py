"""What people get: the right topic in their language, honest about the rest."""

import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rules import knowledge
from rules.answers import Kind
from rules.language import LANGUAGES, Language
from rules.questions import answer, read
from rules.questions.compose import answerable, compose, subject
from rules.questions.composers import Known
from rules.questions.model import weights
from rules.questions.reading import Score
from rules.questions.words import say, sentences
from tests.rules.questions.facts import cluster, gpu_node

FAQ = {
    "drivers_preinstalled": (
        "Are GPU drivers preinstalled?",
        "¿Vienen los drivers instalados?",
        "I driver sono già installati?",
    ),
    "multiple_workloads_per_gpu": (
        "Can two pods share one GPU?",
        "¿Pueden dos pods compartir una GPU?",
        "Due pod possono condividere una GPU?",
    ),
    "single_gpu_worth_it": (
        "Is Kubernetes worth it for one GPU?",
        "¿Compensa Kubernetes para una sola GPU?",
        "Conviene Kubernetes per una sola GPU?",
    ),
    "multinode_checklist": (
        "What should I check for multi-node training?",
        "¿Qué reviso para entrenamiento multinodo?",
        "Cosa controllo per il training multi-nodo?",
    ),
}
EVERY = [
    (topic, language, text) for topic, texts in FAQ.items() for language, text in zip(LANGUAGES, texts, strict=True)
]


@pytest.mark.parametrize(("topic", "language", "text"), EVERY)
def test_a_frequent_question_gets_its_topic_with_the_verdict_first(topic: str, language: Language, text: str) -> None:
    reply = answer(text)
    told = knowledge.topic(topic, language)
    assert (reply.language, reply.kind, reply.topic, reply.verdict) == (language, "faq", topic, told.verdict)
    assert not reply.abstain
    assert not reply.clarify
    assert reply.text.startswith(told.lead)
    assert told.why in reply.text
    assert told.verify in reply.text
    assert say("heading.verify", language) in reply.text
    assert reply.sources == told.sources
    assert reply.follow_ups == told.follow_ups
    assert reply.matched
    assert all(re.fullmatch(r"[a-z_0-9]+: .+", match) for match in reply.matched)


def test_matched_quotes_the_words_of_the_question() -> None:
    reply = answer("¿puedo meter VARIOS modelos en la misma tarjeta?")
    quoted = [match.partition(": ")[2] for match in reply.matched]
    assert "VARIOS modelos" in quoted
    assert any("misma tarjeta" in words for words in quoted)


def test_one_message_with_two_frequent_questions_gets_both() -> None:
    reply = answer("Are drivers preinstalled? And can two pods share one GPU?")
    assert (reply.topic, reply.also_topics[0]) == ("drivers_preinstalled", "multiple_workloads_per_gpu")
    for topic in ("drivers_preinstalled", "multiple_workloads_per_gpu"):
        assert knowledge.topic(topic, "en").lead in reply.text
    assert say("question.multiple_workloads_per_gpu", "en") not in reply.follow_ups


@pytest.mark.parametrize(
    ("text", "language", "topic", "other"),
    [
        (
            "are drivers preinstalled, and how much does an H100 cost per hour?",
            "en",
            "drivers_preinstalled",
            "provider",
        ),
        (
            "¿pueden dos pods compartir una gpu? ¿qué nodos están ociosos ahora?",
            "es",
            "multiple_workloads_per_gpu",
            "cluster",
        ),
        (
            "cosa controllo per il training multi-nodo? e quanto costa una H100?",
            "it",
            "multinode_checklist",
            "provider",
        ),
    ],
)
def test_a_question_of_another_kind_beside_it_is_a_part_of_its_own(
    text: str, language: Language, topic: str, other: Kind
) -> None:
    reply = answer(text)
    assert (reply.topic, reply.abstain) == (topic, False)
    assert knowledge.topic(topic, language).lead in reply.text
    assert [part.kind for part in read(text).parts] == ["faq", other]


def test_a_statement_before_a_question_is_its_context() -> None:
    assert answer("We rent a single A100. Is Kubernetes overkill?").topic == "single_gpu_worth_it"
    assert answer("Vamos a entrenar en 4 nodos. ¿Qué reviso antes?").topic == "multinode_checklist"


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("how much is an H100 per hour?", "provider"),
        ("which provider offers H200 in europe?", "provider"),
        ("does driver 535.104.05 work with cuda 12.4?", "compat"),
        ("quante A100 servono per un modello da 70B?", "sizing"),
        ("qué nodos están ociosos ahora mismo?", "cluster"),
        ("0/5 nodes are available: 5 Insufficient nvidia.com/gpu", "error"),
    ],
)
def test_another_kind_is_recognised(text: str, kind: str) -> None:
    reply = answer(text)
    assert reply.kind == kind
    assert not reply.abstain or all(question in reply.text for question in reply.follow_ups)


def test_a_question_about_one_provider_keeps_provider_and_field() -> None:
    reply = answer("Do EKS nodes come with the drivers installed?")
    assert (reply.kind, reply.provider, reply.field) == ("provider", "aws", "drivers_preinstalled")


@pytest.mark.parametrize(
    "text",
    ["what's for lunch?", "¿quién ganó el partido de fútbol?", "che tempo fa domani?", "asdf qwer", "🙂", "", "?"],
)
def test_anything_else_is_declined_with_what_can_be_asked(text: str) -> None:
    reply = answer(text)
    assert (reply.kind, reply.abstain, reply.topic) == ("out_of_scope", True, None)
    assert say("can", reply.language) in reply.text


@pytest.mark.parametrize(("text", "language"), [("hello", "en"), ("hola", "es"), ("ciao!", "it")])
def test_a_greeting_is_greeted(text: str, language: Language) -> None:
    assert answer(text).text.startswith(say("hello", language))


def test_what_may_be_one_of_two_topics_is_asked_back() -> None:
    reading = read("is it overkill for a single GPU?")
    main = reading.main
    rival = Score("faq", "why_kubernetes", 0.4)
    unsure = msgspec.structs.replace(main, sure=False, rivals=(rival,))
    reply = compose(msgspec.structs.replace(reading, parts=(unsure,)), Known())
    assert (reply.clarify, reply.abstain, reply.topic) == (True, False, None)
    assert reply.follow_ups == (
        say("question.single_gpu_worth_it", "en"),
        say("question.why_kubernetes", "en"),
    )
    assert all(question in reply.text for question in reply.follow_ups)


def test_a_question_without_a_subject_is_asked_back() -> None:
    reply = answer("¿cuál es mejor?")
    assert (reply.clarify, reply.abstain, reply.kind) == (True, False, "out_of_scope")
    assert reply.text.startswith(say("clarify.more", "es"))


def test_another_language_gets_a_polite_english_answer_that_says_so() -> None:
    reply = answer("Les pilotes sont-ils déjà installés sur les nœuds ?", language="es")
    assert (reply.language, reply.kind, reply.abstain) == ("en", "out_of_scope", True)
    assert "French" in reply.text
    assert reply.text.startswith("I'm sorry")


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_hint_decides_for_terms_alone(language: Language) -> None:
    assert answer("MIG?", language=language).language == language


def test_the_text_of_a_stranger_is_never_echoed() -> None:
    reply = answer("&lt;!channel&gt; how much is an H100? <!here> can two pods share a gpu?")
    assert "channel" not in reply.text
    assert "<!" not in reply.text


def test_a_cluster_named_in_the_question_is_the_only_one_shown() -> None:
    clusters = [cluster("prod", [gpu_node("p1")]), cluster("lab", [gpu_node("l1")])]
    both = answer("can two pods share a gpu?", clusters=clusters)
    one = answer("can two pods share a gpu in lab?", clusters=clusters)
    assert "`p1`" in both.text
    assert "`l1`" in both.text
    assert "`p1`" not in one.text
    assert "`l1`" in one.text
    assert one.sources[-1].label == "lab"
    assert one.sources[-1].as_of == "2026-11-30"


def test_clusters_do_not_change_what_a_question_is_read_as() -> None:
    clusters = [cluster("prod", [gpu_node("p1")])]
    for _, _, text in EVERY:
        bare, full = answer(text), answer(text, clusters=clusters)
        assert (bare.topic, bare.verdict, bare.matched, bare.language) == (
            full.topic,
            full.verdict,
            full.matched,
            full.language,
        )
        assert full.evidence
        assert not bare.evidence


def test_every_label_that_can_be_read_has_words_in_three_languages() -> None:
    for name in weights().labels:
        kind, _, label = name.partition(":")
        assert all(subject(msgspec.convert(kind, Kind), label, language) for language in LANGUAGES)
    for topic in knowledge.topics():
        assert f"question.{topic}" in sentences()
        assert f"faq:{topic}" in weights().labels


WORDS = st.sampled_from(
    [
        *(
            "gpu",
            "driver",
            "pod",
            "kubernetes",
            "nodes",
            "share",
            "2",
            "one",
            "A100",
            "installed",
            "training",
            "check",
            "?",
        ),
        *(
            ".",
            ",",
            "the",
            "la",
            "il",
            "is",
            "es",
            "per",
            "<@U1>",
            "12.4",
            "*x*",
            "cuda",
            "MIG",
            "posso",
            "puedo",
            "and",
        ),
    ]
)


@settings(max_examples=150, deadline=None)
@given(st.one_of(st.text(max_size=200), st.lists(WORDS, max_size=40).map(" ".join)))
def test_any_text_gets_the_same_well_formed_answer_every_time(text: str) -> None:
    first, second = answer(text), answer(text)
    assert first == second
    assert first.language in LANGUAGES
    assert first.text
    assert not (first.abstain and first.clarify)
    assert first.abstain or first.clarify or answerable(first.kind)
    assert read(text) == read(text)
