"""A pod with local storage keeps cluster-autoscaler from removing an under-used GPU node.

What:
    cluster-autoscaler owns a GPU node of whose GPUs less is requested than its threshold, and a pod on it uses an
    emptyDir on disk or a hostPath, without an annotation that gives it free. AKS and GKE, and autoscalers with
    ``--skip-nodes-with-local-storage=false``, do not mind.

Why:
    By default the autoscaler never evicts a pod whose local data would be lost, so one cache or log directory keeps a
    GPU machine.

Fix:
    Mark the pod as safe to evict if its data may be lost, name the volumes that may, or put them into memory.

Source:
    seeds S24; https://github.com/kubernetes/autoscaler/pull/5594; kubernetes/autoscaler cluster-autoscaler-1.36.1
    config/flags/flags.go, FAQ.md; MicrosoftDocs/azure-aks-docs articles/aks/cluster-autoscaler.md;
    cloud.google.com/kubernetes-engine/docs/concepts/cluster-autoscaler.

Seeds: S24
"""

from collections.abc import Iterator

from rules.checks._kit import found, names, of, short
from rules.checks._nodes import refs
from rules.checks._unmovable import kept_for, weight
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.facts.scale_down import local_volumes
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per workload."""
    for owner, pods, nodes in kept_for(facts, "local_storage"):
        yield owner
        volumes = sorted({name for pod in pods for name in local_volumes(pod)})
        yield found(
            weight(pods, nodes),
            *(pod.ref for pod in pods),
            *refs(nodes),
            identity=str(owner),
            owner=short(owner),
            pods=names(pod.ref for pod in pods),
            nodes=names(refs(nodes)),
            volumes=of(volumes, "spec.volumes"),
            volume_list=",".join(volumes),
        )


RULE = Rule(
    id="local-storage-blocks",
    family="billing",
    severity=Severity.LOW,
    seeds=("S24",),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
