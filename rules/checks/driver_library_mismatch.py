"""User libraries and kernel module of the NVIDIA driver have different versions on a node.

What:
    A pod on the node (device plugin, exporter, validator, or a workload) ended, or cannot start, with "Driver/library
    version mismatch": the libraries on the host were replaced while the old module stayed loaded. Every such pod of
    the node is evidence of the one trouble.

Why:
    NVML refuses to start, so the device plugin crashes and the GPUs vanish; pods that ran before the update live on and
    hide it. The usual reason is an automatic package update without a reboot, or two owners of the driver: the host's
    packages and the GPU Operator.

Fix:
    Drain and reboot (or unload the module), then keep the packages out of automatic updates.

Source:
    https://github.com/NVIDIA/gpu-operator/issues/898; https://github.com/NVIDIA/k8s-device-plugin/issues/1431;
    https://github.com/pando85/homelab/pull/4110.

Seeds: S2, S4
"""

from collections.abc import Iterator

from rules.checks._components import Layer, pods_of, speaking, trouble
from rules.checks._kit import cost_note, cost_of, found, names, note, of, seconds, short
from rules.checks._stack import LIBRARY_MISMATCH, saying, silent_for
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.findings import Finding, Note, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per node on which a pod says so."""
    for node in facts.nodes:
        yield node.ref
        pods = [pod for pod in speaking(node) if saying(pod, LIBRARY_MISMATCH) and (trouble(pod) or not _runs(pod))]
        if not pods:
            continue
        plugins = pods_of(node, Layer.PLUGIN)
        first = next((pod for pod in pods if pod in plugins), pods[0])
        fault = trouble(first)
        offered = sum(item.allocatable or 0 for item in node.resources)
        cost = None if offered else cost_of(node.price, None)
        yield found(
            Severity.HIGH,
            node.ref,
            *sorted(pod.ref for pod in pods),
            identity=str(node.ref),
            cost=cost,
            notes=_notes(node, offered, [] if offered else [cost_note(cost)]),
            node=node.name,
            failing_pod=short(first.ref),
            restarts=fault.restarts if fault else 0,
            said=of((saying(first, LIBRARY_MISMATCH) or "")[:200], "status.containerStatuses[].lastState"),
            pods=of(names(pod.ref for pod in pods)),
            resources=of([f"{item.name}={item.allocatable or 0}" for item in node.resources], "status.allocatable"),
            ready_for=seconds(silent_for(facts, node)),
            driver=of(node.driver_version, node.driver_source),
        )


def _runs(pod: PodFacts) -> bool:
    statuses = (pod.pod.status.containerStatuses if pod.pod.status else None) or []
    return bool(statuses) and all(item.ready for item in statuses)


def _notes(node: NodeFacts, offered: int, money: list[Note]) -> Iterator[Note]:
    yield note("still_offered") if offered else note("offers_none")
    if node.labels.get("nvidia.com/gpu.deploy.driver") == "true":
        yield note("operator_driver")
    yield from money


RULE = Rule(
    id="driver-library-mismatch",
    family="drivers",
    severity=Severity.HIGH,
    seeds=("S2", "S4"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
