"""A GPU node has no device plugin: none is installed, or none may run on it.

What:
    The node should have a GPU, is Ready for longer than the grace period and offers no GPU, nothing below the plugin is
    visibly broken, and no device plugin pod is on it: the cluster has no DaemonSet of a plugin for this maker, the one
    it has does not select the node, or a taint keeps it off. Nodes whose image or provider brings the plugin (GKE,
    CoreWeave, EKS Auto Mode, Bottlerocket) and nodes served by a DRA driver are left out.

Why:
    The node is paid in full and no pod can use its GPU. Autoscalers wait for the resource and do not remove the node.
    High; medium where only a label of your own says that the node has a GPU.

Fix:
    Install the plugin, or let the one that is there run on the node.

Source:
    https://github.com/aws/karpenter-provider-aws/issues/3862;
    https://github.com/aws/karpenter-provider-aws/issues/1914; NVIDIA/k8s-device-plugin README.md and deployments.

Seeds: S2, S3, S5, S26
"""

from collections.abc import Iterator

from rules.checks._components import daemon_ref
from rules.checks._kit import cost_note, found, note, of, seconds, short, tolerations
from rules.checks._operator import paused_operands
from rules.checks._stack import MISSING, Diagnosis, broken_nodes, os_image, paid, silent_for
from rules.engine import Root, Rule, Symptom
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.findings import Finding, Note, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | Symptom | ObjectRef]:
    """Yield one finding per GPU node without a device plugin; a symptom where the operator has paused it."""
    for node, cause in broken_nodes(facts, policy):
        yield node.ref
        if cause.told_by != MISSING:
            continue
        cost = paid(facts, node, cause)
        makers = {"amd", "intel"}
        absent = node.vendor if cause.fault == "plugin_absent" and node.vendor in makers else None
        finding = found(
            Severity.MEDIUM if node.gpu_evidence == "user-label" else Severity.HIGH,
            node.ref,
            *([daemon_ref(cause.daemon_set)] if cause.daemon_set else []),
            remedy=absent or cause.fault,
            cost=cost,
            identity=str(node.ref),
            notes=[*_notes(node, cause), cost_note(cost)],
            node=node.name,
            ready_for=seconds(silent_for(facts, node), "status.conditions[type=Ready].lastTransitionTime"),
            gpu_evidence=of(node.gpu_evidence),
            gpu=of(node.product),
            instance_type=of(node.instance_type),
            os_image=of(os_image(node), "status.nodeInfo.osImage"),
            tolerations=tolerations(cause.taints),
            daemon_set=short(daemon_ref(cause.daemon_set)) if cause.daemon_set else None,
        )
        yield Symptom(finding, (Root(node.ref, ("operands-paused",)),)) if paused_operands(node) else finding


def _notes(node: NodeFacts, cause: Diagnosis) -> Iterator[Note]:
    if cause.taints:
        yield note("kept_off", taints=list(cause.taints))
    elif cause.daemon_set is not None:
        yield note("not_selected")
    else:
        yield note("plugin_absent")
    if node.gpu_evidence == "user-label":
        yield note("user_label")
    if node.unschedulable:
        yield note("cordoned")


RULE = Rule(
    id="device-plugin-missing",
    family="drivers",
    severity=Severity.HIGH,
    seeds=("S2", "S3", "S5", "S26"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
