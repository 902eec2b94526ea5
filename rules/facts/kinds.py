"""Names of kinds. Two API groups may use the same kind, so a kind alone does not say what an object is."""

from functools import lru_cache

HOME_GROUPS: dict[str, tuple[str, ...]] = {
    "Node": ("",),
    "Pod": ("",),
    "Event": ("", "events.k8s.io"),
    "Service": ("",),
    "ConfigMap": ("",),
    "Secret": ("",),
    "Namespace": ("",),
    "ResourceQuota": ("",),
    "PersistentVolume": ("",),
    "PersistentVolumeClaim": ("",),
    "Deployment": ("apps", "extensions"),
    "DaemonSet": ("apps", "extensions"),
    "ReplicaSet": ("apps", "extensions"),
    "StatefulSet": ("apps",),
    "Job": ("batch",),
    "CronJob": ("batch",),
    "HorizontalPodAutoscaler": ("autoscaling",),
    "PodDisruptionBudget": ("policy",),
    "StorageClass": ("storage.k8s.io",),
    "RuntimeClass": ("node.k8s.io",),
    "PriorityClass": ("scheduling.k8s.io",),
    "ResourceSlice": ("resource.k8s.io",),
    "ResourceClaim": ("resource.k8s.io",),
    "ResourceClaimTemplate": ("resource.k8s.io",),
    "DeviceClass": ("resource.k8s.io",),
}
"""Kinds that Kubernetes itself serves and the groups it serves them in (Kubernetes API reference, 1.36)."""


def group_of(api_version: str) -> str:
    """Group of an apiVersion: ``apps`` for ``apps/v1``, the empty string for the core group's ``v1``."""
    return api_version.rpartition("/")[0]


@lru_cache(maxsize=1024)
def kind_key(api_version: str, kind: str) -> str:
    """The name under which objects of a kind are filed: ``Job``, or ``Job.batch.volcano.sh`` for a namesake.

    A kind that Kubernetes itself serves keeps its bare name; the same kind of another group (Volcano's Job, Longhorn's
    Node, Knative's Service) gets the group appended, as ``kubectl get`` spells it. Kinds that Kubernetes does not serve
    are filed under the bare kind, and their apiVersion tells groups apart.

    Args:
        api_version: as the object says; empty when it says nothing, which is read as Kubernetes' own.
        kind: as the object says.
    """
    homes = HOME_GROUPS.get(kind)
    if homes is None or not api_version or group_of(api_version) in homes:
        return kind
    return f"{kind}.{group_of(api_version) or 'core'}"
