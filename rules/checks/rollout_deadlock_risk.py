"""The next rolling update of a GPU Deployment will wait for a GPU that is not there.

What:
    A Deployment whose pods ask for GPUs rolls with effectively no unavailable pod and at least one in surge, no node
    has room for one more of its pods now, and nothing is known that would add a node: no autoscaler, or a node
    group at its maximum.

Why:
    The next change of image or configuration deadlocks: the new pod waits for the GPU of the old one. Medium; low
    where an autoscaler may be there unseen.

Fix:
    ``maxSurge: 0`` with ``maxUnavailable: 1``, ``Recreate``, or one spare GPU.

Source:
    seeds S9, S14; https://github.com/ai-runway/airunway/issues/400; Kubernetes pkg/controller/deployment/util.

Seeds: S9, S14
"""

from collections.abc import Iterator

from rules.checks._kit import found, names, note, of
from rules.checks._rollout import ref_of, rollout_of, template_gpus
from rules.checks._scheduling import fit, free
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, PodFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per Deployment."""
    pods_of: dict[ObjectRef, list[PodFacts]] = {}
    for pod in facts.gpu_pods:
        owner = facts.deployment_of(pod) if pod.gpu_requests and not pod.terminal else None
        if owner is not None:
            pods_of.setdefault(owner, []).append(pod)
    for item in facts.of_kind("Deployment"):
        ref = ref_of(item)
        yield ref
        pods = pods_of.get(ref, [])
        rollout = rollout_of(item) if pods else None
        if rollout is None or rollout.unavailable or not template_gpus(item):
            continue
        if any(pod.node_name is None for pod in pods) or _room(facts, pods[0]) or _may_grow(facts, pods):
            continue
        seen = facts.scaling.absent is True or facts.scaling.cluster_autoscaler is not None
        yield found(
            Severity.MEDIUM if seen else Severity.LOW,
            ref,
            notes=[] if seen else [note("autoscaler_unseen")],
            deployment=ref.name,
            deployment_namespace=ref.namespace,
            replicas=rollout.replicas,
            surge=of(rollout.surge, "spec.strategy.rollingUpdate.maxSurge, rounded up"),
            unavailable=of(rollout.unavailable, "spec.strategy.rollingUpdate.maxUnavailable, rounded down"),
            asked=of([f"{name}={amount}" for name, amount in sorted(template_gpus(item).items())]),
            nodes=of(names(node.ref for pod in pods if (node := facts.node(pod.node_name or "")))),
        )


def _room(facts: ClusterFacts, pod: PodFacts) -> bool:
    """Whether one more pod like this one would find a node now."""
    spare = [
        node for node in facts.gpu_nodes if all(free(node, name) >= amount for name, amount in pod.gpu_requests.items())
    ]
    return any(not fit(pod, node, node.left).obstacles for node in spare)


def _may_grow(facts: ClusterFacts, pods: list[PodFacts]) -> bool:
    """Whether an autoscaler may add a node of the kind that the pods run on."""
    for pod in pods:
        node = facts.node(pod.node_name or "")
        manager = facts.scaling.manager(node) if node else None
        if node is None or manager == "karpenter":
            return True
        group = facts.scaling.group(node)
        if manager == "cluster-autoscaler" and not (group and group.full):
            return True
    return False


RULE = Rule(
    id="rollout-deadlock-risk",
    family="inference",
    severity=Severity.MEDIUM,
    seeds=("S9", "S14"),
    needs=("Node", "Pod", "Deployment"),
    check=check,
    doc=__doc__ or "",
)
