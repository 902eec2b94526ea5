"""A GPU node boots an image that has no GPU driver.

What:
    The node has an NVIDIA GPU and offers none, and the device plugin finds no driver library (NVML), or the image is
    known to carry no driver: the name that the EC2NodeClass resolves is a standard one, or it is Bottlerocket without
    its NVIDIA variant. No driver pod serves the node.

Why:
    The plugin crashes or waits, the GPU is never published, the node is paid. Every further node of the pool will be
    alike.

Fix:
    Take the image variant with driver and toolkit and replace the nodes, or let the GPU Operator install both.

Source:
    https://github.com/awslabs/amazon-eks-ami/issues/1817; https://github.com/aws-samples/comfyui-on-eks/issues/26;
    bottlerocket-os/bottlerocket README.md (variants).

Seeds: S2, S3, S4
"""

from collections.abc import Iterator

from rules.checks._kit import cost_note, found, note, of, seconds, short
from rules.checks._node_image import image_without_driver
from rules.checks._stack import Diagnosis, Fault, broken_nodes, os_image, paid, silent_for
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.findings import Finding, Note, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per node."""
    for node, cause in broken_nodes(facts, policy):
        yield node.ref
        if cause.fault == Fault.NO_DRIVER:
            yield _finding(facts, node, cause)


def _finding(facts: ClusterFacts, node: NodeFacts, cause: Diagnosis) -> Finding:
    known = image_without_driver(facts, node)
    chosen_by = known[0] if known else None
    cost = paid(facts, node, cause)
    source = "EC2NodeClass status.amis" if chosen_by else "status.nodeInfo.osImage"
    return found(
        Severity.HIGH,
        node.ref,
        *(pod.ref for pod in cause.pods),
        *([chosen_by] if chosen_by else []),
        remedy=_remedy(node, known is not None, chosen_by is not None),
        identity=str(node.ref),
        cost=cost,
        notes=[*_notes(node, cause, known is not None), cost_note(cost)],
        node=node.name,
        image=of(known[1] if known else os_image(node), source),
        node_class=short(chosen_by) if chosen_by else None,
        failing_pod=short(cause.pods[0].ref) if cause.pods else None,
        instance_type=of(node.instance_type),
        gpu=of(node.product),
        ready_for=seconds(silent_for(facts, node), "status.conditions[type=Ready].lastTransitionTime"),
    )


def _remedy(node: NodeFacts, known: bool, by_class: bool) -> str:
    if by_class:
        return "node_class"
    if known:
        return "bottlerocket"
    return "eks" if node.provider == "aws" else "default"


def _notes(node: NodeFacts, cause: Diagnosis, known: bool) -> Iterator[Note]:
    yield note("known" if known else "suspected")
    if cause.trouble is not None:
        yield note("plugin_fails", reason=cause.trouble.reason, restarts=cause.trouble.restarts)
    if node.driver_version is not None:
        yield note("had_driver", driver=of(node.driver_version, node.driver_source))


RULE = Rule(
    id="node-image-without-driver",
    family="drivers",
    severity=Severity.HIGH,
    seeds=("S2", "S3", "S4"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
