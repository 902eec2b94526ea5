"""Work on a spot GPU node is lost when the node is taken back.

What:
    A pod that holds a GPU on a spot node has no owner, so that nothing starts it again; or it belongs to a Job that
    gives up at the first failure (``backoffLimit`` 0) without a ``podFailurePolicy`` that leaves interruptions out of
    the count (condition DisruptionTarget).

Why:
    Spot nodes are taken back at any time. Such work ends then, without a trace in the best of cases.

Fix:
    Run it as a Job that tries again, save checkpoints, and do not count interruptions as failures.

Source:
    seeds S22; kubernetes/autoscaler FAQ.md; kubernetes.io/docs/concepts/workloads/controllers/job (pod failure policy);
    labels of spot nodes: rules/data/node-identity.json.

Seeds: S22
"""

from collections.abc import Iterator

from rules.checks._kit import found, note, of, short
from rules.checks._workloads import find
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, PodFacts
from rules.facts.objects import OtherObject
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per pod."""
    for node in facts.gpu_nodes:
        if not node.spot:
            continue
        for pod in node.gpu_pods:
            yield pod.ref
            bare, job = not pod.pod.metadata.ownerReferences, _job_of(facts, pod)
            if not bare and job is None:
                continue
            ref = ObjectRef("Job", pod.ref.namespace, job.metadata.name) if job else None
            yield found(
                Severity.MEDIUM,
                *(item for item in (ref, pod.ref, node.ref) if item),
                identity=str(ref or pod.ref),
                remedy="job" if job else "default",
                notes=[note("job" if job else "bare")],
                pod=short(pod.ref),
                node=node.name,
                restart_policy=of(pod.pod.spec.restartPolicy if pod.pod.spec else None, "spec.restartPolicy"),
                job=short(ref) if ref else None,
            )


def _job_of(facts: ClusterFacts, pod: PodFacts) -> OtherObject | None:
    """The Job that gives up when the pod is interrupted."""
    if pod.controller is None or pod.controller.kind != "Job":
        return None
    job = find(facts, ObjectRef("Job", pod.ref.namespace, pod.controller.name))
    spec = (job.spec or {}) if job else {}
    rules = (spec.get("podFailurePolicy") or {}).get("rules") or ()
    spared = any(
        rule.get("action") == "Ignore"
        and any(item.get("type") == "DisruptionTarget" for item in rule.get("onPodConditions") or ())
        for rule in rules
    )
    return job if spec.get("backoffLimit", 6) == 0 and not spared else None


RULE = Rule(
    id="spot-bare-pod",
    family="spot",
    severity=Severity.MEDIUM,
    seeds=("S22",),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
