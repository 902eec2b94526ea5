"""Facts that are built again after a change are those that are built from nothing."""

import gc
import sys
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any
from unittest.mock import patch

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from rules.checks import RULES
from rules.engine import evaluate
from rules.exemptions import EXEMPT
from rules.facts.cluster import ClusterFacts, FactsBuilder, build
from rules.facts.objects import Node, OtherObject, Pod
from rules.facts.pods import pod_facts
from rules.facts.prices import bundled
from rules.policy import Policy
from tests.rules.facts.make import NOW
from tests.rules.facts.make import node as make_node
from tests.rules.facts.make import pod as make_pod

PRICES = bundled()
KINDS = ("Node", "Pod", "Event", "ResourceClaim", "ResourceSlice", "DeviceClass", "Machine")
NAMES = ("n1", "n2")
GPU: Mapping[str, Any] = {"nvidia.com/gpu": "2", "cpu": "8", "memory": "32Gi", "pods": "110"}
CPU: Mapping[str, Any] = {"cpu": "8", "memory": "32Gi", "pods": "110"}
ASKING = {"name": "c", "resources": {"limits": {"nvidia.com/gpu": "1"}, "requests": {"cpu": "1"}}}
VISIBLE = {"name": "c", "image": "cuda", "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}
ENDED = {"state": {"terminated": {"exitCode": 0, "finishedAt": "2026-11-30T08:00:00Z"}}}


def other(kind: str, name: str, **fields: Any) -> OtherObject:
    namespace = None if kind == "ResourceSlice" else "default"
    return msgspec.convert(
        {
            "kind": kind,
            "apiVersion": "resource.k8s.io/v1",
            "metadata": {"name": name, "namespace": namespace},
            **fields,
        },
        OtherObject,
    )


def slice_of(node: str, devices: int) -> OtherObject:
    listed = [{"name": f"gpu-{number}", "attributes": {"type": {"string": "gpu"}}} for number in range(devices)]
    spec = {"nodeName": node, "driver": "gpu.nvidia.com", "pool": {"name": node, "generation": 1}, "devices": listed}
    return other("ResourceSlice", f"slice-{node}", spec=spec)


def claim(name: str, held_on: str | None) -> OtherObject:
    spec = {"devices": {"requests": [{"name": "g", "exactly": {"deviceClassName": "gpu.nvidia.com", "count": 2}}]}}
    result = {"driver": "gpu.nvidia.com", "pool": held_on, "device": "gpu-0"}
    status = {"allocation": {"devices": {"results": [result]}}} if held_on else {}
    return other("ResourceClaim", name, spec=spec, status=status)


nodes = st.builds(
    lambda name, amounts, pool, machine: make_node(
        name,
        {"karpenter.sh/nodepool": pool, "nvidia.com/gpu.present": "true"} if "nvidia.com/gpu" in amounts else {},
        amounts,
        annotations={"machine.openshift.io/machine": f"default/{machine}"},
    ),
    st.sampled_from(NAMES),
    st.sampled_from([GPU, CPU]),
    st.sampled_from(["a", "b"]),
    st.sampled_from(["m1", "m2"]),
)
machines = st.lists(
    st.builds(
        lambda name, labels: msgspec.convert(
            {"kind": "Machine", "metadata": {"name": name, "namespace": "default", "labels": labels}}, OtherObject
        ),
        st.sampled_from(["m1", "m2"]),
        st.sampled_from([{}, {"machine.openshift.io/cluster-api-machineset": "set"}]),
    ),
    max_size=2,
    unique_by=lambda item: item.metadata.name,
)
containers = st.sampled_from(
    [
        ASKING,
        {"name": "c", "resources": {"requests": {"cpu": "2", "memory": "1Gi"}}},
        VISIBLE,
    ]
)
claiming = {"resourceClaims": [{"name": "g", "resourceClaimName": "c1"}]}
pods = st.builds(
    lambda name, container, on, phase, spec: make_pod(
        name, container, on=on, phase=phase, spec=spec, status={"containerStatuses": [{"name": "c", **ENDED}]}
    ),
    st.sampled_from([f"p{number}" for number in range(4)]),
    containers,
    st.sampled_from(["n1", "n1", "n2", "gone", None]),
    st.sampled_from(["Running", "Running", "Pending", "Succeeded"]),
    st.sampled_from([{}, claiming]),
)


class Objects(msgspec.Struct, frozen=True):
    nodes: Sequence[Node]
    pods: Sequence[Pod]
    others: Mapping[str, tuple[OtherObject, ...]]


@st.composite
def histories(draw: st.DrawFn) -> list[Objects]:
    """States of a cluster one after the other: in each, objects come, go, change, or change places."""
    held: dict[str, Node] = {}
    running: dict[str, Pod] = {}
    others: dict[str, tuple[OtherObject, ...]] = {}
    states = []
    for step in range(draw(st.integers(2, 5))):
        for fresh_node in draw(st.lists(nodes, max_size=1 if step else 4)):
            held[fresh_node.metadata.name] = fresh_node
        for fresh_pod in draw(st.lists(pods, max_size=4)):
            running[fresh_pod.metadata.name] = fresh_pod
        for name in draw(st.lists(st.sampled_from(sorted(running)), max_size=2)) if running else ():
            running.pop(name, None)
        if held and draw(st.integers(0, 4)) == 0:
            held.pop(draw(st.sampled_from(sorted(held))))
        if draw(st.booleans()):
            others["ResourceClaim"] = (claim("c1", draw(st.sampled_from([None, *NAMES]))),)
        if draw(st.booleans()):
            sliced = draw(st.dictionaries(st.sampled_from(NAMES), st.integers(0, 2), max_size=2))
            others["ResourceSlice"] = tuple(slice_of(name, devices) for name, devices in sorted(sliced.items()))
        if draw(st.booleans()):
            others["Machine"] = tuple(draw(machines))
        listed = list(running.values())
        shown = list(draw(st.permutations(listed))) if draw(st.booleans()) else listed
        states.append(Objects(tuple(held.values()), tuple(shown), dict(others)))
    return states


def fresh(state: Objects, step: int) -> ClusterFacts:
    return build("c", NOW + timedelta(minutes=step), prices=PRICES, **_all(state))


def _all(state: Objects) -> dict[str, Any]:
    return {"nodes": state.nodes, "pods": state.pods, "others": state.others, "read_kinds": KINDS}


@settings(max_examples=150)
@given(histories())
def test_facts_after_any_changes_equal_facts_from_nothing(states: list[Objects]) -> None:
    builder = FactsBuilder("c", PRICES)
    for step, state in enumerate(states):
        facts = builder.build(NOW + timedelta(minutes=step), **_all(state))
        assert facts == fresh(state, step)
        assert [pod.pod for pod in facts.pods] == list(state.pods)
        held = {id(pod) for pod in facts.pods}
        assert all(id(pod) in held for node in facts.nodes for pod in node.pods)


@settings(max_examples=25)
@given(histories())
def test_reports_after_any_changes_equal_reports_from_nothing(states: list[Objects]) -> None:
    """What rules remember of a node that stays belongs to it still when others, and the time, have changed."""
    builder = FactsBuilder("c", PRICES)
    for step, state in enumerate(states):
        facts = builder.build(NOW + timedelta(minutes=step), **_all(state))
        assert evaluate(facts, Policy(), RULES) == evaluate(fresh(state, step), Policy(), RULES)


def test_a_claim_that_holds_a_device_changes_its_node_alone() -> None:
    builder = FactsBuilder("c", PRICES)
    held = (make_node("n1", gpus=CPU), make_node("n2", gpus=CPU))
    slices = tuple(slice_of(name, 2) for name in NAMES)
    requested = []
    built = []
    for on in (None, "n1", "n2"):
        others = {"ResourceSlice": slices, "ResourceClaim": (claim("c1", on),)}
        built.append(builder.build(NOW, nodes=held, pods=(), others=others, read_kinds=KINDS).nodes)
        requested.append([node.resources[0].requested for node in built[-1]])
    assert requested == [[0, 0], [1, 0], [0, 1]]
    assert built[1][1] is built[0][1]


def test_what_did_not_change_is_not_derived_again() -> None:
    """One pod of many changes: it and its node are derived anew, and nothing else is."""
    held = [make_node(f"n{number}", gpus=GPU) for number in range(20)]
    running = [make_pod(f"p{number}", on=f"n{number % 20}") for number in range(200)]
    builder = FactsBuilder("c", PRICES)
    first = builder.build(NOW, nodes=held, pods=running, read_kinds=KINDS)
    running[7] = make_pod("p7", on="n7", phase="Succeeded")
    derived: list[str] = []

    def counted(pod: Pod, *rest: Any) -> Any:
        derived.append(pod.metadata.name)
        return pod_facts(pod, *rest)

    with patch("rules.facts.derive.pod_facts", counted):
        second = builder.build(NOW + timedelta(hours=1), nodes=held, pods=running, read_kinds=KINDS)
    assert derived == ["p7"]
    same = [one is other for one, other in zip(first.nodes, second.nodes, strict=True)]
    assert [number for number, kept in enumerate(same) if not kept] == [7]
    assert [pod.ref.name for pod in second.nodes[7].pods] == [f"p{7 + 20 * turn}" for turn in range(1, 10)]


def test_facts_of_pods_that_are_gone_are_let_go() -> None:
    builder = FactsBuilder("c", PRICES)
    for turn in range(30):
        pods_now = [make_pod(f"p{number}-{turn}") for number in range(200)]
        facts = builder.build(NOW, nodes=[make_node()], pods=pods_now, read_kinds=KINDS)
    assert len(facts.pods) == 200
    assert builder.remembered_pods <= 1500


def test_facts_go_when_nobody_holds_them() -> None:
    """Not only when garbage is collected: a service builds facts again and again."""
    held = [make_node(name, {"nvidia.com/gpu.present": "true"}, gpus=GPU) for name in NAMES]
    waiting = [make_pod(f"p{number}", ASKING, on=None, phase="Pending") for number in range(3)]
    old = {"creationTimestamp": NOW - timedelta(hours=2)}
    waiting = [
        msgspec.structs.replace(item, metadata=msgspec.structs.replace(item.metadata, **old)) for item in waiting
    ]
    running = [make_pod(f"r{number}", ASKING, on="n1", owner="Job") for number in range(3)]
    exempt = [make_pod("e", ASKING, on="n1", annotations={EXEMPT: "idle-gpu-node"})]
    facts = build("c", NOW, nodes=held, pods=[*waiting, *running, *exempt], read_kinds=KINDS, prices=PRICES)
    gc.disable()
    try:
        assert evaluate(facts, Policy(), RULES).failed_rules == ()
        nodes_of_facts = facts.nodes
        del facts
        assert sys.getrefcount(nodes_of_facts) == 2  # this name, and the argument
    finally:
        gc.enable()
