"""Rules on disruption budgets, spot nodes and pods that cannot be moved."""

from datetime import timedelta
from typing import Any

import pytest

from rules.findings import ObjectRef, Severity
from tests.rules.checks.kit import Plain, findings, keys, node, only, pod, stamp
from tests.rules.scaling import KARPENTER, autoscaler, budget, deployment, node_pool, replica

CPU = node("cpu-1", gpus={}, labels={"role": "web"})
GPU = {"nvidia.com/gpu": 1}
SPOT = {"karpenter.sh/capacity-type": "spot", "nvidia.com/gpu.present": "true"}
BLOCKS = {"disruptionsAllowed": 0, "currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1}
UNCOUNTED = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0}
STRICT = budget({"minAvailable": 1}, BLOCKS)
PDB_RULES = ("pdb-blocks-drain", "pdb-on-jobs", "spot-pdb-zero")


def worker(kind: str, api: str) -> dict[str, Any]:
    made = pod("train-0", on="gpu-1", gpus=GPU, owner=(kind, "train"), labels={"app": "a"})
    made["metadata"]["ownerReferences"][0]["apiVersion"] = api
    return made


def speaking(*objects: Plain) -> list[str]:
    return [rule for rule in PDB_RULES if findings(rule, *objects)]


@pytest.mark.parametrize(
    ("objects", "speaks"),
    [
        ([node(), replica(), STRICT], ["pdb-blocks-drain"]),
        ([node(labels=SPOT), replica(), STRICT], ["spot-pdb-zero"]),
        ([node(), worker("PyTorchJob", "kubeflow.org/v1"), budget({"maxUnavailable": 1}, UNCOUNTED)], ["pdb-on-jobs"]),
        ([node(), worker("Job", "batch/v1"), budget({"minAvailable": "50%"}, UNCOUNTED)], ["pdb-on-jobs"]),
        ([node(), replica(), budget({"minAvailable": 1}, {**BLOCKS, "disruptionsAllowed": 1})], []),
        ([node(), replica(), budget({"minAvailable": 2}, {**BLOCKS, "desiredHealthy": 2})], []),
        ([node(gpus={}, labels={"a": "b"}), replica(gpus=0), STRICT], []),
    ],
    ids=["plain", "spot", "pytorchjob", "job", "allows", "pods-are-sick", "no-gpu-node"],
)
def test_one_rule_speaks_about_a_budget(objects: list[Plain], speaks: list[str]) -> None:
    assert speaking(*objects) == speaks


def test_without_budgets_being_read_nothing_is_said() -> None:
    assert speaking(node(), replica()) == []


def test_two_budgets_on_a_gpu_pod_are_one_trouble_of_its_workload() -> None:
    both = [budget({"maxUnavailable": 1}, name=name) for name in ("one", "two")]
    found = only("pdb-multiple", node(), replica("chat-1"), replica("chat-2"), *both)
    assert found.value("owner") == "ml/chat"
    assert found.value("budgets") == ["ml/one", "ml/two"]
    assert findings("pdb-multiple", node(), replica(gpus=0), *both) == []


EXPIRES = {"spec": {"expireAfter": "168h"}}


def test_expiry_without_an_end_is_told_while_pods_block() -> None:
    on_pool = node(labels=KARPENTER)
    assert (
        only("expire-without-tgp", on_pool, node_pool(template=EXPIRES), replica(), STRICT).severity == Severity.MEDIUM
    )
    leaving = node(labels=KARPENTER)
    leaving["metadata"]["deletionTimestamp"] = stamp(timedelta(hours=3))
    stuck = only("expire-without-tgp", leaving, node_pool(template=EXPIRES), replica(), STRICT)
    assert (stuck.severity, keys(stuck)) == (Severity.HIGH, ["stuck"])
    ended = {"spec": {"expireAfter": "168h", "terminationGracePeriod": "1h"}}
    never = {"spec": {"expireAfter": "Never"}}
    for template in (ended, never):
        assert findings("expire-without-tgp", on_pool, node_pool(template=template), replica(), STRICT) == []
    assert findings("expire-without-tgp", on_pool, node_pool(template=EXPIRES), replica()) == []


def test_an_expired_node_is_told_with_the_budget_that_keeps_it() -> None:
    found = only("pdb-on-expired-node", node(labels=KARPENTER), node_pool(template=EXPIRES), replica(), STRICT)
    assert ObjectRef("PodDisruptionBudget", "ml", "guard") in found.objects
    young = node(labels=KARPENTER, age=timedelta(days=3))
    assert findings("pdb-on-expired-node", young, node_pool(template=EXPIRES), replica(), STRICT) == []


def test_a_claim_says_better_when_its_node_expires() -> None:
    claim = {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodeClaim",
        "metadata": {"name": "gpu-x"},
        "spec": {"expireAfter": "Never"},
        "status": {"nodeName": "gpu-1"},
    }
    objects = [node(labels=KARPENTER), node_pool(template=EXPIRES), replica(), STRICT]
    assert findings("pdb-on-expired-node", *objects, claim) == []


UNDERUSED = {"consolidationPolicy": "WhenEmptyOrUnderutilized"}


def test_a_single_replica_on_a_moving_pool_is_told() -> None:
    found = only(
        "single-replica-consolidation", node(labels=KARPENTER), node_pool(disruption=UNDERUSED), deployment(), replica()
    )
    assert keys(found) == ["budgets_unknown"]
    assert found.severity == Severity.LOW


@pytest.mark.parametrize(
    ("pool", "more"),
    [
        ({"consolidationPolicy": "WhenEmpty"}, [deployment()]),
        ({**UNDERUSED, "budgets": [{"nodes": "0"}]}, [deployment()]),
        ({**UNDERUSED, "consolidateAfter": "Never"}, [deployment()]),
        (UNDERUSED, [deployment(replicas=3)]),
        (UNDERUSED, [deployment(), STRICT]),
    ],
    ids=["when-empty", "budget", "never", "replicas", "guarded"],
)
def test_a_replica_that_is_not_moved_needs_no_guard(pool: Plain, more: list[Plain]) -> None:
    objects = [node(labels=KARPENTER), node_pool(disruption=pool), replica(), *more]
    assert findings("single-replica-consolidation", *objects) == []


def test_a_system_pod_belongs_elsewhere_when_there_is_an_elsewhere() -> None:
    dns = pod("coredns-1", namespace="kube-system", on="gpu-1", owner=("ReplicaSet", "coredns-x"))
    only("system-pod-on-gpu", node(), CPU, dns)
    assert findings("system-pod-on-gpu", node(), dns) == []
    daemon = pod("proxy", namespace="kube-system", on="gpu-1", owner=("DaemonSet", "kube-proxy"))
    assert findings("system-pod-on-gpu", node(), CPU, daemon) == []
    guard = budget({"maxUnavailable": 1})
    guard["metadata"]["namespace"] = "kube-system"
    dns["metadata"]["labels"] = {"app": "a"}
    assert findings("system-pod-on-gpu", node(), CPU, dns, guard) == []


def volume(spec: Plain) -> list[Plain]:
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "ml"},
            "spec": {"volumeName": "pv-1"},
        },
        {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "pv-1"}, "spec": spec},
    ]


def test_a_local_volume_is_told_unless_nobody_scales_anyway() -> None:
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["gpu-1"]}]}
    local = volume({"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}})
    user = pod(on="gpu-1", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
    found = only("local-pv-blocks", node(), autoscaler(), user, *local)
    assert ObjectRef("PersistentVolumeClaim", "ml", "data") in found.objects
    assert findings("local-pv-blocks", node(), user, *local, read=("Node", "Pod", "Deployment")) == []
    assert findings("local-pv-blocks", node(), autoscaler(), user, *volume({"csi": {}})) == []


def spot_job(**spec: Any) -> list[Plain]:
    job = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train", "namespace": "ml"}, "spec": spec}
    return [node(labels=SPOT), worker("Job", "batch/v1"), job]


def test_work_that_nothing_restarts_is_told_on_spot_nodes_only() -> None:
    bare = pod(on="gpu-1", gpus=GPU)
    assert keys(only("spot-bare-pod", node(labels=SPOT), bare)) == ["bare"]
    assert findings("spot-bare-pod", node(), bare) == []
    assert findings("spot-bare-pod", node(labels=SPOT), pod(on="gpu-1")) == []
    found = only("spot-bare-pod", *spot_job(backoffLimit=0))
    assert found.objects[0] == ObjectRef("Job", "ml", "train")
    assert findings("spot-bare-pod", *spot_job(backoffLimit=3)) == []
    assert findings("spot-bare-pod", *spot_job()) == []
    spares = {"rules": [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]}
    assert findings("spot-bare-pod", *spot_job(backoffLimit=0, podFailurePolicy=spares)) == []


def test_an_owner_that_is_no_controller_is_an_owner() -> None:
    owned = pod(on="gpu-1", gpus=GPU)
    owned["metadata"]["ownerReferences"] = [{"apiVersion": "x/v1", "kind": "Session", "name": "s", "uid": "1"}]
    assert findings("spot-bare-pod", node(labels=SPOT), owned) == []


READ = ("Node", "Pod", "Event", "Deployment", "DaemonSet")
AWS = "aws:///us-east-1b/i-0143"


def daemon(name: str) -> Plain:
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": name, "namespace": "kube-system"},
        "spec": {},
    }


def test_self_managed_spot_nodes_need_a_handler() -> None:
    labels = {"node.kubernetes.io/lifecycle": "spot", "nvidia.com/gpu.present": "true"}
    alone = node(labels=labels, providerID=AWS)
    only("spot-no-handler", alone, read=READ)
    assert findings("spot-no-handler", alone, daemon("aws-node-termination-handler"), read=READ) == []
    assert findings("spot-no-handler", alone, read=("Node", "Pod", "Deployment")) == []
    managed = node(labels={**labels, "eks.amazonaws.com/nodegroup": "gpu"}, providerID=AWS)
    assert findings("spot-no-handler", managed, read=READ) == []
    elsewhere = node(
        labels={"cloud.google.com/gke-spot": "true", "nvidia.com/gpu.present": "true"}, providerID="gce://p/z/i"
    )
    assert findings("spot-no-handler", elsewhere, read=READ) == []


def karpenter(**container: Any) -> Plain:
    image = "public.ecr.aws/karpenter/controller:1.14.0"
    spec = {"template": {"spec": {"containers": [{"name": "controller", "image": image, **container}]}}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "karpenter", "namespace": "k"},
        "spec": spec,
    }


def test_karpenter_needs_its_queue() -> None:
    spot = node(labels={**KARPENTER, **SPOT}, providerID=AWS)
    assert only("spot-no-handler", spot, karpenter(), read=READ).remedy == "karpenter"
    queue = karpenter(env=[{"name": "INTERRUPTION_QUEUE", "value": "q"}])
    assert findings("spot-no-handler", spot, queue, read=READ) == []
    assert findings("spot-no-handler", spot, karpenter(args=["--interruption-queue=q"]), read=READ) == []
    assert findings("spot-no-handler", spot, read=READ) == []
