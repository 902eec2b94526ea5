"""The fast network between nodes, as Kubernetes sees it: resources that stand for RDMA, InfiniBand and EFA devices.

Sources (read 2026-08): Mellanox/k8s-rdma-shared-dev-plugin README (prefix ``rdma`` by default),
Mellanox/network-operator (``nvidia.com/hostdev`` and SR-IOV names under ``nvidia.com``),
k8snetworkplumbingwg/sriov-network-operator (prefix ``openshift.io``), awsdocs/amazon-eks-user-guide
latest/ug/ml/node-efa.adoc, GKE networks, AMD network operator.
"""

import re
from functools import lru_cache

from rules.facts.model import NodeFacts
from rules.facts.objects import PodSpec
from rules.facts.resources import count, extended_requests, gpu_name, indirect_claim

_FAST = re.compile(
    r"rdma/|vpc\.amazonaws\.com/efa\Z|openshift\.io/.*(?:ib|rdma|mlnx|roce)|mellanox\.com/"
    r"|networking\.gke\.io\.networks/(?:rdma|gpu)|amd\.com/nic|intel\.com/.*(?:rdma|roce)"
)
_NVIDIA = "nvidia.com/"
_VERBS = re.compile(r"rdma/|nvidia\.com/|mellanox\.com/|openshift\.io/|amd\.com/nic")


@lru_cache(maxsize=4096)
def is_fast_network(resource: str) -> bool:
    """Whether an extended resource is a network device for RDMA. The NVIDIA Network Operator puts its devices under
    ``nvidia.com`` as well: what is there and is no GPU, and no share of one, is a network card."""
    if _FAST.match(resource):
        return True
    if not resource.startswith(_NVIDIA) or gpu_name(resource) or indirect_claim(resource):
        return False
    return not resource.startswith((f"{_NVIDIA}gpu", f"{_NVIDIA}mig-", f"{_NVIDIA}pgpu", f"{_NVIDIA}vgpu"))


def is_verbs_network(resource: str) -> bool:
    """Whether programs reach the device through InfiniBand verbs, which lock memory. EFA and GKE's own networks have
    their ways."""
    return is_fast_network(resource) and bool(_VERBS.match(resource))


def fast_network(node: NodeFacts) -> tuple[str, ...]:
    """Names of the node's allocatable RDMA and EFA resources, sorted."""
    allocatable = (node.node.status.allocatable if node.node.status else None) or {}
    return tuple(sorted(name for name, amount in allocatable.items() if is_fast_network(name) and count(amount)))


def fast_network_requests(spec: PodSpec | None) -> tuple[str, ...]:
    """Names of the RDMA and EFA resources that a pod asks for, sorted."""
    return tuple(sorted(filter(is_fast_network, extended_requests(spec)))) if spec else ()
