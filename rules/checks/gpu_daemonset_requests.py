"""A DaemonSet requests a GPU, and so holds one on every node that it selects.

What:
    The pod template of a DaemonSet requests a GPU resource.

Why:
    It takes a GPU for good from each GPU node: checks, exporters and warm-up pods do so by mistake. Where one model
    server per node is what you want, a Deployment with spreading does it without blocking scale-down. Medium.

Fix:
    Take the request out (tools that only look at GPUs need none), or use a Deployment.

Source:
    seeds S14, S23; NVIDIA/gpu-operator assets/state-operator-validation (the validator's GPU pod ends by itself).

Seeds: S14, S23
"""

from collections.abc import Iterator

from rules.checks._kit import found, names, of, short
from rules.checks._rollout import ref_of, template_gpus
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per DaemonSet."""
    for item in facts.of_kind("DaemonSet"):
        ref = ref_of(item)
        yield ref
        asked = template_gpus(item)
        if not asked:
            continue
        pods = [
            pod
            for pod in facts.gpu_pods
            if pod.controller and pod.controller.kind == "DaemonSet" and pod.holds_gpu
            if (pod.ref.namespace, pod.controller.name) == (ref.namespace, ref.name)
        ]
        yield found(
            Severity.MEDIUM,
            ref,
            daemon_set=short(ref),
            asked=of([f"{name}={amount}" for name, amount in sorted(asked.items())], "spec.template"),
            pods=of(names(pod.ref for pod in pods)),
            held=len(pods),
        )


RULE = Rule(
    id="gpu-daemonset-requests",
    family="billing",
    severity=Severity.MEDIUM,
    seeds=("S14", "S23"),
    needs=("Node", "Pod", "DaemonSet"),
    check=check,
    doc=__doc__ or "",
)
