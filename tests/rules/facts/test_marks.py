"""What is found among marked pods is what is found among all."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from rules.checks._components import said_by
from rules.exemptions import EXEMPT
from rules.facts import marks
from rules.facts.groups import CONTROLLERS, queue_systems, workload_groups
from rules.facts.objects import Pod
from rules.facts.scaling import scaling
from tests.rules.facts.make import cluster

LABELS: tuple[dict[str, str], ...] = (
    {},
    {"app": "web"},
    {"ray.io/cluster": "r"},
    {"jobset.sigs.k8s.io/jobset-name": "j"},
    {"leaderworkerset.sigs.k8s.io/name": "l", "leaderworkerset.sigs.k8s.io/group-index": "1"},
    {"training.kubeflow.org/job-name": "t"},
    {"kueue.x-k8s.io/queue-name": "q"},
    {"kueue.x-k8s.io/queue-name": ""},
)
OWNERS: tuple[dict[str, Any] | None, ...] = (
    None,
    {"kind": "ReplicaSet", "apiVersion": "apps/v1", "name": "web-7c8b9d6f5c"},
    {"kind": "PyTorchJob", "apiVersion": "kubeflow.org/v1", "name": "train"},
    {"kind": "Job", "apiVersion": "batch/v1", "name": "job"},
    {"kind": "Job", "apiVersion": "batch.volcano.sh/v1alpha1", "name": "job"},
)
CONTAINERS: tuple[dict[str, Any], ...] = (
    {"image": "apps/web:1"},
    {"image": "registry.k8s.io/autoscaling/cluster-autoscaler:v1.36.1", "command": ["./run", "--v=4"]},
    {"image": "mirror/ca:1", "command": ["./cluster-autoscaler", "--v=4"]},
    {"image": "mirror/ca:1", "args": ["/cluster-autoscaler"]},
    {"image": "mirror/ca:1", "command": ["sh"], "args": ["cluster-autoscaler"]},
    {},
)
pods = st.builds(
    lambda name, namespace, labels, annotations, owner, container, scheduler, on, phase, nominated: msgspec.convert(
        {
            "metadata": {
                "name": name,
                "namespace": namespace,
                "labels": labels,
                "annotations": annotations,
                "ownerReferences": [{**owner, "controller": True}] if owner else None,
            },
            "spec": {"nodeName": on, "schedulerName": scheduler, "containers": [{"name": "c", **container}]},
            "status": {"phase": phase, "nominatedNodeName": nominated},
        },
        Pod,
    ),
    st.sampled_from(["web-1", "kueue-controller-manager-1", "my-volcano-scheduler-0", "cluster-autoscaler-operator-1"]),
    st.sampled_from(["ml", *marks.RESERVING_NAMESPACES]),
    st.sampled_from(LABELS),
    st.sampled_from([None, {}, {EXEMPT: "idle-gpu-node"}]),
    st.sampled_from(OWNERS),
    st.sampled_from(CONTAINERS),
    st.sampled_from([None, "", "default-scheduler", "volcano", "kai-scheduler", "own"]),
    st.sampled_from([None, "n1"]),
    st.sampled_from(["Running", "Pending", "Succeeded"]),
    st.sampled_from([None, "n2"]),
)


@given(st.lists(pods, max_size=6))
def test_nothing_is_lost_by_looking_at_marked_pods_only(made: list[Pod]) -> None:
    facts = cluster((), made)
    every = facts.pods
    assert facts.workload_groups == workload_groups(every, {})
    assert facts.queue_systems == queue_systems(every, {})
    assert facts.scaling == scaling((), every, (), {}, facts.read_kinds)
    assert facts.unscheduled_pods == tuple(pod for pod in every if pod.phase == "Pending" and pod.node_name is None)
    assert facts.marked(marks.NOMINATED) == tuple(
        pod for pod in every if pod.pod.status and pod.pod.status.nominatedNodeName
    )
    assert facts.marked(marks.EXEMPT) == tuple(pod for pod in every if EXEMPT in (pod.pod.metadata.annotations or {}))
    assert facts.marked(marks.RESERVES) == tuple(pod for pod in every if pod.ref.namespace != "ml")
    elsewhere = {pod.ref for pod in every if pod.pod.spec and pod.pod.spec.schedulerName in ("volcano", "own")}
    assert elsewhere <= {pod.ref for pod in facts.marked(marks.SCHEDULED_ELSEWHERE)}


STATES: tuple[dict[str, Any], ...] = (
    {},
    {"running": {}},
    {"waiting": {"reason": "ImagePullBackOff", "message": "no such image"}},
    {"waiting": {"reason": "PodInitializing"}},
    {"terminated": {"exitCode": 1, "message": "driver/library version mismatch"}},
)


@given(st.sampled_from(STATES), st.sampled_from(STATES), st.sampled_from([None, "evicted"]), st.booleans())
def test_a_pod_of_which_there_are_words_is_marked(
    state: dict[str, Any], last: dict[str, Any], message: str | None, init: bool
) -> None:
    kind = "initContainerStatuses" if init else "containerStatuses"
    status = {"message": message, kind: [{"name": "c", "state": state, "lastState": last}]}
    made = {"metadata": {"name": "web-1"}, "spec": {"nodeName": "n1"}, "status": status}
    pod = cluster((), [msgspec.convert(made, Pod)]).pods[0]
    if any(said_by(pod)):
        assert pod.marks & marks.SPEAKS
    if state == {"running": {}} and last in ({}, {"running": {}}) and not message:
        assert not pod.marks


def test_every_controller_of_a_queueing_system_is_marked() -> None:
    for name, _ in CONTROLLERS:
        controller = msgspec.convert({"metadata": {"name": f"my-{name}-0"}, "spec": {"nodeName": "n1"}}, Pod)
        assert cluster((), [controller]).pods[0].marks == marks.QUEUED


def test_a_plain_pod_has_no_mark() -> None:
    plain = {"metadata": {"name": "web-1", "labels": {"app": "web"}}, "spec": {"nodeName": "n1"}}
    assert cluster((), [msgspec.convert(plain, Pod)]).pods[0].marks == 0
