"""A ResourceClaim cannot be allocated: no device fits it.

What:
    A pod has waited longer than the grace period for a ResourceClaim about GPUs that has no allocation. What the
    claim asks for is compared with the devices in ResourceSlices: the class, the number on one node, and in its CEL
    selectors the memory and the product. Where enough fitting devices are merely held by others, it is low.

Why:
    A wish that no device of the cluster meets is never granted; the scheduler only says "cannot allocate all claims".
    High.

Fix:
    Loosen the selector, or add devices that fit.

Source:
    seeds S14, S18; kubernetes v1.36.2 pkg/scheduler/framework/plugins/dynamicresources/dynamicresources.go;
    kubernetes/api resource/v1.

Seeds: S14, S18
"""

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from rules.checks._kit import Plain, Value, found, note, of, short
from rules.checks._pending import Waiting, about, by_nodes
from rules.checks._rollout import ref_of
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.facts.groups import mapping, whole
from rules.facts.objects import OtherObject
from rules.facts.resources import parse_quantity
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_MEMORY = re.compile(r"memory\W{0,3}\.(?:isGreaterThan|compareTo)\(quantity\(['\"]([\w.]{1,20})['\"]\)\)")
_PRODUCT = re.compile(r"productName\W{0,3}\s*==\s*['\"]([^'\"]{1,80})['\"]")


class Wish(NamedTuple):
    """What one request of a claim wants."""

    device_class: str | None
    amount: int
    memory_mib: int | None
    product: str | None


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per owner and demand."""
    claims = {(item.metadata.namespace or "", item.metadata.name): item for item in facts.of_kind("ResourceClaim")}
    for queue in by_nodes(facts, policy):
        yield queue.first.ref
        open_claims = [item for item in _claims(queue, claims) if not mapping(item.status).get("allocation")]
        if not open_claims:
            continue
        claim = open_claims[0]
        remedy, values = _why(facts, [wish for item in open_claims for wish in _wishes(item)])
        yield found(
            Severity.LOW if remedy == "in_use" else Severity.HIGH,
            *queue.refs,
            *(ref_of(item) for item in open_claims),
            remedy=remedy,
            identity=queue.identity,
            notes=[note(remedy, **values)] if values else [],
            **about(facts, queue),
            claim=short(ref_of(claim)),
            claim_namespace=claim.metadata.namespace,
            claim_name=claim.metadata.name,
            scheduler_message=of(queue.diagnosis.message, "condition PodScheduled or event FailedScheduling"),
        )


def _claims(queue: Waiting, claims: Mapping[tuple[str, str], OtherObject]) -> Iterator[OtherObject]:
    for pod in queue.pods:
        made = {
            item.get("name"): item.get("resourceClaimName")
            for item in (pod.pod.status.resourceClaimStatuses if pod.pod.status else None) or ()
        }
        for source in (pod.pod.spec.resourceClaims if pod.pod.spec else None) or ():
            name = source.resourceClaimName or made.get(source.name)
            item = claims.get((pod.ref.namespace, str(name)))
            if item is not None:
                yield item


def _wishes(claim: OtherObject) -> Iterator[Wish]:
    for request in mapping(mapping(claim.spec).get("devices")).get("requests") or []:
        wanted: Mapping[str, Any] = mapping(mapping(request).get("exactly")) or mapping(request)
        cel = [str(mapping(mapping(item).get("cel")).get("expression", "")) for item in wanted.get("selectors") or []]
        memory = next((match[1] for text in cel if (match := _MEMORY.search(text))), None)
        bytes_wanted = parse_quantity(memory) if memory else None
        product = next((match[1] for text in cel if (match := _PRODUCT.search(text))), None)
        yield Wish(
            device_class=wanted.get("deviceClassName"),
            amount=whole(wanted.get("count", 1)) or 1,
            memory_mib=int(bytes_wanted / 1024**2) if bytes_wanted else None,
            product=product,
        )


def _why(facts: ClusterFacts, wishes: list[Wish]) -> tuple[str, dict[str, Value | Plain]]:
    """Key of the remedy and values of its note. Unknown things are never taken for a contradiction."""
    if not facts.knows("ResourceSlice"):
        return "default", {}
    nodes = [node for node in facts.nodes if any(item.origin == "dra" for item in node.resources)]
    classes = {item.metadata.name for item in facts.of_kind("DeviceClass")}
    for wish in wishes:
        if facts.knows("DeviceClass") and wish.device_class and wish.device_class not in classes:
            return "device_class", {"wanted": wish.device_class, "there": sorted(classes)}
        largest = max((node.gpu_memory_mib or 0 for node in nodes), default=0)
        if wish.memory_mib and largest and wish.memory_mib > largest:
            return "memory", {"wanted": Value(wish.memory_mib, "MiB"), "largest": Value(largest, "MiB")}
        products = {node.product for node in nodes if node.product}
        if wish.product and products and wish.product not in products:
            return "product", {"wanted": wish.product, "there": sorted(products)}
    wanted = sum(wish.amount for wish in wishes)
    most = max((_devices(node)[0] for node in nodes), default=0)
    if nodes and wanted > most:
        return "count", {"wanted": wanted, "most": most}
    spare = max((_devices(node)[1] for node in nodes), default=0)
    if nodes and wanted > spare:
        return "in_use", {"wanted": wanted, "spare": spare}
    return "default", {}


def _devices(node: NodeFacts) -> tuple[int, int]:
    """Published and free devices of the node."""
    dra = [item for item in node.resources if item.origin == "dra"]
    return sum(item.capacity or 0 for item in dra), sum(item.free or 0 for item in dra)


RULE = Rule(
    id="claim-pending",
    family="scheduling",
    severity=Severity.HIGH,
    seeds=("S14", "S18"),
    needs=("Node", "Pod", "ResourceClaim"),
    check=check,
    doc=__doc__ or "",
)
