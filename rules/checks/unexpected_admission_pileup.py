"""Rejected pods pile up on a node that promises a GPU and cannot give one.

What:
    Three or more pods of one owner have failed on the same node with ``UnexpectedAdmissionError``. Pods that a roll-out
    of the GPU software killed are told apart.

Why:
    The scheduler still counts a GPU there, the kubelet rejects the pod, its controller makes a new one: thousands have
    been seen. The workload does not run although other nodes might have room, and the list of pods fills the API.

Fix:
    Cordon the node, mend it, delete the failed pods.

Source:
    https://github.com/NVIDIA/k8s-device-plugin/issues/231; Kubernetes v1.36.2 pkg/kubelet/cm/devicemanager.

Seeds: S2
"""

from collections.abc import Iterator

from rules.checks._admission import oldest_first, rejected_by_node, what_it_said
from rules.checks._kit import age, found, names, note, of, owner_of, seconds
from rules.checks.operator_rollout_kills_pods import replaced_under
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, PodFacts
from rules.findings import Finding, Note, ObjectRef, Severity
from rules.policy import Policy

_PILE = 3
_SHOWN = 20


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per node and owner."""
    for name, every in sorted(rejected_by_node(facts).items()):
        node = facts.node(name)
        ref = ObjectRef("Node", "", name)
        yield ref
        replaced = replaced_under(node, every) if node else None
        left = [pod for pod in every if replaced is None or pod not in replaced[1]]
        piles: dict[ObjectRef, list[PodFacts]] = {}
        for pod in left:
            piles.setdefault(owner_of(pod), []).append(pod)
        for owner, pile in sorted(piles.items()):
            if len(pile) < _PILE:
                continue
            pods = oldest_first(pile)
            usable = any(item.allocatable for item in node.resources) if node else None
            yield found(
                Severity.HIGH if usable and node and not node.unschedulable else Severity.MEDIUM,
                *(pod.ref for pod in pods[:_SHOWN]),
                *([node.ref] if node else []),
                identity=f"{ref} {owner}",
                notes=_notes(usable),
                node=name,
                workload=str(owner),
                pods=of(names(pod.ref for pod in pods)),
                amount=of(len(pods), "status.reason of failed pods"),
                first_ago=seconds(age(facts, pods[0].pod.metadata.creationTimestamp)),
                last_ago=seconds(age(facts, pods[-1].pod.metadata.creationTimestamp)),
                said=of(what_it_said(pods), "status.message"),
                pod_namespace=owner.namespace,
            )


def _notes(usable: bool | None) -> Iterator[Note]:
    if usable is not None:
        yield note("goes_on" if usable else "stopped")


RULE = Rule(
    id="unexpected-admission-pileup",
    family="health",
    severity=Severity.HIGH,
    seeds=("S2",),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
