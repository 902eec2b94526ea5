"""A GPU group on AWS lacks the label by which cluster-autoscaler knows that its nodes have GPUs.

What:
    cluster-autoscaler runs, and GPU nodes on AWS that Karpenter does not own lack the label
    ``k8s.amazonaws.com/accelerator``.

Why:
    A new node offers its GPUs only after the device plugin has started. With the label the autoscaler waits for them;
    without it, it takes the fresh node for one that cannot serve the pod and starts another. Medium: it costs at the
    next scale-up.

Fix:
    Put the label on the node group, and on its tag for scaling from zero.

Source:
    seeds S24; https://github.com/kubernetes/autoscaler/issues/1949; kubernetes/autoscaler cluster-autoscaler-1.36.1
    cloudprovider/aws/aws_cloud_provider.go (GPULabel).

Seeds: S24
"""

from collections.abc import Iterator

from rules.checks._kit import found, names
from rules.checks._nodes import by_pool, refs, targets
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

LABEL = "k8s.amazonaws.com/accelerator"


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per node group."""
    bare = []
    for node in facts.gpu_nodes:
        yield node.ref
        owned = facts.scaling.manager(node) == "cluster-autoscaler"
        if owned and node.provider == "aws" and LABEL not in node.labels:
            bare.append(node)
    for pool, nodes in by_pool(bare).items():
        yield found(
            Severity.MEDIUM,
            *refs(nodes),
            identity=f"pool {pool}",
            nodes=names(refs(nodes)),
            pool=pool or None,
            gpu=nodes[0].product,
            value=(nodes[0].product or "nvidia-gpu").lower(),
            targets=targets(nodes),
        )


RULE = Rule(
    id="ca-gpu-label-missing",
    family="scheduling",
    severity=Severity.MEDIUM,
    seeds=("S24",),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
