"""What the sample clusters give, as people see it in Slack."""

from pathlib import Path

import pytest

from bot.blocks.alert import alert_message
from bot.blocks.answer import answer_message
from rules.checks import RULES
from rules.engine import evaluate
from rules.facts.cluster import build
from rules.facts.decode import decode_objects, newest_timestamp
from rules.facts.prices import bundled
from rules.language import LANGUAGES, Language
from rules.policy import Policy
from rules.questions import answer
from tests.bot.doubles import alert
from tests.bot.test_blocks import assert_sound, shown

CLUSTERS = sorted((Path(__file__).parents[1] / "data" / "clusters").glob("*.json"))
QUESTIONS: dict[Language, tuple[str, ...]] = {
    "en": ("Do GPU drivers come preinstalled?", "Can I run more than one workload per GPU?", "hotel in Rome?"),
    "es": ("¿Vale la pena Kubernetes para una sola GPU?", "¿Qué debo verificar antes de entrenar en varios nodos?"),
    "it": ("Posso eseguire più di un carico di lavoro per GPU?", "I driver GPU sono già installati?"),
}


@pytest.mark.parametrize("file", CLUSTERS, ids=lambda file: file.stem)
def test_every_finding_of_a_sample_cluster_makes_a_sound_alert(file: Path) -> None:
    objects = decode_objects(file.read_bytes(), file.name)
    observed = newest_timestamp(objects)
    assert observed is not None
    facts = build(
        file.stem,
        observed,
        nodes=objects.nodes,
        pods=objects.pods,
        events=objects.events,
        others=objects.others,
        read_kinds=objects.kinds,
        prices=bundled(),
    )
    findings = evaluate(facts, Policy(), RULES).findings
    for finding in findings:
        for language in LANGUAGES:
            message = alert_message(alert(finding=finding), language)
            assert_sound(message)
            # A finding about the whole cluster names no object.
            assert all(ref.name in shown(message) for ref in finding.objects[:1])
            assert_sound(alert_message(alert(finding=finding, resolved_after=60), language))


@pytest.mark.parametrize(("language", "text"), [(key, text) for key, texts in QUESTIONS.items() for text in texts])
def test_every_real_answer_makes_a_sound_message(language: Language, text: str) -> None:
    given = answer(text)
    assert given.language == language
    message = answer_message(given)
    assert_sound(message)
    assert "**" not in shown(message)
