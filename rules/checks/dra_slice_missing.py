"""A GPU node publishes no ResourceSlice, or not all of them, in a cluster that hands GPUs out by DRA.

What:
    The node has a GPU, is Ready for longer than the grace period, offers no GPU in any way, and the DRA driver is what
    should publish it: its kubelet plugin fails there, or serves the node, or the cluster has its device class and no
    device plugin. Or a pool has fewer slices than it says it has (``resourceSliceCount``): the scheduler then uses none
    of its devices.

Why:
    The node is paid in full and no claim can be satisfied there.

Fix:
    Look at the kubelet plugin's pod on the node; it waits for the driver on the host.

Source:
    kubernetes-sigs/dra-driver-nvidia-gpu site/content/docs/guides/gpu-allocation/view-resources.md; kubernetes/api
    resource/v1 types.go (ResourcePool).

Seeds: S2, S5
"""

from collections.abc import Iterator

from rules.checks._components import daemon_ref
from rules.checks._kit import cost_note, cost_of, found, note, of, seconds, short
from rules.checks._slices import Pool, pools, slice_ref
from rules.checks._stack import Diagnosis, Fault, broken_nodes, paid, silent_for
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.findings import Finding, Note, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per node without a slice and per incomplete pool."""
    for node, cause in broken_nodes(facts, policy):
        yield node.ref
        if cause.fault == Fault.DRA:
            yield _missing(facts, node, cause)
    for pool in pools(facts) if facts.knows("ResourceSlice") else ():
        yield ObjectRef("Node", "", pool.node)
        if pool.wanted is not None and len(pool.slices) < pool.wanted:
            yield _incomplete(facts, pool)


def _missing(facts: ClusterFacts, node: NodeFacts, cause: Diagnosis) -> Finding:
    cost = paid(facts, node, cause)
    located = {"pod_namespace": cause.pods[0].ref.namespace, "pod_name": cause.pods[0].ref.name} if cause.pods else {}
    return found(
        Severity.HIGH,
        node.ref,
        *(pod.ref for pod in cause.pods),
        *([daemon_ref(cause.daemon_set)] if cause.daemon_set else []),
        remedy="default" if cause.pods else "no_pod",
        cost=cost,
        identity=str(node.ref),
        notes=[*_notes(cause), cost_note(cost)],
        node=node.name,
        ready_for=seconds(silent_for(facts, node), "status.conditions[type=Ready].lastTransitionTime"),
        gpu=of(node.product),
        **located,
    )


def _notes(cause: Diagnosis) -> Iterator[Note]:
    if cause.trouble is not None:
        yield note("failing", container=cause.trouble.container, reason=cause.trouble.reason)
    elif cause.pods:
        yield note("not_ready", failing_pod=short(cause.pods[0].ref))
    else:
        yield note("no_pod")


def _incomplete(facts: ClusterFacts, pool: Pool) -> Finding:
    node = facts.node(pool.node)
    cost = cost_of(node.price, None) if node else None
    return found(
        Severity.HIGH,
        ObjectRef("Node", "", pool.node),
        *(slice_ref(item) for item in pool.slices),
        remedy="no_pod",
        cost=cost,
        identity=f"{pool.driver} {pool.name}",
        notes=[note("incomplete", slices=len(pool.slices), wanted=pool.wanted), cost_note(cost)],
        node=pool.node,
        ready_for=seconds(silent_for(facts, node) if node else None),
        gpu=of(node.product if node else None),
    )


RULE = Rule(
    id="dra-slice-missing",
    family="drivers",
    severity=Severity.HIGH,
    seeds=("S2", "S5"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
