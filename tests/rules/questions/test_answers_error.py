"""Answers to errors: cause, evidence of the clusters, checks and fixes."""

from datetime import UTC, datetime
from pathlib import Path

import pytest

from rules.facts.cluster import ClusterFacts, build
from rules.facts.decode import decode_objects
from rules.facts.prices import PriceBook
from rules.knowledge.causes import causes
from rules.language import LANGUAGES, Language
from rules.questions.causes import causes as read_causes
from rules.questions.composers import Known
from tests.rules.questions.asking import composed, told

CLUSTERS = Path(__file__).parents[2] / "data" / "clusters"
NOW = datetime(2026, 11, 30, 9, 0, tzinfo=UTC)


def sample(name: str) -> ClusterFacts:
    path = CLUSTERS / f"{name}.json"
    objects = decode_objects(path.read_bytes(), path.name)
    return build(
        name, NOW, nodes=objects.nodes, pods=objects.pods, events=objects.events, others=objects.others,
        read_kinds=objects.kinds, prices=PriceBook(),
    )  # fmt: skip


def test_every_cause_that_is_read_can_be_told() -> None:
    assert set(read_causes()) == set(causes())


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("cause", sorted(causes()))
def test_every_cause_says_what_it_is_how_to_check_and_how_to_fix(cause: str, language: Language) -> None:
    piece = composed("error", cause, "it does not run", language)
    text = told(piece)
    assert causes()[cause].means.in_(language) in text
    assert all(step in text for step in causes()[cause].check.of(language))
    assert all(step in text for step in causes()[cause].fix.of(language))
    assert piece.fields["cause"] == cause


def test_the_message_is_quoted_and_its_sources_are_shown() -> None:
    text = "CrashLoop, RuntimeError: The provided PTX was compiled with an unsupported toolchain."
    piece = composed("error", "ptx_toolchain", text)
    assert "`provided PTX was compiled with an unsupported toolchain`" in told(piece)
    assert piece.sources
    assert all(source.url and source.as_of for source in piece.sources)


def test_a_message_cannot_break_out_of_its_quotation() -> None:
    piece = composed("error", "driver_too_old", "unsatisfied condition: cuda>=12.8 `<!channel>`")
    assert "`<!channel>`" not in told(piece)


def test_findings_of_the_clusters_are_the_evidence() -> None:
    facts = sample("karpenter-idle-bill")
    report = Known(clusters=[facts]).report(facts)
    cause = next(
        name for name, cause in causes().items() if any(finding.rule in cause.rules for finding in report.findings)
    )
    found = [finding for finding in report.findings if finding.rule in causes()[cause].rules]
    piece = composed("error", cause, "why?", known=Known(clusters=[facts]))
    assert facts.name in told(piece)
    assert piece.evidence == found[0].evidence


def test_a_cluster_that_shows_nothing_is_told_apart_from_one_that_was_not_read() -> None:
    healthy = build("fine", NOW, nodes=(), pods=(), read_kinds=("Node", "Pod"), prices=PriceBook())
    seen = told(composed("error", "shm_too_small", "bus error", known=Known(clusters=[healthy])))
    assert "In `fine` I see no sign of it" in seen
    blind = build("blind", NOW, nodes=(), pods=(), read_kinds=("Node",), prices=PriceBook())
    seen = told(composed("error", "shm_too_small", "bus error", known=Known(clusters=[blind])))
    assert "In `blind` I cannot tell" in seen
    assert "Pod" in seen
