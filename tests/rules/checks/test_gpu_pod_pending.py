"""Why GPU pods wait: causes worked out from objects, and what is never claimed."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from rules.checks import RULES, gpu_pod_pending
from rules.engine import evaluate
from rules.facts.decode import decode_objects, newest_timestamp
from rules.findings import Finding, Severity
from rules.policy import Policy
from rules.words import render
from tests.rules.checks.kit import DATA, Plain, cluster, event, facts_of, keys, node, pod

ALONE = (gpu_pod_pending.RULE,)
ONE = {"nvidia.com/gpu": 1}
GPU_LABELS = {"nvidia.com/gpu.present": "true"}


def waiting(name: str = "train", gpus: dict[str, int] | None = None, **more: Any) -> dict[str, Any]:
    return pod(name, gpus=ONE if gpus is None else gpus, **more)


def taint(key: str, value: str | None = None, effect: str = "NoSchedule") -> dict[str, Any]:
    return {"key": key, "effect": effect, **({"value": value} if value else {})}


def findings(*objects: Plain) -> list[Finding]:
    """What the rule says while no other rule explains it."""
    report = evaluate(cluster(*objects), Policy(), ALONE)
    assert report.failed_rules == ()
    return list(report.findings)


def only(*objects: Plain) -> Finding:
    found = findings(*objects)
    assert len(found) == 1, found
    return found[0]


def cause(*objects: Plain) -> tuple[str, str]:
    found = only(*objects)
    return str(found.value("cause")), found.remedy


BUSY = pod("holder", on="gpu-1", gpus=ONE)


def test_all_gpus_in_use_names_who_holds_them() -> None:
    found = only(node(), BUSY, pod("done", on="gpu-1", gpus=ONE, phase="Succeeded"), waiting())
    assert (found.value("cause"), found.severity) == ("in_use", Severity.LOW)
    assert found.value("free_total") == 0
    assert found.value("holders") == ["ml/holder"]
    assert "ml/done" not in render(found, "en").detail


@pytest.mark.parametrize(
    ("cluster", "asking", "expected"),
    [
        ([node(gpus={"nvidia.com/gpu": 8})], {"nvidia.com/gpu": 16}, ("too_small", "too_small")),
        (
            [node(gpus={"nvidia.com/gpu": 7}, capacity={"nvidia.com/gpu": 8})],
            {"nvidia.com/gpu": 8},
            ("unhealthy", "unhealthy"),
        ),
        ([node(gpus={"nvidia.com/mig-1g.5gb": 7})], ONE, ("not_offered", "other_form")),
        ([node(gpus={"nvidia.com/gpu": 0, "nvidia.com/gpu.shared": 4})], ONE, ("not_offered", "other_form")),
        ([node()], {"nvidia.com/mig-1g.10gb": 1}, ("not_offered", "other_form")),
        ([node(gpus={"amd.com/gpu": 8}, labels={})], ONE, ("not_offered", "other_maker")),
        ([node(gpus={}, labels=GPU_LABELS)], ONE, ("broken", "broken")),
        ([node(gpus={}, labels={})], ONE, ("no_gpu_node", "no_gpu_node")),
        ([node(taints=[taint("sku", "gpu")])], ONE, ("taint", "taint")),
        ([node(taints=[taint("amd-gpu-unhealthy")])], ONE, ("sick", "sick")),
        ([node(unschedulable=True)], ONE, ("cordoned", "cordoned")),
        ([node(ready="Unknown", taints=[taint("node.kubernetes.io/unreachable")])], ONE, ("not_ready", "not_ready")),
        ([node("gpu-1", unschedulable=True), node("gpu-2", taints=[taint("sku", "gpu")])], ONE, ("mixed", "mixed")),
    ],
    ids=[
        "too-small",
        "unhealthy",
        "mig-instead",
        "shared-instead",
        "whole-instead",
        "other-maker",
        "broken",
        "cpu-only",
        "taint",
        "sick",
        "cordoned",
        "dead",
        "mixed",
    ],
)
def test_the_cause_is_worked_out_from_the_objects(
    cluster: list[Plain], asking: dict[str, int], expected: tuple[str, str]
) -> None:
    assert cause(*cluster, waiting(gpus=asking)) == expected


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        ({"key": "sku", "operator": "Exists"}, True),
        ({"key": "sku", "operator": "Equal", "value": "gpu", "effect": "NoSchedule"}, True),
        ({"key": "sku", "value": "gpu"}, True),
        ({"operator": "Exists"}, True),
        ({"key": "sku", "operator": "Equal", "value": "cpu"}, False),
        ({"key": "sku", "operator": "Exists", "effect": "NoExecute"}, False),
        ({"key": "nvidia.com/gpu", "operator": "Exists"}, False),
        ({"key": "sku", "operator": "Equal"}, False),
    ],
)
def test_tolerations_are_compared_as_the_scheduler_compares_them(toleration: dict[str, str], tolerates: bool) -> None:
    found = only(node(taints=[taint("sku", "gpu")]), waiting(tolerations=[toleration]))
    assert (found.value("cause") == "unclear") is tolerates
    assert (found.value("cause") == "taint") is not tolerates


def test_soft_taints_keep_nobody_off() -> None:
    assert cause(node(taints=[taint("sku", "gpu", "PreferNoSchedule")]), waiting())[0] == "unclear"


def affinity(*expressions: dict[str, Any]) -> dict[str, Any]:
    term = {"matchExpressions": list(expressions)}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    return {"nodeAffinity": required}


LABELLED = node(labels={**GPU_LABELS, "zone": "a", "gpus": "8"})


@pytest.mark.parametrize(
    ("spec", "selected"),
    [
        ({"nodeSelector": {"zone": "a"}}, True),
        ({"nodeSelector": {"zone": "b"}}, False),
        ({"affinity": affinity({"key": "zone", "operator": "In", "values": ["a", "b"]})}, True),
        ({"affinity": affinity({"key": "zone", "operator": "NotIn", "values": ["a"]})}, False),
        ({"affinity": affinity({"key": "rack", "operator": "NotIn", "values": ["a"]})}, True),
        ({"affinity": affinity({"key": "zone", "operator": "Exists"})}, True),
        ({"affinity": affinity({"key": "zone", "operator": "DoesNotExist"})}, False),
        ({"affinity": affinity({"key": "gpus", "operator": "Gt", "values": ["4"]})}, True),
        ({"affinity": affinity({"key": "gpus", "operator": "Lt", "values": ["4"]})}, False),
        ({"affinity": affinity({"key": "zone", "operator": "Gt", "values": ["4"]})}, False),
        ({"affinity": affinity()}, False),
    ],
)
def test_selectors_are_read_as_the_scheduler_reads_them(spec: dict[str, Any], selected: bool) -> None:
    assert (cause(LABELLED, waiting(**spec))[0] == "selector") is not selected


def test_nodes_that_the_selector_admits_come_first() -> None:
    pinned = waiting(nodeSelector={"kubernetes.io/hostname": "gpu-1"})
    assert cause(node("gpu-1"), node("gpu-2"), BUSY, pinned)[0] == "in_use"


def test_the_first_obstacle_of_the_message_hides_no_other() -> None:
    found = only(
        node(gpus={"nvidia.com/gpu": 8}, taints=[taint("nvidia.com/gpu", "present")]),
        waiting(
            gpus={"nvidia.com/gpu": 16},
            message="0/1 nodes are available: 1 node(s) had untolerated taint(s).",
        ),
    )
    assert {"node_taint", "node_too_small"} <= set(keys(found))


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("0/1 nodes are available: 1 Insufficient memory.", "other_resource"),
        ("0/1 nodes are available: 1 Too many pods.", "other_resource"),
        ('0/1 nodes are available: persistentvolumeclaim "datasets" not found. not found', "claim_missing"),
        ("0/1 nodes are available: 1 node(s) had volume node affinity conflict.", "volume"),
        ("0/1 nodes are available: 1 node(s) didn't match pod topology spread constraints.", "pod_rules"),
        ("0/1 nodes are available: 1 Insufficient nvidia.com/gpu.", "unclear"),
        ("something nobody has ever written", "unclear"),
    ],
)
def test_what_objects_cannot_show_is_taken_from_the_scheduler(message: str, expected: str) -> None:
    assert cause(node(), waiting(message=message))[0] == expected


def test_a_newer_event_wins_over_the_condition() -> None:
    asking = waiting(message="0/1 nodes are available: 1 Insufficient memory.")
    later = event(
        "FailedScheduling",
        "0/1 nodes are available: 1 node(s) had volume node affinity conflict.",
        asking,
        component="default-scheduler",
    )
    assert cause(node(), asking, later)[0] == "volume"


def test_a_gated_pod_is_information_not_trouble() -> None:
    found = only(node(), waiting(schedulingGates=[{"name": "kueue.x-k8s.io/admission"}]))
    assert (found.value("cause"), found.severity) == ("gated", Severity.INFO)
    assert "kueue.x-k8s.io/admission" in render(found, "it").detail


def test_a_gang_that_is_incomplete_is_no_lack_of_gpus() -> None:
    asking = waiting(schedulerName="volcano")
    sentence = "3/2 tasks in gang unschedulable: pod group is not ready, 2 Pending, 3 minAvailable."
    found = only(node(), asking, event("FailedScheduling", sentence, asking, component="volcano"))
    assert found.remedy == "gang_incomplete"
    said = render(found, "en")
    assert "wants 3 members at once and only 2 exist" in said.detail
    assert "of the PodGroup to 2" in said.remedy


def test_a_scheduler_that_never_spoke_is_asked_after() -> None:
    assert cause(node(taints=[taint("sku")]), waiting(schedulerName="volcano"))[0] == "scheduler"


def autoscaler(asking: Plain, reason: str, message: str, ago: timedelta = timedelta(minutes=3)) -> Plain:
    return event(reason, message, asking, component="cluster-autoscaler", ago=ago)


def test_a_node_on_its_way_is_information() -> None:
    asking = waiting()
    text = "pod triggered scale-up: [{asg-gpu 0->1 (max: 6)}]"
    found = only(node(), BUSY, asking, autoscaler(asking, "TriggeredScaleUp", text))
    assert (found.value("cause"), found.severity) == ("scale_up", Severity.INFO)


def test_a_scale_up_that_never_arrived_is_no_excuse() -> None:
    asking = waiting()
    text = "pod triggered scale-up: [{asg-gpu 0->1 (max: 6)}]"
    stale = autoscaler(asking, "TriggeredScaleUp", text, timedelta(hours=1))
    found = only(node(), BUSY, asking, stale)
    assert found.value("cause") == "in_use"
    assert "scale_up_stale" in keys(found)


REFUSAL = "pod didn't trigger scale-up: 1 Insufficient nvidia.com/gpu, 1 max node group size reached"


def test_a_group_at_zero_that_the_autoscaler_does_not_know_is_explained() -> None:
    asking = waiting()
    found = only(node("cpu-1", gpus={}, labels={}), asking, autoscaler(asking, "NotTriggerScaleUp", REFUSAL))
    assert found.remedy == "scale_from_zero"
    assert {"autoscaler_refuses", "autoscaler_blind", "group_full"} <= set(keys(found))


def test_the_autoscaler_is_not_called_blind_where_gpu_nodes_exist() -> None:
    asking = waiting()
    found = only(node(), BUSY, asking, autoscaler(asking, "NotTriggerScaleUp", REFUSAL))
    assert "autoscaler_blind" not in keys(found)
    assert found.remedy == "in_use"


def test_karpenters_words_are_not_taken_for_the_schedulers() -> None:
    asking = waiting(message="0/1 nodes are available: 1 Insufficient memory.")
    said = event(
        "FailedScheduling",
        "Failed to schedule pod, no instance type met all requirements",
        asking,
        component="karpenter",
    )
    found = only(node(), asking, said)
    assert found.value("cause") == "other_resource"
    assert "karpenter_says" in keys(found)


def test_a_claim_that_no_device_meets_is_read_from_the_scheduler() -> None:
    asking = pod(
        "vram",
        resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "big"}],
        message="0/1 nodes are available: 1 cannot allocate all claims. still not schedulable, preemption: 0/1 nodes",
    )
    asking["spec"]["containers"][0]["resources"] = {"claims": [{"name": "gpu"}]}
    found = only(node(gpus={}, labels=GPU_LABELS), asking)
    assert found.value("cause") == "dra"
    assert "in service: unknown in all" in render(found, "en").summary


@pytest.mark.parametrize(
    "fine",
    [
        waiting(age=timedelta(minutes=9)),
        pod("cpu"),
        pod(on="gpu-1", gpus=ONE, phase="Pending"),
        waiting(phase="Failed"),
    ],
    ids=["young", "no-gpu", "bound", "finished"],
)
def test_young_bound_finished_and_cpu_pods_are_no_concern(fine: Plain) -> None:
    assert findings(node(), fine) == []


def test_pods_of_one_owner_are_one_finding_that_survives_them() -> None:
    owner = ("Job", "sweep")
    before = only(node(), BUSY, waiting("a", owner=owner), waiting("b", owner=owner, age=timedelta(hours=5)))
    after = only(node(), BUSY, waiting("c", owner=owner, age=timedelta(days=1)))
    assert before.value("pods") == ["ml/a", "ml/b"]
    assert before.value("waited") == 5 * 3600
    assert before.fingerprint == after.fingerprint


def test_other_demands_of_one_owner_are_another_finding() -> None:
    owner = ("PyTorchJob", "pretrain")
    found = findings(
        node(), BUSY, waiting("master", owner=owner), waiting("worker", owner=owner, gpus={"nvidia.com/gpu": 8})
    )
    assert len({item.fingerprint for item in found}) == 2


RECORDED = DATA / "apiserver" / "pending-pods-1.36.json"
EXPECTED = {
    "amd-card": ("not_offered", "other_maker"),
    "amd-card-tolerant": ("not_offered", "other_maker"),
    "gated": ("gated", "gated"),
    "no-such-claim": ("claim_missing", "claim_missing"),
    "no-such-claim-tolerant": ("claim_missing", "claim_missing"),
    "other-scheduler": ("scheduler", "scheduler"),
    "other-scheduler-tolerant": ("scheduler", "scheduler"),
    "sixteen-gpus": ("too_small", "too_small_tainted"),
    "sixteen-gpus-tolerant": ("too_small", "too_small"),
    "too-much-memory": ("other_resource", "other_resource"),
    "wants-mig": ("not_offered", "other_form"),
    "wants-mig-tolerant": ("not_offered", "other_form"),
    "wrong-selector": ("selector", "selector"),
    "wrong-selector-tolerant": ("selector", "selector"),
}


def recorded(file: Path) -> list[Finding]:
    objects = decode_objects(file.read_bytes(), file.name)
    newest = newest_timestamp(objects)
    assert newest is not None
    facts = facts_of(objects, "recorded", newest + timedelta(hours=1))
    report = evaluate(facts, Policy(), ALONE)
    assert report.failed_rules == ()
    return list(report.findings)


def test_pods_that_a_real_scheduler_left_pending_are_explained() -> None:
    found = {item.objects[0].name: (item.value("cause"), item.remedy) for item in recorded(RECORDED)}
    assert found == EXPECTED


IN_THE_WAY = {
    "amd-card": {"node_taint", "node_not_offered"},
    "amd-card-tolerant": {"node_not_offered"},
    "gated": set(),
    "no-such-claim": {"node_taint", "node_in_use", "nearest"},
    "no-such-claim-tolerant": {"node_in_use"},
    "other-scheduler": {"node_taint", "node_in_use", "nearest"},
    "other-scheduler-tolerant": {"node_in_use"},
    "sixteen-gpus": {"node_taint", "node_too_small"},
    "sixteen-gpus-tolerant": {"node_too_small"},
    "too-much-memory": {"node_other_resource", "node_in_use", "nearest"},
    "wants-mig": {"node_taint", "node_not_offered"},
    "wants-mig-tolerant": {"node_not_offered"},
    "wrong-selector": {"node_taint", "node_selector", "node_in_use", "nearest"},
    "wrong-selector-tolerant": {"node_selector", "node_in_use", "nearest"},
}


def test_all_obstacles_are_told_where_the_scheduler_named_the_first() -> None:
    told = {
        item.objects[0].name: {key for key in keys(item) if key.startswith("node_") or key == "nearest"}
        for item in recorded(RECORDED)
    }
    assert told == IN_THE_WAY
    sixteen = next(item for item in recorded(RECORDED) if item.objects[0].name == "sixteen-gpus")
    said = render(sixteen, "en")
    assert "asks for 16 on one node and none of these has more than 8" in said.detail
    assert "h100-aws ×4 and h100-gke ×2" in said.detail
    assert "tolerations: [{key: nvidia.com/gpu, operator: Exists}]" in said.remedy


def test_the_node_that_nearly_fits_is_named_with_what_is_in_the_way_there() -> None:
    near = node("gpu-1", gpus={"nvidia.com/gpu": 8}, unschedulable=True)
    far = node("gpu-2", taints=[taint("sku", "gpu")])
    found = only(near, far, waiting(gpus={"nvidia.com/gpu": 4}))
    assert "Nearest to fitting: gpu-1; there, only this is in the way: cordon." in render(found, "en").detail


def hungry(name: str, cpu: str, on: str | None = None, gpus: dict[str, int] | None = None) -> dict[str, Any]:
    made = pod(name, on=on, gpus=gpus)
    made["spec"]["containers"][0]["resources"].setdefault("requests", {})["cpu"] = cpu
    return made


def test_a_lack_of_cpu_is_seen_without_the_scheduler() -> None:
    found = only(node(), hungry("web", "15", on="gpu-1"), hungry("train", "2", gpus=ONE))
    assert found.value("cause") == "other_resource"
    assert "Too little cpu left: gpu-1." in render(found, "en").detail


def test_what_leaves_together_with_the_gpu_is_no_second_obstacle() -> None:
    found = only(node(), hungry("holder", "15", on="gpu-1", gpus=ONE), hungry("train", "2", gpus=ONE))
    assert (found.value("cause"), keys(found)) == ("in_use", ["node_in_use", "held_by"])


@pytest.mark.parametrize(
    "key", ["karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler", "karpenter.sh/unregistered"]
)
def test_a_node_that_comes_or_goes_is_not_to_be_tolerated(key: str) -> None:
    assert cause(node(taints=[taint(key)]), waiting())[0] == "sick"


DRIVERLESS = node(gpus={}, labels=GPU_LABELS)


def test_pods_that_wait_for_a_broken_node_are_part_of_its_finding() -> None:
    report = evaluate(cluster(DRIVERLESS, waiting("a"), waiting("b")), Policy(), RULES)
    assert {item.rule for item in report.findings} & {"gpu-pod-pending"} == set()
    [root] = [item for item in report.findings if {"a", "b"} <= {ref.name for ref in item.objects}]
    assert root.objects[0].name == "gpu-1"
    assert "waiting" in keys(root)


def test_a_pod_that_would_wait_after_the_repair_as_well_stays_a_finding() -> None:
    seven = node(gpus={"nvidia.com/gpu": 7}, capacity={"nvidia.com/gpu": 8})
    eight = waiting(gpus={"nvidia.com/gpu": 8})
    alone = evaluate(cluster(seven, eight), Policy(), RULES).findings
    held = evaluate(cluster(seven, eight, pod("holder", on="gpu-1", gpus=ONE)), Policy(), RULES).findings
    assert "gpu-pod-pending" not in {item.rule for item in alone}
    assert "gpu-pod-pending" in {item.rule for item in held}
