"""A taint that came after the device plugin has driven it off its nodes, or will at its next restart.

What:
    Gone: the kubelet still lists a GPU resource, with nothing allocatable, so the plugin has run on the node before;
    now no plugin pod is there, and the DaemonSet that selects the node does not tolerate one of its taints. Soon: the
    plugin runs on the node although its template does not tolerate a taint there. A taint ``NoSchedule`` leaves running
    pods alone; when the pod restarts (upgrade, reboot, eviction) it does not come back.

Why:
    Nothing shows it at the time of tainting. Gone: the node is paid and offers nothing (high). Soon: the next upgrade
    of the plugin takes the GPUs of all these nodes away (medium).

Fix:
    Add the toleration to the DaemonSet, before its next restart.

Source:
    https://github.com/NVIDIA/k8s-device-plugin/issues/68; Kubernetes v1.36.2 pkg/controller/daemon (a daemon pod that
    runs is removed for NoExecute only).

Seeds: S2, S5
"""

from collections.abc import Iterator

from rules.checks._components import Layer, daemon_ref, daemon_sets, kept_off_by_taints, pods_of, stuck, trouble
from rules.checks._kit import found, names, note, of, short, tolerations
from rules.checks._stack import barred_plugins
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts
from rules.facts.objects import OtherObject
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield at most one finding per DaemonSet and form."""
    for item, barred in barred_plugins(facts, policy, registered=True):
        yield daemon_ref(item)
        keys = {key for _, cause in barred for key in cause.taints}
        yield _finding(item, [node for node, _ in barred], keys, gone=True)
    for item, _ in daemon_sets(facts, [Layer.PLUGIN]):
        yield daemon_ref(item)
        held = [(node, kept_off_by_taints(item, node)) for node in facts.gpu_nodes if _runs(item, node)]
        nodes = [node for node, taints in held if taints]
        if nodes:
            yield _finding(item, nodes, {key for _, taints in held for key in taints}, gone=False)


def _runs(item: OtherObject, node: NodeFacts) -> bool:
    name, namespace = item.metadata.name, item.metadata.namespace or ""
    return any(
        pod.controller is not None
        and (pod.controller.name, pod.ref.namespace) == (name, namespace)
        and not stuck(pod)
        and trouble(pod) is None
        for pod in pods_of(node, Layer.PLUGIN)
    )


def _finding(item: OtherObject, nodes: list[NodeFacts], keys: set[str], *, gone: bool) -> Finding:
    ref = daemon_ref(item)
    form = "gone" if gone else "default"
    return found(
        Severity.HIGH if gone else Severity.MEDIUM,
        ref,
        *(node.ref for node in nodes),
        remedy=form,
        identity=f"{ref} {form}",
        notes=[note("gone" if gone else "soon"), note("on_nodes")],
        daemon_set=short(ref),
        daemon_set_namespace=ref.namespace,
        daemon_set_name=ref.name,
        nodes=of(names(node.ref for node in nodes)),
        taints=of(sorted(keys), "spec.taints of the nodes, spec.template.spec.tolerations"),
        tolerations=tolerations(keys),
    )


RULE = Rule(
    id="plugin-repelled-by-taint",
    family="drivers",
    severity=Severity.HIGH,
    seeds=("S2", "S5"),
    needs=("Node", "Pod", "DaemonSet"),
    check=check,
    doc=__doc__ or "",
)
