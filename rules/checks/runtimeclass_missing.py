"""GPU pods run without the NVIDIA runtime that their node needs, or name one that is not there.

What:
    Three forms. A pod cannot start because the container runtime has no handler for its runtime class. A pod is refused
    because the RuntimeClass that it names does not exist. Or, as a suspicion: on a containerd node without the GPU
    Operator (k3s, RKE2, plain installations) the device plugin itself runs with ``runtimeClassName: nvidia``, so
    NVIDIA's is not the default runtime there, and pods that hold a GPU do not ask for it. Plugins that hand devices out
    by CDI need no class.

Why:
    Without that runtime the container gets the device and no driver library (libcuda): it fails, or computes on the CPU
    while it holds a GPU.

Fix:
    Set ``runtimeClassName: nvidia`` in the pods, or make it the node's default runtime.

Source:
    NVIDIA/k8s-device-plugin README.md; k3s documentation, "NVIDIA Container Runtime"; Kubernetes documentation, Runtime
    Class.

Seeds: S3
"""

import re
from collections.abc import Iterator

from rules.checks._components import Layer, pods_of, stuck, trouble
from rules.checks._kit import age, found, names, note, of, short
from rules.checks._workloads import workload
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, NodeFacts, PodFacts
from rules.facts.events import event_message, event_object, event_time
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

_NO_HANDLER = re.compile(r"no runtime for \"?'?(?P<name>[\w.-]+)\"?'? is configured", re.IGNORECASE)
_NO_CLASS = re.compile(r"RuntimeClass(?:\.node\.k8s\.io)? \\?\"(?P<name>[\w.-]+)\\?\" not found", re.IGNORECASE)
_RECENT_SECONDS = 86400


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per workload (suspicion), and one per class that is not there or has no handler."""
    yield from _refused(facts)
    if facts.components.has("container-toolkit") or facts.components.has("gpu-operator"):
        return
    silent: dict[ObjectRef, list[tuple[PodFacts, NodeFacts]]] = {}
    for node in facts.gpu_nodes:
        yield node.ref
        if node.ready and _plugin_needs_class(node):
            for pod in node.gpu_pods:
                if _lacks_class(pod):
                    silent.setdefault(workload(facts, pod), []).append((pod, node))
    for owner, pairs in sorted(silent.items()):
        yield _suspicion(facts, owner, pairs)


def _refused(facts: ClusterFacts) -> Iterator[Finding]:
    seen: dict[tuple[str, str], list[ObjectRef]] = {}
    for event in facts.events:
        old, about = age(facts, event_time(event)), event_object(event)
        if old is None or old > _RECENT_SECONDS or about is None:
            continue
        for form, pattern in (("handler", _NO_HANDLER), ("absent", _NO_CLASS)):
            match = pattern.search(event_message(event))
            if match:
                seen.setdefault((form, match["name"]), []).append(about)
    for (form, name), refs in sorted(seen.items()):
        objects = sorted(set(refs))
        pods = (facts.pod(ref.namespace, ref.name) for ref in objects if ref.kind == "Pod")
        nodes = sorted({pod.node_name for pod in pods if pod and pod.node_name})
        yield found(
            Severity.HIGH,
            *objects,
            *(ObjectRef("Node", "", node) for node in nodes),
            remedy=form,
            identity=f"{form} {name}",
            notes=[note(form)],
            runtime_class=name,
            workload=short(objects[0]),
            pods=of(names(objects)),
            nodes=of(nodes),
        )


def _plugin_needs_class(node: NodeFacts) -> bool:
    """The plugin on the node works, with a runtime class and without CDI."""
    pods = [pod for pod in pods_of(node, Layer.PLUGIN) if not stuck(pod) and trouble(pod) is None]
    return bool(pods) and all(_asks_for_class(pod) for pod in pods)


def _asks_for_class(pod: PodFacts) -> bool:
    spec = pod.pod.spec
    if spec is None or "nvidia" not in (spec.runtimeClassName or ""):
        return False
    said = [text for item in spec.containers or [] for text in (*(item.args or []), *(item.command or []))]
    said += [f"{var.name}={var.value}" for item in spec.containers or [] for var in item.env or []]
    return not any("cdi" in text.lower() for text in said)


def _lacks_class(pod: PodFacts) -> bool:
    spec = pod.pod.spec
    holds = any(name.startswith("nvidia.com/") for name in pod.gpu_requests)
    return bool(
        holds and spec and not spec.runtimeClassName and not pod.is_daemon and not pod.pod.metadata.deletionTimestamp
    )


def _suspicion(facts: ClusterFacts, owner: ObjectRef, pairs: list[tuple[PodFacts, NodeFacts]]) -> Finding:
    pods = sorted(pod.ref for pod, _ in pairs)
    failing = any(trouble(pod) for pod, _ in pairs)
    return found(
        Severity.HIGH if failing else Severity.MEDIUM,
        *pods,
        *([owner] if owner.kind in ("Deployment", "StatefulSet") else []),
        identity=str(owner),
        notes=[note("failing" if failing else "running")],
        runtime_class="nvidia",
        workload=short(owner),
        pods=of(names(pods)),
        nodes=of(names(node.ref for _, node in pairs)),
    )


RULE = Rule(
    id="runtimeclass-missing",
    family="drivers",
    severity=Severity.MEDIUM,
    seeds=("S3",),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
