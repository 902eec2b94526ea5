"""The kinds that are read from a cluster, in one place: requests, rights and snapshots all follow this table."""

import msgspec

from rules.facts.objects import Event

ROUTINE_REASONS = (
    "Created",
    "Killing",
    "LeaderElection",
    "NoPods",
    "Pulled",
    "Pulling",
    "SandboxChanged",
    "ScalingReplicaSet",
    "Scheduled",
    "Started",
    "SuccessfulAttachVolume",
    "SuccessfulCreate",
    "SuccessfulDelete",
    "SuccessfulRescale",
)
"""Reasons of the events that every healthy pod and controller writes. They are most of a cluster's events and say
nothing about GPUs. Selecting by ``type=Warning`` instead would lose what autoscalers say: cluster-autoscaler's
NotTriggerScaleUp and Karpenter's Unconsolidatable and DisruptionBlocked are of type Normal."""


class KindSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of object and how to list it.

    Attributes:
        kind: as objects spell it.
        group: API group, "" for core.
        versions: acceptable versions of the group, best first; where rules look, all have the same shape.
        plural: name in URLs and in RBAC rules.
        why: what it is read for.
        required: nothing can be said of the cluster without it.
        built_in: served by every API server; the others need a version or a feature and may be absent.
        field_selector: what the server leaves out before sending.
        names: the only objects that are asked for, and that the rights allow; empty for all of them. Only of these is
            the kind known then.
        namespaced: its objects are in namespaces, so that a right in some of these namespaces shows some of them.
        max_objects: how many are read at most; beyond it the kind is incomplete and so counts as not read.
    """

    kind: str
    group: str
    versions: tuple[str, ...]
    plural: str
    why: str
    required: bool = False
    built_in: bool = True
    field_selector: str | None = None
    names: tuple[str, ...] = ()
    namespaced: bool = True
    max_objects: int | None = None

    def path(self, version: str, namespace: str | None = None) -> str:
        """URL path of the list over all namespaces, or of one."""
        root = f"/apis/{self.group}/{version}" if self.group else f"/api/{version}"
        return f"{root}/namespaces/{namespace}/{self.plural}" if namespace else f"{root}/{self.plural}"

    @property
    def resource(self) -> str:
        """``daemonsets.apps``: as kubectl and error messages name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def rbac_rule(self) -> str:
        """The rule that a ClusterRole needs for it, as one line of YAML."""
        listed = ", ".join(f'"{name}"' for name in self.names)
        only = f"resourceNames: [{listed}], " if listed else ""
        return f'- {{apiGroups: ["{self.group}"], resources: ["{self.plural}"], {only}verbs: ["get", "list", "watch"]}}'

    @property
    def selector(self) -> str | None:
        """The ``fieldSelector`` of the list. One that names an object is what makes a right by name hold for a list."""
        parts = [f"metadata.name={name}" for name in self.names]
        return ",".join([*parts, *([self.field_selector] if self.field_selector else [])]) or None


DRA_VERSIONS = ("v1", "v1beta2", "v1beta1")
"""Dynamic resource allocation: v1 since Kubernetes 1.34, v1beta2 in 1.33, v1beta1 in 1.32 (kubernetes/api resource).
``status.allocation.devices.results`` of a claim, and node and pool of a slice, are the same in all three."""

KINDS: tuple[KindSpec, ...] = (
    KindSpec(
        kind="Node",
        group="",
        versions=("v1",),
        plural="nodes",
        why="GPUs, drivers, labels, taints, age and price of every node",
        required=True,
        namespaced=False,
    ),
    # Finished pods are wanted too: the end of the last one tells since when a node is idle.
    KindSpec(kind="Pod", group="", versions=("v1",), plural="pods", why="who holds GPUs, who waits for one"),
    KindSpec(
        kind="Event",
        group="",
        versions=("v1",),
        plural="events",
        why="why pods wait and why nodes stay",
        field_selector=",".join(f"reason!={reason}" for reason in ROUTINE_REASONS),
        # A crash loop can write events without end; what rules read of them also stands in conditions of the pods.
        max_objects=20_000,
    ),
    KindSpec(
        kind="DaemonSet",
        group="apps",
        versions=("v1",),
        plural="daemonsets",
        why="drivers, device plugins and feature discovery",
    ),
    KindSpec(
        kind="Deployment",
        group="apps",
        versions=("v1",),
        plural="deployments",
        why="operators, schedulers and autoscalers; what GPU pods come from",
    ),
    KindSpec(
        kind="StatefulSet",
        group="apps",
        versions=("v1",),
        plural="statefulsets",
        why="what GPU pods come from",
    ),
    KindSpec(
        kind="HorizontalPodAutoscaler",
        group="autoscaling",
        versions=("v2", "v1"),
        plural="horizontalpodautoscalers",
        why="what GPU workloads are scaled by",
        built_in=False,
    ),
    KindSpec(
        kind="StorageClass",
        group="storage.k8s.io",
        versions=("v1",),
        plural="storageclasses",
        why="whether volumes can be shared between nodes",
        built_in=False,
        namespaced=False,
    ),
    KindSpec(
        kind="PersistentVolumeClaim",
        group="",
        versions=("v1",),
        plural="persistentvolumeclaims",
        why="volumes that pods on several nodes mount",
    ),
    KindSpec(
        kind="PersistentVolume",
        group="",
        versions=("v1",),
        plural="persistentvolumes",
        why="which storage driver is behind a claim",
        namespaced=False,
    ),
    KindSpec(
        kind="ResourceClaim",
        group="resource.k8s.io",
        versions=DRA_VERSIONS,
        plural="resourceclaims",
        why="GPUs held through dynamic resource allocation",
        built_in=False,
    ),
    KindSpec(
        kind="ResourceSlice",
        group="resource.k8s.io",
        versions=DRA_VERSIONS,
        plural="resourceslices",
        why="GPUs offered through dynamic resource allocation",
        built_in=False,
        namespaced=False,
    ),
    KindSpec(
        kind="ResourceClaimTemplate",
        group="resource.k8s.io",
        versions=DRA_VERSIONS,
        plural="resourceclaimtemplates",
        why="what pods ask for whose claim is not there yet",
        built_in=False,
    ),
    KindSpec(
        kind="DeviceClass",
        group="resource.k8s.io",
        versions=DRA_VERSIONS,
        plural="deviceclasses",
        why="which claims are about GPUs",
        built_in=False,
        namespaced=False,
    ),
    KindSpec(
        kind="ResourceQuota",
        group="",
        versions=("v1",),
        plural="resourcequotas",
        why="whether teams have a share of the GPUs",
    ),
    KindSpec(
        kind="PriorityClass",
        group="scheduling.k8s.io",
        versions=("v1",),
        plural="priorityclasses",
        why="whose pods go first when GPUs are short",
        namespaced=False,
    ),
    KindSpec(
        kind="PodGroup",
        group="scheduling.volcano.sh",
        versions=("v1beta1",),
        plural="podgroups",
        why="gangs of pods that start together",
        built_in=False,
    ),
    KindSpec(
        kind="ClusterQueue",
        group="kueue.x-k8s.io",
        versions=("v1beta2", "v1beta1"),
        plural="clusterqueues",
        why="how many GPUs a queue may give out",
        built_in=False,
        namespaced=False,
    ),
    KindSpec(
        kind="ResourceFlavor",
        group="kueue.x-k8s.io",
        versions=("v1beta2", "v1beta1"),
        plural="resourceflavors",
        why="which nodes a queue means",
        built_in=False,
        namespaced=False,
    ),
    KindSpec(
        kind="Workload",
        group="kueue.x-k8s.io",
        versions=("v1beta2", "v1beta1"),
        plural="workloads",
        why="which jobs wait in a queue, and why",
        built_in=False,
    ),
    KindSpec(
        kind="JobSet",
        group="jobset.x-k8s.io",
        versions=("v1alpha2",),
        plural="jobsets",
        why="how many pods a multi-node job wants",
        built_in=False,
    ),
    KindSpec(
        kind="LeaderWorkerSet",
        group="leaderworkerset.x-k8s.io",
        versions=("v1",),
        plural="leaderworkersets",
        why="how many pods a multi-node model wants",
        built_in=False,
    ),
    KindSpec(
        kind="PyTorchJob",
        group="kubeflow.org",
        versions=("v1",),
        plural="pytorchjobs",
        why="how many pods a training job wants",
        built_in=False,
    ),
    KindSpec(
        kind="MPIJob",
        group="kubeflow.org",
        versions=("v2beta1", "v1"),
        plural="mpijobs",
        why="how many pods a training job wants",
        built_in=False,
    ),
    KindSpec(
        kind="RayCluster",
        group="ray.io",
        versions=("v1",),
        plural="rayclusters",
        why="what Ray clusters hold and want",
        built_in=False,
    ),
    KindSpec(
        kind="ClusterPolicy",
        group="nvidia.com",
        versions=("v1",),
        plural="clusterpolicies",
        why="state of NVIDIA's GPU Operator",
        built_in=False,
        namespaced=False,
    ),
    KindSpec(
        kind="NVIDIADriver",
        group="nvidia.com",
        versions=("v1alpha1",),
        plural="nvidiadrivers",
        why="state of drivers that NVIDIA's GPU Operator installs",
        built_in=False,
        namespaced=False,
    ),
    KindSpec(
        kind="DeviceConfig",
        group="amd.com",
        versions=("v1alpha1",),
        plural="deviceconfigs",
        why="state of AMD's GPU Operator",
        built_in=False,
    ),
    KindSpec(
        kind="EC2NodeClass",
        group="karpenter.k8s.aws",
        versions=("v1", "v1beta1"),
        plural="ec2nodeclasses",
        why="which node image Karpenter takes, with or without a GPU driver",
        built_in=False,
        namespaced=False,
    ),
    KindSpec(
        kind="ServiceMonitor",
        group="monitoring.coreos.com",
        versions=("v1",),
        plural="servicemonitors",
        why="whose pod GPU metrics are written to",
        built_in=False,
    ),
    KindSpec(
        kind="PodDisruptionBudget",
        group="policy",
        versions=("v1",),
        plural="poddisruptionbudgets",
        why="what keeps nodes from being drained",
    ),
    KindSpec(
        kind="CronJob",
        group="batch",
        versions=("v1",),
        plural="cronjobs",
        why="whether work that has yet to start would run on its nodes",
    ),
    KindSpec(kind="Job", group="batch", versions=("v1",), plural="jobs", why="what is finished, what gives up early"),
    KindSpec(
        kind="ConfigMap",
        group="",
        versions=("v1",),
        plural="configmaps",
        why="limits of node groups, as cluster-autoscaler writes them",
        names=("cluster-autoscaler-status",),
    ),
    KindSpec(
        kind="NodePool",
        group="karpenter.sh",
        versions=("v1", "v1beta1"),
        plural="nodepools",
        why="what lets Karpenter add and remove GPU nodes",
        built_in=False,
        namespaced=False,
    ),
    KindSpec(
        kind="NodeClaim",
        group="karpenter.sh",
        versions=("v1", "v1beta1"),
        plural="nodeclaims",
        why="what Karpenter waits for",
        built_in=False,
        namespaced=False,
    ),
    KindSpec(
        kind="RayJob",
        group="ray.io",
        versions=("v1",),
        plural="rayjobs",
        why="whether the work of a Ray cluster is over",
        built_in=False,
    ),
    KindSpec(
        kind="Notebook",
        group="kubeflow.org",
        versions=("v1", "v1beta1"),
        plural="notebooks",
        why="whose notebook holds a GPU",
        built_in=False,
    ),
    KindSpec(
        kind="ScaledObject",
        group="keda.sh",
        versions=("v1alpha1",),
        plural="scaledobjects",
        why="what scales GPU services, and whether down to zero",
        built_in=False,
    ),
)

BY_KIND = {spec.kind: spec for spec in KINDS}


def is_routine(event: Event) -> bool:
    """True for an event that a live cluster is not even asked for; snapshots drop it, so that both give equal facts."""
    return event.reason in ROUTINE_REASONS
