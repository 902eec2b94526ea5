"""GPU pods on several nodes mount one volume that only one node can mount.

What:
    Unfinished pods mount the same claim, at least one of them with GPUs; they are on different nodes or cannot all fit
    on one, and the claim asks for ReadWriteOnce only, or asks for ReadWriteMany of a driver that has block devices
    only. Left alone: drivers that can be mounted on several nodes whatever the claim asks, pods that all run with it on
    several nodes (it works), several pods on one node, raw block volumes.

Why:
    ReadWriteOnce means one node at a time. The second node's pod stays in ContainerCreating with a Multi-Attach error,
    or is Pending because the volume ties it to the first node; the whole job waits. A claim may ask a block driver for
    ReadWriteMany and bind: the mount then fails. High while a pod is stuck, else medium.

Fix:
    Put the data on a driver for shared file systems, or give each worker a volume of its own.

Source:
    seeds S21, S29; kubernetes-csi/docs book/src/drivers.md; Kubernetes documentation, persistent volumes, access modes.

Seeds: S21, S29
"""

from collections.abc import Iterator

from rules.checks._kit import age, found, names, note, of, short
from rules.engine import Rule
from rules.facts.cluster import ClusterFacts, PodFacts
from rules.facts.storage import ClaimFacts, can_share, claim_names
from rules.findings import Finding, Note, ObjectRef, Severity
from rules.policy import Policy

_VOLUME_TROUBLE = ("FailedAttachVolume", "FailedMount")
_VOLUME_WORDS = ("volume node affinity conflict", "Multi-Attach")


def check(facts: ClusterFacts, policy: Policy) -> Iterator[Finding | ObjectRef]:
    """Yield one finding per claim."""
    wanted = {
        ref
        for pod in facts.gpu_pods
        if pod.gpu_requests or pod.dra_devices
        for ref in _mounted(pod)
        if ref in facts.claims
    }
    namespaces = {ref.namespace for ref in wanted}
    mounting: dict[ObjectRef, list[PodFacts]] = {}
    for pod in facts.pods if wanted else ():
        for ref in _mounted(pod) if pod.ref.namespace in namespaces else ():
            if ref in wanted:
                mounting.setdefault(ref, []).append(pod)
    for ref, pods in sorted(mounting.items()):
        claim = facts.claims[ref]
        yield ref
        if _one_node_only(claim) and _need_several(facts, pods) and not _all_run(pods):
            yield _finding(facts, claim, pods, policy)


def _mounted(pod: PodFacts) -> list[ObjectRef]:
    """Claims that an unfinished pod mounts."""
    volumes = pod.pod.spec.volumes if pod.pod.spec and not pod.terminal else None
    return [ObjectRef("PersistentVolumeClaim", pod.ref.namespace, name) for name in claim_names(pod.ref.name, volumes)]


def _one_node_only(claim: ClaimFacts) -> bool:
    if claim.block or claim.rwx is True:
        return False
    return not claim.asks_for_many or (claim.rwx is False and "ReadWriteMany" in claim.access_modes)


def _need_several(facts: ClusterFacts, pods: list[PodFacts]) -> bool:
    """Whether the pods are on several nodes, or no node has room for all of them."""
    if len({pod.node_name for pod in pods if pod.node_name}) > 1:
        return True
    if all(pod.node_name for pod in pods):
        return False
    wanted: dict[str, int] = {}
    for pod in pods:
        for name, amount in pod.gpu_requests.items():
            wanted[name] = wanted.get(name, 0) + amount
    most = {
        name: max(
            (item.allocatable or 0 for node in facts.nodes for item in node.resources if item.name == name), default=0
        )
        for name in wanted
    }
    return any(most[name] and amount > most[name] for name, amount in wanted.items())


def _all_run(pods: list[PodFacts]) -> bool:
    return all(pod.node_name and pod.phase == "Running" for pod in pods)


def _stuck(facts: ClusterFacts, pod: PodFacts, policy: Policy) -> bool:
    """Whether the pod waits for the volume: the kubelet or the scheduler says so, or it is old and not yet running."""
    texts = [(event.reason or "", event.message or event.note or "") for event in facts.events_of(pod.ref)]
    if any(reason in _VOLUME_TROUBLE or any(word in text for word in _VOLUME_WORDS) for reason, text in texts):
        return True
    waited = age(facts, pod.pod.metadata.creationTimestamp)
    return pod.phase == "Pending" and waited is not None and waited > policy.pending_grace_seconds


def _finding(facts: ClusterFacts, claim: ClaimFacts, pods: list[PodFacts], policy: Policy) -> Finding:
    stuck = [pod for pod in pods if _stuck(facts, pod, policy)]
    classes = [item for item in facts.of_kind("StorageClass") if can_share(item.provisioner)]
    return found(
        Severity.HIGH if stuck else Severity.MEDIUM,
        claim.ref,
        *(pod.ref for pod in sorted(pods, key=lambda pod: pod.ref)),
        notes=_notes(claim, stuck),
        remedy="class" if classes else "default",
        identity=str(claim.ref),
        claim=short(claim.ref),
        pods=of(names(pod.ref for pod in pods)),
        nodes=of(sorted({pod.node_name for pod in pods if pod.node_name})),
        access_modes=of(list(claim.access_modes), "spec.accessModes"),
        driver=of(claim.driver, "StorageClass or PersistentVolume"),
        storage_class=of(claim.storage_class, "spec.storageClassName"),
        shared_class=of(classes[0].metadata.name if classes else None, "StorageClass"),
    )


def _notes(claim: ClaimFacts, stuck: list[PodFacts]) -> Iterator[Note]:
    if claim.asks_for_many:
        yield note("only_a_wish")
    if stuck:
        yield note("stuck", stuck=of(names(pod.ref for pod in stuck)))


RULE = Rule(
    id="rwo-multi-node",
    family="storage",
    severity=Severity.HIGH,
    seeds=("S21", "S29"),
    needs=("Node", "Pod", "PersistentVolumeClaim"),
    check=check,
    doc=__doc__ or "",
)
