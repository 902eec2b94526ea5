"""Nothing of people, secrets and clusters leaves with a question."""

import pytest

from rules.facts.cluster import ClusterFacts
from service.reader.discreet import LENGTH, discreet
from service.reader.second import names
from tests.rules.checks.kit import cluster as facts
from tests.rules.checks.kit import node, pod


@pytest.fixture
def cluster() -> ClusterFacts:
    return facts(node("worker7"), pod("trainer-0", namespace="team-red"), pod("plainpod", namespace="ml"))


def sent(text: str, cluster: ClusterFacts | None = None) -> str:
    return discreet(text, names([cluster] if cluster else [], ["moon", "Prod-EU"]))


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("is MIG any good for an H100 with driver 550.54.15?", "is MIG any good for an H100 with driver 550.54.15?"),
        ("why is moon so slow, and prod-eu too?", "why is <cluster> so slow, and <cluster> too?"),
        ("worker7 is weird", "<node> is weird"),
        ("Plainpod and trainer-0 of team-red hang", "<pod> and <pod> of <namespace> hang"),
        ("node gpu-7 and node gpu-8 hang", "node <node> and node <node> hang"),
        ("pod llm-server-0 in namespace research", "pod <pod> in namespace <namespace>"),
        ("apps/finetune:7 on 10.1.2.3", "<image> on <address>"),
        ("registry.example.com/red/tune:7, on", "<host>, on"),
        ("see grafana.corp.example.com, taint node.kubernetes.io/not-ready", None),
        ("<@U123|anna> asks <mailto:anna@example.org|anna@example.org>", "@someone asks <address>"),
    ],
    ids=["plain", "clusters", "node", "pods", "shapes", "objects", "image", "registry", "host", "people"],
)
def test_names_become_marks(text: str, want: str | None, cluster: ClusterFacts) -> None:
    got = sent(text, cluster)
    if want is not None:
        assert got == want
    else:
        assert "corp" not in got
        assert "node.kubernetes.io/not-ready" in got


def test_secrets_do_not_leave() -> None:
    assert "abcdef" not in sent("my token: " + "xoxb-" + "1234-abcdef does not work")


def test_a_pasted_log_is_cut() -> None:
    assert len(sent("hmm " * 5000)) <= LENGTH
