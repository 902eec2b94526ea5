"""Which node images are known to carry no NVIDIA driver.

Sources: awslabs/amazon-eks-ami doc/usage/al2.md and templates (names ``amazon-eks-node-al2023-<arch>-standard-*`` and
``-nvidia-*``, ``amazon-eks-node-*`` and ``amazon-eks-gpu-node-*``), bottlerocket-os/bottlerocket README.md (variants),
aws/karpenter-provider-aws pkg/apis/v1/ec2nodeclass_status.go; read 2026-08.
"""

import re
from typing import Any

from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.facts.objects import OtherObject
from rules.findings import ObjectRef

_KNOWN = re.compile(r"^amazon-eks-(?:gpu-)?node-|^bottlerocket-aws-k8s-")
_WITH_GPU = re.compile(r"nvidia|gpu|neuron|accelerated", re.IGNORECASE)
_BOTTLEROCKET = re.compile(r"Bottlerocket OS \S+ \((?P<variant>[^)]+)\)")
_AWS = "karpenter.k8s.aws"


def image_without_driver(facts: ClusterFacts, node: NodeFacts) -> tuple[ObjectRef | None, str] | None:
    """The node's image, and the object that chose it, where it is known to carry no driver; None when it may have one.

    A node class that resolves several images (one per kind of instance) counts only when none of them is for GPUs.
    """
    if node.vendor not in (None, "nvidia"):
        return None
    info = node.node.status.nodeInfo if node.node.status else None
    bottlerocket = _BOTTLEROCKET.search((info.osImage if info else None) or "")
    if bottlerocket:
        return None if "nvidia" in bottlerocket["variant"] else (None, bottlerocket[0])
    chosen = _node_class(facts, node)
    names = [str(ami.get("name", "")) for ami in _list(chosen.status, "amis")] if chosen else []
    if chosen is None or not names or any(_WITH_GPU.search(name) or not _KNOWN.match(name) for name in names):
        return None
    return ObjectRef("EC2NodeClass", "", chosen.metadata.name), names[0]


def _node_class(facts: ClusterFacts, node: NodeFacts) -> OtherObject | None:
    name = node.labels.get("karpenter.k8s.aws/ec2nodeclass") or _of_pool(
        facts, node.labels.get("karpenter.sh/nodepool")
    )
    classes = facts.of_kind("EC2NodeClass", _AWS)
    return next((item for item in classes if item.metadata.name == name), None) if name else None


def _of_pool(facts: ClusterFacts, pool: str | None) -> str | None:
    for item in facts.of_kind("NodePool", "karpenter.sh"):
        if pool and item.metadata.name == pool:
            template = (item.spec or {}).get("template") or {}
            reference = (template.get("spec") or {}).get("nodeClassRef") or {}
            return str(reference.get("name")) if reference.get("name") else None
    return None


def _list(value: Any, field: str) -> list[dict[str, Any]]:
    found = value.get(field) if isinstance(value, dict) else None
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []
