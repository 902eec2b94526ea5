"""The driver works on one kernel of the pool and fails on another: the kernel was updated under it.

What:
    Among nodes that share a driver DaemonSet or a pool, those whose driver fails run kernels on which it works nowhere,
    and the others run kernels on which it works. Or: the failing driver image is named after a kernel (a precompiled
    driver) and cannot be pulled.

Why:
    The driver container builds, or brings, a module per kernel. After an unattended kernel update and a reboot there is
    none: the node is paid and offers no GPU, and the next node to reboot follows.

Fix:
    Boot the old kernel and hold it, or take a driver version that supports the new one; then roll both together.

Source:
    https://github.com/NVIDIA/gpu-operator/issues/487; NVIDIA/gpu-operator documents on precompiled drivers.

Seeds: S2, S4
"""

from collections.abc import Iterator

from rules.checks._components import Layer, pods_of, selects_node, trouble
from rules.checks._kit import found, names, note, of
from rules.checks._stack import Fault, broken_nodes, kernel, serving
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_DRIVER_FAULTS = (Fault.DRIVER, Fault.NO_DRIVER)


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per group of nodes whose driver fails on a newer (or another) kernel."""
    failing: dict[str, list[NodeFacts]] = {}
    unpublished: list[NodeFacts] = []
    for node, cause in broken_nodes(facts, policy):
        yield node.ref
        if cause.fault not in _DRIVER_FAULTS or kernel(node) is None:
            continue
        if _names_its_kernel(node):
            unpublished.append(node)
        else:
            failing.setdefault(_group(facts, node), []).append(node)
    if unpublished:
        yield _finding("image", "precompiled", unpublished, [])
    for group, nodes in sorted(failing.items()):
        working = [item for item in facts.gpu_nodes if _works(item) and _group(facts, item) == group]
        if working and not {kernel(node) for node in nodes} & {kernel(node) for node in working}:
            yield _finding("default", group, nodes, working)


def _group(facts: ClusterFacts, node: NodeFacts) -> str:
    """Nodes that are meant to be equal: those of a pool, else those that one driver DaemonSet serves."""
    if node.pool:
        return f"pool {node.pool}"
    sets = [pod.controller.name for pod in pods_of(node, Layer.DRIVER) if pod.controller]
    sets += [item.metadata.name for item in serving(facts, node, Layer.DRIVER) if selects_node(item, node)]
    return f"driver {min(sets)}" if sets else f"model {node.product or node.vendor}"


def _works(node: NodeFacts) -> bool:
    return bool(node.ready and kernel(node) and any(item.allocatable for item in node.resources))


def _names_its_kernel(node: NodeFacts) -> bool:
    """The driver image that cannot be pulled carries the node's kernel in its tag: a precompiled driver."""
    wanted = kernel(node) or ""
    return any(
        (fault := trouble(pod)) is not None
        and "Image" in fault.reason
        and any(wanted in (item.image or "") for item in (pod.pod.spec.containers if pod.pod.spec else None) or [])
        for pod in pods_of(node, Layer.DRIVER)
    )


def _finding(form: str, group: str, nodes: list[NodeFacts], working: list[NodeFacts]) -> Finding:
    broken_kernels = sorted({kernel(node) or "" for node in nodes})
    good_kernels = sorted({kernel(node) or "" for node in working})
    drivers = sorted({node.driver_version for node in working if node.driver_version})
    return found(
        Severity.HIGH,
        *(node.ref for node in nodes),
        remedy=form,
        identity=f"{group} {' '.join(broken_kernels)}",
        notes=[note("on_nodes"), note("works" if working else "precompiled")],
        nodes=of(names(node.ref for node in nodes)),
        node=nodes[0].name,
        kernels=of(broken_kernels, "status.nodeInfo.kernelVersion"),
        good_kernels=of(good_kernels, "status.nodeInfo.kernelVersion"),
        good_nodes=of(names(node.ref for node in working)),
        driver=of(drivers, "labels of the working nodes"),
    )


RULE = Rule(
    id="driver-kernel-mismatch",
    family="drivers",
    severity=Severity.HIGH,
    seeds=("S2", "S4"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
