"""Several teams use the GPUs of the cluster, and nothing limits how many one of them takes.

What:
    GPU pods (running or waiting) live in at least two namespaces, no ResourceQuota limits ``requests.<GPU resource>``
    or a device class, and no queueing system (Kueue, Volcano, KAI, YuniKorn) shares the GPUs out. Namespaces of the
    GPU software itself do not count.

Why:
    One team can take all GPUs by mistake or by night. Low; information where ResourceQuotas were not read, because
    they may be there unseen.

Fix:
    A ResourceQuota per namespace, or a queue that lends unused GPUs.

Source:
    seeds S11, S13; kubernetes v1.36.2 pkg/apis/core/validation/validation.go (only ``requests.`` exists for extended
    resources).

Seeds: S11, S13
"""

from collections.abc import Iterator

from rules.checks._kit import found, note, of
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.facts.groups import mapping
from rules.facts.resources import gpu_name
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_SYSTEM = frozenset(
    {
        "kube-system",
        "gpu-operator",
        "nvidia-gpu-operator",
        "gpu-resources",
        "nvidia-device-plugin",
        "monitoring",
        "kai-resource-reservation",
        "runai-reservation",
    }
)
_DEVICE_CLASS = "deviceclass.resource.k8s.io/"


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding for the cluster."""
    pods = [
        pod for pod in facts.gpu_pods if not pod.terminal and not pod.is_daemon and pod.ref.namespace not in _SYSTEM
    ]
    using = [pod for pod in pods if pod.gpu_requests or pod.other_gpu_claim == "dra-claim"]
    namespaces = sorted({pod.ref.namespace for pod in using})
    if len(namespaces) < 2 or facts.queue_systems or any(_limits_gpus(facts)):
        return
    refused = any(item.kind == "ResourceQuota" for item in facts.unreadable)
    if refused and not facts.knows("ResourceQuota"):
        return
    resources = sorted({name for pod in using for name in pod.gpu_requests})
    known = facts.knows("ResourceQuota")
    by_name = any(item.origin == "kubelet" and item.allocatable for node in facts.nodes for item in node.resources)
    yield found(
        Severity.LOW if known else Severity.INFO,
        *(ObjectRef("Namespace", "", name) for name in namespaces),
        remedy="default" if resources and by_name else "dra",
        identity="quota",
        notes=[] if known else [note("not_read")],
        namespaces=of(namespaces),
        namespace=namespaces[0],
        resource=of(resources[0] if resources else None),
        gpu_pods=len(using),
    )


def _limits_gpus(facts: ClusterFacts) -> Iterator[bool]:
    for item in facts.of_kind("ResourceQuota"):
        for name in mapping(mapping(item.spec).get("hard")):
            yield gpu_name(name.removeprefix("requests.")) is not None or _DEVICE_CLASS in name


RULE = Rule(
    id="no-gpu-quota",
    family="scheduling",
    severity=Severity.LOW,
    seeds=("S11", "S13"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
