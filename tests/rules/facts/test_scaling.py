"""Who scales nodes, what disruption budgets allow, and what keeps a GPU node up."""

from datetime import timedelta
from typing import Any

import pytest

from rules.facts.budgets import selector_matches
from rules.facts.cluster import ClusterFacts
from rules.facts.scale_down import scale_down_blockers
from rules.facts.scaling import seconds_of
from tests.rules.checks.kit import Plain, cluster, event, node, pod, stamp
from tests.rules.scaling import KARPENTER, POOLED, autoscaler, budget, node_pool, status


def reasons(facts: ClusterFacts, name: str = "gpu-1") -> list[str]:
    found = facts.node(name)
    assert found is not None
    return [item.reason for item in scale_down_blockers(facts, found)]


def test_an_autoscaler_is_known_by_its_image_and_its_flags_are_read() -> None:
    found = cluster(node(), autoscaler("--skip-nodes-with-local-storage=false", "--v=4")).scaling.cluster_autoscaler
    assert found is not None
    assert found.flavour == "own"
    assert found.local_storage_blocks is False
    assert found.system_pods_block is True
    assert found.gpu_threshold == 0.5


@pytest.mark.parametrize(
    "flag", ["--scale-down-gpu-utilization-threshold=0.7", "--scale-down-gpu-utilization-threshold=x"]
)
def test_a_threshold_that_is_no_number_leaves_the_default(flag: str) -> None:
    found = cluster(node(), autoscaler(flag)).scaling.cluster_autoscaler
    assert found is not None
    assert found.gpu_threshold == (0.7 if flag.endswith("7") else 0.5)


def test_one_that_is_stopped_or_scales_no_nodes_is_none() -> None:
    proportional = autoscaler(image="registry.k8s.io/cpa/cluster-proportional-autoscaler:1.9")
    proportional["spec"]["template"]["spec"]["containers"][0]["command"] = ["/cluster-proportional-autoscaler"]
    for other in (autoscaler(replicas=0), proportional):
        facts = cluster(node(), other)
        assert facts.scaling.cluster_autoscaler is None
        assert facts.scaling.absent is True


def test_an_autoscaler_is_known_by_its_pod_where_deployments_were_not_read() -> None:
    facts = cluster(node(), pod("ca-1", namespace="kube-system", on="cpu-1", image="x/cluster-autoscaler:v1.35.0"))
    assert facts.scaling.cluster_autoscaler is not None


def test_events_prove_a_managed_autoscaler() -> None:
    waiting = pod("waits", gpus={"nvidia.com/gpu": 1})
    facts = cluster(node(), waiting, event("NotTriggerScaleUp", "no", waiting, component="cluster-autoscaler"))
    assert facts.scaling.absent is False


def test_that_nobody_scales_is_only_said_when_it_was_looked_for() -> None:
    assert cluster(node()).scaling.absent is None
    assert cluster(node(), read=("Node", "Pod", "Deployment")).scaling.absent is True
    on_oke = node(providerID="ocid1.instance.oc1.eu-frankfurt-1.abc")
    assert cluster(on_oke, read=("Node", "Pod", "Deployment")).scaling.absent is None
    assert cluster(on_oke, read=("Node", "Pod", "Deployment", "ConfigMap")).scaling.absent is True


def test_a_node_group_is_found_by_the_longest_pool_in_its_name() -> None:
    spot = node("gpu-2", labels={**POOLED, "eks.amazonaws.com/nodegroup": "gpu-spot"})
    facts = cluster(node(labels=POOLED), spot, status("eks-gpu-spot-0ac1", minimum=1))
    small, large = facts.nodes
    assert facts.scaling.group(small) is None
    assert facts.scaling.group(large) is not None


def test_a_minimum_keeps_a_node_only_while_the_group_is_at_it() -> None:
    assert reasons(cluster(node(labels=POOLED), status(minimum=1))) == ["min_size"]
    assert reasons(cluster(node(labels=POOLED), status(target=2, minimum=1))) == []


@pytest.mark.parametrize(
    ("how", "reason"),
    [
        ({}, "bare_pod"),
        ({"owner": ("PyTorchJob", "x")}, "custom_controller"),
        ({"owner": ("ReplicaSet", "x"), "volumes": [{"name": "v", "emptyDir": {}}]}, "local_storage"),
        ({"owner": ("ReplicaSet", "x"), "volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}, "local_storage"),
        ({"owner": ("ReplicaSet", "x"), "namespace": "kube-system"}, "system_pod"),
    ],
)
def test_pods_keep_a_node_of_cluster_autoscaler(how: dict[str, Any], reason: str) -> None:
    assert reasons(cluster(node(), autoscaler(), pod(on="gpu-1", **how))) == ["cpu_pods", reason]


def test_a_pod_that_is_safe_to_evict_keeps_nothing() -> None:
    free = pod(on="gpu-1", volumes=[{"name": "v", "emptyDir": {}}])
    free["metadata"]["annotations"] = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"}
    assert reasons(cluster(node(), autoscaler(), free)) == ["cpu_pods"]


@pytest.mark.parametrize("value", ["false", "on-completion"])
def test_a_pod_marked_unsafe_keeps_its_node(value: str) -> None:
    marked = pod(on="gpu-1", owner=("ReplicaSet", "x"))
    marked["metadata"]["annotations"] = {"cluster-autoscaler.kubernetes.io/safe-to-evict": value}
    assert reasons(cluster(node(), autoscaler(), marked)) == ["cpu_pods", "safe_to_evict_false"]


def test_volumes_that_are_named_safe_do_not_count() -> None:
    free = pod(
        on="gpu-1", owner=("ReplicaSet", "x"), volumes=[{"name": "a", "emptyDir": {}}, {"name": "b", "emptyDir": {}}]
    )
    free["metadata"]["annotations"] = {"cluster-autoscaler.kubernetes.io/safe-to-evict-local-volumes": "a, b"}
    assert reasons(cluster(node(), autoscaler(), free)) == ["cpu_pods"]


def test_memory_is_no_local_storage_and_aks_does_not_mind_any() -> None:
    shm = pod(on="gpu-1", owner=("ReplicaSet", "x"), volumes=[{"name": "v", "emptyDir": {"medium": "Memory"}}])
    assert reasons(cluster(node(), autoscaler(), shm)) == ["cpu_pods"]
    disk = pod(on="gpu-1", owner=("ReplicaSet", "x"), volumes=[{"name": "v", "emptyDir": {}}])
    on_aks = node(labels={"kubernetes.azure.com/agentpool": "gpu", "nvidia.com/gpu.present": "true"})
    assert reasons(cluster(on_aks, status("aks-gpu-1-vmss"), disk)) == ["cpu_pods"]


def test_karpenter_does_not_mind_what_cluster_autoscaler_does() -> None:
    bare = pod(on="gpu-1", volumes=[{"name": "v", "emptyDir": {}}])
    assert reasons(cluster(node(labels=KARPENTER), node_pool(), bare)) == ["cpu_pods"]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"disruption": {"consolidateAfter": "Never"}}, "consolidation_never"),
        ({"disruption": {"consolidationPolicy": "WhenEmpty"}}, "policy_when_empty"),
        ({"disruption": {"budgets": [{"nodes": "0"}]}}, "budget_zero"),
        ({"disruption": {"budgets": [{"nodes": "0%", "reasons": ["Empty", "Underutilized"]}]}}, "budget_zero"),
        ({"replicas": 2}, "static_pool"),
    ],
)
def test_a_node_pool_keeps_its_nodes(spec: Plain, reason: str) -> None:
    facts = cluster(node(labels=KARPENTER), node_pool(**spec), pod(on="gpu-1"))
    assert reasons(facts) == ["cpu_pods", reason]


@pytest.mark.parametrize(
    "budgets",
    [
        [{"nodes": "10%"}],
        [{"nodes": "0", "schedule": "0 9 * * 1-5", "duration": "8h"}],
        [{"nodes": "0", "reasons": ["Drifted"]}],
    ],
)
def test_a_budget_that_leaves_a_way_keeps_nothing(budgets: list[Plain]) -> None:
    facts = cluster(node(labels=KARPENTER), node_pool(disruption={"budgets": budgets}))
    assert reasons(facts) == []


def test_a_claim_tells_more_than_the_label() -> None:
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "gpu-x", "annotations": {"karpenter.sh/do-not-disrupt": "true"}},
        "status": {"nodeName": "gpu-1", "conditions": [{"type": "Initialized", "status": "False"}]},
    }
    facts = cluster(node(labels=KARPENTER), claim)
    assert reasons(facts) == ["not_initialized", "do_not_disrupt_node"]


@pytest.mark.parametrize(("value", "protects"), [("true", True), ("30m", False), ("4h", True), ("soon", False)])
def test_do_not_disrupt_may_have_an_end(value: str, protects: bool) -> None:
    marked = pod(on="gpu-1", status={"startTime": stamp(timedelta(hours=1))})
    marked["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": value}
    assert ("do_not_disrupt_pod" in reasons(cluster(node(labels=KARPENTER), marked))) is protects


def test_a_label_or_a_fixed_pool_says_that_nothing_scales() -> None:
    off = node(labels={"oke.oraclecloud.com/cluster_autoscaler": "disabled", "nvidia.com/gpu.present": "true"})
    assert reasons(cluster(off, status())) == ["pool_fixed"]
    labels = {"compute.coreweave.com/node-pool": "h100", "nvidia.com/gpu.present": "true"}
    fixed = {
        "apiVersion": "compute.coreweave.com/v1alpha1",
        "kind": "NodePool",
        "metadata": {"name": "h100"},
        "spec": {"targetNodes": 4},
    }
    assert reasons(cluster(node(labels=labels), fixed)) == ["pool_fixed"]
    assert reasons(cluster(node(labels=labels), {**fixed, "spec": {"autoscaling": True}})) == []


OK = {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}


@pytest.mark.parametrize(
    ("spec", "status", "blocks"),
    [
        ({"maxUnavailable": 0}, OK, True),
        ({"minAvailable": 1}, OK, True),
        ({"minAvailable": "100%"}, None, True),
        ({"minAvailable": 1}, None, True),
        ({"maxUnavailable": 1}, None, False),
        ({"minAvailable": "50%"}, None, False),
        ({}, None, False),
        ({"minAvailable": 1}, {**OK, "disruptionsAllowed": 1}, False),
        ({"minAvailable": 2}, {**OK, "desiredHealthy": 2}, False),
        ({"maxUnavailable": 0}, {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 0}, True),
        ({"maxUnavailable": "x"}, None, False),
    ],
)
def test_a_budget_blocks_when_it_allows_nothing_though_all_is_well(
    spec: Plain, status: Plain | None, blocks: bool
) -> None:
    facts = cluster(node(), pod(on="gpu-1", labels={"app": "a"}), budget(spec, status))
    assert facts.budgets[0].blocks is blocks


def test_a_budget_without_pods_blocks_nobody() -> None:
    assert cluster(node(), budget({"maxUnavailable": 0}, OK)).budgets[0].blocks is False


def test_two_budgets_on_one_pod_are_named() -> None:
    both = [budget({"maxUnavailable": 1}, name=name) for name in ("one", "two")]
    facts = cluster(node(labels=KARPENTER), pod(on="gpu-1", labels={"app": "a"}), *both)
    assert reasons(facts) == ["cpu_pods", "several_pdbs"]


def test_a_volume_of_one_node_pins_its_pod() -> None:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["gpu-1"]}]}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "pv-1"},
        "spec": {"local": {"path": "/x"}, "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}},
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "ml"},
        "spec": {"volumeName": "pv-1"},
    }
    user = pod(on="gpu-1", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    assert reasons(cluster(node(labels=KARPENTER), user, claim, volume)) == ["cpu_pods", "local_volume"]
    zonal = {**volume, "spec": {"csi": {}}}
    assert reasons(cluster(node(labels=KARPENTER), user, claim, zonal)) == ["cpu_pods"]


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        (None, False),
        ({}, True),
        ({"matchLabels": {"app": "a"}}, True),
        ({"matchLabels": {"app": "b"}}, False),
        ({"matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}]}, True),
        ({"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["a"]}]}, False),
        ({"matchExpressions": [{"key": "x", "operator": "Exists"}]}, False),
        ({"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}, True),
        ({"matchExpressions": [{"key": "x", "operator": "Near"}]}, False),
    ],
)
def test_selectors_match_as_in_kubernetes(selector: Plain | None, matches: bool) -> None:
    assert selector_matches(selector, {"app": "a"}) is matches


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("720h", 2592000),
        ("1h30m", 5400),
        ("90s", 90),
        ("1.5h", 5400),
        ("Never", None),
        ("", None),
        (None, None),
        ("5", None),
    ],
)
def test_go_durations_are_read(text: object, seconds: float | None) -> None:
    assert seconds_of(text) == seconds
