"""Placeholder pods of YuniKorn hold GPUs for a gang that does not start.

What:
    Pods with YuniKorn's placeholder mark are bound to a node, request GPUs, and are older than the placeholder timeout
    (the application's ``placeholderTimeoutInSeconds``, 15 minutes by default).

Why:
    Placeholders run ``pause``: they keep room for a gang and compute nothing. When the real pods do not come in time,
    paid GPUs stand idle, and the scheduler counts them as used. Medium.

Fix:
    See why the real pods are not made; set a timeout and the style ``Hard`` or ``Soft``.

Source:
    seeds S10, S23; apache/yunikorn-k8shim pkg/common/constants/constants.go.

Seeds: S10, S23
"""

import re
from collections.abc import Iterator

from rules.checks._kit import age, found, gpus, names, of, seconds
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, PodFacts
from rules.findings import Finding, ObjectRef, Severity
from rules.policy import Policy

DEFAULT_TIMEOUT_SECONDS = 900
_MARK = "yunikorn.apache.org/placeholder"
_TIMEOUT = re.compile(r"placeholderTimeoutInSeconds=(\d{1,6})")
_APPLICATION = ("yunikorn.apache.org/app-id", "applicationId")


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per application."""
    late: dict[tuple[str, str], list[PodFacts]] = {}
    for pod in facts.gpu_pods:
        if pod.terminal or pod.node_name is None or not pod.gpu_requests or not _is_placeholder(pod):
            continue
        yield pod.ref
        held = age(facts, pod.pod.metadata.creationTimestamp)
        if held is not None and held > _timeout(pod):
            late.setdefault((pod.ref.namespace, _application(pod)), []).append(pod)
    for (namespace, application), pods in sorted(late.items()):
        nodes = sorted({node.ref for pod in pods if (node := facts.node(pod.node_name or ""))})
        yield found(
            Severity.MEDIUM,
            *(pod.ref for pod in pods),
            *nodes,
            identity=f"{namespace}/{application}",
            application=application,
            pod_namespace=namespace,
            pods=of(names(pod.ref for pod in pods)),
            gpus=gpus(sum(sum(pod.gpu_requests.values()) for pod in pods)),
            nodes=of(names(nodes)),
            held=seconds(max(age(facts, pod.pod.metadata.creationTimestamp) or 0 for pod in pods)),
            timeout=seconds(_timeout(pods[0]), "yunikorn.apache.org/schedulingPolicyParameters"),
        )


def _is_placeholder(pod: PodFacts) -> bool:
    annotations, labels = pod.pod.metadata.annotations or {}, pod.pod.metadata.labels or {}
    by_label = labels.get("placeholder") == "true" and pod.pod.spec and pod.pod.spec.schedulerName == "yunikorn"
    return annotations.get(_MARK) == "true" or bool(by_label)


def _application(pod: PodFacts) -> str:
    marks = {**(pod.pod.metadata.annotations or {}), **(pod.pod.metadata.labels or {})}
    return next((marks[key] for key in _APPLICATION if marks.get(key)), pod.ref.name)


def _timeout(pod: PodFacts) -> int:
    text = (pod.pod.metadata.annotations or {}).get("yunikorn.apache.org/schedulingPolicyParameters", "")
    match = _TIMEOUT.search(text)
    return int(match[1]) if match else DEFAULT_TIMEOUT_SECONDS


RULE = Rule(
    id="yunikorn-placeholder-idle",
    family="training",
    severity=Severity.MEDIUM,
    seeds=("S10", "S23"),
    needs=("Node", "Pod"),
    check=check,
    doc=__doc__ or "",
)
