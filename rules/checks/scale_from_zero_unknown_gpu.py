"""cluster-autoscaler adds no GPU node: its empty group does not say what a node of it offers.

What:
    A GPU pod has waited longer than the grace period, cluster-autoscaler refused it for want of the GPU resource, no
    node that the pod's selector admits offers the resource now, and a node group stands at zero below its maximum
    (or, where the autoscaler's status was not read, the cluster has no GPU node at all).

Why:
    Of an empty group the autoscaler has no example node. Where the cloud does not tell it (AWS tags, a GPU whose driver
    an operator installs later), it does not know that the GPU comes, nor the group's labels and taints. The pod waits
    for ever. High.

Fix:
    Describe the node in tags of the group; to start at once, set the group to one node by hand.

Source:
    seeds S24; https://github.com/NVIDIA/gpu-operator/issues/423; https://github.com/kubernetes/autoscaler/issues/3869;
    kubernetes/autoscaler cluster-autoscaler-1.36.1 cloudprovider/aws/README.md.

Seeds: S24
"""

from collections.abc import Iterator

from rules.checks._kit import found, note, of
from rules.checks._pending import about, by_nodes, offers, refusals
from rules.checks._scheduler_message import Cause
from rules.engine import Rule
from rules.facts.autoscaler import NodeGroup
from rules.facts.cluster import ClusterFacts, PodFacts
from rules.findings import Finding, Note, ObjectRef, Severity
from rules.policy import Policy

_AWS = "k8s.io/cluster-autoscaler/node-template"


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per owner and demand."""
    groups = facts.autoscaler_groups
    for queue in by_nodes(facts, policy):
        yield queue.first.ref
        wanted = queue.resource
        reasons = refusals(facts, queue.first)
        blind = any(reason.cause == Cause.INSUFFICIENT and reason.subject == wanted for reason in reasons)
        held_back = any("backoff" in reason.text.lower() for reason in reasons)
        if wanted is None or not blind or held_back or any(offers(node, wanted) for node in queue.admitted.nodes):
            continue
        empty = [group for group in groups or () if group.target == 0 and group.maximum != 0]
        if (not empty) if groups is not None else bool(facts.gpu_nodes):
            continue
        providers = {node.provider for node in facts.nodes if node.provider}
        yield found(
            Severity.HIGH,
            *queue.refs,
            *sorted({group.source for group in groups or ()}),
            remedy="aws" if providers == {"aws"} else "azure" if providers == {"azure"} else "default",
            identity=queue.identity,
            notes=_notes(empty, groups or ()),
            **about(facts, queue),
            resource=wanted,
            empty=of([_limits(group) for group in empty], "cluster-autoscaler-status"),
            group=empty[0].name if empty else "GROUP",
            tags=of(_tags(queue.first)),
            said=of("; ".join(f"{reason.count} {reason.text}" for reason in reasons), "event NotTriggerScaleUp"),
        )


def _limits(group: NodeGroup) -> str:
    return f"{group.name} ({group.target}/{group.maximum if group.maximum is not None else '?'})"


def _notes(empty: list[NodeGroup], groups: tuple[NodeGroup, ...]) -> Iterator[Note]:
    yield note("empty" if empty else "no_gpu_node")
    full = [_limits(group) for group in groups if group.full]
    if full:
        yield note("full", full=full)


def _tags(pod: PodFacts) -> list[str]:
    """Tags that describe the node which the pod wants: its GPUs, the labels it selects, the taints it puts up with."""
    spec = pod.pod.spec
    tags = [f"{_AWS}/resources/{name}={amount}" for name, amount in sorted(pod.gpu_requests.items())]
    tags += [f"{_AWS}/label/{key}={value}" for key, value in sorted(((spec and spec.nodeSelector) or {}).items())]
    for item in (spec.tolerations if spec else None) or []:
        if item.key and not item.key.startswith("node.kubernetes.io/"):
            tags.append(f"{_AWS}/taint/{item.key}={item.value or 'true'}:{item.effect or 'NoSchedule'}")
    return tags


RULE = Rule(
    id="scale-from-zero-unknown-gpu",
    family="scheduling",
    severity=Severity.HIGH,
    seeds=("S24",),
    needs=("Node", "Pod", "Event"),
    check=check,
    doc=__doc__ or "",
)
