"""A GPU has fallen off a node, and takes the node's other GPUs with it.

What:
    A pod on the node, or a recent event about it or its pods, says "GPU is lost", "fallen off the bus", "error creating
    nvml.Device" or that the handle of a GPU cannot be determined.

Why:
    The device plugin stops at the first GPU that it cannot read, so that the healthy ones are not handed out either.
    Only a reset or a reboot brings a lost GPU back; often it is the hardware, power or cooling.

Fix:
    Cordon, drain, reset or reboot; ask the provider for another machine when it happens again.

Source:
    https://github.com/kubernetes/kubernetes/issues/97131; NVIDIA documents on Xid errors (79).

Seeds: S2
"""

import re
from collections.abc import Iterator

from rules.checks._components import speaking
from rules.checks._kit import age, cost_note, cost_of, found, holders, names, note, of
from rules.checks._stack import saying
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.facts.events import event_message, event_time
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_LOST = re.compile(
    r"GPU is lost|fallen off the bus|error creating nvml\.Device|determine the device handle for GPU", re.IGNORECASE
)
_RECENT_SECONDS = 86400


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per node."""
    for node in facts.gpu_nodes:
        yield node.ref
        shown, said = _evidence(facts, node)
        if said is None:
            continue
        offered = sum(item.allocatable or 0 for item in node.resources)
        cost = cost_of(node.price, None)
        yield found(
            Severity.HIGH,
            node.ref,
            *shown,
            identity=str(node.ref),
            cost=cost,
            notes=[note("cordoned" if node.unschedulable else "still_taken"), cost_note(cost)],
            node=node.name,
            said=of(said[:200], "status of pods, events"),
            offered=of(offered, "status.allocatable"),
            capacity=of(sum(item.capacity or 0 for item in node.resources), "status.capacity"),
            gpu=of(node.product),
            holders=of(names(pod.ref for pod in holders(node))),
        )


def _evidence(facts: ClusterFacts, node: NodeFacts) -> tuple[list[ObjectRef], str | None]:
    texts = {pod.ref: text for pod in speaking(node) if (text := saying(pod, _LOST))}
    for ref in (node.ref, *(pod.ref for pod in node.pods)):
        for event in facts.events_of(ref):
            old = age(facts, event_time(event))
            if old is not None and old < _RECENT_SECONDS and _LOST.search(event_message(event)):
                texts.setdefault(ref, event_message(event))
    return [ref for ref in texts if ref != node.ref], next(iter(texts.values()), None)


RULE = Rule(
    id="gpu-lost-whole-node",
    family="health",
    severity=Severity.HIGH,
    seeds=("S2",),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
