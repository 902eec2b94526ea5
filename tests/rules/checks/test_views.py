"""A view of all GPU nodes says of each what judging it alone says, and works it out per kind of node."""

from collections.abc import Iterable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from rules.checks._scheduling import Fit, at_the_door, fit
from rules.checks._views import View, view_of
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from tests.rules.checks.kit import Plain, cluster, node, pod

PRESENT = "nvidia.com/gpu.present"
TAINTS: tuple[Plain, ...] = (
    {"key": "nvidia.com/gpu", "value": "true", "effect": "NoSchedule"},
    {"key": "team", "value": "a", "effect": "NoExecute"},
    {"key": "gpu-xid-error", "effect": "NoSchedule"},
    {"key": "soft", "effect": "PreferNoSchedule"},
    {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
)
TOLERATIONS: tuple[Plain, ...] = (
    {"key": "nvidia.com/gpu", "operator": "Exists"},
    {"key": "team", "value": "a"},
    {"key": "team", "value": "b"},
    {"operator": "Exists", "effect": "NoSchedule"},
)
POOLS = ("a", "b", "c")


def affinity(*expressions: Plain) -> dict[str, Any]:
    terms = {"nodeSelectorTerms": [{"matchExpressions": list(expressions)}]}
    return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}


AFFINITIES: tuple[dict[str, Any], ...] = (
    {},
    affinity({"key": "pool", "operator": "In", "values": ["a", "c"]}),
    affinity({"key": "pool", "operator": "NotIn", "values": ["a"]}),
    affinity({"key": "kubernetes.io/hostname", "operator": "In", "values": ["gpu-0", "gpu-2"]}),
    affinity({"key": "absent", "operator": "Exists"}),
)


@st.composite
def clusters(draw: st.DrawFn) -> tuple[ClusterFacts, list[PodFacts]]:
    objects: list[Plain] = []
    for index in range(draw(st.integers(0, 5))):
        name = f"gpu-{index}"
        objects.append(
            node(
                name,
                gpus={"nvidia.com/gpu": draw(st.integers(0, 4)), "cpu": draw(st.integers(2, 5))},
                capacity={"nvidia.com/gpu": 4},
                ready=draw(st.sampled_from(["True", "True", "False"])),
                labels={PRESENT: "true", "pool": draw(st.sampled_from(POOLS)), "kubernetes.io/hostname": name},
                taints=draw(st.lists(st.sampled_from(TAINTS), max_size=2)),
                unschedulable=draw(st.sampled_from([None, None, True])),
            )
        )
        for holder in range(draw(st.integers(0, 3))):
            gpus = draw(st.sampled_from([{}, {"nvidia.com/gpu": 1}, {"nvidia.com/gpu": 2}]))
            objects.append(_asking(draw, pod(f"on-{index}-{holder}", on=name, gpus=gpus)))
    for index in range(draw(st.integers(1, 6))):
        asked = draw(st.sampled_from([{}, {"nvidia.com/gpu": 1}, {"nvidia.com/gpu": 3}, {"amd.com/gpu": 1}]))
        spec = dict(draw(st.sampled_from(AFFINITIES)))
        if draw(st.booleans()):
            spec["nodeSelector"] = {"pool": draw(st.sampled_from(POOLS))}
        spec["tolerations"] = draw(st.lists(st.sampled_from(TOLERATIONS), max_size=2))
        objects.append(_asking(draw, pod(f"wait-{index}", gpus=asked, **spec)))
    facts = cluster(*objects)
    return facts, [item for item in facts.pods if item.node_name is None]


def _asking(draw: st.DrawFn, made: dict[str, Any]) -> dict[str, Any]:
    resources = made["spec"]["containers"][0].setdefault("resources", {})
    amounts = draw(st.sampled_from([{}, {"cpu": "1"}, {"cpu": "2500m", "memory": "20Gi"}, {"example.com/nic": "1"}]))
    resources["requests"] = {**resources.get("requests", {}), **amounts}
    return made


@given(clusters())
def test_a_view_says_of_every_node_what_judging_it_alone_says(drawn: tuple[ClusterFacts, list[PodFacts]]) -> None:
    facts, pods = drawn
    for waiting in pods:
        alone = [fit(waiting, item, item.left) for item in facts.gpu_nodes]
        assert list(view_of(facts, waiting)) == alone


@given(clusters())
def test_parts_of_a_view_keep_the_order_of_the_cluster(drawn: tuple[ClusterFacts, list[PodFacts]]) -> None:
    facts, pods = drawn
    view = view_of(facts, pods[0])
    few = view.where(lambda group: len(group.obstacles) < 2)
    assert [item.node for item in few] == list(few.nodes) == _nodes(item for item in view if len(item.obstacles) < 2)
    assert len(few) == len(few.nodes) == len(few.places)
    assert view.kinds == {kind for item in view for kind in item.obstacles}
    assert list(view.full.nodes) == _nodes(item for item in view if item.obstacles == {"in_use"})
    assert view.has_free is any(not item.obstacles for item in view)


def _nodes(fits: Iterable[Fit]) -> list[NodeFacts]:
    return [item.node for item in fits]


def test_a_view_of_nothing_is_empty() -> None:
    assert list(View()) == []
    assert View().nodes == ()
    assert not View().has_free


def test_nodes_of_a_kind_are_judged_once(monkeypatch: Any) -> None:
    """Twice the nodes of the same kinds and twice the pods with the same demands ask for no further judgement."""

    def judgements(size: int) -> int:
        seen = 0

        def counted(*arguments: Any) -> Any:
            nonlocal seen
            seen += 1
            return at_the_door(*arguments)

        with monkeypatch.context() as patch:
            patch.setattr("rules.checks._views.at_the_door", counted)
            nodes = [node(f"gpu-{index}", taints=[TAINTS[index % 2]]) for index in range(size)]
            pods = [pod(f"wait-{index}", gpus={"nvidia.com/gpu": 1 + index % 3}) for index in range(size)]
            facts = cluster(*nodes, *pods)
            for waiting in facts.pending_gpu_pods:
                view_of(facts, waiting)
        return seen

    assert judgements(24) == judgements(12) == 6
