"""A notebook, or a pod whose GPU work is over, is marked as not to be moved.

What:
    A pod on a GPU node carries ``karpenter.sh/do-not-disrupt`` or ``cluster-autoscaler.kubernetes.io/safe-to-evict:
    "false"``, and it is a notebook that has run for longer than a day, or the containers that asked for a GPU have
    ended while another one goes on. Whether a GPU is idle cannot be seen from objects, so other pods are not judged.

Why:
    The annotation keeps the whole node for as long as the pod exists, also when nobody uses it any more.

Fix:
    Stop the notebook, or give the annotation an end.

Source:
    seeds S23, S24; https://github.com/kubernetes-sigs/karpenter/issues/2855; aws/karpenter-provider-aws
    website/content/en/v1.14/concepts/disruption.md.

Seeds: S23, S24
"""

from collections.abc import Iterator

from rules.checks._kit import age, found, note, seconds, short
from rules.checks._running import gpu_work_ended, running_since
from rules.checks._workloads import is_notebook
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, PodFacts
from rules.facts.scale_down import DO_NOT_DISRUPT, SAFE_TO_EVICT, annotation, protected_by_do_not_disrupt
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

LONG_SECONDS = 24 * 3600


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per pod."""
    for node in facts.gpu_nodes:
        for pod in node.gpu_pods:
            yield pod.ref
            marks = _marks(facts, pod)
            runs = age(facts, running_since(pod))
            if not marks or pod.is_daemon or runs is None or runs < LONG_SECONDS:
                continue
            ended = gpu_work_ended(pod)
            if not ended and not is_notebook(facts, pod):
                continue
            yield found(
                Severity.MEDIUM if ended else Severity.LOW,
                pod.ref,
                node.ref,
                notes=[note("ended" if ended else "notebook")],
                pod=short(pod.ref),
                node=node.name,
                annotations=marks,
                runs=seconds(runs, "status.containerStatuses[].state"),
                pod_namespace=pod.ref.namespace,
                pod_name=pod.ref.name,
                annotation=marks[0],
            )


def _marks(facts: ClusterFacts, pod: PodFacts) -> list[str]:
    found_marks = [DO_NOT_DISRUPT] if protected_by_do_not_disrupt(facts, pod) else []
    return [*found_marks, SAFE_TO_EVICT] if annotation(pod, SAFE_TO_EVICT) == "false" else found_marks


RULE = Rule(
    id="do-not-disrupt-on-idle",
    family="billing",
    severity=Severity.LOW,
    seeds=("S23", "S24"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
