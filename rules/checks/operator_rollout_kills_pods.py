"""Restarting the GPU software under running pods made the kubelet reject them.

What:
    Two or more GPU pods of a node have failed with ``UnexpectedAdmissionError``, and the toolkit or device plugin pod
    that runs there now is younger than they are: it was replaced while they ran. The toolkit restarts the container
    runtime, the kubelet admits its pods anew, and the plugin was away. Pods that were created after it are no part of
    this.

Why:
    Work that ran is lost, without a fault of the GPU. It happens at every roll-out of the operator.

Fix:
    Drain nodes before rolling the GPU software, node by node; delete the failed pods.

Source:
    https://github.com/NVIDIA/gpu-operator/issues/596; Kubernetes v1.36.2 pkg/kubelet/cm/devicemanager.

Seeds: S2
"""

from collections.abc import Iterator

from rules.checks._admission import oldest_first, rejected_by_node, what_it_said
from rules.checks._components import Layer, pods_of, stuck, trouble
from rules.checks._kit import age, found, names, of, owner_of, seconds, short
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_SHOWN = 20


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per node."""
    for name, pods in sorted(rejected_by_node(facts).items()):
        node = facts.node(name)
        if node is None:
            continue
        yield node.ref
        replaced = replaced_under(node, pods)
        if replaced is None:
            continue
        killer, victims = replaced
        yield found(
            Severity.MEDIUM,
            *(pod.ref for pod in victims[:_SHOWN]),
            node.ref,
            killer.ref,
            identity=f"{node.ref} {killer.ref}",
            node=node.name,
            pods=of(names(pod.ref for pod in victims)),
            workloads=of(names(owner_of(pod) for pod in victims)),
            replaced=short(killer.ref),
            replaced_ago=seconds(age(facts, killer.pod.metadata.creationTimestamp), "metadata.creationTimestamp"),
            said=of(what_it_said(victims), "status.message"),
            pod_namespace=victims[0].ref.namespace,
        )


def replaced_under(node: NodeFacts, pods: list[PodFacts]) -> tuple[PodFacts, list[PodFacts]] | None:
    """The youngest toolkit or plugin pod of the node that works, and the rejected pods that are older; None when there
    are fewer than two."""
    software = [pod for layer in (Layer.TOOLKIT, Layer.PLUGIN) for pod in pods_of(node, layer)]
    well = [pod for pod in software if not stuck(pod) and trouble(pod) is None]
    killer = next(iter(reversed(oldest_first(well))), None)
    born = killer.pod.metadata.creationTimestamp if killer else None
    if killer is None or born is None:
        return None
    victims = [pod for pod in oldest_first(pods) if (pod.pod.metadata.creationTimestamp or born) < born]
    return (killer, victims) if len(victims) >= 2 else None


RULE = Rule(
    id="operator-rollout-kills-pods",
    family="drivers",
    severity=Severity.MEDIUM,
    seeds=("S2",),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
