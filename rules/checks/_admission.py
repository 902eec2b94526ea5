"""Pods that the kubelet rejected because the device they were promised was not there."""

from rules.facts.cluster import ClusterFacts, PodFacts

REJECTED = "UnexpectedAdmissionError"


def rejected_by_node(facts: ClusterFacts) -> dict[str, list[PodFacts]]:
    """GPU pods that failed with ``UnexpectedAdmissionError``, by the node that rejected them."""
    found: dict[str, list[PodFacts]] = {}
    for pod in facts.gpu_pods:
        status = pod.pod.status
        rejected = pod.phase == "Failed" and status is not None and status.reason == REJECTED
        if rejected and pod.node_name and (pod.gpu_requests or pod.other_gpu_claim):
            found.setdefault(pod.node_name, []).append(pod)
    return found


def oldest_first(pods: list[PodFacts]) -> list[PodFacts]:
    """Pods by creation, then name."""
    return sorted(pods, key=lambda pod: (str(pod.pod.metadata.creationTimestamp), pod.ref))


def what_it_said(pods: list[PodFacts]) -> str | None:
    """The kubelet's message of the first pod that has one."""
    said = (pod.pod.status.message for pod in pods if pod.pod.status)
    return next((text[:200] for text in said if text), None)
