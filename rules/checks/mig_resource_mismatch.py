"""A pod asks for a whole GPU where all are cut into MIG devices, or for a MIG profile that no node has.

What:
    The pod has waited longer than the grace period, no node that its selector admits offers the resource that it
    names, and they do offer GPUs under MIG or partition names (or whole ones, where it asks for a MIG profile). The
    names must match exactly: a free ``mig-2g.10gb`` serves no pod that asks for ``mig-1g.10gb``. A resource
    name without the dash (``nvidia.com/mig1g.5gb``, as some documents print it) is told too. Under MIG strategy single
    and with GKE's own partitions devices keep the plain name, so there is nothing to mismatch.

Why:
    It can never be placed, and an autoscaler adds more nodes of the same layout or none. High.

Fix:
    Ask for a profile that the nodes offer, or change the layout of a node.

Source:
    seeds S16, S18; NVIDIA/k8s-device-plugin README.md (MIG strategy); MicrosoftDocs/azure-aks-docs
    articles/aks/gpu-multi-instance.md (prints the name without the dash).

Seeds: S16, S18
"""

import re
from collections.abc import Iterator

from rules.checks._kit import age, found, names, note, of, seconds, short
from rules.checks._pending import about, by_nodes, offers
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, GpuResource, NodeFacts, PodFacts
from rules.facts.resources import all_requests, gpu_name
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_CUT = ("mig", "partition")
_MEMORY = re.compile(r"\.(\d{1,4})gb")
_NO_DASH = re.compile(r"nvidia\.com/mig([0-9]+g\.[0-9]+gb(?:\.\w+)*)\Z")


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per owner and demand."""
    for queue in by_nodes(facts, policy):
        yield queue.first.ref
        wanted, nodes = queue.resource, queue.admitted.nodes
        known = gpu_name(wanted) if wanted else None
        if wanted is None or known is None or any(offers(node, wanted) for node in nodes):
            continue
        there = {node.name: _offered(node, known.vendor) for node in nodes}
        cut = {item.name for items in there.values() for item in items if item.form in _CUT}
        whole = {item.name for items in there.values() for item in items if item.form == "device"}
        wants_cut = known.form in _CUT
        if not cut and not (wants_cut and whole):
            continue
        least = min((node for node in nodes if there[node.name]), key=lambda node: (_used(node), node.name))
        yield found(
            Severity.HIGH,
            *queue.refs,
            *(node.ref for node in nodes if there[node.name]),
            remedy="profile" if wants_cut and cut else "whole" if wants_cut else "cut",
            identity=queue.identity,
            notes=[note("layout", at=names(node.ref for node in nodes if there[node.name]))],
            **about(facts, queue),
            resource=wanted,
            offered=of(sorted(cut | whole), "status.allocatable"),
            node=least.name,
            example=_nearest(wanted, cut | whole),
        )
    yield from _misspelt(facts, policy)


def _offered(node: NodeFacts, vendor: str) -> list[GpuResource]:
    return [item for item in node.resources if item.vendor == vendor and item.origin == "kubelet" and item.allocatable]


def _used(node: NodeFacts) -> int:
    return sum(item.requested for item in node.resources)


def _nearest(wanted: str, offered: set[str]) -> str:
    """The smallest with the memory of the profile that is asked for; the largest where none has it or none is named."""
    sizes = {name: int(match[1]) if (match := _MEMORY.search(name)) else 1000 for name in offered}
    asked = _MEMORY.search(wanted)
    enough = [name for name in sorted(offered) if asked and sizes[name] >= int(asked[1])]
    return min(enough, key=lambda name: sizes[name]) if enough else max(sorted(offered), key=lambda name: sizes[name])


def _misspelt(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    for pod in facts.unscheduled_pods:
        waited = age(facts, pod.pod.metadata.creationTimestamp)
        if waited is None or waited < policy.pending_grace_seconds:
            continue
        yield pod.ref
        wrong, profile = _wrong_name(pod)
        if wrong is not None:
            offered = {item.name for node in facts.gpu_nodes for item in node.resources if item.form in _CUT}
            yield found(
                Severity.HIGH,
                pod.ref,
                remedy="dash",
                pod=short(pod.ref),
                pods=of([short(pod.ref)]),
                waited=seconds(waited, "metadata.creationTimestamp"),
                resource=wrong,
                offered=of(sorted(offered), "status.allocatable"),
                example=f"nvidia.com/mig-{profile}",
            )


def _wrong_name(pod: PodFacts) -> tuple[str | None, str | None]:
    for name in all_requests(pod.pod.spec) if pod.pod.spec else ():
        match = _NO_DASH.match(name)
        if match:
            return name, match[1]
    return None, None


RULE = Rule(
    id="mig-resource-mismatch",
    family="sharing",
    severity=Severity.HIGH,
    seeds=("S16", "S18"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
