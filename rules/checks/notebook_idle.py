"""A notebook has held a GPU for a long time.

What:
    A notebook (Kubeflow, OpenShift workbench, JupyterHub) that runs on a node has held a GPU for longer than half a
    day. Pending notebooks hold none. Whether anybody works in it cannot be seen from objects: only metrics of the GPU
    would tell, so this is low and asks to look.

Why:
    Notebooks are left open over night and over weekends. The culling that comes with them watches the browser, not the
    GPU, and a forgotten tab counts as activity.

Fix:
    Look at the GPU's activity, ask the owner, stop it; and switch on culling.

Source:
    seeds S12, S23; wseaton/gpu-pruner README.md; Kubeflow notebook culling and JupyterHub idle culler documents.

Seeds: S12, S23
"""

from collections.abc import Iterator

from rules.checks._kit import age, found, gpus, seconds, short
from rules.checks._running import running_since
from rules.checks._workloads import find, is_notebook, owners
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, PodFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

LONG_SECONDS = 12 * 3600


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per notebook."""
    for node in facts.gpu_nodes:
        for pod in node.gpu_pods:
            yield pod.ref
            runs = age(facts, running_since(pod))
            if pod.phase != "Running" or (runs or 0) < LONG_SECONDS or not is_notebook(facts, pod):
                continue
            notebook = _notebook(facts, pod)
            owner = next(owners(facts, pod), None)
            yield found(
                Severity.LOW,
                *(ref for ref in (notebook, pod.ref, node.ref) if ref),
                identity=str(notebook or owner or pod.ref),
                remedy="kubeflow" if notebook else "hub" if owner is None else "default",
                notebook=short(notebook or pod.ref),
                node=node.name,
                gpus=gpus(sum(pod.gpu_requests.values())),
                gpu=node.product,
                runs=seconds(runs, "status.startTime"),
                namespace=pod.ref.namespace,
                name=(notebook or owner or pod.ref).name,
            )


def _notebook(facts: ClusterFacts, pod: PodFacts) -> ObjectRef | None:
    """The Notebook object behind the pod, by owners, else by the label that its controller sets."""
    above = next((ref for ref in owners(facts, pod) if ref.kind == "Notebook"), None)
    name = (pod.pod.metadata.labels or {}).get("notebook-name")
    if above is not None or not name:
        return above
    ref = ObjectRef("Notebook", pod.ref.namespace, name)
    return ref if find(facts, ref) is not None else None


RULE = Rule(
    id="notebook-idle",
    family="billing",
    severity=Severity.LOW,
    seeds=("S12", "S23"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
